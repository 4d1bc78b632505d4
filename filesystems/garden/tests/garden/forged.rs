//! Damage that checksums do not detect: metadata changed together with valid checksums. The check
//! finds and names contradictions. The engine may refuse or continue, but it always terminates.

use std::sync::Arc;

use senesce_block::MemoryDevice;
use senesce_core::{Rng, Seed};
use senesce_fsapi::{FileSystem, Ino, NewNode, conformance::collect_tree};
use senesce_garden::{Limits, check};

use crate::{
    damage::{filled, forks, used},
    rig::{Devices, SLOT, SMALL, VOLUME, caller, open, shared},
};

const BLOCK: usize = 4096;
/// The parity drive of the shape in use.
const PARITY: usize = 3;

pub fn read(devices: &Devices, drive: usize, offset: u64) -> Vec<u8> {
    let mut slot = vec![0; SLOT as usize];
    devices[drive].read_at(offset, &mut slot).unwrap();
    slot
}

/// Flips a bit of a payload, and updates checksums and parity to match.
pub fn forge(devices: &Devices, (drive, offset): (usize, u64), byte: usize, bit: u32) {
    let old = read(devices, drive, offset);
    let mut new = old.clone();
    new[byte] ^= 1 << bit;
    let payload = crc32c::crc32c(&new[..BLOCK]).to_le_bytes();
    new[BLOCK..BLOCK + 4].copy_from_slice(&payload);
    let trailer = crc32c::crc32c_append(crc32c::crc32c(&payload), &new[BLOCK + 8..]).to_le_bytes();
    new[BLOCK + 4..BLOCK + 8].copy_from_slice(&trailer);
    devices[drive].write_at(offset, &new).unwrap();
    let mut parity = read(devices, PARITY, offset);
    parity.iter_mut().zip(old.iter().zip(&new)).for_each(|(sum, (old, new))| *sum ^= old ^ new);
    devices[PARITY].write_at(offset, &parity).unwrap();
}

/// The identity of a block, from its trailer.
struct What {
    of_volume: bool,
    level: u8,
    /// The aggregate's file, or the volume's.
    file: u64,
}

fn what(slot: &[u8]) -> What {
    let word = |at: usize| u64::from_le_bytes(slot[BLOCK + at..BLOCK + at + 8].try_into().unwrap());
    let of_volume = slot[BLOCK + 8] == 4;
    What { of_volume, level: slot[BLOCK + 9], file: word(if of_volume { 48 } else { 16 }) }
}

/// Whether the check must find a change of this byte. (A changed place in a pointer makes it
/// stale.) This covers all pointers, maps and directories, and fields of inodes that follow from
/// others. Times, owners, permissions, bytes after names, and contents are independent.
fn must_be_found(what: &What, slot: &[u8], byte: usize) -> bool {
    if what.level > 0 {
        return true;
    }
    match (what.of_volume, what.file) {
        // Inodes: kind, flags, links, blocks, height, attributes, parent, pointers.
        (true, 0) => {
            let (inode, at) = (&slot[byte / 256 * 256..], byte % 256);
            let in_use = inode[0] != 0;
            let inline = inode[1] == 1;
            !in_use || matches!(at, 0 | 1 | 12..16 | 24..32 | 72 | 80..96) || (at >= 96 && !inline)
        }
        // The number that distinguishes equal hashes is arbitrary.
        (true, 1) => !is_low_cookie(slot, byte),
        // The summary map of a snapshot's tree has no meaning any more.
        (true, 2..=3 | 6) => true,
        (true, _) => false,
        (false, 1) => true,
        // Containers have no contents of their own. Inodes as above, but without links and parents.
        (false, 0) => {
            let at = byte % 256;
            let in_use = slot[byte / 256 * 256] != 0;
            !in_use || at == 0 || at >= 96
        }
        // Volumes: magic, length of the name, VVBNs, inodes, counts, root.
        (false, 2) => matches!(byte % 512, 0..4 | 8..40 | 288..456 | 472..488) && slot[byte / 512 * 512] != 0,
        // Snapshots: magic, volume, length of the name, counts, seed, root.
        (false, 4) => matches!(byte % 512, 0..4 | 8..12 | 40..56 | 64..72 | 352..512) && slot[byte / 512 * 512] != 0,
        (false, _) => false,
    }
}

/// The newest block of contents of a file of metadata, of the volume or of the aggregate.
fn newest(devices: &Devices, of_volume: bool, file: u64) -> (usize, u64) {
    let places = used(devices).into_iter().filter_map(|place| {
        let slot = read(devices, place.0, place.1);
        let found = what(&slot);
        let cp = u64::from_le_bytes(slot[BLOCK + 40..BLOCK + 48].try_into().unwrap());
        ((found.of_volume, found.level, found.file) == (of_volume, 0, file)).then_some((cp, place))
    });
    places.max().unwrap().1
}

