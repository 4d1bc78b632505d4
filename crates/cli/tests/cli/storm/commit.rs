//! The window of MOVE_EXT on ext4: a program syncs a write after a move, and then the disk loses
//! power.
//!
//! `fdatasync` waits only for transactions that changed data or size of the file. The kernel
//! (measured: 6.18) does not count an exchange of blocks as such a change. Without a commit by the
//! mover, the write is in the new blocks, and the loss of power restores the old ones.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::Path,
};

use rustix::fs::{Advice, FallocateFlags, Mode as FileMode, OFlags, fadvise, fallocate, fchmod};
use senesce_core::{ManualClock, never};
use senesce_defrag::{ApplyOptions, Batch, Part, Plan, apply_plan, collect_tree, find_mover};
use senesce_probe::collect::collect_extents;
use senesce_testkit::{root_or_skip, unmount_patiently};
use senesce_vdisk::Server;

use super::{
    super::{
        defrag::check,
        disk::{Disk, Mount, must},
        lab::Lab,
    },
    case::sync,
    power::{Recording, start_disk},
};

const MIB: u64 = 64;
const BLOCK: usize = 4096;
const PIECE: u64 = 64 << 10;
const PIECES: u64 = 32;
/// The range that moves, bytes. It has several pieces.
const MOVED: u64 = 256 << 10;
const SYNCED: &str = "synced";

/// Where the extents of the file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extents {
    /// In the inode.
    Inode,
    /// In a block of their own: there are more than four. A move then does not change the inode.
    Block,
}

/// The work between the move and the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commit {
    Nothing,
    /// `fsync` of the moved file.
    OfFile,
    /// A change and `fsync` of the donor.
    OfDonor,
}

/// Makes files `0` and `1` below `root`.
fn make(root: &Path, extents: Extents) {
    let files = ["0", "1"].map(|name| File::create(root.join(name)).unwrap());
    let bytes = vec![1; PIECE as usize];
    for at in (0..PIECES * PIECE).step_by(PIECE as usize) {
        for file in &files {
            match extents {
                Extents::Inode if at > 0 => {}
                Extents::Inode => fallocate(file, FallocateFlags::empty(), 0, PIECES * PIECE).unwrap(),
                Extents::Block => fallocate(file, FallocateFlags::empty(), at, PIECE).unwrap(),
            }
        }
    }
    for file in &files {
        (0..PIECES).for_each(|piece| file.write_all_at(&bytes, piece * PIECE).unwrap());
        file.sync_all().unwrap();
    }
    sync(root);
}

fn places(path: &Path) -> Vec<(u64, u64)> {
    let file = File::open(path).unwrap();
    let map = collect_extents(&file, path).unwrap();
    map.iter().map(|raw| (raw.extent.physical, raw.extent.length)).collect()
}

/// Overwrites the first block of the file, and syncs it as a database does.
fn write_synced(path: &Path, server: &mut Server) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[2; BLOCK], 0).unwrap();
    file.sync_data().unwrap();
    server.mark(SYNCED).unwrap();
}

/// Runs `work` on a volume with two files. Returns whether the write that it synced survives a loss
/// of power right after the sync.
fn survives(extents: Extents, work: impl FnOnce(&Path, &mut Server)) -> bool {
    let lab = Lab::new();
    let (mut server, disk) = start_disk(&lab, MIB, "plain", Some(lab.memory().join("contents")));
    must("mkfs.ext4", &["-q", "-b", "4096", &disk.device]);
    // The journal must not commit by its timer.
    let mount = Mount::new(&["-o", "commit=600", &disk.device], lab.path("mnt"));
    let root = mount.point.clone();
    make(&root, extents);
    assert_eq!(places(&root.join("0")).len() > 4, extents == Extents::Block);
    let before = places(&root.join("0"));
    work(&root, &mut server);
    assert_ne!(places(&root.join("0")), before, "the file did not move");
    assert!(unmount_patiently(&root));
    drop((mount, disk));
    server.quit().unwrap();
    let recording = Recording::read(&lab);
    let state = lab.memory().join("state");
    let image = File::options().read(true).write(true).create_new(true).open(&state).unwrap();
    image.set_len(MIB << 20).unwrap();
    let synced = recording.log.marks.iter().find(|mark| mark.name == SYNCED).expect("the write was synced").request;
    (0..synced).for_each(|at| recording.apply(at, &image, u64::MAX));
    drop(image);
    let disk = Disk::attach(&state);
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let bytes = fs::read(mount.point.join("0")).unwrap();
    assert!(bytes[BLOCK..].iter().all(|byte| *byte == 1), "{extents:?}: other blocks");
    assert!(unmount_patiently(&mount.point));
    drop(mount);
    check("ext4", &disk.device);
    bytes[..BLOCK].iter().all(|byte| *byte == 2)
}

