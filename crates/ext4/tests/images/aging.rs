//! Trees that were used for a while: files made, grown and deleted in turn; holes, preallocation,
//! links, odd names.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FallocateFlags, FileType, Mode};
use senesce_core::{Rng, Seed};

use crate::support::sync;

/// The contents of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Steps of making, growing and deleting files.
    pub steps: u64,
    /// Entries of the large directory; 0 for none.
    pub large_directory: u64,
    /// Pieces of the file with the deepest map.
    pub pieces: u64,
    /// Whether files can be preallocated, which block maps do not support.
    pub preallocates: bool,
}

/// Fills a mounted volume.
pub fn age(root: &Path, seed: u64, plan: Plan) {
    let mut rng = Rng::for_purpose(Seed(seed), "ext4-aging");
    use_for_a_while(root, &mut rng, plan.steps);
    make_large_directory(&root.join("large"), plan.large_directory);
    make_pieces(&root.join("pieces"), plan.pieces);
    make_odd_ones(root, plan.preallocates);
    sync(root);
}

/// Makes, grows, truncates and deletes files in a few directories.
fn use_for_a_while(root: &Path, rng: &mut Rng, steps: u64) {
    let mut files: Vec<PathBuf> = Vec::new();
    for step in 0..steps {
        match rng.below(10) {
            0..5 => {
                let directory = root.join(format!("d{}/e{}", rng.below(4), rng.below(6)));
                fs::create_dir_all(&directory).unwrap();
                let path = directory.join(format!("file-{step}"));
                fs::write(&path, vec![step as u8; rng.below(30_000) as usize]).unwrap();
                files.push(path);
            }
            5..8 if !files.is_empty() => {
                let path = &files[rng.below(files.len() as u64) as usize];
                let mut file = OpenOptions::new().append(true).open(path).unwrap();
                file.write_all(&vec![step as u8; rng.below(20_000) as usize]).unwrap();
                if rng.chance(1, 3) {
                    file.sync_all().unwrap();
                }
            }
            8 if !files.is_empty() => {
                let path = files.swap_remove(rng.below(files.len() as u64) as usize);
                fs::remove_file(path).unwrap();
            }
            _ if !files.is_empty() => {
                let path = &files[rng.below(files.len() as u64) as usize];
                let mut file = OpenOptions::new().write(true).open(path).unwrap();
                // A hole, and data after it.
                file.seek(SeekFrom::Start(rng.below(400_000))).unwrap();
                file.write_all(b"behind a hole").unwrap();
            }
            _ => {}
        }
    }
}

/// Makes many names in one directory, and deletes every third.
fn make_large_directory(directory: &Path, entries: u64) {
    if entries == 0 {
        return;
    }
    fs::create_dir(directory).unwrap();
    let name = |n: u64| directory.join(format!("a-name-that-is-rather-long-for-a-file-{n}"));
    for n in 0..entries {
        File::create(name(n)).unwrap();
    }
    for n in (0..entries).step_by(3) {
        fs::remove_file(name(n)).unwrap();
    }
}

/// Makes a file of which every second block is a hole, so that its map needs blocks of its own.
fn make_pieces(path: &Path, pieces: u64) {
    let mut file = File::create(path).unwrap();
    for n in 0..pieces {
        file.seek(SeekFrom::Start(n * 8192)).unwrap();
        file.write_all(&[n as u8; 100]).unwrap();
    }
    // Far away, for the third level of a block map.
    file.seek(SeekFrom::Start(5 << 30)).unwrap();
    file.write_all(b"far").unwrap();
    file.sync_all().unwrap();
}

/// Makes one of each rare kind.
fn make_odd_ones(root: &Path, preallocates: bool) {
    let odd = root.join("odd");
    fs::create_dir(&odd).unwrap();
    File::create(odd.join("empty")).unwrap();
    fs::write(odd.join("tiny"), b"tiny").unwrap();
    fs::write(odd.join("inline-in-two-places"), [b'x'; 120]).unwrap();
    fs::write(odd.join(OsStr::from_bytes(b"not \xff utf-8 \x01")), b"name").unwrap();
    fs::write(odd.join(OsStr::from_bytes(&[b'n'; 255])), b"longest name").unwrap();
    fs::write(odd.join("caf\u{e9}-\u{4e2d}\u{6587}-a-name-of-more-than-one-chunk-of-the-hash"), b"bytes above 127")
        .unwrap();
    fs::write(odd.join("linked"), [1; 5000]).unwrap();
    fs::hard_link(odd.join("linked"), odd.join("another name")).unwrap();
    fs::create_dir(odd.join("beside")).unwrap();
    fs::hard_link(odd.join("linked"), odd.join("beside/a third name")).unwrap();
    symlink("tiny", odd.join("short symlink")).unwrap();
    symlink("x".repeat(200), odd.join("long symlink")).unwrap();
    rustix::fs::mknodat(CWD, odd.join("pipe"), FileType::Fifo, Mode::from_bits_truncate(0o600), 0).unwrap();
    let sparse = File::create(odd.join("only a hole")).unwrap();
    sparse.set_len(10 << 20).unwrap();
    let attributes = odd.join("with attributes");
    fs::write(&attributes, [2; 5000]).unwrap();
    let value = vec![7; 900]; // too large for the inode
    rustix::fs::setxattr(&attributes, "user.test", &value, rustix::fs::XattrFlags::empty()).unwrap();
    let deep = (0..30).fold(odd.join("deep"), |path, n| path.join(format!("level-{n}")));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("end"), b"end").unwrap();
    if preallocates {
        let file = File::create(odd.join("preallocated")).unwrap();
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        let file = File::create(odd.join("preallocated behind its end")).unwrap();
        rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
        let mut file = File::create(odd.join("partly written")).unwrap();
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        file.seek(SeekFrom::Start(300_000)).unwrap();
        file.write_all(&[3; 50_000]).unwrap();
        rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 65_536).unwrap();
    }
}
