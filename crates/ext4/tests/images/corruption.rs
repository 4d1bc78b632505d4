//! Damaged images: an error that names the block, never a panic, a hang or endless memory.

use std::{collections::HashMap, sync::OnceLock};

use proptest::prelude::*;
use senesce_core::{Rng, Seed};
use senesce_ext4::{Error, FileSystem, OnDamage, OpenOptions, ScanOptions, TreeOptions, Warning};

use crate::support::{Image, run};

/// Blocks of the file whose map has blocks of its own.
const PIECES: u64 = 600;

/// A small image with an extent tree of two levels, a block map of two levels (without checksums),
/// and an indexed directory.
fn make_image(arguments: &str) -> Vec<u8> {
    let source = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(source.path().join("many/deep/er")).unwrap();
    for n in 0..150 {
        std::fs::write(source.path().join(format!("many/a-name-of-some-length-{n}")), vec![1; n]).unwrap();
    }
    // mkfs makes holes of zeros: every second block is an extent of its own.
    let pieces: Vec<u8> = (0..PIECES as u32).flat_map(|n| vec![(n % 2) as u8; 1024]).collect();
    std::fs::write(source.path().join("pieces"), &pieces).unwrap();
    let image = Image::new(2, &format!("-b 1024 -N 256 -d {} {arguments}", source.path().display()));
    // Makes an index for the directory.
    let _ = std::process::Command::new("e2fsck").args(["-fyD", image.text()]).output().unwrap();
    run("dumpe2fs", &["-h", image.text()]);
    image.bytes()
}

fn example(kind: usize) -> &'static [u8] {
    static IMAGES: OnceLock<[Vec<u8>; 3]> = OnceLock::new();
    let images = IMAGES.get_or_init(|| {
        ["", "-O ^metadata_csum,^has_journal", "-O ^extents,^64bit,^metadata_csum,^has_journal"].map(make_image)
    });
    &images[kind]
}

/// Reads everything. Returns the warnings, or the error.
fn read_all(bytes: Vec<u8>, options: OpenOptions) -> Result<Vec<Warning>, Error> {
    let mut fs = FileSystem::open_with(bytes, options)?;
    let mut warnings = fs.collect_free_space()?.report.warnings;
    let limits = TreeOptions { memory_limit_bytes: 64 << 20, attempts: 1, ..TreeOptions::default() };
    let tree = fs.collect_tree(&limits)?;
    tree.walk(&mut |entry| {
        entry.file.map(|file| file.extents().count());
    });
    warnings.extend(tree.report.warnings);
    Ok(warnings)
}

fn names_a_block(error: &Error) -> bool {
    match error {
        // These concern no block, but the features and the length of the whole.
        Error::UnknownFeatures { .. } => true,
        _ => error.to_string().contains("block "),
    }
}

#[test]
fn example_images_are_sound_and_have_all_structures() {
    for kind in 0..3 {
        let bytes = example(kind).to_vec();
        assert_eq!(read_all(bytes.clone(), OpenOptions::default()).unwrap(), [], "{kind}");
        let (mut maps, mut indexed) = (0, 0);
        let fs = FileSystem::open(bytes).unwrap();
        fs.collect_inodes(&ScanOptions::default(), &mut |record| {
            maps += record.map_blocks_bytes.len();
            indexed += usize::from(record.flags.contains(senesce_ext4::InodeFlags::INDEXED));
        })
        .unwrap();
        assert!(maps >= 2 && indexed == 1, "{kind}: {maps} blocks of maps, {indexed} directories with an index");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_return_a_result_or_a_block(
        kind in 0usize..3,
        seed: u64,
        changes in 1usize..12,
        verify_checksums: bool,
        report: bool,
    ) {
        let mut bytes = example(kind).to_vec();
        let mut rng = Rng::for_purpose(Seed(seed), "damage");
        // Bytes that are not zero hold structures or file contents. Most changes affect those.
        let holds: Vec<usize> = (1024..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        for _ in 0..changes {
            let at = match rng.below(4) {
                0 => rng.below(bytes.len() as u64) as usize,
                _ => holds[rng.below(holds.len() as u64) as usize],
            };
            bytes[at] = match rng.below(3) {
                0 => bytes[at] ^ 1 << rng.below(8),
                1 => 0xFF,
                _ => rng.below(256) as u8,
            };
        }
        let on_damage = if report { OnDamage::Report } else { OnDamage::Stop };
        if let Err(error) = read_all(bytes, OpenOptions { verify_checksums, on_damage, retries: 1 }) {
            prop_assert!(names_a_block(&error), "{}", error);
        }
    }

    #[test]
    fn truncated_images_are_refused_with_the_missing_block(kind in 0usize..3, share in 0u64..1000) {
        let whole = example(kind);
        let length = (whole.len() as u64 * share / 1000) as usize;
        let error = read_all(whole[..length].to_vec(), OpenOptions::default()).unwrap_err();
        prop_assert!(names_a_block(&error), "{}", error);
        if length >= 2048 {
            let cut = (length / 1024) as u64;
            prop_assert!(
                matches!(error, Error::DeviceTooShort { first_missing_block, .. } if first_missing_block == cut),
                "{}", error
            );
        }
    }
}

/// With checksums, every single changed byte of every structure that is read is found, with its
/// block.
#[test]
fn checksums_find_changed_structures_with_their_block() {
    let whole = example(0);
    let fs = FileSystem::open(whole.to_vec()).unwrap();
    let mut structures: HashMap<u64, &str> = HashMap::new();
    fs.collect_inodes(&ScanOptions::default(), &mut |record| {
        structures.insert(record.position_bytes + 4, "inode");
        structures.extend(record.map_blocks_bytes.iter().map(|position| (position + 14, "extent tree block")));
        if record.entries.is_some() {
            let extents = record.extents.iter().map(|mapped| mapped.extent);
            structures.extend(
                extents.flat_map(|e| (e.physical..e.end()).step_by(1024)).map(|at| (at + 9, "directory block")),
            );
        }
    })
    .unwrap();
    structures.insert(2048 + 12, "group descriptors");
    structures.insert(1024 + 16, "superblock");
    assert!(structures.len() > 160, "{}", structures.len());
    for (&position, name) in &structures {
        let mut bytes = whole.to_vec();
        bytes[position as usize] ^= 0x10;
        let error = read_all(bytes, OpenOptions::default()).unwrap_err().to_string();
        let block = position / 1024;
        let expected = format!("block {block} ({name}");
        assert!(error.starts_with(&expected) && error.contains("checksum"), "{error}, where {expected} was changed");
    }
}

/// The bitmaps of a group, at the positions that `dumpe2fs` prints.
#[test]
fn checksums_find_changed_bitmaps_with_their_block() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    std::fs::write(&path, example(0)).unwrap();
    let text = run("dumpe2fs", &[path.to_str().unwrap()]);
    for (label, name) in [("Block bitmap at ", "block bitmap"), ("Inode bitmap at ", "inode bitmap")] {
        let at = text.find(label).unwrap() + label.len();
        let digits: String = text[at..].chars().take_while(char::is_ascii_digit).collect();
        let block: usize = digits.parse().unwrap();
        let mut bytes = example(0).to_vec();
        bytes[block * 1024 + 3] ^= 1;
        let error = read_all(bytes, OpenOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("block {block} ({name} of group 0): its checksum")), "{error}");
    }
}

