//! Block traces of loop devices, request by request.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Mutex,
};

use senesce_core::{BlockOp, Rng, Seed};
use senesce_probe::{
    Error,
    collect::{BlockTracer, TraceOptions, clean_stale_trace_instances, collect_extents, collect_trace_device},
    trace::BlockTrace,
};

use crate::support::{LoopDevice, Volume, run};

/// One tracer at a time, so that a test sees only its own instances.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn open_direct(path: &Path) -> File {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
}

/// Reads `length` bytes at `offset`, bypassing the page cache.
fn read_direct(file: &File, offset: u64, length: usize) {
    let mut buffer = vec![0u8; length + 4096];
    let skip = buffer.as_ptr().align_offset(4096);
    file.read_exact_at(&mut buffer[skip..skip + length], offset).unwrap();
}

fn instances() -> PathBuf {
    senesce_testkit::tracefs().expect("root may mount tracefs").join("instances")
}

fn instances_of_ours() -> Vec<String> {
    let prefix = format!("senesce-{}-", std::process::id());
    let names = fs::read_dir(instances()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

pub fn reads(trace: &BlockTrace) -> Vec<(u64, u32)> {
    let reads = trace.block_requests().filter(|request| request.op == BlockOp::Read);
    reads.map(|request| (request.sector, request.sectors)).collect()
}

/// (sector, sectors) of 300 direct reads of 4 to 64 KiB anywhere in `bytes`.
fn pattern(bytes: u64) -> Vec<(u64, u32)> {
    let mut rng = Rng::for_purpose(Seed(11), "read-pattern");
    (0..300)
        .map(|_| {
            let sectors = rng.between(1, 16) * 8;
            (rng.below(bytes / 4096 - 16) * 8, sectors as u32)
        })
        .collect()
}

#[test]
fn traced_requests_equal_the_issued_reads() {
    if !senesce_testkit::root_or_skip("traces a loop device") {
        return;
    }
    let _alone = alone();
    let device = LoopDevice::new(64);
    let file = open_direct(device.path());
    let wanted = pattern(64 << 20);
    let tracer = BlockTracer::start(device.path()).unwrap();
    let started = clock();
    for (sector, sectors) in &wanted {
        read_direct(&file, sector * 512, *sectors as usize * 512);
    }
    let ended = clock();
    let trace = tracer.stop().unwrap();
    assert_eq!(reads(&trace), wanted);
    assert_eq!(trace.requests.len(), wanted.len(), "nothing but the reads");
    assert_eq!((trace.lost, trace.unmatched_completions, trace.others), (0, 0, 0));
    let mut before = started;
    for traced in &trace.requests {
        let (issued, completed) = (traced.request.issued.0, traced.completed.unwrap().0);
        assert!(before <= issued && issued < completed, "one after the other, on the monotonic clock");
        before = completed;
    }
    assert!(before <= ended);
    assert_eq!(instances_of_ours(), [""; 0], "the instance is gone");
}

/// The clock of the trace, nanoseconds.
fn clock() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn file_requests_match_its_extents() {
    if !senesce_testkit::root_or_skip("traces an ext4 image") {
        return;
    }
    let _alone = alone();
    let volume = Volume::new("ext4", 64, &[], "noatime");
    crate::support::write_fragmented(&volume.mountpoint, 2, 40);
    let path = volume.path("fragmented-1");
    let extents = collect_extents(&File::open(&path).unwrap(), &path).unwrap();
    assert!(extents.len() > 3, "the file was to be fragmented: {extents:?}");
    let file = open_direct(&path);
    // A read before the trace loads the file's own map into memory.
    read_direct(&file, 0, 40 * 16384);
    // The mount point stands for its device.
    let device = collect_trace_device(&volume.mountpoint).unwrap();
    let tracer = BlockTracer::start_with(device, &TraceOptions::default()).unwrap();
    for raw in &extents {
        read_direct(&file, raw.extent.logical, 4096);
        read_direct(&file, raw.extent.logical + raw.extent.length - 4096, 4096);
    }
    let trace = tracer.stop().unwrap();
    let ends = |raw: &senesce_probe::map::RawExtent| {
        let first = raw.extent.physical / 512;
        [(first, 8), (first + raw.extent.length / 512 - 8, 8)]
    };
    let wanted: Vec<_> = extents.iter().flat_map(ends).collect();
    assert_eq!(reads(&trace), wanted);
    assert_eq!(trace.lost, 0);
}

#[test]
fn writes_flushes_and_discards_are_distinguished() {
    if !senesce_testkit::root_or_skip("traces an ext4 image") {
        return;
    }
    let _alone = alone();
    let volume = Volume::new("ext4", 64, &[], "noatime");
    let tracer = BlockTracer::start(Path::new(&volume.device)).unwrap();
    fs::write(volume.path("file"), vec![1; 1 << 20]).unwrap();
    let path = volume.path("file");
    let file = File::open(&path).unwrap();
    file.sync_all().unwrap();
    let extents = collect_extents(&file, &path).unwrap();
    run("fstrim", &[volume.mountpoint.to_str().unwrap()]);
    let trace = tracer.stop().unwrap();
    let of = |op| trace.block_requests().filter(move |request| request.op == op);
    let flushes: Vec<_> = of(BlockOp::Flush).collect();
    assert!(!flushes.is_empty() && flushes.iter().all(|flush| (flush.sector, flush.sectors) == (0, 0)), "{flushes:?}");
    let free = of(BlockOp::Discard).map(|discard| discard.bytes()).sum::<u64>();
    assert!(free > 32 << 20, "most of 64 MiB is free, and {free} bytes were discarded");
    for raw in &extents {
        let (start, end) = (raw.extent.physical / 512, raw.extent.end() / 512);
        let written =
            of(BlockOp::Write).filter(|w| w.sector >= start && w.end() <= end).map(|w| w.bytes()).sum::<u64>();
        assert_eq!(written, raw.extent.length, "every block of the file was written once");
    }
    assert_eq!((trace.lost, trace.unmatched_completions), (0, 0));
}

/// Reads 4 KiB `count` times in each of four threads, bypassing the page cache.
fn burst(path: &Path, bytes: u64, count: usize) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let file = open_direct(path);
                let mut rng = Rng::for_purpose(Seed(thread), "burst");
                let mut buffer = vec![0u8; 8192];
                let skip = buffer.as_ptr().align_offset(4096);
                for _ in 0..count {
                    file.read_exact_at(&mut buffer[skip..skip + 4096], rng.below(bytes / 4096) * 4096).unwrap();
                }
            });
        }
    });
}

