//! The transfer curve: its reads, checked with a trace of the device.

use std::{
    fs::{self, File},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use senesce_core::{Clock, Nanos, Rng, Seed};
use senesce_probe::collect::{BlockTracer, TransferLimit, collect_transfer_curve};

use crate::{
    support::{LoopDevice, Volume, run},
    trace::{alone, reads},
};

/// A clock that advances by a millisecond with every reading.
#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1_000_000, Ordering::SeqCst))
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

fn reads_alone(reads: u64) -> TransferLimit {
    TransferLimit { reads, time: None }
}

#[test]
fn exactly_the_planned_reads_are_issued() {
    if !senesce_testkit::root_or_skip("traces a loop device") {
        return;
    }
    let _alone = alone();
    let device = LoopDevice::new(32);
    let sizes = [4096, 65536, 12288];
    let tracer = BlockTracer::start(device.path()).unwrap();
    let curve = collect_transfer_curve(device.path(), &sizes, reads_alone(20), Seed(9), &Ticks::default()).unwrap();
    let trace = tracer.stop().unwrap();
    let mut wanted = Vec::new();
    for size in sizes {
        let mut rng = Rng::for_purpose(Seed(9), "effective bandwidth");
        wanted.extend((0..20).map(|_| (rng.below((32 << 20) / size) * size / 512, (size / 512) as u32)));
    }
    assert_eq!(reads(&trace), wanted);
    assert_eq!(trace.requests.len(), wanted.len(), "nothing but the reads");
    for (point, size) in curve.iter().zip(sizes) {
        assert_eq!((point.size_bytes, point.reads, point.wall), (size, 20, Nanos(20_000_000)));
        assert_eq!((point.quartiles, point.spread()), ([Nanos(1_000_000); 3], Some(0.0)));
    }
    // By the test's clock each read needs a millisecond.
    let limit = |milliseconds: u64| TransferLimit { reads: 100, time: Some(Nanos(milliseconds * 1_000_000)) };
    for (milliseconds, reads) in [(1, TransferLimit::LEAST_READS), (30, 30), (1000, 100)] {
        let ticks = Ticks::default();
        let curve = collect_transfer_curve(device.path(), &sizes, limit(milliseconds), Seed(9), &ticks).unwrap();
        assert!(curve.iter().all(|point| point.reads == reads), "{milliseconds} ms: {curve:?}");
    }
}

#[test]
fn unmeasurable_targets_are_refused() {
    if !senesce_testkit::root_or_skip("mounts an ext4 image") {
        return;
    }
    let volume = Volume::new("ext4", 64, &[], "noatime");
    let measure = |path: &Path, sizes: &[u64], reads| {
        collect_transfer_curve(path, sizes, reads_alone(reads), Seed(1), &Ticks::default())
            .map_err(|error| error.to_string())
    };
    let written = volume.path("written");
    fs::write(&written, vec![1; 1 << 20]).unwrap();
    assert_eq!(measure(&written, &[4096, 1 << 20], 3).unwrap().len(), 2);
    let refused = |path: &Path, sizes: &[u64], reads, part: &str| {
        let error = measure(path, sizes, reads).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    refused(&written, &[4096, 2 << 20], 3, "do not fit");
    refused(&written, &[1000], 3, "1000 bytes are not possible");
    refused(&written, &[0], 3, "0 bytes are not possible");
    refused(&written, &[4096], 0, "zero reads");
    let sparse = volume.path("sparse");
    File::create(&sparse).unwrap().set_len(1 << 20).unwrap();
    refused(&sparse, &[4096], 3, "holes");
    let reserved = volume.path("reserved");
    run("fallocate", &["-l", "1MiB", reserved.to_str().unwrap()]);
    refused(&reserved, &[4096], 3, "preallocated");
    refused(&volume.path("missing"), &[4096], 3, "missing");
}
