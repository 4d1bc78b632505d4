//! Real file systems on a virtual disk: formatted, used, trimmed, checked and read.

use std::fs;

use senesce_vdisk::Pace;

use crate::bench::{Disk, pattern, run, write_synced};

pub fn ext4() {
    lives("ext4", 256, "e2fsck -fn");
}

pub fn xfs() {
    lives("xfs", 320, "xfs_repair -n");
}

pub fn btrfs() {
    lives("btrfs", 320, "btrfs check");
}

/// Sizes that are inline, unaligned, and of many blocks.
fn length(n: u64) -> usize {
    [100, 4096, 50_000, 1_000_003][n as usize % 4]
}

fn lives(kind: &str, megabytes: u64, check: &str) {
    let mut disk = Disk::new(megabytes, "hdd-7200", Pace::Device);
    disk.attached.mkfs(kind);
    disk.attached.mount(kind);
    let root = disk.attached.root.clone();
    let made = disk.server.mark("use").unwrap();
    assert!(made.phase.totals.write.bytes > 0 && made.virtual_ns > 0);
    for n in 0..100 {
        write_synced(&root.join(format!("{n}")), &pattern(n, length(n))).unwrap();
    }
    // Incompressible data that is removed again, so that trim has work.
    write_synced(&root.join("big"), &pattern(1000, 64 << 20)).unwrap();
    let full = disk.server.time().unwrap();
    fs::remove_file(root.join("big")).unwrap();
    // XFS frees in the background; a remount completes it.
    disk.attached.remount(kind);
    run(&format!("fstrim {}", root.display()));
    let used = disk.server.mark("read").unwrap();
    assert!(used.phase.totals.flush.requests >= 50, "fsync reaches the disk: {:?}", used.phase.totals);
    assert!(used.phase.totals.discard.bytes >= 64 << 20, "trim reaches the disk: {:?}", used.phase.totals);
    let freed = full.allocated_bytes.saturating_sub(used.allocated_bytes);
    assert!(freed >= 56 << 20, "what is trimmed takes no space: {freed} bytes were freed");

    disk.attached.unmount();
    run(&format!("{check} {}", disk.attached.loop_device.display()));
    disk.attached.mount(kind);
    for n in 0..100 {
        assert!(fs::read(root.join(format!("{n}"))).unwrap() == pattern(n, length(n)), "file {n} reads back");
    }
    let read = disk.server.time().unwrap();
    let bytes: usize = (0..100).map(length).sum();
    assert!(read.phase.totals.read.bytes as usize > bytes * 9 / 10, "reads come from the disk: {:?}", read.phase);
    assert!(read.device.starts_with("model"), "{}", read.device);
    disk.end();
}
