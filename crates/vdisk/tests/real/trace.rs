//! Compares the server's log with the block layer's own trace of the loop device.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use senesce_core::BlockOp;
use senesce_testkit::{found_or_skip, tracefs};
use senesce_vdisk::{Pace, read_log};

use crate::bench::{Disk, pattern, write_synced};

/// A private tracefs instance.
struct Tracer(PathBuf);

impl Tracer {
    fn new() -> Option<Self> {
        let dir = tracefs()?.join(format!("instances/senesce-vdisk-{}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self(dir))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    fn start(&self, device: &Path) {
        let number = fs::metadata(device).unwrap().rdev();
        let filter = u64::from(rustix::fs::major(number)) << 20 | u64::from(rustix::fs::minor(number));
        self.write("buffer_size_kb", "8192");
        self.write("events/block/block_rq_issue/filter", &format!("dev == {filter}"));
        self.write("events/block/block_rq_issue/enable", "1");
    }

    fn stop(&self) -> Vec<(BlockOp, u64, u32)> {
        self.write("events/block/block_rq_issue/enable", "0");
        for cpu in fs::read_dir(self.0.join("per_cpu")).unwrap().flatten() {
            let stats = fs::read_to_string(cpu.path().join("stats")).unwrap();
            assert!(stats.contains("overrun: 0\n"), "the trace lost events: {stats}");
        }
        let text = fs::read_to_string(self.0.join("trace")).unwrap();
        text.lines().filter_map(parse_issue).collect()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("events/enable"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// `... block_rq_issue: 7,0 RA 131072 () 2048 + 256 none,0,0 [cat]`
fn parse_issue(line: &str) -> Option<(BlockOp, u64, u32)> {
    let (_, event) = line.split_once("block_rq_issue: ")?;
    let words: Vec<&str> = event.split_whitespace().collect();
    let plus = words.iter().position(|word| *word == "+")?;
    let sectors: u32 = words[plus + 1].parse().ok()?;
    let op = match words[1] {
        flags if flags.starts_with('F') && sectors == 0 => BlockOp::Flush,
        flags if flags.contains('D') => BlockOp::Discard,
        flags if flags.contains('W') => BlockOp::Write,
        _ => BlockOp::Read,
    };
    Some((op, if op == BlockOp::Flush { 0 } else { words[plus - 1].parse().ok()? }, sectors))
}

pub fn log_equals_block_trace() {
    let Some(tracer) = found_or_skip(Tracer::new(), "tracefs") else { return };
    let mut disk = Disk::new(512, "hdd-7200", Pace::Device);
    disk.attached.mkfs("ext4");
    disk.attached.mount("ext4");
    let root = disk.attached.root.clone();
    for n in 0..400u64 {
        write_synced(&root.join(format!("{n}")), &pattern(n, 4096 * (1 + n as usize * 7 % 40))).unwrap();
    }
    write_synced(&root.join("big"), &pattern(1000, 48 << 20)).unwrap();
    disk.attached.unmount();

    // Cold reads, then some writes: every request that the file system makes.
    let reading = disk.place.file("reading.log");
    tracer.start(&disk.attached.loop_device);
    disk.server.start_log(&reading).unwrap();
    disk.attached.mount("ext4");
    for n in (0..400u64).rev() {
        assert_eq!(fs::read(root.join(format!("{n}"))).unwrap().len(), 4096 * (1 + n as usize * 7 % 40));
    }
    fs::read(root.join("big")).unwrap();
    for n in 0..50u64 {
        write_synced(&root.join(format!("more-{n}")), &pattern(n, 100_000)).unwrap();
    }
    disk.attached.unmount();
    disk.server.stop_log().unwrap();
    let traced = tracer.stop();
    let log = read_log(&reading).unwrap();
    let logged: Vec<(BlockOp, u64, u32)> =
        log.requests.iter().map(|(request, _)| (request.op, request.sector, request.sectors)).collect();

    let reads = |all: &[(BlockOp, u64, u32)]| all.iter().filter(|(op, ..)| *op == BlockOp::Read).count();
    let same_place = traced.iter().zip(&logged).filter(|(a, b)| a == b).count();
    let (mut sorted_trace, mut sorted_log) = (traced.clone(), logged.clone());
    for all in [&mut sorted_trace, &mut sorted_log] {
        all.sort_by_key(|&(op, sector, sectors)| (op as u8, sector, sectors));
    }
    eprintln!(
        "traced {} requests ({} reads), logged {} ({} reads); equal as a set: {}; at the same place: {same_place}",
        traced.len(),
        reads(&traced),
        logged.len(),
        reads(&logged),
        sorted_trace == sorted_log,
    );
    for (index, (a, b)) in traced.iter().zip(&logged).enumerate().filter(|(_, (a, b))| a != b).take(10) {
        eprintln!("  {index}: traced {a:?}, logged {b:?}");
    }
    assert!(reads(&traced) > 400, "the reading was cold");
    assert_eq!(sorted_trace, sorted_log, "not a request more or less");
    // Two processors may enter the loop device's queue in another order than they passed the trace
    // point.
    let reads_only = |all: &[(BlockOp, u64, u32)]| -> Vec<(BlockOp, u64, u32)> {
        all.iter().filter(|(op, ..)| *op == BlockOp::Read).copied().collect()
    };
    let (a, b) = (reads_only(&traced), reads_only(&logged));
    let moved = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    assert!(moved * 50 <= a.len(), "{moved} of {} reads stand elsewhere", a.len());
    disk.end();
}
