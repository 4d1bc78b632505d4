//! The garden, in two ways. On damaged drives and logs the check, a survey, opening, reading and changing end with results or with
//! errors. And whatever is done to a whole one, gardening of all kinds among it, its files are those of a model in memory, its snapshots
//! stay what they were, and the check finds nothing.
//!
//! The first byte of an input chooses between them; each eight bytes after it are a change of the image, or something to do.
#![no_main]

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use libfuzzer_sys::fuzz_target;
use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{
    FileSystem, FsResult, Ino, ModelFs, NewNode, RenameMode,
    conformance::{Operation, Subject, Tree, collect_tree, set_root},
};
use senesce_fuzz::{Asked, CALLER, FILES, expect_same, read_and_change};
use senesce_garden::{
    Accepted, Cleaning, DefragFiles, Demotion, FixUp, FormatOptions, Garden, Gardening, Limits, LogDevices, Medium,
    Packing, Placing, Tiering, VolumeFs, VolumeOptions, WriteAfterRead, check, check_with, survey,
};
use senesce_objects::{MemoryObjects, ObjectStore, PriceList};

const BLOCK: usize = 4096;
/// A block with its trailer; two labels and two superblocks are before the stripes. See docs/reference/garden-format.md.
const SLOT: usize = 4160;
const FIXED_SLOTS: u64 = 4;
const DATA_DRIVES: usize = 2;
/// Of the one that is damaged, which is read whole each time, and of the one that is used.
const FULL_STRIPES: u64 = 192;
const EMPTY_STRIPES: u64 = 512;
const AREA_STRIPES: u32 = 64;
const AREAS: u64 = EMPTY_STRIPES / AREA_STRIPES as u64;
const LOG_BYTES: u64 = 400 << 10;
const VOLUME: &[u8] = b"home";
/// Little memory, so that blocks come and go.
const LIMITS: Limits = Limits { cache_bytes: 160 << 12, dirty_bytes: 64 << 12 };
/// Changes or events of an input; more take too long.
const MOST: usize = 96;

type Devices = Vec<Arc<dyn BlockDevice>>;

/// Devices at rest: drives of data, of parity, the log.
struct Base {
    devices: Vec<MemoryDevice>,
    /// Places of data drives that hold something.
    filled: Vec<(usize, u64)>,
}

impl Base {
    fn forks(&self) -> Devices {
        self.devices.iter().map(|device| Arc::new(device.fork()) as _).collect()
    }
}

/// Drives, and two copies of the log.
fn split(devices: &Devices) -> (&[Arc<dyn BlockDevice>], LogDevices) {
    let (drives, logs) = devices.split_at(devices.len() - 2);
    (drives, logs.to_vec().into())
}

fn open(devices: &Devices, store: Option<Arc<dyn ObjectStore>>) -> senesce_garden::Result<Garden> {
    let (drives, log) = split(devices);
    Garden::open_with(drives, log, LIMITS, store, Accepted::NOTHING)
}

/// An aggregate with a volume that is empty but for its root.
fn empty() -> &'static Base {
    static EMPTY: OnceLock<Base> = OnceLock::new();
    EMPTY.get_or_init(|| make(EMPTY_STRIPES, &[], &|_| ()))
}

/// The same on disks and flash.
fn empty_pool() -> &'static Base {
    static EMPTY: OnceLock<Base> = OnceLock::new();
    EMPTY.get_or_init(|| make(EMPTY_STRIPES / 2, &[Medium::Hdd, Medium::Ssd], &|_| ()))
}

/// One with files of all kinds, snapshots, a clone, and operations that wait in the log.
fn full() -> &'static Base {
    static FULL: OnceLock<Base> = OnceLock::new();
    FULL.get_or_init(|| make(FULL_STRIPES, &[], &|garden| fill(garden).expect("there is space for it")))
}

