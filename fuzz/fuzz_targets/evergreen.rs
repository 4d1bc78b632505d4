//! The evergreen, in three ways. On a damaged device the check, dumps, a survey, a repair, opening, reading and changing end with results
//! or with errors, and what was repaired is clean. A log that says anything at all is replayed or refused. And whatever is done to a whole
//! one, its files are those of a model in memory, and the check finds nothing.
//!
//! The first byte of an input chooses between them; each eight bytes after it are a change of the image, or something to do.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_evergreen::{
    DumpWhat, Error, Evergreen, EvergreenFs, FsOptions, Limits, MakeOptions, check,
    disk::{Area, Copies, KeyOrder, NodeMap, Reader, Shape, Superblock, read_newest, write_superblock},
    dump, repair, survey,
};
use senesce_fsapi::{
    FileKind, FileSystem, FsResult, Ino, ModelFs, NewNode, RenameMode, SetXattrMode,
    conformance::{Operation, Subject, collect_tree, set_root},
};
use senesce_fuzz::{Asked, CALLER, FILES, expect_same, read_and_change};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

const BLOCK: usize = 4096;
const DEVICE_BYTES: u64 = 4 << 20;
const OPTIONS: MakeOptions = MakeOptions {
    uuid: *b"fuzzed evergreen",
    shape: Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath },
    unit_bytes: 4096,
    log_bytes: Some(96 << 10),
    copies: Copies::Two,
};
/// Little memory, so that nodes come and go.
const LIMITS: Limits = Limits { cache_bytes: 16 << 10, dirty_bytes: 64 << 10 };
/// Changes or events of an input; more take too long.
const MOST: usize = 64;

type Device = Arc<dyn BlockDevice>;

/// A device at rest, and what lies on it.
struct Base {
    device: MemoryDevice,
    superblock: Superblock,
    map: NodeMap,
}

/// One that is empty but for its root.
fn empty() -> &'static MemoryDevice {
    static EMPTY: OnceLock<MemoryDevice> = OnceLock::new();
    EMPTY.get_or_init(|| {
        let device = Arc::new(MemoryDevice::new("disk", Bytes(DEVICE_BYTES)));
        EvergreenFs::make_on(device.clone(), &OPTIONS).expect("it fits");
        set_root(&EvergreenFs::open_on(device.clone(), LIMITS).expect("it was just made"))
            .and_then(|()| Ok(Evergreen::open(device.clone(), LIMITS)?.checkpoint()?))
            .expect("it is a directory");
        let fs = EvergreenFs::open_on(device.clone(), LIMITS).expect("it was just made");
        set_root(&fs).expect("it is a directory");
        fs.store().checkpoint().expect("there is space for it");
        drop(fs);
        device.fork()
    })
}

/// One with files of all kinds on some levels, and calls that wait in the log.
fn full() -> &'static Base {
    static FULL: OnceLock<Base> = OnceLock::new();
    FULL.get_or_init(|| {
        let device = Arc::new(MemoryDevice::new("disk", Bytes(DEVICE_BYTES)));
        Evergreen::make(device.clone(), &OPTIONS).expect("it fits");
        let store = Arc::new(Evergreen::open(device.clone(), LIMITS).expect("it was just made"));
        let fs = EvergreenFs::format(store.clone(), FsOptions::default()).expect("it is empty");
        fill(&fs, &store).expect("there is space for it");
        drop(fs);
        drop(store);
        let superblock = read_newest(&*device).expect("it is whole");
        let map = NodeMap::load(&Area::new(device.clone(), superblock.geometry), &superblock).expect("it is whole");
        Base { device: device.fork(), superblock, map }
    })
}