#[test]
fn check_names_forged_fields_of_snapshots() {
    let at_rest = filled(&SMALL);
    let cases: [(bool, u64, usize, u32, &str); 11] = [
        (false, 4, 0, 0, "snapshot 0: snapshot record: magic"),
        (false, 4, 4, 2, "of volume 4: snapshot record: volume is 4"),
        (false, 4, 8, 7, "snapshot 0: snapshot record: name length is 134"),
        (false, 4, 39, 7, "snapshot monday of volume 0: snapshot record: CP"),
        (false, 4, 40, 0, "snapshot monday of volume 0: volume record: used"),
        (false, 4, 48, 0, "snapshot monday of volume 0: volume record: inodes in use"),
        (false, 4, 352, 0, "inode 0 of snapshot monday of volume 0"),
        (false, 2, 448, 0, "volume 0: volume record: held"),
        (false, 2, 456, 7, "volume 0: volume record: summary blocks to reclaim is 128, expected at most 1"),
        (true, 5, 0, 0, "of volume 0: map: VVBN that snapshots use is"),
        (true, 5, 90, 3, "of volume 0: map: container map's place is 0, expected 1"),
    ];
    for (of_volume, file, byte, bit, told) in cases {
        let devices = forks(&at_rest);
        let place = newest(&devices, of_volume, file);
        forge(&devices, place, byte, bit);
        let found = crate::rig::findings(&devices);
        assert!(found.iter().any(|finding| finding.contains(told)), "{told}: {found:?}");
        // Whatever the engine does, it terminates.
        use_it(&devices);
    }
}

#[test]
fn check_names_forged_fields_of_clones() {
    let at_rest: Vec<Arc<MemoryDevice>> = filled(&SMALL).into_iter().map(Arc::new).collect();
    let devices = at_rest.iter().map(|device| device.clone() as _).collect();
    open(&devices, Limits::default()).unwrap().clone_volume(VOLUME, b"monday", b"clone").unwrap();
    assert_eq!(crate::rig::findings(&devices), Vec::<String>::new());
    let cases: [(usize, u32, &str); 6] = [
        // A deleted volume has no snapshots.
        (0, 0, "snapshot monday of volume 0: snapshot record: volume is 0"),
        (464, 1, "volume 1: volume record: origin is snapshot 0 of volume 2"),
        (468, 3, "volume 1: volume record: origin is snapshot 8 of volume 0"),
        (488, 0, "volume 1: volume record: origin is snapshot 0 of volume 0"),
        (495, 7, "volume 1: volume record: VVBNs of the origin is"),
        (496, 0, "volume 1: volume record: VVBNs of the origin that are gone is"),
    ];
    for (byte, bit, told) in cases {
        let devices = shared(at_rest.iter().map(|device| device.fork()).collect());
        let place = newest(&devices, false, 2);
        forge(&devices, place, if byte == 0 { 504 } else { 512 + byte }, bit);
        let found = crate::rig::findings(&devices);
        assert!(found.iter().any(|finding| finding.contains(told)), "{told}: {found:?}");
        use_it(&devices);
    }
}

/// Whether a byte of a leaf is one of the two lowest bytes of a cookie.
fn is_low_cookie(leaf: &[u8], byte: usize) -> bool {
    let mut at = 16;
    for _ in 0..u16::from_le_bytes([leaf[4], leaf[5]]) {
        if (at..at + 2).contains(&byte) {
            return true;
        }
        at += 18 + usize::from(leaf[at + 17]);
    }
    false
}

#[test]
fn forged_metadata_are_found_and_harmless() {
    let at_rest = filled(&SMALL);
    let mut rng = Rng::for_purpose(Seed(1), "forgery");
    let (mut missed, mut tried, mut refused, mut counts) = (Vec::new(), 0, 0, 0);
    for place in used(&forks(&at_rest)) {
        let slot = read(&forks(&at_rest), place.0, place.1);
        let what = what(&slot);
        for _ in 0..50 {
            // Prefers used bytes to the zeros after them.
            let end = slot[..BLOCK].iter().rposition(|&byte| byte != 0).map_or(BLOCK, |last| last + 1);
            let end = if rng.chance(3, 4) { end } else { BLOCK };
            let byte = rng.below(end as u64) as usize;
            let bit = rng.below(8) as u32;
            if !must_be_found(&what, &slot, byte) {
                continue;
            }
            tried += 1;
            counts += u32::from((what.of_volume, what.file, what.level) == (true, 6, 0));
            let devices = forks(&at_rest);
            forge(&devices, place, byte, bit);
            let (log, drives) = devices.split_last().unwrap();
            let report = check(drives, log).unwrap();
            if report.is_clean() && report.stale_pointers == 0 {
                missed.push(format!(
                    "volume {}, file {}, level {}, byte {byte}, bit {bit}",
                    what.of_volume, what.file, what.level
                ));
            }
            refused += u32::from(!use_it(&devices));
        }
    }
    assert!(tried > 200 && counts > 20, "{tried} forgeries, {counts} of counts of references");
    assert!(missed.is_empty(), "{} of {tried} missed:\n{}", missed.len(), missed.join("\n"));
    assert!(refused > 20, "{refused} of {tried} were refused");
}

/// Reads everything and makes changes. Returns whether nothing was refused.
pub fn use_it(devices: &Devices) -> bool {
    let Ok(garden) = open(devices, Limits::default()) else { return false };
    let Ok(fs) = garden.volume(VOLUME) else { return false };
    let mut whole = collect_tree(&fs).is_ok();
    for number in 0..12 {
        let name = format!("file {number}");
        let done = match number % 3 {
            0 => fs.unlink(&caller(5), Ino::ROOT, name.as_bytes()),
            1 => fs
                .lookup(Ino::ROOT, name.as_bytes())
                .and_then(|file| fs.write(&caller(5), file.ino, 3000, &[1; 9000]).map(|_| ())),
            _ => fs.make_node(&caller(5), Ino::ROOT, format!("new {number}").as_bytes(), &NewNode::file(0)).map(|_| ()),
        };
        whole &= done.is_ok();
    }
    whole & garden.consistency_point().is_ok()
}
