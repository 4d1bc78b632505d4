//! One large file written and read cold through the kernel: ext4 and the garden in turns, on one loop device past the page cache.
//!
//! Run as root: `cargo bench -p senesce --bench through_kernel [-- MIB TURNS]`; 1,024 MiB and 8 turns are the default, and take five minutes.
//! In every turn another one comes first. Each is made anew on an image all of which has been written, nothing is discarded, the disk
//! rests before it is timed, and memory has just been in use: a virtual machine whose host takes back what is free else measures how it comes again.
//! `dd bs=1M`, written with `conv=fsync` from a file that is in memory, read after unmounting. Run as a test it is one turn
//! of 64 MiB, which says nothing of speed; without root it does nothing, and says so.
//! A run that is killed leaves its mount and loop device under the temporary directory behind.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use senesce_core::Seed;
use senesce_probe::score::compute_spread;
use senesce_testkit::{Volume, VolumeOptions, root_or_skip, run};

const SENESCE: &str = env!("CARGO_BIN_EXE_senesce");
/// How the garden is mounted; `None` is ext4.
const KINDS: [(&str, Option<&str>); 3] = [
    ("ext4", None),
    ("garden, --write-back=engine", Some("--write-back=engine")),
    ("garden, --write-back=direct", Some("--write-back=direct")),
];
const REST: Duration = Duration::from_secs(4);

/// What is mounted: by the kernel, or by a process of ours that ends when it is unmounted.
struct Mounted<'a> {
    volume: &'a Volume,
    server: Option<Child>,
}

impl<'a> Mounted<'a> {
    fn new(volume: &'a Volume, option: Option<&str>) -> Self {
        let Some(option) = option else {
            volume.mount();
            return Self { volume, server: None };
        };
        let point = volume.mountpoint.to_str().expect("a plain path");
        let mut server = Command::new(SENESCE)
            .args(["--quiet", "fs", "mount", option, &volume.device, point])
            .stdout(Stdio::null())
            .spawn()
            .expect("senesce can be run");
        let is_there = || fs::read_to_string("/proc/self/mounts").expect("mounts can be read").contains(point);
        while !is_there() {
            assert!(server.try_wait().expect("it can be asked").is_none(), "the mount ended early");
            sleep(Duration::from_millis(5));
        }
        Self { volume, server: Some(server) }
    }

    fn end(mut self) {
        match &mut self.server {
            None => self.volume.unmount(),
            Some(server) => {
                run("umount", &[self.volume.mountpoint.to_str().expect("a plain path")]);
                assert!(server.wait().expect("it ends").success(), "the garden could not be closed");
            }
        }
        self.server = None;
    }
}

impl Drop for Mounted<'_> {
    /// Only if something failed on the way.
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = Command::new("umount").arg("-l").arg(&self.volume.mountpoint).status();
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// MiB a second of what takes a file of `mib` through.
fn time(mib: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    mib as f64 / start.elapsed().as_secs_f64()
}

/// Memory for what follows, which the host has given: `mib` of it are written and freed.
fn touch_memory(mib: usize) {
    let bytes = std::hint::black_box(vec![1u8; mib << 20]);
    drop(bytes);
}

fn make(volume: &Volume, option: Option<&str>) {
    match option {
        None => run("mkfs.ext4", &["-q", "-F", "-E", "nodiscard", &volume.device]),
        Some(_) => run(SENESCE, &["--quiet", "fs", "mkfs", "garden", "--force", &volume.device]),
    };
}

/// MiB a second written and read.
fn measure(volume: &Volume, source: &Path, mib: usize, option: Option<&str>, rest: Duration) -> (f64, f64) {
    let (file, source) = (volume.path("file"), source.to_str().expect("a plain path"));
    let file = file.to_str().expect("a plain path");
    make(volume, option);
    run("sync", &[]);
    sleep(rest);
    let mounted = Mounted::new(volume, option);
    run("dd", &[&format!("if={source}"), "of=/dev/null", "bs=1M", "status=none"]);
    touch_memory(4 * mib);
    let written = time(mib, || {
        run("dd", &[&format!("if={source}"), &format!("of={file}"), "bs=1M", "conv=fsync", "status=none"]);
    });
    mounted.end();
    run("sync", &[]);
    sleep(rest);
    let mounted = Mounted::new(volume, option);
    touch_memory(4 * mib);
    fs::write("/proc/sys/vm/drop_caches", "3").expect("caches can be dropped");
    let read = time(mib, || {
        run("dd", &[&format!("if={file}"), "of=/dev/null", "bs=1M", "status=none"]);
    });
    run("cmp", &[file, source]);
    mounted.end();
    (written, read)
}

fn main() {
    if !root_or_skip("mounts and loop devices") {
        return;
    }
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let is_test = std::env::args().all(|argument| argument != "--bench");
    let mib = numbers.first().copied().unwrap_or(if is_test { 64 } else { 1024 });
    let turns = numbers.get(1).copied().unwrap_or(if is_test { 1 } else { 8 });
    let rest = if is_test { Duration::ZERO } else { REST };

    let volume = Volume::with(&VolumeOptions { direct_io: true, ..VolumeOptions::new("ext4", 3 * mib as u64) });
    volume.unmount();
    run("dd", &["if=/dev/zero", &format!("of={}", volume.device), "bs=1M", &format!("count={}", 3 * mib)]);
    let source = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    let mut bytes = vec![0; 1 << 20];
    let mut rng = senesce_core::Rng::for_purpose(Seed(1), "bench-through-kernel");
    for _ in 0..mib {
        rng.fill(&mut bytes);
        source.as_file().write_all(&bytes).expect("the source can be written");
    }

    let mut all = [const { Vec::new() }; KINDS.len()];
    for turn in 0..turns {
        for number in (0..KINDS.len()).map(|number| (turn + number) % KINDS.len()) {
            let (name, option) = KINDS[number];
            let figures = measure(&volume, source.path(), mib, option, rest);
            println!("turn {}: {name}: written {:.0} MiB/s, read {:.0}", turn + 1, figures.0, figures.1);
            all[number].push(figures);
        }
    }
    for (what, side) in [("written", 0), ("read cold", 1)] {
        let of = |number: usize| all[number].iter().map(move |figures| [figures.0, figures.1][side]);
        for (number, (name, _)) in KINDS.iter().enumerate() {
            let spread = |figures: Vec<f64>| compute_spread(&figures, Seed(3)).expect("there are turns");
            let rates = spread(of(number).collect());
            let shares = spread(of(number).zip(of(0)).map(|(ours, ext4)| 100.0 * ours / ext4).collect());
            println!(
                "{what}: {name}: median {:.0} MiB/s ({:.0} to {:.0}); of ext4 in the same turn median {:.0}% ({:.0} to {:.0})",
                rates.median, rates.min, rates.max, shares.median, shares.min, shares.max
            );
        }
    }
}