fn fill(fs: &impl FileSystem, store: &Evergreen) -> FsResult<()> {
    let directory = fs.make_node(&CALLER, Ino::ROOT, b"directory", &NewNode::directory(0o755))?.ino;
    for number in 0..20_u8 {
        let name = format!("file {number}");
        let parent = if number % 3 == 0 { directory } else { Ino::ROOT };
        let ino = fs.make_node(&CALLER, parent, name.as_bytes(), &NewNode::file(0o644))?.ino;
        fs.write(&CALLER, ino, 0, &vec![number + 1; 1000 * usize::from(number)])?;
        if number % 7 == 2 {
            fs.set_xattr(&CALLER, ino, b"user.note", &[number; 5000], SetXattrMode::Any)?;
            fs.link(&CALLER, ino, directory, b"link")
                .or_else(|_| fs.link(&CALLER, ino, directory, format!("link {number}").as_bytes()))?;
        }
        if number % 8 == 7 {
            store.checkpoint()?;
        }
    }
    fs.symlink(&CALLER, Ino::ROOT, b"symlink", b"to")?;
    fs.rename(&CALLER, (Ino::ROOT, b"file 4"), (directory, b"moved"), RenameMode::Replace)?;
    store.checkpoint()?;
    // These wait in the log.
    for number in 0..4_u8 {
        let ino = fs.lookup(Ino::ROOT, format!("file {}", 7 + 3 * number).as_bytes())?.ino;
        fs.write(&CALLER, ino, 300, &[number; 900])?;
        fs.sync_all()?;
    }
    fs.unlink(&CALLER, Ino::ROOT, b"file 10")?;
    fs.sync_all()
}

fuzz_target!(|input: &[u8]| {
    match input.split_first() {
        Some((choice, changes)) if choice % 3 == 0 => use_damaged(&damaged(changes)),
        Some((choice, changes)) if choice % 3 == 1 => use_damaged(&with_forged_log(changes)),
        Some((_, events)) => play(events),
        None => {}
    }
});

/// Somebody changed the device: blindly, or by somebody who knows how checksums are made.
fn damaged(changes: &[u8]) -> Device {
    let base = full();
    let device: Device = Arc::new(base.device.fork());
    let mut superblock = base.superblock.clone();
    let mut map = base.map.clone();
    let nodes: Vec<_> = base.map.iter().map(|(id, _)| id).collect();
    let mut is_signed = false;
    for change in changes.chunks_exact(8).take(MOST) {
        let at = usize::from(u16::from_le_bytes([change[3], change[4]]));
        let id = nodes[usize::from(u16::from_le_bytes([change[1], change[2]])) % nodes.len()];
        let place = base.map.get(id).expect("it is in the map");
        // Of an inner node, either copy.
        let copies: Vec<_> = place.copies().map(|copy| copy.extents[0].first).collect();
        let node_at = base.superblock.geometry.unit_at(copies[usize::from(change[7] / 2) % copies.len()]);
        match change[0] % 8 {
            // Anywhere in a node, signed or not.
            0..=2 => {
                let mut bytes = read(&device, node_at, place.bytes as usize);
                let at = at % bytes.len();
                bytes[at..]
                    .iter_mut()
                    .zip(&change[5..7 - usize::from(change[7] % 2)])
                    .for_each(|(to, from)| *to = *from);
                if change[0] % 8 > 0 {
                    let sum = sign_node(&mut bytes);
                    let mut place = map.get(id).cloned().unwrap_or_else(|| place.clone());
                    place.header_sum = sum;
                    map.insert(id, place);
                    is_signed = true;
                }
                write(&device, node_at, &bytes);
            }
            // An entry of the map is that of another, or is gone.
            3 => {
                let other = nodes[at % nodes.len()];
                match base.map.get(other).filter(|_| change[5] % 2 == 0) {
                    Some(place) => drop(map.insert(id, place.clone())),
                    None => drop(map.remove(id)),
                }
                is_signed = true;
            }
            // A superblock that says something else.
            4 => {
                let number = u64::from(change[5]) << (change[6] % 64);
                match change[7] % 6 {
                    0 => superblock.root = nodes[at % nodes.len()],
                    1 => superblock.next_node = number.max(superblock.root.0 + 1),
                    2 => superblock.live_bytes = number,
                    3 => superblock.replay.position = number / 4096 * 4096,
                    4 => superblock.replay.sequence = number,
                    _ => superblock.generation = superblock.generation.wrapping_add(number),
                }
                is_signed = true;
            }
            5 => {
                let slot = (u64::from(change[5]) % 2) << 20;
                let mut block = read(&device, slot, BLOCK);
                block[at % 320] = change[6];
                if change[7] % 2 == 0 {
                    let sum = xxh3_64(&block[..BLOCK - 8]);
                    block[BLOCK - 8..].copy_from_slice(&sum.to_le_bytes());
                }
                write(&device, slot, &block);
            }
            6 => {
                let map_at = base.superblock.geometry.unit_at(base.superblock.map.extents[0].first);
                let mut chunk = read(&device, map_at, BLOCK);
                chunk[at % BLOCK] = change[5];
                write(&device, map_at, &chunk);
            }
            _ => write(&device, node_at + (at % BLOCK) as u64, &change[5..6]),
        }
    }
    if is_signed {
        let bytes = map.encode(Some(&superblock.uuid), superblock.generation);
        let area = Area::new(device.clone(), superblock.geometry);
        superblock.map.sum = NodeMap::sum(&bytes);
        superblock.map.node_sum = Some(map.node_sum());
        superblock.map.bytes = bytes.len() as u64;
        // As long as it fits: it hardly grows.
        if area.write(&superblock.map.extents, bytes).is_ok() {
            let _ = write_superblock(&*device, &superblock);
        }
    }
    device
}

