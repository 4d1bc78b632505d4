//! Every variant of the format that the kernel mounts: the kernel's data against the reader's data.

use std::{collections::HashMap, fs::File, os::unix::fs::MetadataExt, time::UNIX_EPOCH};

use senesce_ext4::{
    EntryOrder, ExtentState, FileKind, FileSystem, InodeRecord, MappedExtent, Mapping, ScanOptions, Timestamp, Tree,
    TreeOptions,
};

use crate::{
    aging::{Plan, age},
    fiemap::{Known, collect_known},
    support::Image,
};

const PLAN: Plan = Plan { steps: 600, large_directory: 3500, pieces: 3000, preallocates: true };

fn collect_records(fs: &FileSystem<File>, threads: usize) -> HashMap<u32, InodeRecord> {
    let options = ScanOptions { threads, entries: Some(EntryOrder::OnDisk) };
    let mut records = HashMap::new();
    let mut last = 0;
    let report = fs
        .collect_inodes(&options, &mut |record| {
            assert!(record.inode > last, "inode {} came after {last}", record.inode);
            last = record.inode;
            records.insert(record.inode, record);
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.inodes, records.len() as u64);
    records
}

/// Makes an aged volume, reads it through the kernel, unmounts it, reads the image, and compares.
fn check(mib: u64, arguments: &str, plan: Plan) -> HashMap<u32, InodeRecord> {
    let image = Image::new(mib, arguments);
    let mount = image.mount("defaults");
    age(&mount.mountpoint, 1, plan);
    let known = collect_known(&mount.mountpoint);
    assert!(known.len() as u64 > plan.large_directory / 2, "the tree is as large as planned");
    drop(mount);

    let mut fs = image.open();
    let tree = fs.collect_tree(&TreeOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(tree.report.warnings, [], "{arguments}");
    compare_tree(&known, &tree);
    let records = collect_records(&fs, 1);
    compare_records(&known, &records);
    assert_eq!(records, collect_records(&fs, 3), "the number of threads changes nothing");
    // Clusters are allocated whole. Values of attributes in other inodes count for their users.
    if !arguments.contains("bigalloc") && !arguments.contains("ea_inode") {
        compare_sums(&fs, &records);
    }
    records
}

/// Compares paths, in the order of the kernel, with inodes and extents.
pub fn compare_tree(known: &[Known], tree: &Tree) {
    let mut open = known.iter();
    let report = tree.walk(&mut |entry| {
        let expected = open.next().expect("not more names than the kernel lists");
        let shown = String::from_utf8_lossy(entry.path);
        assert_eq!(
            entry.path,
            expected.path,
            "{shown}: the kernel's order, at {:?}",
            String::from_utf8_lossy(&expected.path)
        );
        assert_eq!(entry.inode, expected.inode(), "{shown}");
        let is_special = !(expected.metadata.is_file() || expected.metadata.is_dir() || expected.metadata.is_symlink());
        assert_eq!(entry.file.is_none(), is_special, "{shown}");
        let Some(file) = entry.file else { return };
        assert_eq!(file.size_bytes(), expected.metadata.size(), "{shown}");
        assert_eq!(u64::from(file.links()), expected.metadata.nlink(), "{shown}");
        assert_eq!(file.modified_seconds(), expected.metadata.mtime(), "{shown}");
        if let Some(extents) = &expected.extents {
            assert_eq!(&file.extents().collect::<Vec<_>>(), extents, "{shown}");
        }
    });
    assert_eq!(open.next().map(|known| &known.path), None, "all names come");
    assert_eq!(report.names + 1, known.len() as u64);
    assert_eq!((report.further_links, report.without_file, report.repeated_directories), (2, 1, 0));
}

fn compare_records(known: &[Known], records: &HashMap<u32, InodeRecord>) {
    for known in known {
        let shown = String::from_utf8_lossy(&known.path);
        let Some(record) = records.get(&known.inode()) else {
            assert!(known.extents.is_none(), "{shown} is missing");
            continue;
        };
        let metadata = &known.metadata;
        let kind = match () {
            () if metadata.is_dir() => FileKind::Directory,
            () if metadata.is_symlink() => FileKind::Symlink,
            () => FileKind::Regular,
        };
        assert_eq!(record.kind, kind, "{shown}");
        assert_eq!(record.size_bytes, metadata.size(), "{shown}");
        // The kernel adds inline contents to a file's blocks, so that no tool takes them for a
        // hole.
        let inside = if record.mapping == Mapping::Inline && metadata.is_file() { metadata.size() } else { 0 };
        assert_eq!(record.allocated_bytes + inside.next_multiple_of(512), metadata.blocks() * 512, "{shown}");
        assert_eq!(u64::from(record.links), metadata.nlink(), "{shown}");
        let moment = |seconds, nanoseconds: i64| Timestamp { seconds, nanoseconds: nanoseconds as u32 };
        assert_eq!(record.modified, moment(metadata.mtime(), metadata.mtime_nsec()), "{shown}");
        assert_eq!(record.changed, moment(metadata.ctime(), metadata.ctime_nsec()), "{shown}");
        let created = known.created.map(|created| {
            let since = created.duration_since(UNIX_EPOCH).unwrap();
            Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
        });
        assert_eq!(record.created, created, "{shown}");
        if let Some(extents) = &known.extents {
            assert_eq!(&record.extents, extents, "{shown}");
        }
        if metadata.is_dir() {
            let links = record.entries.as_ref().unwrap().iter();
            let below = links.filter(|entry| records.get(&entry.inode).is_some_and(|r| r.kind == FileKind::Directory));
            assert_eq!(below.count() as u64 + 2, metadata.nlink(), "{shown}: one link for each directory in it");
        }
    }
}

/// Checks that the allocation of a file is the sum of its extents, the blocks of its map and its
/// attributes. Also checks that no block has two owners.
fn compare_sums(fs: &FileSystem<File>, records: &HashMap<u32, InodeRecord>) {
    let block_bytes = fs.superblock().block_bytes;
    let mut owners: Vec<(u64, u64, u32)> = Vec::new();
    for record in records.values() {
        let blocks = |mapped: &&MappedExtent| mapped.state != ExtentState::Inline;
        for mapped in record.extents.iter().filter(blocks) {
            owners.push((mapped.extent.physical, mapped.extent.length, record.inode));
        }
        owners.extend(record.map_blocks_bytes.iter().map(|&position| (position, block_bytes, record.inode)));
        let data: u64 = record.extents.iter().filter(blocks).map(|mapped| mapped.extent.length).sum();
        let map = record.map_blocks_bytes.len() as u64 * block_bytes;
        let attributes = if record.attribute_block_bytes.is_some() { block_bytes } else { 0 };
        assert_eq!(record.allocated_bytes, data + map + attributes, "inode {}: {record:?}", record.inode);
    }
    owners.sort_unstable();
    for pair in owners.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{:?} and {:?} share blocks", pair[0], pair[1]);
    }
}

macro_rules! variants {
    ($($name:ident: $mib:expr, $arguments:expr;)*) => {$(
        #[test]
        fn $name() {
            if !senesce_testkit::root_or_skip("mounts an image to compare with the kernel") {
                return;
            }
            check($mib, $arguments, PLAN);
        }
    )*};
}

variants! {
    the_usual_format_is_read_as_the_kernel_reads_it: 128, "-b 4096";
    blocks_of_1_kib_are_read_as_the_kernel_reads_them: 128, "-b 1024";
    blocks_of_2_kib_are_read_as_the_kernel_reads_them: 128, "-b 2048";
    a_format_without_checksums_is_read_as_the_kernel_reads_it: 128, "-O ^metadata_csum -b 4096";
    a_format_with_checksums_of_groups_only_is_read_as_the_kernel_reads_it: 128, "-O ^metadata_csum,uninit_bg -b 4096";
    a_format_of_32_bits_is_read_as_the_kernel_reads_it: 128, "-O ^64bit -b 4096";
    a_format_without_flexible_groups_is_read_as_the_kernel_reads_it: 300, "-O ^flex_bg -b 1024";
    spread_group_descriptors_are_read_as_the_kernel_reads_them: 300, "-O meta_bg,^resize_inode -b 1024";
    spread_group_descriptors_of_32_bytes_are_read_as_the_kernel_reads_them: 300, "-O meta_bg,^resize_inode,^64bit -b 1024";
    clusters_of_16_blocks_are_read_as_the_kernel_reads_them: 300, "-O bigalloc -b 4096";
    clusters_of_small_blocks_are_read_as_the_kernel_reads_them: 128, "-O bigalloc -b 1024 -C 8192";
    data_inside_inodes_is_read_as_the_kernel_reads_it: 128, "-O inline_data -I 512 -b 4096";
    data_inside_small_inodes_is_read_as_the_kernel_reads_it: 128, "-O inline_data -b 4096";
    data_inside_inodes_without_checksums_is_read_as_the_kernel_reads_it: 128, "-O inline_data,^metadata_csum -b 1024";
    two_copies_of_the_superblock_are_read_as_the_kernel_reads_them: 128, "-O sparse_super2 -b 1024";
    a_seed_of_checksums_is_read_as_the_kernel_reads_it: 128, "-O metadata_csum_seed -b 4096";
    directories_without_index_are_read_as_the_kernel_reads_them: 128, "-O ^dir_index -b 4096";
    entries_without_kinds_are_read_as_the_kernel_reads_them: 128, "-O ^filetype -b 4096";
    inodes_of_128_bytes_are_read_as_the_kernel_reads_them: 128, "-I 128";
    large_directories_and_values_in_inodes_are_read_as_the_kernel_reads_them: 128, "-O large_dir,ea_inode -b 4096";
    a_format_without_journal_is_read_as_the_kernel_reads_it: 128, "-O ^has_journal -b 4096";
    multiple_mount_protection_is_read_as_the_kernel_reads_it: 128, "-O mmp";
    a_file_of_orphans_is_read_as_the_kernel_reads_it: 128, "-O orphan_file -b 4096";
}

#[test]
fn three_level_block_maps_match_the_kernel() {
    if !senesce_testkit::root_or_skip("mounts an image to compare with the kernel") {
        return;
    }
    for arguments in ["-t ext2", "-t ext3 -b 1024"] {
        let records = check(200, arguments, Plan { preallocates: false, ..PLAN });
        let mapped = records.values().filter(|record| record.mapping == Mapping::BlockMap);
        let most = mapped.map(|record| record.map_blocks_bytes.len()).max();
        // 3,000 pieces at every second block of 1 KiB to 4 KiB, and one 5 GiB further.
        assert!(most.is_some_and(|most| most > 8), "{most:?}");
    }
}

#[test]
fn deep_extent_trees_match_the_kernel() {
    if !senesce_testkit::root_or_skip("mounts an image to compare with the kernel") {
        return;
    }
    // Blocks of 1 KiB hold 84 entries: 9,000 pieces need 108 leaves, more than one level above the
    // root.
    let records = check(300, "-b 1024", Plan { pieces: 9000, steps: 50, large_directory: 0, ..PLAN });
    let most = records.values().map(|record| record.map_blocks_bytes.len()).max();
    assert!(most.is_some_and(|most| most > 108), "{most:?}");
}

#[test]
fn inline_data_has_its_own_mapping() {
    if !senesce_testkit::root_or_skip("mounts an image") {
        return;
    }
    let records = check(128, "-O inline_data -b 4096", Plan { steps: 100, large_directory: 0, ..PLAN });
    let inline: Vec<_> = records.values().filter(|record| record.mapping == Mapping::Inline).collect();
    assert!(inline.iter().any(|record| record.kind == FileKind::Directory));
    let sizes: Vec<u64> =
        inline.iter().filter(|record| record.kind == FileKind::Regular).map(|record| record.size_bytes).collect();
    assert!(sizes.contains(&4) && sizes.contains(&120), "one within 60 bytes, one beyond: {sizes:?}");
    assert!(inline.iter().all(|record| record.extents.iter().all(|mapped| mapped.state == ExtentState::Inline)));
    assert!(inline.iter().all(|record| record.allocated_bytes == 0));
}
