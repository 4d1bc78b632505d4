//! Mounted volumes: exact results without writes, and warnings with writes.

use std::{
    fs::{self, File},
    sync::atomic::{AtomicBool, Ordering},
};

use senesce_ext4::{EntryOrder, FileSystem, ReadAt, Report, ScanOptions, TreeOptions, Warning};

use crate::{
    aging::{Plan, age},
    fiemap::collect_known,
    support::{Image, run},
    variants::compare_tree,
};

const PLAN: Plan = Plan { steps: 400, large_directory: 300, pieces: 1000, preallocates: true };

#[test]
fn read_only_mount_has_no_warning() {
    if !senesce_testkit::root_or_skip("mounts an image") {
        return;
    }
    let image = Image::new(64, "-b 4096");
    let mount = image.mount("defaults");
    age(&mount.mountpoint, 3, PLAN);
    run("mount", &["-o", "remount,ro", mount.mountpoint.to_str().unwrap()]);
    let known = collect_known(&mount.mountpoint);
    let tree = mount.open().collect_tree(&TreeOptions::default()).unwrap();
    assert_eq!(tree.report.warnings, []);
    compare_tree(&known, &tree);
}

#[test]
fn idle_writable_mount_is_right_with_a_warning() {
    if !senesce_testkit::root_or_skip("mounts an image") {
        return;
    }
    for (arguments, warning) in
        [("-b 4096", Warning::JournalNotReplayed), ("-b 1024 -O ^has_journal", Warning::NotUnmounted)]
    {
        let image = Image::new(64, arguments);
        let mount = image.mount("noatime");
        age(&mount.mountpoint, 4, PLAN);
        let known = collect_known(&mount.mountpoint);
        mount.sync();
        let tree = mount.open().collect_tree(&TreeOptions::default()).unwrap();
        assert_eq!(tree.report.warnings, [warning], "{arguments}");
        compare_tree(&known, &tree);
    }
}

#[test]
fn reading_files_is_no_change() {
    if !senesce_testkit::root_or_skip("mounts an image") {
        return;
    }
    let image = Image::new(64, "-b 4096");
    let mount = image.mount("strictatime");
    age(&mount.mountpoint, 5, PLAN);
    let report = disturb(&mount.open(), || {
        fs::read(mount.path("odd/tiny")).unwrap();
        fs::read_dir(mount.path("odd")).unwrap().count();
        mount.sync();
    });
    assert!(!report.has_changed(), "{:?}", report.warnings);
}

/// Reads all inodes, and calls `something` after the first record.
fn disturb(fs: &FileSystem<File>, something: impl FnOnce()) -> Report {
    let mut something = Some(something);
    let options = ScanOptions { threads: 1, entries: Some(EntryOrder::Readdir) };
    fs.collect_inodes(&options, &mut |_| {
        if let Some(something) = something.take() {
            something();
        }
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_kind_of_change_has_a_warning() {
    if !senesce_testkit::root_or_skip("mounts an image") {
        return;
    }
    let image = Image::new(64, "-b 4096");
    let mount = image.mount("noatime");
    age(&mount.mountpoint, 6, PLAN);
    let written = || fs::OpenOptions::new().write(true).open(mount.path("odd/partly written")).unwrap();
    let changes: [(&str, &dyn Fn()); 7] = [
        ("a new file", &|| fs::write(mount.path("new"), [1; 9000]).unwrap()),
        ("a deleted file", &|| fs::remove_file(mount.path("new")).unwrap()),
        ("a renamed file", &|| fs::rename(mount.path("odd/tiny"), mount.path("odd/renamed")).unwrap()),
        ("a file moved between directories", &|| fs::rename(mount.path("odd/renamed"), mount.path("d")).unwrap()),
        ("data where there was none", &|| {
            std::os::unix::fs::FileExt::write_all_at(&written(), &[1; 5000], 150_000).unwrap()
        }),
        ("a hole where there was data", &|| {
            let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(written(), flags, 300_000, 8192).unwrap();
        }),
        ("a shorter file", &|| written().set_len(100).unwrap()),
    ];
    for (name, change) in changes {
        let report = disturb(&mount.open(), || {
            change();
            mount.sync();
        });
        assert!(report.has_changed(), "{name}: {:?}", report.warnings);
    }
    let report = disturb(&mount.open(), || {});
    assert!(!report.has_changed(), "{:?}", report.warnings);
}

#[test]
fn written_volume_has_warnings_and_never_an_error() {
    if !senesce_testkit::root_or_skip("mounts an image") {
        return;
    }
    let image = Image::new(128, "-b 1024");
    let mount = image.mount("defaults");
    age(&mount.mountpoint, 7, PLAN);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0u64;
            while !done.load(Ordering::Relaxed) {
                let path = mount.path(&format!("d{}/busy-{}", n % 4, n % 300));
                match n % 3 {
                    0 => drop(fs::remove_file(&path)),
                    _ => fs::write(&path, vec![n as u8; (n * 7919 % 60_000) as usize]).unwrap(),
                }
                if n.is_multiple_of(50) {
                    mount.sync();
                }
                n += 1;
            }
        });
        let mut seen_changing = 0;
        for _ in 0..20 {
            let tree = mount.open().collect_tree(&TreeOptions { attempts: 1, ..TreeOptions::default() });
            let tree = tree.unwrap_or_else(|error| panic!("{error}"));
            assert!(tree.report.warnings.contains(&Warning::JournalNotReplayed));
            tree.walk(&mut |_| {});
            seen_changing += u32::from(tree.report.has_changed());
            let free = mount.open().collect_free_space().unwrap_or_else(|error| panic!("{error}"));
            assert!(free.total_bytes() > 0);
        }
        done.store(true, Ordering::Relaxed);
        assert!(seen_changing > 0, "nothing was ever seen to change under constant writing");
    });
}