fn read(device: &Device, at: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    device.read_at(at, &mut out).expect("it lies within");
    out
}

fn write(device: &Device, at: u64, bytes: &[u8]) {
    device.write_at(at, bytes).expect("it lies within");
}

/// Makes the checksums of a node right, those of its parts, too, as far as its header can be read. Gives the header's.
fn sign_node(bytes: &mut [u8]) -> u64 {
    let header = (u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]) as usize).clamp(40, bytes.len());
    let _ = sign_parts(bytes, header);
    let sum = xxh3_64(&bytes[16..header]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    sum
}

fn sign_parts(bytes: &mut [u8], header: usize) -> Option<()> {
    let mut reader = Reader::new("node", bytes::Bytes::copy_from_slice(&bytes[40..header]));
    let number = |reader: &mut Reader| reader.number("number", u64::MAX).ok();
    let key = |reader: &mut Reader| {
        number(reader)?;
        let rest = number(reader)? as usize;
        reader.take("key", rest).ok()
    };
    key(&mut reader)?;
    if reader.u8("upper").ok()? == 1 {
        key(&mut reader)?;
    }
    let (count, mut at) = (number(&mut reader)?, header);
    for _ in 0..count.min(1000) {
        key(&mut reader)?;
        if bytes[21] > 0 {
            number(&mut reader)?;
        }
        number(&mut reader)?;
        let end = at.checked_add(number(&mut reader)? as usize)?;
        let sum_at = header - reader.left();
        reader.u64("sum").ok()?;
        let sum = xxh3_64(bytes.get(at..end)?);
        bytes[sum_at..sum_at + 8].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
    Some(())
}

/// A log whose frames say something else, with right checksums, each chained to the one before.
fn with_forged_log(changes: &[u8]) -> Device {
    let base = full();
    let device: Device = Arc::new(base.device.fork());
    let (geometry, replay) = (base.superblock.geometry, base.superblock.replay);
    let seed = xxh3_64(&base.superblock.uuid);
    let mut changes = changes.chunks_exact(8).take(MOST);
    let (mut position, mut chain) = (replay.position, replay.chain);
    // Each frame takes up to four changes; there are some more frames than are filled.
    for _ in 0..8 {
        let at = geometry.log_at + position % geometry.log_bytes;
        let Some(left) = (geometry.log_at + geometry.log_bytes).checked_sub(at).filter(|left| *left >= BLOCK as u64)
        else {
            break;
        };
        let mut frame = read(&device, at, BLOCK.min(left as usize));
        for change in changes.by_ref().take(4) {
            let to = usize::from(u16::from_le_bytes([change[1], change[2]])) % frame.len();
            match change[0] % 4 {
                0 => frame[to] = change[3],
                1 => frame[64 + to % 200] = change[3],
                2 => frame[64 + to % 200..].iter_mut().zip(&change[3..]).for_each(|(to, from)| *to = *from),
                _ => frame[8 + to % 32] = change[3],
            }
        }
        frame[40..48].copy_from_slice(&chain.to_le_bytes());
        let u64_at = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes"));
        let (records, body) = (u64_at(32) & 0xffff_ffff, u64_at(32) >> 32);
        let mut hasher = Xxh3::with_seed(seed);
        for number in [u64_at(8), u64_at(24), records, body, chain] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&frame[64..]);
        chain = hasher.digest();
        frame[48..56].copy_from_slice(&chain.to_le_bytes());
        let sum = xxh3_64_with_seed(&frame[..56], seed);
        frame[56..64].copy_from_slice(&sum.to_le_bytes());
        write(&device, at, &frame);
        // Behind its block of parity.
        position += 2 * BLOCK as u64;
    }
    device
}

