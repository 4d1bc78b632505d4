//! The effect of rounds of changes on reads, in counts: seeks, and bytes read.

#[path = "../../examples/aging/disk.rs"]
mod disk;
#[path = "../../examples/aging/load.rs"]
pub mod load;
#[path = "../../examples/aging/renames.rs"]
pub mod renames;

use std::sync::Arc;

use senesce_block::{MemoryDevice, TracedDevice};
use senesce_core::{Bytes, ManualClock, Seed};
use senesce_evergreen::{
    Evergreen, EvergreenFs, Limits, MakeOptions,
    disk::{KeyOrder, Shape},
};
use senesce_fsapi::FileSystem;

use disk::Cost;
use load::{Failure, Load, copy_into, read_all};

type Device = Arc<TracedDevice<MemoryDevice>>;

fn traced(device: MemoryDevice) -> Device {
    Arc::new(TracedDevice::new(device, Arc::new(ManualClock::default())))
}

pub fn made() -> (Device, EvergreenFs<Evergreen>) {
    made_of(192)
}

/// Like [`made`], on a device of `mib` MiB.
pub fn made_of(mib: u64) -> (Device, EvergreenFs<Evergreen>) {
    let device = traced(MemoryDevice::new("disk", Bytes(mib << 20)));
    let shape = Shape { node_bytes: 256 << 10, basement_bytes: 16 << 10, fanout: 16, key_order: KeyOrder::BirthPath };
    EvergreenFs::make_on(device.clone(), &MakeOptions { shape, unit_bytes: 4096, ..MakeOptions::new([1; 16]) })
        .unwrap();
    let fs = EvergreenFs::open_on(device.clone(), Limits::default()).unwrap();
    (device, fs)
}

/// Reads all files with an empty cache.
pub fn cold(device: &Device, bytes: u64) -> Result<Cost, Failure> {
    let device = traced(device.inner().fork());
    let fs = EvergreenFs::open_on(device.clone(), Limits::default())?;
    device.take_requests();
    let before = fs.store().figures();
    assert_eq!(read_all(&fs)?, bytes);
    Ok(Cost::of(&device.take_requests(), bytes, [&before, &fs.store().figures()]))
}

/// Files are created and deleted at random, 24 times 5 %. Leaves that are read in sequence stay
/// mostly adjacent, with little dead data. If each leaf is placed on its own, the same rounds cost
/// 5.7 seeks for each MiB and 1.35 times the bytes.
#[test]
fn rounds_of_creation_and_deletion_cost_few_seeks() -> Result<(), Failure> {
    let (device, fs) = made();
    let mut load = Load::new(Seed(1));
    load.fill(&fs, 45 << 20)?;
    let (before, asked) = (device.counts().bytes_written, load.written);
    for _ in 0..24 {
        load.round(&fs)?;
        fs.sync_all()?;
    }
    fs.store().checkpoint()?;
    let written = (device.counts().bytes_written - before) as f64 / (load.written - asked) as f64;
    assert!(written < 8.0, "{written:.2} bytes were written for each byte");

    let aged = cold(&device, load.bytes)?;
    assert!(aged.seeks_per_mib() < 2.5, "{aged}");
    assert!(aged.read_times() < 1.2, "{aged}");

    let (copy, to) = made();
    copy_into(&fs, &to)?;
    to.store().checkpoint()?;
    let fresh = cold(&copy, load.bytes)?;
    assert!(aged.seconds_per_gib() < 3.0 * fresh.seconds_per_gib(), "{aged}; fresh {fresh}");
    Ok(())
}