/// Events in a trace: each request's issue, and each completion.
fn events(trace: &BlockTrace) -> u64 {
    let completed = trace.requests.iter().filter(|request| request.completed.is_some()).count() as u64;
    trace.requests.len() as u64 + completed + trace.unmatched_completions
}

#[test]
fn a_burst_is_complete_or_its_loss_counted() {
    if !senesce_testkit::root_or_skip("traces a loop device") {
        return;
    }
    let _alone = alone();
    let device = LoopDevice::new(64);
    let target = collect_trace_device(device.path()).unwrap();
    let default = TraceOptions::default();
    let small = TraceOptions { buffer_bytes: 64 << 10, ..default.clone() };
    let few = TraceOptions { event_limit: 1000, ..default.clone() };
    for (options, count) in [(default, 25_000), (small, 5_000), (few, 1_000)] {
        let started = clock();
        let tracer = BlockTracer::start_with(target.clone(), &options).unwrap();
        burst(device.path(), 64 << 20, count);
        let trace = tracer.stop().unwrap();
        let seconds = (clock() - started) as f64 / 1e9;
        let all = 4 * count as u64;
        eprintln!("{all} requests in {seconds:.2} s, {} events lost, {options:?}", trace.lost);
        if trace.lost == 0 {
            assert_eq!(trace.requests.len() as u64, all);
            assert_eq!(trace.unmatched_completions, 0);
        }
        // A kernel without space counts some events twice, or counts those of other devices.
        let (low, high) = (2 * all, 2 * all + trace.lost / 10);
        assert!(
            (low..=high).contains(&(events(&trace) + trace.lost)),
            "every event is there or counted: {}",
            events(&trace)
        );
        if options.event_limit == 1000 {
            assert_eq!(trace.lost, 2 * all - 1000);
        }
    }
}

