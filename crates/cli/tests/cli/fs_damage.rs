//! Gardens on one drive without parity, as plans make them, that are damaged: what cannot be had is
//! named, and nothing goes in silence.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt,
};

use senesce_testkit::root_or_skip;

use super::{
    garden_mount::{SLOT, mount, mount_and_hear, start, write_synced},
    lab::Lab,
};

const BLOCK: usize = 4096;
const IMAGE: &str = "g/drive-00.img";

fn mkfs(lab: &Lab) {
    lab.run(["fs", "mkfs", "garden", "g", "--size", "32MiB", "--data-drives", "1", "--no-parity", "--seed", "7"])
        .good();
}

/// The number of the newest superblock.
fn newest_number(lab: &Lab) -> u64 {
    let image = File::open(lab.path(IMAGE)).unwrap();
    let number = |slot: u64| {
        let mut bytes = [0; 8];
        image.read_exact_at(&mut bytes, slot * SLOT + 32).unwrap();
        u64::from_le_bytes(bytes)
    };
    number(1).max(number(3))
}

/// Writes over 32 bytes of the newest superblock.
fn damage_superblock(lab: &Lab) {
    let image = OpenOptions::new().read(true).write(true).open(lab.path(IMAGE)).unwrap();
    let number = |slot: u64| {
        let mut bytes = [0; 8];
        image.read_exact_at(&mut bytes, slot * SLOT + 32).unwrap();
        u64::from_le_bytes(bytes)
    };
    let newest = if number(1) > number(3) { 1 } else { 3 };
    image.write_all_at(&[0x5a; 32], newest * SLOT + 100).unwrap();
}

#[test]
fn damaged_superblock_is_harmless_or_reported() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let mounted = mount(&lab, &[]);
    write_synced(&lab, "a", "one");
    mounted.unmount();
    // The log has all of it.
    damage_superblock(&lab);
    lab.run(["fs", "check", "g"]).refused(1, &["is damaged"]);
    let told = mount_and_hear(&lab, &[], || {
        assert_eq!(fs::read(lab.path("mnt/a")).unwrap(), b"one");
    });
    assert!(told.contains("cannot be read: superblock "), "{told}");
    lab.run(["fs", "check", "g"]).good();

    // A consistency point, and then an operation after it.
    let before = newest_number(&lab);
    let mut child = start(&lab, lab.command().args(["--quiet", "fs", "mount", "g", "mnt", "--point-every", "5"]));
    write_synced(&lab, "c", "three");
    while newest_number(&lab) < before + 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    write_synced(&lab, "b", "two");
    child.kill().unwrap();
    child.wait().unwrap();
    lab.run(["clean"]).good();
    damage_superblock(&lab);
    let told = lab.run(["fs", "check", "g"]);
    told.refused(1, &["is damaged"]);
    assert!(told.stdout.contains("log: consistency point is "), "{}", told.stdout);
    let is_refused =
        || lab.run(["fs", "mount", "g", "mnt"]).refused(1, &["superblocks: ", "--previous-checkpoint --read-only"]);
    is_refused();

    // The older state can still be mounted.
    for more in [&["--older-point", "--read-only"][..], &["--older-point"]] {
        is_refused();
        let mounted = mount(&lab, more);
        assert_eq!(fs::read(lab.path("mnt/a")).unwrap(), b"one");
        assert!(!lab.path("mnt/b").exists());
        mounted.unmount();
    }
    lab.run(["fs", "check", "g"]).good();
    let mounted = mount(&lab, &[]);
    assert_eq!(fs::read(lab.path("mnt/a")).unwrap(), b"one");
    mounted.unmount();
}

/// Another one for each file and block.
fn block(file: usize, number: usize) -> Vec<u8> {
    format!("block {number} of file {file}, ").into_bytes().into_iter().cycle().take(BLOCK).collect()
}

#[test]
fn a_flipped_bit_costs_its_block_alone() {
    const FILES: usize = 6;
    const BLOCKS: usize = 20;
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let mounted = mount(&lab, &[]);
    for file in 0..FILES {
        let contents: Vec<u8> = (0..BLOCKS).flat_map(|number| block(file, number)).collect();
        fs::write(lab.path(format!("mnt/file {file}")), contents).unwrap();
    }
    mounted.unmount();
    let bytes = fs::read(lab.path(IMAGE)).unwrap();
    let wanted = block(3, 7);
    let at = (0..bytes.len()).step_by(SLOT as usize).find(|&at| bytes[at..].starts_with(&wanted)).unwrap();
    let image = OpenOptions::new().write(true).open(lab.path(IMAGE)).unwrap();
    image.write_all_at(&[bytes[at + 1000] ^ 4], at as u64 + 1000).unwrap();

    let told = lab.run(["fs", "check", "g"]);
    told.refused(1, &["is damaged: 1 finding(s)"]);
    assert!(told.stdout.contains("inode ") && told.stdout.contains("checksum"), "{}", told.stdout);
    let mounted = mount(&lab, &[]);
    for file in 0..FILES {
        let open = File::open(lab.path(format!("mnt/file {file}"))).unwrap();
        for number in 0..BLOCKS {
            let mut got = vec![0; BLOCK];
            let read = open.read_exact_at(&mut got, (number * BLOCK) as u64);
            if (file, number) == (3, 7) {
                assert_eq!(read.unwrap_err().raw_os_error(), Some(117), "EUCLEAN");
            } else {
                read.unwrap();
                assert!(got == block(file, number), "file {file}, block {number}");
            }
        }
    }
    // It is written again, and that was that.
    let open = OpenOptions::new().write(true).open(lab.path("mnt/file 3")).unwrap();
    open.write_all_at(&block(3, 7), 7 * BLOCK as u64).unwrap();
    drop(open);
    mounted.unmount();
    lab.run(["fs", "check", "g"]).good();
}
