//! A mount whose space ends: what fsync, msync and close confirmed is there after a remount.
//!
//! The page cache serves what the engine never stored, so each case reads after a remount.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::fd::OwnedFd,
    path::Path,
};

use memmap2::MmapMut;
use rustix::{fs::FallocateFlags, io::Errno};
use senesce_testkit::root_or_skip;

use super::{
    garden_mount::{Mounted, hold, start},
    lab::Lab,
};

const LEN: usize = 1_000_000;
pub const MODES: [&[&str]; 4] = [&[], &["--write-back"], &["--write-back=engine"], &["--write-back=direct"]];

/// A way to give a file its contents, and to ask whether they are kept.
pub type Way = fn(&Path, &[u8]) -> io::Result<()>;

pub const WAYS: [(&str, Way); 4] =
    [("write", by_writes), ("close", by_close), ("mapping", by_mapping), ("sparse", by_write_into_hole)];

/// Closes a file and returns the error of close(2), which dropping a [`File`] hides.
fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor is ours alone, and nothing uses it after this call.
    let result = unsafe { libc::close(std::os::fd::IntoRawFd::into_raw_fd(OwnedFd::from(file))) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn by_writes(path: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(data)?;
    file.sync_all()?;
    close(file)
}

fn by_close(path: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(data)?;
    close(file)
}

fn by_mapping(path: &Path, data: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    file.set_len(data.len() as u64)?;
    // SAFETY: no other process opens the file while it is mapped.
    let mut mapping = unsafe { MmapMut::map_mut(&file) }?;
    mapping.copy_from_slice(data);
    mapping.flush()?;
    drop(mapping);
    file.sync_all()?;
    close(file)
}

fn by_write_into_hole(path: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.set_len(4 * data.len() as u64)?;
    file.write_all(data)?;
    file.sync_all()?;
    file.set_len(data.len() as u64)?;
    file.sync_all()?;
    close(file)
}

struct Engine {
    name: &'static str,
    mkfs: &'static [&'static str],
    image: &'static str,
}

const ENGINES: [Engine; 2] = [
    Engine {
        name: "evergreen",
        mkfs: &["fs", "mkfs", "evergreen", "e.img", "--size", "64MiB", "--node-size", "64KiB", "--unit-size", "4KiB"],
        image: "e.img",
    },
    Engine { name: "garden", mkfs: &["fs", "mkfs", "garden", "g", "--size", "96MiB"], image: "g" },
];

fn mount<'a>(lab: &'a Lab, engine: &Engine, mode: &[&str]) -> Mounted<'a> {
    hold(lab, start(lab, lab.command().args(["--quiet", "fs", "mount", engine.image, "mnt"]).args(mode)))
}

fn available(lab: &Lab) -> u64 {
    let space = rustix::fs::statvfs(lab.path("mnt")).unwrap();
    space.f_bavail * space.f_frsize
}

/// Fills the mount until less than `left` bytes are available.
fn fill(lab: &Lab, left: u64) {
    let root = lab.path("mnt");
    for number in 0.. {
        let available = available(lab);
        if available <= left {
            return;
        }
        let len = (available - left).clamp(4096, 4 << 20);
        let mut file = File::create(root.join(format!("filler-{number}"))).unwrap();
        match file.write_all(&vec![1; len as usize]).and_then(|()| file.sync_all()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(Errno::NOSPC.raw_os_error()) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn confirmed_contents_survive_a_full_mount() {
    if !root_or_skip("mounting") {
        return;
    }
    let data: Vec<u8> = (0..LEN).map(|at| (at / 4096 + 1) as u8).collect();
    let mut refused = 0;
    for engine in &ENGINES {
        for mode in MODES {
            let lab = Lab::new();
            lab.run(engine.mkfs).good();
            let mounted = mount(&lab, engine, mode);
            fill(&lab, 560 << 10);
            let mut confirmed = Vec::new();
            for (way, put) in WAYS {
                let path = lab.path("mnt").join(way);
                let available = available(&lab);
                match put(&path, &data) {
                    // In write-back mode, close writes the pages and returns their error. In the
                    // other modes, no page waits.
                    Ok(()) => confirmed.push(way),
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()), "{way}: {error}");
                        refused += 1;
                        // The kernel frees a removed file some time after unlink(2), so nothing may
                        // be available for the next creation.
                        match path.exists() {
                            true => fs::remove_file(&path).unwrap(),
                            false => assert_eq!(available, 0, "{} {mode:?}: {way} was not created", engine.name),
                        }
                    }
                }
            }
            mounted.unmount();
            let mounted = mount(&lab, engine, &[]);
            for way in confirmed {
                let kept = fs::read(lab.path("mnt").join(way)).unwrap();
                assert!(
                    kept == data,
                    "{} {mode:?}: {way} was confirmed, but {} other bytes are kept",
                    engine.name,
                    kept.len()
                );
            }
            mounted.unmount();
            lab.run(["fs", "check", engine.image]).good();
        }
    }
    assert!(refused > 0, "no case met the end of the space");
}

#[test]
fn reserved_space_is_kept_or_refused() {
    const RESERVED: usize = 4 << 20;
    if !root_or_skip("mounting") {
        return;
    }
    for engine in &ENGINES {
        let lab = Lab::new();
        lab.run(engine.mkfs).good();
        let mounted = mount(&lab, engine, &[]);
        let mut file = File::create(lab.path("mnt/reserved")).unwrap();
        let mut kept = 0;
        for flags in [FallocateFlags::KEEP_SIZE, FallocateFlags::empty()] {
            match rustix::fs::fallocate(&file, flags, 0, RESERVED as u64) {
                Ok(()) => kept += 1,
                Err(error) => assert_eq!(error, Errno::OPNOTSUPP, "{}", engine.name),
            }
        }
        assert_eq!(kept, if engine.name == "garden" { 0 } else { 2 }, "{}", engine.name);
        assert_eq!(file.metadata().unwrap().len(), if kept > 0 { RESERVED as u64 } else { 0 });
        // A range of zeros and a hole need no reservation.
        rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 0, RESERVED as u64).unwrap();
        if kept > 0 {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVED as u64).unwrap();
            fill(&lab, 0);
            assert_eq!(available(&lab), 0, "{}", engine.name);
            file.write_all(&vec![7; RESERVED]).unwrap();
            file.sync_all().unwrap();
        }
        drop(file);
        mounted.unmount();
        lab.run(["fs", "check", engine.image]).good();
    }
}
