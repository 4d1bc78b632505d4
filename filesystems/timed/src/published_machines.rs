//! The machines of the published experiments, as far as the paper describes them.

use senesce_core::{Nanos, Seed};
use senesce_device::find_preset;
use senesce_sim::{
    Arrivals, CpuProfile, Distribution, SsdFill, SsdSpec,
    storage::{Drives, Model, Spread, StorageLoad, StorageSetup},
};
use senesce_trials::{Fact, Setup, tell_count};

use crate::{Error, Result, calibrate::tell_profile};

/// Processors of the system with flash.
pub const FLASH_CORES: u32 = 20;
/// Processors of the system with disks.
pub const DISK_CORES: u32 = 8;
/// The presets of drives.
const FLASH: &str = "sata-ssd";
const DISK: &str = "hdd-10k";
/// Concurrent requests of an SSD: the limit of its interface.
const DEPTH: u32 = 32;
/// The seed of the arrivals.
const ARRIVALS: Seed = Seed(1);
/// Blocks of a page of flash: 8 KiB, as in the preset.
const PAGE_BLOCKS: u32 = 2;

/// Blocks that a simulated drive needs for one of a trial: one more unit, before the first stripe.
fn drive_blocks(setup: &Setup) -> u64 {
    (setup.areas + 1) * u64::from(setup.area_stripes)
}

/// The trial's drives as SSDs (`sata-ssd`). An SSD with the size of a drive of a small trial has
/// too few blocks for its dies. Then a larger one stands for it, and its garbage collection figures
/// are not meaningful (`Spread`).
pub fn flash(setup: &Setup, cpu: CpuProfile) -> Result<StorageSetup> {
    let device = preset(FLASH)?;
    let (wanted, unit) = (drive_blocks(setup), u64::from(setup.area_stripes));
    let mut factor = 1;
    let spec = loop {
        match SsdSpec::from_device(&device, wanted * factor, PAGE_BLOCKS) {
            Ok(spec) => break spec,
            Err(error) if factor > 1 << 12 => return Err(error.into()),
            Err(_) => factor += 1,
        }
    };
    let spread = (factor > 1).then_some(Spread { drive_blocks: wanted, unit_blocks: unit });
    let model = Model::Ssd { spec, fill: SsdFill::Erased, depth: DEPTH, spread };
    Ok(system(setup, model, FLASH_CORES, cpu))
}

/// Whether the garbage collection figures of the SSDs of this system are meaningful.
pub fn is_collection_meant(setup: &StorageSetup) -> bool {
    setup.groups.iter().all(|group| matches!(group.model, Model::Ssd { spread: None, .. }))
}

/// The trial's drives as disks (`hdd-10k`), areas spread over the whole disk, with `cores`
/// processors.
pub fn disks(setup: &Setup, cores: u32, cpu: CpuProfile) -> Result<StorageSetup> {
    let spec = preset(DISK)?;
    let spread = Some(Spread { drive_blocks: drive_blocks(setup), unit_blocks: setup.area_stripes.into() });
    Ok(system(setup, Model::Disk { spec, spread }, cores, cpu))
}

fn system(setup: &Setup, model: Model, cores: u32, cpu: CpuProfile) -> StorageSetup {
    let drives = Drives { count: u32::from(setup.data_drives) + 1, model };
    StorageSetup { step_blocks: setup.area_stripes, ..StorageSetup::new(vec![drives], cores, cpu) }
}

/// The system in words.
pub fn facts(system: &StorageSetup) -> Vec<Fact> {
    let groups: Vec<String> = system.groups.iter().map(tell_drives).collect();
    let (log, favour) = (system.log, system.favour);
    let background = format!(
        "in turns of {} us at processors; clients go first, {} of theirs between, until it has waited for {} ms; {} steps of {} blocks \
         for each group at a time",
        system.turn.0 / 1000,
        favour.clients_between,
        favour.patience.0 / 1_000_000,
        system.window,
        system.step_blocks
    );
    vec![
        Fact::new("simulated drives", groups.join("; ")),
        Fact::new("cores", system.cores.to_string()),
        Fact::new("processor times", tell_profile(&system.cpu)),
        Fact::new("log device", format!("{} us, {} MB/s", log.latency.0 / 1000, tell_count(log.rate.into()))),
        Fact::new("background work", background),
    ]
}

fn tell_drives(drives: &Drives) -> String {
    let (name, how, spread) = match &drives.model {
        Model::Disk { spec, spread } => {
            (spec.name.as_str(), "one request at a time as the arm sweeps".to_owned(), spread)
        }
        Model::Ssd { spec, depth, spread, .. } => {
            let blocks = tell_count(spec.blocks);
            (FLASH, format!("{blocks} blocks each, erased at first, {depth} requests at a time"), spread)
        }
    };
    let stands = if spread.is_some() { "; each stands for a smaller one, areas spread over all of it" } else { "" };
    format!("{} of preset {name}, {how}{stands}", drives.count)
}

/// The arrivals in words, at each of these loads.
pub fn tell_arrivals(loads: &[u64], open: bool) -> String {
    let loads: Vec<String> = loads.iter().map(|&load| tell_count(load)).collect();
    let Seed(seed) = ARRIVALS;
    match open {
        true => format!("Poisson (seed {seed}), {} operations a second", loads.join(", ")),
        false => format!("{} clients that do not think", loads.join(", ")),
    }
}

fn preset(name: &str) -> Result<senesce_device::DeviceSpec> {
    find_preset(name).ok_or_else(|| Error::Unknown { what: format!("no preset {name:?}") })
}

/// Poisson arrivals at a rate. An eighth of the operations comes before the figures.
pub fn open(per_second: u64, operations: u64) -> StorageLoad {
    let arrivals = Arrivals::Open(Distribution::Exponential(Nanos(1_000_000_000 / per_second.max(1))));
    StorageLoad { arrivals, warm_up: operations / 8, operations: operations - operations / 8, seed: ARRIVALS }
}

/// A fixed number of clients without think time.
pub fn closed(customers: u32, operations: u64) -> StorageLoad {
    let arrivals = Arrivals::Closed { customers, think: Distribution::Exact(Nanos(0)) };
    StorageLoad { arrivals, warm_up: operations / 8, operations: operations - operations / 8, seed: ARRIVALS }
}