/// A RAID group for each medium; one if none is named.
fn make(stripes: u64, media: &[Medium], fill: &dyn Fn(&Garden)) -> Base {
    let groups = media.len().max(1);
    let drives = groups * (DATA_DRIVES + 1);
    let drive = |number| MemoryDevice::new(format!("drive {number}"), Bytes((FIXED_SLOTS + stripes) * SLOT as u64));
    let mut devices: Vec<MemoryDevice> = (0..drives).map(drive).collect();
    devices.extend(["log", "log 2"].map(|name| MemoryDevice::new(name, Bytes(LOG_BYTES))));
    let devices: Vec<Arc<MemoryDevice>> = devices.into_iter().map(Arc::new).collect();
    let shared: Devices = devices.iter().map(|device| device.clone() as _).collect();
    let options = FormatOptions {
        uuid: *b"senesce garden 1",
        groups: vec![(DATA_DRIVES as u16, true); groups],
        media: media.to_vec(),
        aa_stripes: vec![AREA_STRIPES],
        tetris_stripes: 16,
        zeroed: true,
    };
    Garden::format(&options, shared[..drives].to_vec(), shared[drives..].to_vec()).expect("it fits");
    let garden = open(&shared, None).expect("it was just made");
    garden.create_volume(VOLUME, &VolumeOptions { blocks: 1000, inodes: 100, seed: 3 }).expect("it fits");
    set_root(&garden.volume(VOLUME).expect("it was just made")).expect("it is a directory");
    garden.consistency_point().expect("there is space for it");
    fill(&garden);
    drop(garden);
    let devices: Vec<MemoryDevice> = devices.iter().map(|device| device.fork()).collect();
    let mut filled = Vec::new();
    for (drive, device) in devices[..DATA_DRIVES].iter().enumerate() {
        let contents = device.contents();
        let slots = (0..).zip(contents.chunks_exact(SLOT)).filter(|(_, slot)| slot.iter().any(|byte| *byte != 0));
        filled.extend(slots.map(|(number, _): (u64, _)| (drive, number)));
    }
    Base { devices, filled }
}

fn fill(garden: &Garden) -> FsResult<()> {
    let fs = garden.volume(VOLUME)?;
    for number in 0..8_u8 {
        let name = format!("file {number}");
        let ino = fs.make_node(&CALLER, Ino::ROOT, name.as_bytes(), &NewNode::file(0o644))?.ino;
        fs.write(&CALLER, ino, 0, &vec![number + 1; 7000 * usize::from(number)])?;
    }
    garden.create_snapshot(VOLUME, b"monday", CALLER.now)?;
    garden.set_packing(VOLUME, Packing { group_blocks: 2, compaction: true })?;
    for number in [3, 6] {
        let source = fs.lookup(Ino::ROOT, format!("file {number}").as_bytes())?.ino;
        let ino = fs.make_node(&CALLER, Ino::ROOT, format!("clone {number}").as_bytes(), &NewNode::file(0o644))?.ino;
        fs.clone_range(&CALLER, (source, 0), (ino, 0), 1 << 40)?;
        fs.write(&CALLER, source, 8192, &[number; 10_000])?;
    }
    fs.symlink(&CALLER, Ino::ROOT, b"link", b"to")?;
    garden.clone_volume(VOLUME, b"monday", b"clone")?;
    garden.consistency_point()?;
    // These wait in the log.
    let ino = fs.make_node(&CALLER, Ino::ROOT, b"late", &NewNode::file(0o600))?.ino;
    fs.write(&CALLER, ino, 100, &[7; 9000])?;
    fs.unlink(&CALLER, Ino::ROOT, b"file 2")
}

fuzz_target!(|input: &[u8]| {
    match input.split_first() {
        Some((choice, changes)) if choice % 2 == 0 => use_damaged(changes),
        Some((choice, events)) => play(*choice, events),
        None => {}
    }
});