#[test]
fn requests_of_other_devices_are_excluded() {
    if !senesce_testkit::root_or_skip("traces loop devices") {
        return;
    }
    let _alone = alone();
    let (device, other) = (LoopDevice::new(16), LoopDevice::new(16));
    let (tracer, second) = (BlockTracer::start(device.path()).unwrap(), BlockTracer::start(other.path()).unwrap());
    burst(other.path(), 16 << 20, 100);
    read_direct(&open_direct(device.path()), 8192, 4096);
    let trace = tracer.stop().unwrap();
    assert_eq!(reads(&trace), [(16, 8)]);
    assert_eq!(second.stop().unwrap().requests.len(), 400, "two tracers do not disturb each other");
}

#[test]
fn partition_sectors_count_from_its_start() {
    if !senesce_testkit::root_or_skip("traces a partition of a loop device") {
        return;
    }
    let _alone = alone();
    let device = LoopDevice::with_partitions(64, &[(1, 2048, 32768), (2, 40960, 65536)]);
    let second = format!("{}p2", device.path().display());
    let found = collect_trace_device(Path::new(&second)).unwrap();
    assert_eq!(found.part, Some((40960, 65536)));
    assert_ne!(found.device, found.disk);
    let tracer = BlockTracer::start(Path::new(&second)).unwrap();
    read_direct(&open_direct(Path::new(&second)), 1 << 20, 8192);
    read_direct(&open_direct(device.path()), 4 << 20, 4096); // in the first partition
    let trace = tracer.stop().unwrap();
    assert_eq!(reads(&trace), [(2048, 16)]);
    assert_eq!(trace.device, Some(found.device));
}

#[test]
fn a_dropped_tracer_removes_its_instance() {
    if !senesce_testkit::root_or_skip("traces a loop device") {
        return;
    }
    let _alone = alone();
    let device = LoopDevice::new(16);
    let tracer = BlockTracer::start(device.path()).unwrap();
    assert_eq!(instances_of_ours().len(), 1);
    drop(tracer);
    assert_eq!(instances_of_ours(), [""; 0]);
}

#[test]
fn only_instances_of_dead_processes_are_removed() {
    if !senesce_testkit::root_or_skip("makes trace instances") {
        return;
    }
    let _alone = alone();
    let device = LoopDevice::new(16);
    let tracer = BlockTracer::start(device.path()).unwrap();
    // No process has this number: it is above the kernel's maximum.
    let stale = instances().join("senesce-4194999-1-0");
    fs::create_dir(&stale).unwrap();
    let done = clean_stale_trace_instances().unwrap();
    assert!(done.removed.iter().any(|path| path.file_name() == stale.file_name()), "{done:?}");
    assert!(!stale.exists());
    assert_eq!(instances_of_ours().len(), 1, "the running one stays");
    drop(tracer);
}

#[test]
fn a_file_system_without_own_device_is_refused() {
    if !senesce_testkit::root_or_skip("mounts a Btrfs image") {
        return;
    }
    let volume = Volume::new("btrfs", 128, &[], "noatime,nodiscard");
    let error = BlockTracer::start(&volume.mountpoint).unwrap_err();
    assert!(matches!(error, Error::NoTrace { .. }), "{error}");
    assert!(error.to_string().contains("name the device itself"), "{error}");
}