fn use_damaged(device: &Device) {
    if let Ok(report) = check(device) {
        report.findings.iter().for_each(|finding| drop(finding.to_string()));
    }
    for what in
        [DumpWhat::Superblocks, DumpWhat::Map, DumpWhat::Space, DumpWhat::Log, DumpWhat::Tree, DumpWhat::Node { id: 3 }]
    {
        let _ = dump(device, &what, 50).map(|dump| dump.to_string());
    }
    let overlay = || -> Device { Arc::new(senesce_block::OverlayDevice::new(device.clone())) };
    let _ = survey(overlay(), &mut |_| true);
    if let Ok(fs) = EvergreenFs::open_on(overlay(), LIMITS) {
        change(&fs);
        let _ = fs.store().checkpoint();
    }
    match repair(device, false) {
        // What was repaired is whole: nothing of it gives an error.
        Ok(_) => {
            assert!(check(device).expect("it was repaired").is_clean());
            let fs = EvergreenFs::open_on(device.clone(), LIMITS).expect("it was repaired");
            collect_tree(&fs).expect("it was repaired");
            change(&fs);
        }
        // A map may name so many nodes that nothing is free.
        Err(error) => assert!(!matches!(error, Error::Stopped { .. }), "{error}"),
    }
}

fn change(fs: &impl FileSystem) {
    read_and_change(fs, |number, name, ino| match number % 4 {
        0 => fs.unlink(&CALLER, Ino::ROOT, name),
        1 => fs.rename(&CALLER, (Ino::ROOT, name), (Ino::ROOT, b"other"), RenameMode::Replace),
        _ => fs.write(&CALLER, ino, 3000, &[1; 9000]).map(drop),
    });
}

/// An evergreen in use. Nothing is closed before it is opened again, as after a loss of power.
struct Whole {
    device: Device,
    fs: Option<EvergreenFs<Evergreen>>,
}

impl Whole {
    fn checkpoint(&self) {
        self.fs.as_ref().expect("it is open").store().checkpoint().expect("there is space for it");
    }
}

impl Subject for Whole {
    fn file_system(&self) -> &dyn FileSystem {
        self.fs.as_ref().expect("it is open")
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.file_system().sync_all()?;
        self.fs = None;
        self.fs = Some(EvergreenFs::open_on(self.device.clone(), LIMITS)?);
        Ok(())
    }
}

fn play(events: &[u8]) {
    let device: Device = Arc::new(empty().fork());
    let fs = Some(EvergreenFs::open_on(device.clone(), LIMITS).expect("it is whole"));
    let mut whole = Whole { device, fs };
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    set_root(&model).expect("it is a directory");
    senesce_fuzz::play(&mut whole, &mut model, events, MOST, operation, |whole, _, _| whole.checkpoint());
    let want = collect_tree(&model).expect("a model");
    for opened_again in [false, true] {
        if opened_again {
            whole.reopen().expect("it is whole");
        }
        expect_same(&want, whole.file_system(), &format!("opened again: {opened_again}"));
    }
    whole.checkpoint();
    let report = check(&whole.device).expect("it is whole");
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// What users ask for.
fn operation(event: &[u8]) -> Option<Operation> {
    let name = |byte: u8| format!("{}{}", ["", "directory/"][usize::from(byte / 64) % 2], u64::from(byte) % FILES);
    let asked = Asked::new(event, name(event[1]), name(event[7]), u64::from(event[2] % 8) << 12);
    Some(match event[0] % 20 {
        which @ 0..=4 => asked.make_or_cut(which),
        5 => asked.clone_range(0),
        6 => asked.rename(RenameMode::Replace),
        7 => asked.rename(RenameMode::Exchange),
        8 => Operation::Reopen,
        9 => asked.read(),
        10 => asked.write(),
        11..=13 => asked.write_blocks(),
        14 => Operation::MakeNode { path: "directory".to_owned(), kind: FileKind::Directory, permissions: 0o700 },
        15 => Operation::SyncAll,
        _ => return None,
    })
}