/// Somebody changed the devices: blindly, or by somebody who knows how to sign blocks and parity.
fn damage(devices: &Devices, changes: &[u8]) {
    let base = full();
    for change in changes.chunks_exact(8).take(MOST) {
        let place = usize::from(u16::from_le_bytes([change[1], change[2]]));
        let at = usize::from(u16::from_le_bytes([change[3], change[4]]));
        let (drive, slot) = base.filled[place % base.filled.len()];
        match change[0] % 8 {
            0..=3 => forge(devices, (drive, slot), &|bytes| {
                let byte = at % SLOT;
                match change[0] % 8 {
                    0 => bytes[byte] ^= 1 << (change[5] % 8),
                    1 => bytes[byte] = change[5],
                    2 => bytes[byte..].iter_mut().zip(&change[5..]).for_each(|(to, from)| *to = *from),
                    _ => bytes[byte..].iter_mut().take(usize::from(change[6])).for_each(|to| *to = change[5]),
                }
            }),
            // One block in the place of another.
            4 => {
                let (from, number) = base.filled[at % base.filled.len()];
                let other = read(devices, from, number);
                forge(devices, (drive, slot), &|bytes| bytes.copy_from_slice(&other));
            }
            5 => {
                let byte = [change[5]];
                let _ = devices[drive].write_at(slot * SLOT as u64 + (at % SLOT) as u64, &byte);
            }
            6 => {
                let to = (place as u64 * 8 + u64::from(change[6])) % LOG_BYTES;
                // In one copy, or the same in both.
                let logs = DATA_DRIVES + 1..DATA_DRIVES + 3;
                for log in logs.skip(usize::from(at % 3 == 1)).take(1 + usize::from(at % 3 == 0)) {
                    let _ = devices[log].write_at(to, &change[5..6]);
                }
            }
            _ => forge_log_label(&devices[DATA_DRIVES + 1 + place % 2], at, change),
        }
    }
}

/// Changes a label of a copy of the log, and makes its checksum that of the result.
fn forge_log_label(log: &Arc<dyn BlockDevice>, at: usize, change: &[u8]) {
    let offset = if change[6] % 2 == 0 { 0 } else { LOG_BYTES - BLOCK as u64 };
    let mut label = vec![0; BLOCK];
    log.read_at(offset, &mut label).expect("it is within");
    label[at % 1100] = change[5];
    let sum = crc32c::crc32c(&label[..BLOCK - 4]).to_le_bytes();
    label[BLOCK - 4..].copy_from_slice(&sum);
    log.write_at(offset, &label).expect("it is within");
}

fn read(devices: &Devices, drive: usize, slot: u64) -> Vec<u8> {
    let mut bytes = vec![0; SLOT];
    devices[drive].read_at(slot * SLOT as u64, &mut bytes).expect("it lies within");
    bytes
}

/// Changes a block, and makes checksums and parity those of the result; of what lies on all drives, all.
fn forge(devices: &Devices, (drive, slot): (usize, u64), change: &dyn Fn(&mut [u8])) {
    let drives = if slot < FIXED_SLOTS { 0..DATA_DRIVES + 1 } else { drive..drive + 1 };
    for drive in drives {
        let old = read(devices, drive, slot);
        let mut new = old.clone();
        change(&mut new);
        let payload = crc32c::crc32c(&new[..BLOCK]).to_le_bytes();
        new[BLOCK..BLOCK + 4].copy_from_slice(&payload);
        let trailer = crc32c::crc32c_append(crc32c::crc32c(&payload), &new[BLOCK + 8..]).to_le_bytes();
        new[BLOCK + 4..BLOCK + 8].copy_from_slice(&trailer);
        devices[drive].write_at(slot * SLOT as u64, &new).expect("it lies within");
        if slot >= FIXED_SLOTS {
            let mut parity = read(devices, DATA_DRIVES, slot);
            parity.iter_mut().zip(old.iter().zip(&new)).for_each(|(sum, (old, new))| *sum ^= old ^ new);
            devices[DATA_DRIVES].write_at(slot * SLOT as u64, &parity).expect("it lies within");
        }
    }
}

