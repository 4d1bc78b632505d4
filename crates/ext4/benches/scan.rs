//! Reads the extents of all files of an image, against `filefrag` on the same mounted tree.
//!
//! `cargo bench -p senesce-ext4 [-- FILES [PAIRS]]`, as root; by default 20,000 files and 5 pairs.
//! Files have 4 to 64 KiB, 100 in a directory. Every fifth grows later, so that some have several
//! extents. The sides of a pair run one after the other, in alternating order, so that other load
//! affects both.
//!
//! Cold: the volume is remounted on a loop device that bypasses the cache of the image, and the
//! cache of the device is dropped. The reader does more than `filefrag`: paths in readdir order,
//! sizes and extents.
//!
//! As a test (`--test`) or without root, it reads an image that `mkfs.ext4 -d` fills, and compares
//! nothing. After kill -9, its mount and loop device remain below the temporary directory.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use senesce_ext4::{EntryOrder, FileSystem, ScanOptions, TreeOptions};
use senesce_testkit::{Volume, VolumeOptions, run};

fn path(root: &Path, n: u64) -> PathBuf {
    root.join(format!("d{}/e{}/file-{n}", n / 10_000, n / 100 % 100))
}

fn make_tree(root: &Path, files: u64) {
    let content = vec![1u8; 64 << 10];
    for n in 0..files {
        if n % 100 == 0 {
            fs::create_dir_all(path(root, n).parent().expect("files are in directories"))
                .expect("the tree can be made");
        }
        // Sizes of 1, 2 or 4 blocks.
        let size = 4096 << ((n.wrapping_mul(0x9E37_79B9) >> 7) % 3);
        fs::write(path(root, n), &content[..size]).expect("the tree can be written");
    }
    run("sync", &["-f", root.to_str().expect("a plain path")]);
    for n in (0..files).step_by(5) {
        let mut file = fs::OpenOptions::new().append(true).open(path(root, n)).expect("the file is there");
        file.write_all(&content[..20_000]).expect("the tree can be written");
        if n % 20_000 == 0 {
            run("sync", &["-f", root.to_str().expect("a plain path")]);
        }
    }
    run("sync", &["-f", root.to_str().expect("a plain path")]);
}

/// The result of a read: files, extents, and its cost.
#[derive(Debug)]
struct Found {
    files: u64,
    extents: u64,
    seconds: f64,
    /// Processor time of this process and its children, in ticks of 10 ms.
    cpu_seconds: f64,
    memory_bytes: u64,
}

/// The processor time of this process and its children so far, in user and system mode, seconds.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").expect("the process has statistics");
    let fields = text.rsplit(") ").next().unwrap_or("").split(' ');
    // utime, stime, cutime, cstime are fields 14 to 17; the state, first after the name, is field
    // 3.
    let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