/// `struct move_extent` of the kernel.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    start: u64,
    donor_start: u64,
    length: u64,
    moved: u64,
}

/// Moves the first blocks of file `0`, then commits as stated, then writes.
fn move_and_write(root: &Path, commit: Commit, server: &mut Server) {
    let path = root.join("0");
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let donor = rustix::fs::open(root, OFlags::TMPFILE | OFlags::RDWR, FileMode::RUSR | FileMode::WUSR).unwrap();
    let donor = File::from(donor);
    fallocate(&donor, FallocateFlags::empty(), 0, MOVED).unwrap();
    sync(root);
    // The mover also drops large pages. Otherwise the kernel commits within the call.
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let blocks = MOVED / BLOCK as u64;
    let mut call =
        MoveExtent { reserved: 0, donor: donor.as_raw_fd() as u32, start: 0, donor_start: 0, length: blocks, moved: 0 };
    // SAFETY: 0xC028660F is EXT4_IOC_MOVE_EXT, whose structure this is.
    assert_eq!(unsafe { libc::ioctl(file.as_raw_fd(), 0xC028_660F, &raw mut call) }, 0);
    assert_eq!(call.moved, blocks);
    match commit {
        Commit::Nothing => {}
        Commit::OfFile => file.sync_all().unwrap(),
        Commit::OfDonor => {
            fchmod(&donor, FileMode::RUSR | FileMode::WUSR).unwrap();
            donor.sync_all().unwrap();
        }
    }
    write_synced(&path, server);
}

/// The kernel's part. Only `fsync` of the donor must keep the write on every kernel.
#[test]
fn commits_after_a_move_keep_a_synced_write() {
    if !root_or_skip("FUSE and mounting") {
        return;
    }
    for extents in [Extents::Inode, Extents::Block] {
        let kept = |commit| survives(extents, |root, server| move_and_write(root, commit, server));
        let (nothing, of_file, of_donor) = (kept(Commit::Nothing), kept(Commit::OfFile), kept(Commit::OfDonor));
        println!(
            "extents in {extents:?}: kept without a commit: {nothing}, fsync of the file: {of_file}, of the donor: {of_donor}"
        );
        assert!(of_donor, "{extents:?}");
    }
}

/// The mover's part: a program writes after the first step, before the second one.
#[test]
fn a_write_synced_after_a_step_on_ext4_is_kept() {
    if !root_or_skip("FUSE and mounting") {
        return;
    }
    for extents in [Extents::Inode, Extents::Block] {
        let is_kept = survives(extents, |root, server| {
            let path = root.join("0");
            let tree = collect_tree(root, 1, &never).unwrap();
            let entry = |name: &[u8]| tree.entries.iter().position(|entry| entry.path.as_bytes() == name).unwrap();
            let part = |name: &[u8]| Part { entry: entry(name), logical: 0, length: MOVED };
            let batch = Batch { parts: vec![part(b"0"), part(b"1")], pieces: 1000, runs: 1, ..Batch::default() };
            let plan = Plan { batches: vec![batch], ..Plan::default() };
            let (mut mover, _) = find_mover(root, false).unwrap();
            let before = places(&path);
            let mut is_written = false;
            let mut pace = |_| {
                if !is_written && places(&path) != before {
                    write_synced(&path, server);
                    is_written = true;
                }
                !is_written
            };
            let clock = ManualClock::default();
            let options = ApplyOptions { pace: &mut pace, progress: &mut |_| {}, clock: &clock };
            let applied = apply_plan(&tree, &plan, &mut *mover, options).unwrap();
            assert!(applied.is_stopped, "{applied:?}");
        });
        assert!(is_kept, "extents in {extents:?}: a loss of power restored the old block");
    }
}