fn use_damaged(changes: &[u8]) {
    let devices = full().forks();
    damage(&devices, changes);
    let (drives, log) = split(&devices);
    if let Ok(report) = check(drives, &log) {
        report.findings.iter().for_each(|finding| drop(finding.to_string()));
    }
    let _ = survey(drives, &log, Some(VOLUME), &mut |_| true);
    let opened =
        open(&devices, None).or_else(|_| Garden::open_with(drives, log.spare(), LIMITS, None, Accepted::OPERATIONS));
    let Ok(garden) = opened else { return };
    for volume in garden.volumes() {
        let _ = garden.volume(&volume).map(|fs| change(&fs));
        for snapshot in garden.snapshots(&volume).unwrap_or_default() {
            let _ = garden.snapshot(&volume, &snapshot.name).map(|fs| collect_tree(&fs).is_ok());
        }
    }
    garden.set_gardening(EAGER);
    for area in 0..FULL_STRIPES / u64::from(AREA_STRIPES) {
        let _ = garden.move_area(0, area);
    }
    let _ = garden.consistency_point();
    let _ = garden.fix_up_step(VOLUME, 500);
    let _ = garden.dedup_step(VOLUME, 500);
    let _ = garden.recompact_step(VOLUME, 2000, 100);
    let _ = garden.delete_snapshot(VOLUME, b"monday");
    let _ = garden.reclaim_step(500);
    let _ = garden.consistency_point();
}

fn change(fs: &VolumeFs) {
    read_and_change(fs, |number, name, ino| match number % 3 {
        0 => fs.unlink(&CALLER, Ino::ROOT, name),
        _ => fs.write(&CALLER, ino, 3000, &[1; 9000]).map(drop),
    });
}

/// All that is done by itself, and more of it than is worth it.
const EAGER: Gardening = Gardening {
    cleaning: Some(Cleaning { quota_percent: 400, worth_percent: 0, disks_too: false }),
    fix_up: FixUp::OnRead,
    demotion: None,
    write_after_read: Some(WriteAfterRead { blocks_per_point: 4096, least_cpu_percent: 0, least_io_percent: 0 }),
};
/// All that is not whole is worth it.
const FREE: PriceList = PriceList { name: "free requests", date: "never", gb_month: 1000, put: 0, get: 0 };

/// The same on disks and flash: all that is cold leaves the flash.
const SHEDDING: Gardening = Gardening {
    cleaning: Some(Cleaning { quota_percent: 400, worth_percent: 0, disks_too: true }),
    demotion: Some(Demotion { full_percent: 0 }),
    ..EAGER
};

/// A garden in use. Nothing is closed before it is opened again, as after a loss of power.
struct Whole {
    devices: Devices,
    store: Arc<dyn ObjectStore>,
    gardening: Gardening,
    open: Option<(Garden, VolumeFs)>,
}

impl Whole {
    fn open(&mut self) -> FsResult<()> {
        self.open = None;
        let garden = open(&self.devices, Some(self.store.clone()))?;
        garden.set_gardening(self.gardening);
        let fs = garden.volume(VOLUME)?;
        self.open = Some((garden, fs));
        Ok(())
    }

    fn garden(&self) -> &Garden {
        &self.open.as_ref().expect("it is open").0
    }
}

impl Subject for Whole {
    fn file_system(&self) -> &dyn FileSystem {
        &self.open.as_ref().expect("it is open").1
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.open()
    }
}

