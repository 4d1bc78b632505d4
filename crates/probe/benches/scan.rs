//! Compares the scanner with GNU grep on a warm cache, and with `cat` of the same files in the same
//! order on a cold one.
//!
//! Both sides of a pair run one after the other, in alternating order, so that other load affects
//! both. Ratios below 1 mean that the scanner is faster. Run as root:
//! `cargo bench -p senesce-probe [-- FILES PAIRS]`. The cold part needs root, mkfs.ext4 and a loop
//! device with direct I/O. It uses 20,000 files on a fresh image, some of them fragmented by
//! rewriting. The image is remounted before every run, with readahead fixed at 128 KiB. As a test
//! (`--test`) or without root, only the warm part runs, on a small tree in a temporary directory. A
//! killed run leaves its mount and its loop device under the temporary directory.

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::{ffi::OsStrExt, ffi::OsStringExt},
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use senesce_core::{Clock, Nanos, Rng, Seed, never};
use senesce_probe::{
    collect::{GrepOptions, Order, collect_gnu_grep, collect_grep, collect_tree_extents, compute_pattern},
    score::compute_spread,
};
use senesce_testkit::{Volume, VolumeOptions, run};

/// The machine's monotonic clock.
struct Monotonic(Instant);

impl Clock for Monotonic {
    fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

/// Files with the approximate sizes of a source tree, 16 in a directory. Every fifth is extended
/// and rewritten later.
fn make_tree(root: &Path, files: u64) {
    let mut rng = Rng::for_purpose(Seed(1), "bench-tree");
    let mut content = vec![0u8; 1 << 20];
    rng.fill(&mut content);
    content.iter_mut().for_each(|byte| *byte = b' ' + *byte % 95);
    for (index, byte) in content.iter_mut().enumerate() {
        if index % 40 == 39 {
            *byte = b'\n';
        }
    }
    let path = |n: u64| root.join(format!("d{}/e{}/f{n}", n / 160, n / 16 % 10));
    let mut write = |n: u64| {
        // 2^10..2^15 mostly, one in 200 up to 1 MiB: mean about 13 KiB.
        let power = if rng.chance(1, 200) { rng.between(16, 19) } else { rng.between(10, 14) };
        let size = rng.between(1 << power, 2 << power) as usize;
        fs::write(path(n), &content[..size]).expect("the tree can be written");
    };
    for n in 0..files {
        fs::create_dir_all(path(n).parent().expect("files lie in directories")).expect("the tree can be made");
        write(n);
    }
    for n in (0..files).step_by(5) {
        write(n);
    }
    run("sync", &["-f", root.to_str().expect("a plain path")]);
}

/// The seconds that `cat` needs for the files in `list`, with as many files per process as fit, and
/// its CPU time.
fn cat(list: &[u8]) -> f64 {
    let start = Instant::now();
    let mut child = Command::new("xargs")
        .args(["-0", "cat", "--"])
        .stdin(Stdio::piped())
        .stdout(fs::File::create("/dev/null").expect("/dev/null can be opened"))
        .spawn()
        .expect("xargs can be run");
    child.stdin.take().expect("stdin is a pipe").write_all(list).expect("xargs reads the list");
    assert!(child.wait().expect("xargs ends").success());
    start.elapsed().as_secs_f64()
}

fn scan(root: &Path) -> f64 {
    let options = GrepOptions { order: Order::Readdir, pattern: compute_pattern(Seed(2)) };
    let figures = collect_grep(root, &options, &Monotonic(Instant::now()), &never).expect("the tree can be read");
    assert_eq!(figures.errors_count, 0);
    figures.wall.as_secs_f64()
}

fn grep(root: &Path) -> f64 {
    let figures = collect_gnu_grep(root, &compute_pattern(Seed(2)), &Monotonic(Instant::now()), &never);
    figures.expect("grep can read the tree").wall.as_secs_f64()
}

/// Measures pairs of (scanner, other) in alternating order, and prints the spread of the ratio.
fn compare(label: &str, pairs: usize, mut ours: impl FnMut() -> f64, mut theirs: impl FnMut() -> f64) {
    let mut taken = Vec::new();
    for pair in 0..pairs {
        taken.push(if pair % 2 == 0 {
            let first = ours();
            (first, theirs())
        } else {
            let first = theirs();
            (ours(), first)
        });
    }
    let spread = |figures: Vec<f64>| compute_spread(&figures, Seed(3)).expect("there are pairs");
    let ratio = spread(taken.iter().map(|pair| pair.0 / pair.1).collect());
    println!(
        "{label}: ratio median {:.3} (95% {:.3}..{:.3}, min {:.3}, max {:.3}) of {pairs} pairs; scanner {:.3} s, other {:.3} s",
        ratio.median,
        ratio.interval_low,
        ratio.interval_high,
        ratio.min,
        ratio.max,
        spread(taken.iter().map(|pair| pair.0).collect()).median,
        spread(taken.iter().map(|pair| pair.1).collect()).median,
    );
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let small = std::env::args().any(|argument| argument == "--test") || !rustix::process::geteuid().is_root();
    let files = numbers.first().copied().unwrap_or(if small { 200 } else { 20_000 });
    let pairs = numbers.get(1).copied().unwrap_or(if small { 2 } else { 11 }) as usize;
    if small {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        make_tree(directory.path(), files);
        compare("warm, against grep", pairs, || scan(directory.path()), || grep(directory.path()));
        println!("cold, against cat: not run: needs root and the full size");
        return;
    }
    let volume = Volume::with(&VolumeOptions {
        mount: "noatime",
        direct_io: true,
        read_ahead_kib: Some(128),
        ..VolumeOptions::new("ext4", 1024)
    });
    let root = volume.path("tree");
    make_tree(&root, files);
    let mut list = Vec::new();
    collect_tree_extents(&root, 1, &never, &mut |file| {
        list.extend_from_slice(&root.join(OsStr::from_bytes(file.path.as_bytes())).into_os_string().into_vec());
        list.push(0);
    })
    .expect("the tree can be listed");
    scan(&root);
    compare("warm, against grep", pairs, || scan(&root), || grep(&root));
    let cold = |measure: &dyn Fn() -> f64| {
        volume.remount_cold();
        measure()
    };
    // The number of device requests does not depend on other load of the machine.
    let count = |label: &str, measure: &dyn Fn() -> f64| {
        volume.remount_cold();
        let before = volume.device_stat();
        measure();
        let after = volume.device_stat();
        println!("cold, {label}: {} read requests, {} KiB", after[0] - before[0], (after[2] - before[2]) / 2);
    };
    for _ in 0..2 {
        count("scanner", &|| scan(&root));
        count("cat", &|| cat(&list));
        count("grep", &|| grep(&root));
    }
    compare("cold, against cat", pairs, || cold(&|| scan(&root)), || cold(&|| cat(&list)));
    compare("cold, against grep", pairs, || cold(&|| scan(&root)), || cold(&|| grep(&root)));
}