fn read_device(device: &Path, threads: usize) -> Found {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut fs = FileSystem::open(File::open(device).expect("the device can be opened")).expect("it is ext4");
    let scan = ScanOptions { threads, entries: Some(EntryOrder::Readdir) };
    let tree = fs.collect_tree(&TreeOptions { scan, attempts: 1, ..TreeOptions::default() }).expect("it is sound");
    let (mut files, mut extents) = (0, 0);
    tree.walk(&mut |entry| {
        if let Some(file) = entry.file.filter(|file| file.kind() == senesce_ext4::FileKind::Regular) {
            files += 1;
            extents += file.extents().count() as u64;
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    Found { files, extents, seconds, cpu_seconds: cpu_seconds() - cpu, memory_bytes: tree.memory_bytes() }
}

/// Runs `filefrag` on the whole tree, with as many files per process as fit. It counts the extents.
fn filefrag(root: &Path) -> Found {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut find = Command::new("find");
    find.arg(root).args(["-type", "f", "-print0"]).stdout(Stdio::piped());
    let mut find = find.spawn().expect("find can be run");
    let names = find.stdout.take().expect("its output is a pipe");
    let mut xargs = Command::new("xargs")
        .args(["-0", "filefrag"])
        .stdin(names)
        .stdout(Stdio::piped())
        .spawn()
        .expect("xargs can be run");
    let mut text = String::new();
    xargs.stdout.take().expect("its output is a pipe").read_to_string(&mut text).expect("filefrag can be read");
    assert!(find.wait().expect("find ends").success() && xargs.wait().expect("xargs ends").success());
    let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    // "/mnt/d0/e0/file-0: 2 extents found"
    let counts = text.lines().filter_map(|line| line.rsplit(": ").next()?.split(' ').next()?.parse::<u64>().ok());
    let (files, extents) = counts.fold((0, 0), |(files, extents), count| (files + 1, extents + count));
    Found { files, extents, seconds, cpu_seconds, memory_bytes: 0 }
}

fn compare(label: &str, pairs: usize, ours: &dyn Fn() -> Found, theirs: &dyn Fn() -> Found) {
    let mut ratios = Vec::new();
    let mut cpu = (0.0, 0.0);
    let mut last = None;
    for pair in 0..pairs {
        let (ours, theirs) = if pair % 2 == 0 {
            let first = ours();
            (first, theirs())
        } else {
            let first = theirs();
            (ours(), first)
        };
        assert_eq!((ours.files, ours.extents), (theirs.files, theirs.extents), "both see the same");
        ratios.push(theirs.seconds / ours.seconds);
        cpu = (cpu.0 + ours.cpu_seconds, cpu.1 + theirs.cpu_seconds);
        last = Some((ours, theirs));
    }
    ratios.sort_by(f64::total_cmp);
    let Some((ours, theirs)) = last else { return };
    println!(
        "{label}: {:.1} times as fast as filefrag (median of {pairs}; {:.1} to {:.1}), and {:.1} times less of the \
         processor time; {} files, {} extents; the last pair: {:.3} s and {:.3} s, {:.0} files/s; {:.1} MiB",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1],
        cpu.1 / cpu.0.max(0.01),
        ours.files,
        ours.extents,
        ours.seconds,
        theirs.seconds,
        ours.files as f64 / ours.seconds,
        ours.memory_bytes as f64 / (1 << 20) as f64,
    );
}

/// The peak memory of this process, KiB, as counted by the kernel.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let small = std::env::args().any(|argument| argument == "--test") || !rustix::process::geteuid().is_root();
    if small {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        make_tree(&directory.path().join("source"), 500);
        let image = directory.path().join("image");
        File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("the image can be made");
        let source = directory.path().join("source");
        let arguments =
            ["-q", "-F", "-d", source.to_str().expect("a plain path"), image.to_str().expect("a plain path")];
        run("mkfs.ext4", &arguments);
        println!("{:?}", read_device(&image, 2));
        return;
    }
    let files = numbers.first().copied().unwrap_or(20_000);
    let pairs = numbers.get(1).copied().unwrap_or(5) as usize;
    let inodes = (files + files / 50 + 1000).to_string();
    let volume = Volume::with(&VolumeOptions {
        mkfs: &["-b", "4096", "-N", &inodes],
        mount: "noatime",
        direct_io: true,
        ..VolumeOptions::new("ext4", 200 + files * 24 / 1024)
    });
    make_tree(&volume.mountpoint, files);
    let (device, root) = (PathBuf::from(&volume.device), volume.mountpoint.clone());
    println!("memory of the process before: {} KiB", peak_kib());
    read_device(&device, 2);
    println!("memory of the process after one reading: {} KiB", peak_kib());
    volume.remount_cold();
    // Mounted for writing: the reader reads the inodes twice, to detect changes.
    compare("warm, mounted for writing", pairs, &|| read_device(&device, 2), &|| filefrag(&root));
    compare("warm, mounted for writing, one thread", pairs, &|| read_device(&device, 1), &|| filefrag(&root));
    let cold = |measure: &dyn Fn() -> Found| {
        volume.remount_cold();
        measure()
    };
    run("mount", &["-o", "remount,ro", root.to_str().expect("a plain path")]);
    compare("warm, mounted read-only", pairs, &|| read_device(&device, 2), &|| filefrag(&root));
    run("mount", &["-o", "remount,rw", root.to_str().expect("a plain path")]);
    compare("cold, mounted for writing", pairs, &|| cold(&|| read_device(&device, 2)), &|| cold(&|| filefrag(&root)));
}