/// Trees that point to themselves, or many times to one block, end with an error after bounded
/// work.
#[test]
fn circular_maps_end_with_an_error() {
    let mut bytes = example(2).to_vec();
    let mut position = 0;
    let fs = FileSystem::open(bytes.clone()).unwrap();
    fs.collect_inodes(&ScanOptions::default(), &mut |record| {
        if record.size_bytes == PIECES * 1024 {
            position = record.position_bytes as usize;
        }
    })
    .unwrap();
    // The address of the third level: a block full of its own address.
    let block = 1500u32;
    let address = block.to_le_bytes();
    bytes[position + 0x28 + 14 * 4..][..4].copy_from_slice(&address);
    for at in (0..1024).step_by(4) {
        bytes[block as usize * 1024 + at..][..4].copy_from_slice(&address);
    }
    let error = read_all(bytes, OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains(&format!("block {block} (indirect block")) && error.contains("more"), "{error}");
}

/// Otherwise sums of sizes would overflow.
#[test]
fn impossible_sizes_are_refused() {
    let whole = example(2);
    let mut position = 0;
    let fs = FileSystem::open(whole.to_vec()).unwrap();
    let mut find = |record: senesce_ext4::InodeRecord| {
        if record.size_bytes == PIECES * 1024 {
            position = record.position_bytes as usize;
        }
    };
    fs.collect_inodes(&ScanOptions::default(), &mut find).unwrap();
    for (size, is_refused) in [(1u64 << 42, false), ((1 << 42) + 1, true), (1 << 63, true), (u64::MAX, true)] {
        let mut bytes = whole.to_vec();
        bytes[position + 4..][..4].copy_from_slice(&(size as u32).to_le_bytes());
        bytes[position + 0x6C..][..4].copy_from_slice(&((size >> 32) as u32).to_le_bytes());
        let told = read_all(bytes, OpenOptions::default()).map_err(|error| error.to_string());
        let wanted = format!("its size is {size} bytes, and no file has more than 4398046511104");
        assert_eq!(told.as_ref().is_err_and(|told| told.ends_with(&wanted)), is_refused, "{size}: {told:?}");
    }
    let mut bytes = whole.to_vec();
    bytes[position + 0x1C..][..4].fill(0xFF);
    let mut most = 0;
    let fs = FileSystem::open(bytes).unwrap();
    fs.collect_inodes(&ScanOptions::default(), &mut |record| most = most.max(record.allocated_bytes)).unwrap();
    assert_eq!(most, whole.len() as u64, "not more than there is");
}

#[test]
fn overlapping_inode_tables_are_refused() {
    let image = Image::new(32, "-b 1024 -O ^metadata_csum,^uninit_bg,^64bit");
    let mut bytes = image.bytes();
    let table: [u8; 4] = bytes[2048 + 8..][..4].try_into().unwrap();
    bytes[2048 + 32 + 8..][..4].copy_from_slice(&table);
    let error = read_all(bytes, OpenOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("the inode tables of groups 0 and 1 overlap"), "{error}");
}