/// An image in memory that a function changes before the n-th read.
struct Changing {
    bytes: std::sync::Mutex<Vec<u8>>,
    reads: std::sync::atomic::AtomicU32,
    change: fn(u32, &mut Vec<u8>),
}

impl ReadAt for Changing {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let mut bytes = self.bytes.lock().unwrap();
        (self.change)(self.reads.fetch_add(1, Ordering::Relaxed), &mut bytes);
        bytes.read_at(offset_bytes, buffer)
    }

    fn length_bytes(&self) -> std::io::Result<u64> {
        self.bytes.lock().unwrap().length_bytes()
    }
}

/// Marks an image as mounted for writing. Its superblock has no checksum that would need an update.
fn make_live(image: &Image) -> Vec<u8> {
    run("debugfs", &["-w", "-R", "feature needs_recovery", image.text()]);
    image.bytes()
}

#[test]
fn structure_that_is_whole_on_retry_is_undamaged() {
    let image = Image::new(8, "-b 1024");
    let bytes = make_live(&image);
    let fs = FileSystem::open(bytes.clone()).unwrap();
    let mut position = 0;
    let options = ScanOptions { threads: 1, entries: Some(EntryOrder::Readdir) };
    fs.collect_inodes(&options, &mut |record| {
        if record.inode == 2 {
            position = record.position_bytes as usize;
        }
    })
    .unwrap();
    assert_eq!(position % 128, 0);

    // The root's inode is torn whenever the table is read for the first time, and whole later.
    let torn = Torn { bytes, position, times: std::sync::atomic::AtomicU32::new(2) };
    let fs = FileSystem::open(&torn).unwrap();
    let mut inodes = Vec::new();
    let report = fs.collect_inodes(&options, &mut |record| inodes.push(record.inode)).unwrap();
    assert_eq!(inodes, [2, 11]);
    assert!(report.warnings.iter().all(|warning| !matches!(warning, Warning::Damaged { .. })), "{:?}", report.warnings);

    // Always torn: there is a warning that names it, and the rest is read.
    torn.times.store(u32::MAX, Ordering::Relaxed);
    inodes.clear();
    let report = fs.collect_inodes(&options, &mut |record| inodes.push(record.inode)).unwrap();
    assert_eq!(inodes, [11]);
    let shown: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    let block = position / 1024;
    assert!(
        shown
            .iter()
            .any(|warning| warning.starts_with("1 damaged: inode")
                && warning.contains(&format!("block {block} (inode 2)"))),
        "{shown:?}"
    );
}

/// An image with a wrong byte in the first reads of it.
struct Torn {
    bytes: Vec<u8>,
    position: usize,
    times: std::sync::atomic::AtomicU32,
}

impl ReadAt for &Torn {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.bytes.read_at(offset_bytes, buffer)?;
        let within = (self.position as u64).checked_sub(offset_bytes).filter(|&at| at < buffer.len() as u64);
        if let Some(at) = within
            && self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |times| times.checked_sub(1)).is_ok()
        {
            buffer[at as usize + 16] ^= 0xFF;
        }
        Ok(())
    }

    fn length_bytes(&self) -> std::io::Result<u64> {
        self.bytes.length_bytes()
    }
}

#[test]
fn scan_that_saw_a_change_is_retried() {
    let image = Image::new(8, "-b 1024");
    let bytes = std::sync::Mutex::new(make_live(&image));
    // The superblock's count of written KiB changes at the fourth read only, during the first
    // attempt.
    let change = |read: u32, bytes: &mut Vec<u8>| {
        if read == 3 {
            bytes[1024 + 0x178] ^= 1;
            let sum = !crc32c(&bytes[1024..1024 + 0x3FC]);
            bytes[1024 + 0x3FC..2048].copy_from_slice(&sum.to_le_bytes());
        }
    };
    let device = Changing { bytes, reads: 0.into(), change };
    let tree = FileSystem::open(&device).unwrap().collect_tree(&TreeOptions::default()).unwrap();
    assert_eq!(tree.report.attempts, 2);
    assert_eq!(tree.report.warnings, [Warning::JournalNotReplayed]);
    // With one attempt, the change stays a warning.
    device.reads.store(0, Ordering::Relaxed);
    let options = TreeOptions { attempts: 1, ..TreeOptions::default() };
    let tree = FileSystem::open(&device).unwrap().collect_tree(&options).unwrap();
    assert!(tree.report.has_changed(), "{:?}", tree.report.warnings);
}

/// CRC-32C bit by bit, with the usual inversions.
fn crc32c(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 })
    });
    !crc
}
