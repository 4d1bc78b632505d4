//! Images without a mount: formats that the running kernel does not mount, filled by `mkfs.ext4
//! -d`, and refusals.

use std::{collections::HashMap, fs::File};

use senesce_ext4::{Error, FileSystem, ScanOptions, TreeOptions, Warning};

use crate::support::{Image, run};

/// A small tree: 300 files in 3 directories, one file of 700 KB.
fn make_source() -> tempfile::TempDir {
    let source = tempfile::tempdir().unwrap();
    for n in 0..300usize {
        let directory = source.path().join(format!("d{}", n % 3));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("file-{n}")), vec![n as u8; n * 100]).unwrap();
    }
    std::fs::write(source.path().join("big"), vec![1; 700_000]).unwrap();
    source
}

/// The blocks of a file and of its map, as `debugfs` lists them, sorted.
fn read_blocks(image: &Image, path: &str) -> Vec<u64> {
    let text = run("debugfs", &["-R", &format!("blocks {path}"), image.text()]);
    let mut blocks: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    blocks.retain(|&block| block != 0);
    blocks.sort_unstable();
    blocks
}

#[test]
fn blocks_match_the_list_of_debugfs() {
    let source = make_source();
    for arguments in ["-b 65536", "-b 4096", "-b 1024 -O ^extents,^64bit", "-b 8192 -O inline_data", "-b 4096 -r 0"] {
        let image = Image::new(64, &format!("-d {} {arguments}", source.path().display()));
        let mut fs = image.open();
        let block_bytes = fs.superblock().block_bytes;
        let tree = fs.collect_tree(&TreeOptions::default()).unwrap_or_else(|error| panic!("{arguments}: {error}"));
        assert_eq!(tree.report.warnings, [], "{arguments}");
        let mut records = HashMap::new();
        fs.collect_inodes(&ScanOptions::default(), &mut |record| {
            records.insert(record.inode, record);
        })
        .unwrap();
        let mut files = 0;
        tree.walk(&mut |entry| {
            let path = String::from_utf8(entry.path.to_vec()).unwrap();
            let Some(file) = entry.file.filter(|_| path.ends_with("big") || path.ends_with("99")) else { return };
            assert_eq!(file.size_bytes(), std::fs::metadata(source.path().join(&path)).unwrap().len());
            let record = &records[&entry.inode];
            assert_eq!(file.extents().collect::<Vec<_>>(), record.extents, "{arguments}: {path}");
            let extents = record.extents.iter().map(|mapped| mapped.extent);
            let mut blocks: Vec<u64> =
                extents.flat_map(|extent| extent.physical / block_bytes..extent.end() / block_bytes).collect();
            blocks.extend(record.map_blocks_bytes.iter().map(|position| position / block_bytes));
            blocks.sort_unstable();
            assert_eq!(blocks, read_blocks(&image, &path), "{arguments}: {path}");
            files += 1;
        });
        assert_eq!(files, 4, "{arguments}: big, 99, 199, 299");
    }
}

#[test]
fn unknown_features_are_refused_with_name_or_number() {
    let image = Image::new(8, "-b 1024 -O ^metadata_csum");
    let mut bytes = image.bytes();
    let refused = |bytes: Vec<u8>| FileSystem::open(bytes).unwrap_err().to_string();
    bytes[1024 + 0x62] |= 0x80;
    assert_eq!(
        refused(bytes),
        "the file system uses features that this version cannot read: incompatible feature 0x800000"
    );
    let mut bytes = image.bytes();
    bytes[1024 + 0x60] |= 1;
    assert_eq!(refused(bytes), "the file system uses features that this version cannot read: compression");
    run("mkfs.ext4", &["-q", "-F", "-O", "journal_dev", image.text()]);
    assert!(refused(image.bytes()).contains("journal_dev"));
}

#[test]
fn other_formats_and_truncated_images_are_refused() {
    assert!(matches!(FileSystem::open(vec![0; 1 << 20]), Err(Error::NotExt4 { found: 0 })));
    assert!(matches!(FileSystem::open(Vec::new()), Err(Error::Read { block: 0, .. })));
    let image = Image::new(8, "-b 1024");
    let mut bytes = image.bytes();
    bytes.truncate(5000 * 1024 + 17);
    let error = FileSystem::open(bytes).unwrap_err();
    assert!(matches!(error, Error::DeviceTooShort { first_missing_block: 5000, blocks: 8192, .. }), "{error}");
}

#[test]
fn superblock_state_becomes_a_warning() {
    let image = Image::new(8, "-b 1024 -O ^metadata_csum");
    let warnings = |at: usize, change: fn(u8) -> u8| {
        let mut bytes = image.bytes();
        bytes[1024 + at] = change(bytes[1024 + at]);
        FileSystem::open(bytes).unwrap().warnings()
    };
    assert_eq!(warnings(0x60, |incompat| incompat | 4), [Warning::JournalNotReplayed]);
    assert_eq!(warnings(0x3A, |state| state & !1), [Warning::NotUnmounted]);
    assert_eq!(warnings(0x3A, |state| state | 2), [Warning::ErrorsRecorded]);
    assert_eq!(warnings(0x65, |ro_compat| ro_compat | 0x40), [Warning::BlocksMayBeShared]);
    assert_eq!(image.open().warnings(), []);
}

#[test]
fn tree_reports_memory_and_stops_at_limit() {
    let source = make_source();
    let image = Image::new(16, &format!("-b 1024 -d {}", source.path().display()));
    let tree = image.open().collect_tree(&TreeOptions::default()).unwrap();
    assert!(tree.memory_bytes() < 64 << 10, "{} bytes for 300 files", tree.memory_bytes());
    let options = TreeOptions { memory_limit_bytes: 4096, ..TreeOptions::default() };
    let error = image.open().collect_tree(&options).unwrap_err();
    assert!(matches!(error, Error::MemoryLimit { limit_bytes: 4096, .. }), "{error}");
}

#[test]
fn device_length_is_the_position_of_its_end() {
    let image = Image::new(8, "-b 1024");
    let fs = FileSystem::open(File::open(&image.path).unwrap()).unwrap();
    assert_eq!((fs.superblock().blocks, fs.superblock().block_bytes), (8192, 1024));
}
