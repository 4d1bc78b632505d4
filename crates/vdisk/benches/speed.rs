//! Compares the real speed of ext4 on a virtual disk with ext4 on a loop device over a file in
//! memory.
//!
//! Run as root: `cargo bench -p senesce-vdisk`. Only the ratios are portable; the seconds depend on
//! the machine.

#[path = "../tests/real/bench.rs"]
#[allow(dead_code)]
mod bench;

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::FileExt,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use bench::{Attached, Disk, Place, pattern, run};
use rustix::fs::{Advice, fadvise};
use senesce_vdisk::{BackingSpec, Footprint, Pace};

const MEGABYTES: u64 = 512;
const ROUNDS: usize = 5;

/// Sequential write and read, MB/s; random 4 KiB reads and small synced files, per second.
type Speeds = [f64; 4];

fn measure(attached: &mut Attached) -> Speeds {
    let root = attached.root.clone();
    let block = pattern(1, 1 << 20);
    let per_second = |amount: f64, work: &mut dyn FnMut()| {
        let begin = Instant::now();
        work();
        amount / begin.elapsed().as_secs_f64()
    };
    let megabytes = (MEGABYTES << 20) as f64 / 1e6;
    let write = per_second(megabytes, &mut || {
        let mut file = File::create(root.join("big")).unwrap();
        (0..MEGABYTES).for_each(|_| file.write_all(&block).unwrap());
        file.sync_all().unwrap();
    });
    attached.remount("ext4");
    let mut buffer = vec![0; 1 << 20];
    let read = per_second(megabytes, &mut || {
        let mut file = File::open(root.join("big")).unwrap();
        while file.read(&mut buffer).unwrap() > 0 {}
    });
    attached.remount("ext4");
    let random = per_second(20_000.0, &mut || random_reads(&root.join("big"), 20_000));
    let synced = per_second(1000.0, &mut || {
        for n in 0..1000 {
            bench::write_synced(&root.join(format!("{n}")), &block[..4096]).unwrap();
        }
    });
    fs::remove_file(root.join("big")).unwrap();
    (0..1000).for_each(|n| fs::remove_file(root.join(format!("{n}"))).unwrap());
    run(&format!("fstrim {}", root.display()));
    [write, read, random, synced]
}

fn random_reads(path: &Path, count: u64) {
    let file = File::open(path).unwrap();
    fadvise(&file, 0, None, Advice::Random).unwrap();
    let mut block = [0; 4096];
    for n in 0..count {
        file.read_exact_at(&mut block, n * 7919 % (MEGABYTES << 8) * 4096).unwrap();
    }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("vdisk-serve") {
        return senesce_vdisk::serve_stdio(Arc::new(bench::Monotonic));
    }
    if !senesce_testkit::root_or_skip("FUSE mounts and loop devices") {
        return ExitCode::SUCCESS;
    }
    let mut virtual_disk = Disk::new(MEGABYTES + 256, "hdd-7200", Pace::Device);
    // The same benchmark with a plain file instead of the disk.
    let plain = Place::new();
    let mut config = plain.config(MEGABYTES + 256, "plain");
    let BackingSpec::Unlinked { dir } = &config.backing else { return ExitCode::FAILURE };
    config.mount_point = dir.clone();
    File::create(dir.join("disk")).unwrap().set_len(config.size_bytes).unwrap();
    let mut plain_loop = Attached::new(&Footprint::planned(&config), plain.root());
    for attached in [&mut virtual_disk.attached, &mut plain_loop] {
        attached.mkfs("ext4");
        attached.mount("ext4");
    }
    let mut rounds: Vec<[Speeds; 2]> = Vec::new();
    for _ in 0..ROUNDS {
        let before = virtual_disk.server.time().unwrap().virtual_ns;
        let begin = Instant::now();
        let on_virtual = measure(&mut virtual_disk.attached);
        let modelled = (virtual_disk.server.time().unwrap().virtual_ns - before) as f64 / 1e9;
        println!("modelled {modelled:.1} s in {:.1} s", begin.elapsed().as_secs_f64());
        rounds.push([on_virtual, measure(&mut plain_loop)]);
    }
    let names = ["sequential write, MB/s", "sequential read, MB/s", "random 4 KiB reads/s", "synced 4 KiB files/s"];
    println!("{:24} {:>12} {:>12} {:>7}   (medians of {ROUNDS})", "", "virtual disk", "loop on tmpfs", "ratio");
    for (index, name) in names.iter().enumerate() {
        let [disk, file] = [0, 1].map(|side| median(rounds.iter().map(|round| round[side][index]).collect()));
        println!("{name:24} {disk:12.0} {file:12.0} {:7.2}", disk / file);
    }
    plain_loop.unmount();
    plain_loop.detach();
    virtual_disk.end();
    ExitCode::SUCCESS
}
