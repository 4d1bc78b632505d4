//! Aging of a tree of files, in process: the cost of reading it, fresh and after rounds of changes.
//!
//! ```text
//! cargo run --release -p senesce-evergreen --example aging -- fsfb|git|renames \
//!     [MiB of the device, 320] [KiB of a node, 1024] [rounds, 100] [full|empty|PERCENT] [seed] \
//!     [copies of metadata, 2]
//! cargo run --release -p senesce-evergreen --example aging -- image PATH
//! ```
//!
//! `fsfb`: 300 directories with files of 1 to 150 KiB, 90 % of the space that can be claimed. A
//! percentage replaces the 90; `empty` has the same bytes on a device of three times the size. Each
//! round deletes 5 % of the bytes at random, and creates the same amount in one new directory.
//! `git`: a tree of a tenth of the space; each round replaces 5 to 40 files and adds one.
//! `renames`: renames directories (their number instead of rounds) with three files each into
//! another order, then sweeps twice. `image PATH`: an image that `senesce age --on evergreen:PATH`
//! aged.
//!
//! Reads are those of a mount: all files in the order of listings, in calls of 128 KiB, cold.
//! Requests are those of the device. Seconds are those of a model: a seek by distance and half a
//! turn for each read that does not continue the last one, then 192 MB/s. The baseline is a copy of
//! the files.

mod disk;
mod load;
mod renames;
mod repository;

use std::sync::Arc;

use senesce_block::{BlockDevice, FileDevice, FileOptions, MemoryDevice, OverlayDevice, TracedDevice};
use senesce_core::{Bytes, ManualClock, Seed};
use senesce_evergreen::{
    Evergreen, EvergreenFs, KeyValue, Limits, MakeOptions,
    disk::{Copies, Geometry, Shape, read_newest},
};
use senesce_fsapi::FileSystem;

use disk::Cost;
use load::{Failure, Load, copy_into, read_all};

type Device = Arc<TracedDevice<MemoryDevice>>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "fsfb".to_owned());
    if kind == "image" {
        return measure_image(&arguments.next().ok_or("image needs the path of one")?);
    }
    let mut number = |usual: u64| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mib, node_kib, rounds) = (number(320)?, number(1024)?, number(100)?);
    let fullness = arguments.next().unwrap_or_else(|| "full".to_owned());
    let percent: u64 = fullness.parse().unwrap_or(90);
    let seed = Seed(arguments.next().map_or(Ok(1), |text| text.parse())?);

    let copies: u64 = arguments.next().map_or(Ok(2), |text| text.parse())?;

    let options = MakeOptions { copies: if copies == 1 { Copies::One } else { Copies::Two }, ..options(node_kib) };
    let full = made(mib, &options)?;
    let wanted = full.1.store().live().most / 100 * if kind == "git" { 10 } else { percent };
    let (device, fs) = if fullness == "empty" { made(3 * mib, &options)? } else { full };
    let mut load = Load::new(seed);
    if kind == "renames" {
        return rename_all(&device, &fs, load, rounds, (mib, &options));
    }
    let start = device.counts().bytes_written;
    if kind == "git" {
        load.fill_repository(&fs, wanted)?
    } else {
        load.fill(&fs, wanted)?
    }
    println!("filled: {} MiB in {} files", load.bytes >> 20, load.files.len());
    tell(&device, &fs, 0, (3 * mib, &options))?;
    let (mut written, mut asked) = (device.counts().bytes_written - start, load.written);
    println!("  {:.2} bytes written for each byte of files", written as f64 / asked as f64);
    device.take_requests();
    for round in 1..=rounds {
        if kind == "git" {
            load.pull(&fs)?
        } else {
            load.round(&fs)?
        }
        fs.sync_all()?;
        if round % rounds.div_ceil(4).max(1) == 0 {
            let now = device.counts().bytes_written;
            let each = (now - start - written) as f64 / (load.written - asked).max(1) as f64;
            (written, asked) = (now - start, load.written);
            println!(
                "round {round}: {} MiB in {} files; {each:.2} bytes written for each byte of files",
                load.bytes >> 20,
                load.files.len()
            );
            tell(&device, &fs, round, (3 * mib, &options))?;
        }
    }
    Ok(())
}

