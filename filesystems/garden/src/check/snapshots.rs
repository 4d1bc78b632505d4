//! Snapshots: their table, and the blocks of a volume that only they use.

use std::collections::{BTreeMap, BTreeSet};

use super::{BITS, Bits, CheckReport, aggregate::Contents};
use crate::{
    Damage,
    format::{
        snapshot::{MAX_SNAPSHOTS, PER_BLOCK, SNAPSHOT, SnapshotRecord},
        volume::VolumeRecord,
    },
};

/// The snapshots of each volume, with their places in the table.
pub(super) type Snapshots = BTreeMap<u32, Vec<(u32, SnapshotRecord)>>;

/// Reads the table.
pub(super) fn read(report: &mut CheckReport, table: &Contents) -> Snapshots {
    let mut snapshots = Snapshots::new();
    for (&block, data) in table {
        for (slot, bytes) in (block * PER_BLOCK..).zip(data.as_chunks::<SNAPSHOT>().0) {
            match SnapshotRecord::decode(bytes) {
                Ok(None) => {}
                Ok(Some(record)) if slot < MAX_SNAPSHOTS.into() => {
                    report.snapshots += 1;
                    snapshots.entry(record.volume).or_default().push((slot as u32, record));
                }
                Ok(Some(_)) => {
                    let expected = format!("one below {MAX_SNAPSHOTS}");
                    report.find(format!("snapshot {slot}"), Damage::new("snapshot record", "place", slot, expected));
                }
                Err(damage) => report.find(format!("snapshot {slot}"), damage),
            }
        }
    }
    snapshots
}

/// Checks the records of a volume's snapshots, apart from their trees.
pub(super) fn check_records(report: &mut CheckReport, cp: u64, space: u32, own: &[(u32, SnapshotRecord)]) {
    let (mut names, mut points) = (BTreeSet::new(), BTreeSet::new());
    for (_, record) in own {
        let place = || place(space, record);
        let name = String::from_utf8_lossy(&record.name);
        if !names.insert(&record.name) {
            report.find(place(), Damage::new("snapshot record", "name", name, "one that no other snapshot has"));
        }
        if record.cp > cp || !points.insert(record.cp) {
            let expected = format!("one up to {cp} that no other snapshot of the volume has");
            report.find(place(), Damage::new("snapshot record", "CP", record.cp, expected));
        }
    }
}

/// A snapshot in words.
pub(super) fn place(space: u32, record: &SnapshotRecord) -> String {
    format!("snapshot {} of volume {space}", String::from_utf8_lossy(&record.name))
}

/// Checks the summary map against the trees of the snapshots. They are equal, except that the first
/// `reclaim` blocks may have bits of deleted snapshots.
pub(super) fn check_summary(
    report: &mut CheckReport,
    space: u32,
    record: &VolumeRecord,
    summary: &Bits,
    reached: &[Bits],
) {
    let blocks = record.blocks.div_ceil(BITS);
    if record.reclaim > blocks {
        let expected = format!("at most {blocks}");
        let damage = Damage::new("volume record", "summary blocks to reclaim", record.reclaim, expected);
        report.find(format!("volume {space}"), damage);
    }
    let mut wanted = Bits::default();
    reached.iter().for_each(|reached| wanted.insert_all(reached));
    // In these blocks additional bits are allowed; absent bits are not.
    summary.iter().take_while(|vvbn| *vvbn < record.reclaim.saturating_mul(BITS)).for_each(|vvbn| {
        wanted.insert(vvbn);
    });
    summary.compare(&wanted, report, "VVBN that snapshots use", &|vvbn| format!("VVBN {vvbn} of volume {space}"));
}
