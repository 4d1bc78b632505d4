//! A superblock that is damaged on all drives, and a log that is damaged, too: check says that a consistency point is lost where opening
//! says so, though it finds out in a way of its own.

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Rng, Seed};
use senesce_garden::{Error, LOST_POINT, check};

use crate::{
    rig::{Devices, open},
    superblocks::{LIMITS, cases, damage, fork, play},
};

const BLOCK: u64 = 4096;
const UNIT: u64 = 512;
/// Units at the beginning of a half in which damages are drawn.
const UNITS: u64 = 8;

/// Whether a point is lost, as both have it.
fn is_lost(devices: &Devices, told: &str) -> bool {
    let (log, drives) = devices.split_last().unwrap();
    let found = check(drives, log).unwrap().findings;
    let is_told = found.iter().any(|finding| (finding.damage.structure, finding.damage.field) == ("log", LOST_POINT));
    let opened = open(devices, LIMITS);
    let is_refused = matches!(&opened, Err(Error::Damaged { damage, .. }) if damage.field == LOST_POINT);
    assert_eq!(is_told, is_refused, "{told}: {found:?}, and opening: {:?}", opened.map(drop));
    is_told
}

/// Flips a bit, or writes zeros over a unit.
fn spoil(log: &MemoryDevice, rng: &mut Rng) -> String {
    let mut half_bytes = [0; 8];
    log.read_at(32, &mut half_bytes).unwrap();
    let (half, unit) = (rng.below(2), rng.below(UNITS));
    let at = BLOCK + half * u64::from_le_bytes(half_bytes) + unit * UNIT;
    let mut bytes = [0; UNIT as usize];
    log.read_at(at, &mut bytes).unwrap();
    let told = match rng.below(3) {
        0 => {
            bytes.fill(0);
            "zeros".to_owned()
        }
        _ => {
            let bit = rng.below(8 * UNIT);
            bytes[bit as usize / 8] ^= 1 << (bit % 8);
            format!("bit {bit}")
        }
    };
    log.write_at(at, &bytes).unwrap();
    format!("half {half}, unit {unit}: {told}")
}

#[test]
fn check_and_opening_say_the_same_of_a_lost_point() {
    let (mut rng, mut lost, mut whole) = (Rng::for_purpose(Seed(1), "damages of the log"), 0, 0);
    for (shape, step, behind) in cases() {
        let told = format!("{:?}, {step:?}, {behind:?}", shape.groups);
        let (at_rest, _) = play(&shape, step, behind);
        damage(&at_rest, true);
        is_lost(&fork(&at_rest), &told);
        for _ in 0..6 {
            let devices: Vec<MemoryDevice> = at_rest.iter().map(MemoryDevice::fork).collect();
            let told: Vec<String> =
                (0..=rng.below(2)).map(|_| spoil(devices.last().unwrap(), &mut rng)).chain([told.clone()]).collect();
            *if is_lost(&fork(&devices), &told.join("; ")) { &mut lost } else { &mut whole } += 1;
        }
    }
    assert!(lost > 100 && whole > 50, "{lost} lost, {whole} whole");
}