fn play(choice: u8, events: &[u8]) {
    let fix_up = [FixUp::OnRead, FixUp::Scan, FixUp::Never][usize::from(choice >> 1) % 3];
    let store = Arc::new(MemoryObjects::default());
    let (base, gardening) = if choice & 0x20 == 0 { (empty(), EAGER) } else { (empty_pool(), SHEDDING) };
    let mut whole = Whole { devices: base.forks(), store, gardening: Gardening { fix_up, ..gardening }, open: None };
    whole.open().expect("it is whole");
    if choice & 0x80 != 0 {
        let packing = Packing { group_blocks: [2, 4, 8][usize::from(choice >> 1) % 3], compaction: choice & 0x40 != 0 };
        whole.garden().set_packing(VOLUME, packing).expect("the volume is there");
    }
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    set_root(&model).expect("it is a directory");
    let mut snapshots: BTreeMap<u8, Tree> = BTreeMap::new();
    senesce_fuzz::play(&mut whole, &mut model, events, MOST, operation, |whole, model, event| {
        garden(whole.garden(), event, &mut snapshots, &|| collect_tree(model).expect("a model"));
    });
    let want = collect_tree(&model).expect("a model");
    for opened_again in [false, true] {
        if opened_again {
            whole.open().expect("it is whole");
        }
        expect_same(&want, whole.file_system(), &format!("opened again: {opened_again}"));
        for (name, want) in &snapshots {
            let fs = whole.garden().snapshot(VOLUME, &[b'a' + name]).expect("it was made");
            expect_same(want, &fs, &format!("snapshot {name}"));
        }
        whole.garden().consistency_point().expect("there is space for it");
        let (drives, log) = split(&whole.devices);
        let report = check_with(drives, log, Some(&whole.store)).expect("it is whole");
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// What users ask for.
fn operation(event: &[u8]) -> Option<Operation> {
    let name = |byte: u8| format!("file {}", u64::from(byte) % FILES);
    let block = |byte: u8| u64::from(byte % 16) << 12;
    let asked = Asked::new(event, name(event[1]), name(event[1] / 16), block(event[2]));
    Some(match event[0] % 32 {
        which @ 0..=4 => asked.make_or_cut(which),
        5..=7 => asked.clone_range(block(event[6])),
        8 => asked.rename(RenameMode::Replace),
        9 => Operation::Reopen,
        10 => asked.read(),
        11 => asked.write(),
        12..=15 => asked.write_blocks(),
        _ => return None,
    })
}

/// What is done besides: nobody sees anything of it.
fn garden(garden: &Garden, event: &[u8], snapshots: &mut BTreeMap<u8, Tree>, now: &dyn Fn() -> Tree) {
    let (name, many) = (event[1] % 4, 1 + 8 * u64::from(event[2]));
    let done = match event[0] % 32 {
        16 | 17 => match snapshots.entry(name) {
            std::collections::btree_map::Entry::Occupied(held) => {
                held.remove();
                garden.delete_snapshot(VOLUME, &[b'a' + name])
            }
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(now());
                garden.create_snapshot(VOLUME, &[b'a' + name], CALLER.now)
            }
        },
        18 => garden.reclaim_step(many).map(drop),
        19 | 20 => match garden.move_area(usize::from(event[3] % 2), u64::from(event[1]) % AREAS) {
            // There is no second group, or it is shorter.
            Err(senesce_garden::Error::Invalid { .. }) => Ok(()),
            moved => moved.map(drop),
        },
        21 => garden.scan_step(1 + many % 8, SHEDDING.cleaning.unwrap_or_default()).map(drop),
        22 => garden.fix_up_step(VOLUME, many).map(drop),
        23 => garden.dedup_step(VOLUME, many).map(drop),
        24 => garden.recompact_step(VOLUME, many, 100).map(drop),
        25 => garden.tier(Tiering { age: u16::from(event[1] % 8), with_cached: event[2] % 2 == 0 }).map(drop),
        26 => garden.defrag_objects(&FREE).map(drop),
        27 => garden.delete_objects().map(drop),
        28 => garden.reclaim_objects().map(drop),
        29 => garden.defragment(VOLUME, DefragFiles::All, Placing::FakeDirty).map(drop),
        _ => garden.consistency_point(),
    };
    // There may be none for moving much at once.
    assert!(matches!(done, Ok(()) | Err(senesce_garden::Error::NoSpace { .. })), "{done:?}");
}
