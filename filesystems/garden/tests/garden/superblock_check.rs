//! A damaged log with a superblock that is damaged on all drives or none. The check and opening
//! both report a lost point, by different methods.

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Rng, Seed};
use senesce_garden::{Error, LOST_POINT, check};

use crate::{
    rig::{Devices, open},
    superblocks::{LIMITS, cases, damage, fork, play},
};

const BLOCK: u64 = 4096;
const UNIT: u64 = 512;
/// Units at the start of a half in which damage is drawn.
const UNITS: u64 = 8;

/// The common verdict of check and opening about a log.
struct Judged {
    is_wrong: bool,
    is_lost: bool,
}

fn judge(devices: &Devices, told: &str) -> Judged {
    let (log, drives) = devices.split_last().unwrap();
    let found = check(drives, log).unwrap().findings;
    let is_told = found.iter().any(|finding| (finding.damage.structure, finding.damage.field) == ("log", LOST_POINT));
    let opened = open(devices, LIMITS);
    let is_refused = matches!(&opened, Err(Error::Damaged { damage, .. }) if damage.field == LOST_POINT);
    let why = opened.map(drop);
    assert_eq!(is_told, is_refused, "{told}: {found:?}, and opening: {why:?}");
    // No other damage prevents opening.
    let is_wrong = found.iter().any(|finding| finding.damage.structure == "log");
    assert_eq!(is_wrong, why.is_err(), "{told}: {found:?}, and opening: {why:?}");
    Judged { is_wrong, is_lost: is_told }
}

/// Flips a bit, or zeroes a unit.
fn spoil(log: &MemoryDevice, rng: &mut Rng) -> String {
    let mut half_bytes = [0; 8];
    log.read_at(48, &mut half_bytes).unwrap();
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
fn check_and_opening_agree_on_lost_points() {
    let (mut rng, mut lost, mut whole) = (Rng::for_purpose(Seed(1), "damages of the log"), 0, 0);
    for (shape, step, behind) in cases() {
        let told = format!("{:?}, {step:?}, {behind:?}", shape.groups);
        let (at_rest, _) = play(&shape, step, behind);
        damage(&at_rest, true);
        judge(&fork(&at_rest), &told);
        for _ in 0..6 {
            let devices: Vec<MemoryDevice> = at_rest.iter().map(MemoryDevice::fork).collect();
            let told: Vec<String> =
                (0..=rng.below(2)).map(|_| spoil(devices.last().unwrap(), &mut rng)).chain([told.clone()]).collect();
            *if judge(&fork(&devices), &told.join("; ")).is_lost { &mut lost } else { &mut whole } += 1;
        }
    }
    assert!(lost > 100 && whole > 50, "{lost} lost, {whole} whole");
}

#[test]
fn check_and_opening_agree_on_damaged_logs() {
    let (mut rng, mut wrong, mut whole) = (Rng::for_purpose(Seed(2), "damages of the log"), 0, 0);
    for (shape, step, behind) in cases() {
        let (at_rest, _) = play(&shape, step, behind);
        for _ in 0..6 {
            let devices: Vec<MemoryDevice> = at_rest.iter().map(MemoryDevice::fork).collect();
            let mut told = vec![format!("{:?}, {step:?}, {behind:?}", shape.groups)];
            told.extend((0..=rng.below(2)).map(|_| spoil(devices.last().unwrap(), &mut rng)));
            *if judge(&fork(&devices), &told.join("; ")).is_wrong { &mut wrong } else { &mut whole } += 1;
        }
    }
    assert!(wrong > 50 && whole > 50, "{wrong} wrong, {whole} whole");
}
