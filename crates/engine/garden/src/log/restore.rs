//! Making all copies of the log hold the same again: labels that are damaged, units that one copy has and another one lost, copies
//! that are new or were left behind.

use std::{ops::Range, sync::Arc};

use senesce_block::BlockDevice;

use super::{
    Copies, Log, Place,
    halves::{HalfCopies, Halves, Silent, read_copies},
    write_labels, zero,
};
use crate::{
    check::Finding,
    error::Result,
    format::{
        BLOCK, Damage, OLD_VERSION,
        label::{Aggregate, LogLabel, OldLogLabel},
        lap::Stamps,
        superblock::Superblock,
    },
};

/// A copy that is to hold what the others hold.
struct Target<'a> {
    number: usize,
    device: &'a Arc<dyn BlockDevice>,
    /// Of its labels, if they are written again.
    labels: Option<LogLabel>,
}

impl Log {
    /// Whether [`restore`](Self::restore) is to fill a device that was not believed.
    pub fn fills(copies: &Copies, halves: &Halves) -> bool {
        let is_filled =
            |(number, place): (usize, &Place)| place.device().is_some() && halves.without >> number & 1 == 1;
        copies.stamps == Stamps::Summed && copies.places.iter().enumerate().any(is_filled)
    }

    /// Repairs the copies of a log that was [opened](Log::open) with these halves, and returns what was wrong. What was cut by a loss of
    /// power is no damage, and becomes the same in all copies too.
    ///
    /// Fills a copy that was not believed. `sb` must be durable and call that copy lost: its number
    /// becomes the generation of the copy, and no other device ever has the same one. The copy
    /// counts only when a later superblock says so. Leaves out a copy that cannot be written.
    ///
    /// Errors: no copy is left. Cost: reads copies that are not believed; writes only what differs.
    pub fn restore(
        &self,
        copies: &Copies,
        halves: &Halves,
        aggregate: &Aggregate,
        sb: &Superblock,
    ) -> Result<Vec<Finding>> {
        let mut repaired = copies.labels.clone();
        if aggregate.version == OLD_VERSION {
            for place in &copies.places {
                repaired.extend(self.make_old(place, aggregate.uuid, copies.shape.half_bytes)?);
            }
            return Ok(repaired);
        }
        let without = halves.without;
        if without == 0 && copies.labels.is_empty() && halves.copies.iter().all(HalfCopies::is_settled) {
            return Ok(repaired);
        }
        let raw = if without == 0 { None } else { Some(read_copies(copies, 0)) };
        let raw = raw.as_ref().unwrap_or(&halves.copies);
        let wanted = halves.copies.each_ref().map(|half| match half.is_empty() {
            true => vec![0; copies.shape.half_bytes as usize],
            false => half.settled(&halves.laps),
        });
        let mut last = None;
        for (number, place) in copies.places.iter().enumerate() {
            let Some(device) = place.device() else { continue };
            let is_new = without >> number & 1 == 1;
            let generation = if is_new { sb.cp } else { sb.logs.generations[number] };
            let label = || LogLabel { aggregate: aggregate.clone(), copy: number as u32, generation };
            let target = Target { number, device, labels: (is_new || !copies.labels.is_empty()).then(label) };
            match copies.places.len() {
                1 => repaired.extend(halves.copies.iter().flat_map(|half| &half.silent).map(Silent::finding)),
                _ if is_new => {}
                _ => repaired.extend(find_units(number, halves, raw)),
            }
            if let Err(error) = self.restore_copy(&target, raw, &wanted) {
                last = Some(self.mirror.fail(number, error));
                continue;
            }
            if is_new {
                let why = if matches!(place, Place::Spare(_)) { "lost" } else { "left behind" };
                repaired.push(Finding {
                    place: format!("log copy {number} on {}", device.name()),
                    damage: Damage::new("log", "copy", why, "one that holds all"),
                });
                self.mirror.restore(number, generation);
            }
        }
        match last {
            Some(error) if !self.mirror.is_live() => Err(error),
            _ => Ok(repaired),
        }
    }

    /// What no copy of the halves has whole, in bytes of a copy.
    pub(super) fn find_unsettled(&self, halves: &Halves) -> Vec<Range<u64>> {
        let of_half = |(number, half): (u64, &HalfCopies)| {
            let start = self.half_start(number);
            let in_copy = |range: Range<usize>| start + range.start as u64..start + range.end as u64;
            half.find_unsettled(&half.settled(&halves.laps)).map(in_copy).collect::<Vec<_>>()
        };
        (0..).zip(&halves.copies).flat_map(of_half).collect()
    }

    /// Clears what was damaged in all copies when the log was opened. A consistency point that has every operation must be durable, and no
    /// later one be written. Errors: no copy is left.
    pub fn settle(&self, unsettled: &[Range<u64>]) -> Result<()> {
        self.mirror.each(|device| {
            for range in unsettled {
                device.write_at(range.start, &vec![0; (range.end - range.start) as usize])?;
            }
            Ok(device.flush()?)
        })
    }

    fn restore_copy(&self, target: &Target<'_>, raw: &[HalfCopies; 2], wanted: &[Vec<u8>; 2]) -> Result<()> {
        let Target { number, device, labels } = target;
        let mut is_written = false;
        for (half, (raw, wanted)) in (0..).zip(raw.iter().zip(wanted)) {
            let own = raw.copies[*number].as_deref();
            for (block, bytes) in wanted.chunks(BLOCK).enumerate() {
                let at = block * BLOCK;
                if own.and_then(|own| own.get(at..at + bytes.len())) != Some(bytes) {
                    device.write_at(self.half_start(half) + at as u64, bytes)?;
                    is_written = true;
                }
            }
        }
        if is_written {
            device.flush()?; // a label makes a copy of the log of what is there
        }
        labels.as_ref().map_or(Ok(()), |label| write_labels(device, label))
    }

    /// Makes a log of version 7 on a device that holds nothing.
    fn make_old(&self, place: &Place, uuid: [u8; 16], half_bytes: u64) -> Result<Option<Finding>> {
        let Place::Spare(device) = place else { return Ok(None) };
        zero(device, BLOCK as u64 + 2 * half_bytes)?;
        device.write_at(0, &OldLogLabel { uuid, half_bytes }.encode()[..])?;
        device.flush()?;
        self.mirror.restore(0, 0);
        let damage = Damage::new("log", "copy", "lost", "one that holds all");
        Ok(Some(Finding { place: format!("log on {}", device.name()), damage }))
    }
}

/// Damaged blocks of a copy, which another copy may have. A unit of an only copy is judged by its records alone.
fn find_units(number: usize, halves: &Halves, raw: &[HalfCopies; 2]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (half, (believed, raw)) in halves.copies.iter().zip(raw).enumerate() {
        let Some(own) = raw.copies[number].as_deref() else { continue };
        let damaged = believed.find_damaged(own, &halves.laps);
        findings.extend(find_blocks(&damaged, believed.unit).map(|block| Finding {
            place: format!("log copy {number}, half {half}, block {block}"),
            damage: Damage::new("log", "unit", "damaged", "as it was written"),
        }));
    }
    findings
}

/// The blocks of 4,096 bytes that hold these units.
pub(crate) fn find_blocks(units: &[usize], unit: usize) -> impl Iterator<Item = usize> {
    let mut blocks: Vec<usize> = units.iter().map(|number| number * unit / BLOCK).collect();
    blocks.dedup();
    blocks.into_iter()
}