/// Measures the cost of reading an image that was aged elsewhere, and of a copy of its files. The
/// image does not change.
fn measure_image(path: &str) -> Result<(), Failure> {
    let open = || FileDevice::open(path.as_ref(), Bytes(0), FileOptions { read_only: true, ..FileOptions::default() });
    let aged = cold(OverlayDevice::new(open()?))?;
    println!("  aged:   {aged}");
    let fs = EvergreenFs::open_on(Arc::new(OverlayDevice::new(open()?)), Limits::default())?;
    let Geometry { device_bytes, unit_bytes, .. } = read_newest(&open()?)?.geometry;
    let options = MakeOptions { shape: fs.store().shape(), unit_bytes, ..MakeOptions::new([1; 16]) };
    println!("  {}", beside_copy(&aged, &fs, (device_bytes.div_ceil(1 << 20), &options))?);
    Ok(())
}

/// Renames directories into another order, then measures two sweeps.
fn rename_all(
    device: &Device,
    fs: &EvergreenFs<Evergreen>,
    mut load: Load,
    directories: u64,
    copied: (u64, &MakeOptions),
) -> Result<(), Failure> {
    load.fill_directories(fs, directories)?;
    println!("filled: {} MiB in {directories} directories", load.bytes >> 20);
    tell(device, fs, 0, copied)?;
    renames::shuffle(fs, &mut load.rng, directories)?;
    println!("renamed");
    tell(device, fs, 0, copied)?;
    for number in 1..=2 {
        let before = device.counts().bytes_written;
        renames::sweep(fs)?;
        let written = (device.counts().bytes_written - before) as f64 / load.bytes as f64;
        println!("sweep {number}: {written:.2} bytes written for each live byte");
        tell(device, fs, number, copied)?;
    }
    Ok(())
}

fn options(node_kib: u64) -> MakeOptions {
    let node_bytes = (node_kib << 10) as u32;
    let basement_bytes = (node_bytes / 16).clamp(16 << 10, 128 << 10);
    let unit_bytes = (node_bytes / 64).clamp(4096, 64 << 10);
    MakeOptions {
        shape: Shape { node_bytes, basement_bytes, ..Shape::default() },
        unit_bytes,
        ..MakeOptions::new([1; 16])
    }
}

fn made(mib: u64, options: &MakeOptions) -> Result<(Device, EvergreenFs<Evergreen>), Failure> {
    let device =
        Arc::new(TracedDevice::new(MemoryDevice::new("memory", Bytes(mib << 20)), Arc::new(ManualClock::default())));
    EvergreenFs::make_on(device.clone(), options)?;
    let fs = EvergreenFs::open_on(device.clone(), Limits::default())?;
    Ok((device, fs))
}

/// Prints the cost of a cold read, and that of a copy on a device of `copied.0` MiB.
fn tell(device: &Device, fs: &EvergreenFs<Evergreen>, round: u64, copied: (u64, &MakeOptions)) -> Result<(), Failure> {
    fs.store().checkpoint()?;
    let aged = cold(device.inner().fork())?;
    println!("  aged:   {aged}");
    println!("  round {round}: {}", beside_copy(&aged, fs, copied)?);
    Ok(())
}

/// Prints the cost of a copy on a device of this size in MiB. Returns the cost of the aged tree
/// relative to it.
fn beside_copy(
    aged: &Cost,
    fs: &EvergreenFs<Evergreen>,
    (mib, options): (u64, &MakeOptions),
) -> Result<String, Failure> {
    let (copy, to) = made(mib, options)?;
    copy_into(fs, &to)?;
    to.store().checkpoint()?;
    drop(to);
    let fresh = cold(copy.inner().fork())?;
    println!("  unaged: {fresh}");
    Ok(format!(
        "{:.2} times in seconds, {:.2} in requests",
        aged.seconds_per_gib() / fresh.seconds_per_gib(),
        aged.requests() as f64 / fresh.requests() as f64
    ))
}

fn cold(device: impl BlockDevice + 'static) -> Result<Cost, Failure> {
    let device = Arc::new(TracedDevice::new(device, Arc::new(ManualClock::default())));
    let fs = EvergreenFs::open_on(device.clone(), Limits::default())?;
    device.take_requests();
    let before = fs.store().figures();
    let bytes = read_all(&fs)?;
    let after = fs.store().figures();
    Ok(Cost::of(&device.take_requests(), bytes, [&before, &after]))
}
