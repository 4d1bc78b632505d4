//! Making all copies of the log equal again: damaged labels, units that one copy lost, and copies
//! that are new or were left out.

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
        BLOCK, Damage,
        label::{Aggregate, LogLabel, OldLogLabel},
        log_lap::Stamps,
    },
};

/// The copies of a log that was [opened](Log::open), and the bytes that all of them should hold.
pub(crate) struct Repair<'a> {
    copies: &'a Copies,
    halves: &'a Halves,
    aggregate: &'a Aggregate,
    wanted: [Vec<u8>; 2],
}

impl<'a> Repair<'a> {
    /// Returns `None` if all copies are equal and each has valid labels.
    ///
    /// Cost: memory of one copy.
    pub fn new(copies: &'a Copies, halves: &'a Halves, aggregate: &'a Aggregate) -> Option<Self> {
        let is_whole =
            halves.without == 0 && copies.labels.is_empty() && halves.copies.iter().all(HalfCopies::is_settled);
        if copies.stamps == Stamps::Plain || is_whole {
            return None;
        }
        let wanted = halves.copies.each_ref().map(|half| match half.is_empty() {
            true => vec![0; copies.shape.half_bytes as usize],
            false => half.settled(&halves.laps),
        });
        Some(Self { copies, halves, aggregate, wanted })
    }

    fn is_believed(&self, number: usize) -> bool {
        self.halves.without >> number & 1 == 0
    }

    /// Trusted copies without a valid label.
    fn unlabeled(&self) -> impl Iterator<Item = (usize, &Arc<dyn BlockDevice>)> {
        let device = |(number, place): (usize, &'a Place)| match place {
            Place::Here(device) if self.copies.generations[number].is_none() => Some((number, device)),
            _ => None,
        };
        self.copies.places.iter().enumerate().filter_map(device).filter(|(number, _)| self.is_believed(*number))
    }

    /// Whether copies need a [new generation](Log::label), because they have no valid label.
    pub fn labels(&self) -> bool {
        self.unlabeled().next().is_some()
    }

    /// Whether devices that are not trusted [become copies](Log::fill_lost).
    pub fn fills(&self) -> bool {
        let is_filled = |(number, place): (usize, &Place)| place.device().is_some() && !self.is_believed(number);
        self.copies.places.iter().enumerate().any(is_filled)
    }

    fn label(&self, number: usize, generation: u64) -> LogLabel {
        LogLabel { aggregate: self.aggregate.clone(), copy: number as u32, generation }
    }
}

impl Log {
    /// Makes the trusted copies equal and returns the damage. A commit that a loss of power cut is
    /// no damage, and also becomes equal in all copies. A copy that cannot be written is left out.
    ///
    /// Errors: no copy is left.
    ///
    /// Cost: writes only differences.
    pub fn repair(&self, repair: &Repair<'_>) -> Result<Vec<Finding>> {
        let Repair { copies, halves, .. } = repair;
        let mut repaired = copies.labels.clone();
        self.for_each(repair, |number, device| {
            if !repair.is_believed(number) {
                return Ok(());
            }
            match copies.places.len() {
                1 => repaired.extend(halves.copies.iter().flat_map(|half| &half.silent).map(Silent::finding)),
                _ => repaired.extend(find_units(number, halves)),
            }
            self.write_differences((number, device), &halves.copies, &repair.wanted)?;
            match copies.generations[number] {
                Some(generation) if !copies.labels.is_empty() => {
                    write_labels(device, &repair.label(number, generation))
                }
                _ => Ok(()),
            }
        })?;
        Ok(repaired)
    }

    /// Writes labels with a new generation to [repaired](Self::repair) copies without a valid
    /// label.
    ///
    /// `generation` is the number of a durable superblock without other changes. A later superblock
    /// names the generation. From then on every other device of these copies is refused; until then
    /// these copies are trusted as before.
    ///
    /// Errors: no copy is left.
    pub fn label(&self, repair: &Repair<'_>, generation: u64) -> Result<()> {
        let unlabeled: Vec<usize> = repair.unlabeled().map(|(number, _)| number).collect();
        self.for_each(repair, |number, device| {
            if unlabeled.contains(&number) && self.mirror.is_in_use(number) {
                write_labels(device, &repair.label(number, generation))?;
                self.mirror.restore(number, generation);
            }
            Ok(())
        })
    }

    /// Fills devices that are not trusted, and returns them.
    ///
    /// `generation` is the number of a durable superblock that calls these copies lost. No other
    /// device ever has the same one. The copies count only after a later superblock names them. A
    /// copy that cannot be written is left out.
    ///
    /// Errors: no copy is left.
    ///
    /// Cost: reads these devices; writes only differences.
    pub fn fill_lost(&self, repair: &Repair<'_>, generation: u64) -> Result<Vec<Finding>> {
        let raw = read_copies(repair.copies, 0);
        let mut filled = Vec::new();
        self.for_each(repair, |number, device| {
            if repair.is_believed(number) {
                return Ok(());
            }
            self.write_differences((number, device), &raw, &repair.wanted)?;
            write_labels(device, &repair.label(number, generation))?;
            self.mirror.restore(number, generation);
            let why = match repair.copies.places[number] {
                Place::Spare(_) => "lost",
                _ => "left out",
            };
            filled.push(Finding {
                place: format!("log copy {number} on {}", device.name()),
                damage: Damage::new("log", "copy", why, "one that holds all"),
            });
            Ok(())
        })?;
        Ok(filled)
    }

    /// Runs `act` on each device of a copy. A device that fails is not used any more.
    ///
    /// Errors: no copy is left.
    fn for_each(
        &self,
        repair: &Repair<'_>,
        mut act: impl FnMut(usize, &Arc<dyn BlockDevice>) -> Result<()>,
    ) -> Result<()> {
        let mut last = None;
        for (number, place) in repair.copies.places.iter().enumerate() {
            let Some(device) = place.device() else { continue };
            last = act(number, device).err().map(|error| self.mirror.fail(number, error)).or(last);
        }
        match last {
            Some(error) if !self.mirror.is_live() => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the log of version 7 on an empty device. Returns a finding if the log was lost.
    pub fn make_old(&self, copies: &Copies, uuid: [u8; 16]) -> Result<Option<Finding>> {
        let (Stamps::Plain, [Place::Spare(device)]) = (copies.stamps, &copies.places[..]) else { return Ok(None) };
        let half_bytes = copies.shape.half_bytes;
        zero(device, BLOCK as u64 + 2 * half_bytes)?;
        device.write_at(0, &OldLogLabel { uuid, half_bytes }.encode()[..])?;
        device.flush()?;
        self.mirror.restore(0, 0);
        let damage = Damage::new("log", "copy", "lost", "one that holds all");
        Ok(Some(Finding { place: format!("log on {}", device.name()), damage }))
    }

    /// Ranges that are whole in no copy, in bytes of a copy.
    pub(super) fn find_unsettled(&self, halves: &Halves) -> Vec<Range<u64>> {
        let of_half = |(number, half): (u64, &HalfCopies)| {
            let start = self.half_start(number);
            let in_copy = |range: Range<usize>| start + range.start as u64..start + range.end as u64;
            half.find_unsettled(&half.settled(&halves.laps)).map(in_copy).collect::<Vec<_>>()
        };
        (0..).zip(&halves.copies).flat_map(of_half).collect()
    }

    /// Clears the ranges that were damaged in all copies at the opening. The caller has made a
    /// durable consistency point that includes every operation, and no later one was started.
    ///
    /// Errors: no copy is left.
    pub fn settle(&self, unsettled: &[Range<u64>]) -> Result<()> {
        self.mirror.each(|device| {
            for range in unsettled {
                device.write_at(range.start, &vec![0; (range.end - range.start) as usize])?;
            }
            Ok(device.flush()?)
        })
    }

    /// Writes the differences between the current bytes of a copy (`found`) and the bytes that it
    /// should hold.
    fn write_differences(
        &self,
        (number, device): (usize, &Arc<dyn BlockDevice>),
        found: &[HalfCopies; 2],
        wanted: &[Vec<u8>; 2],
    ) -> Result<()> {
        let mut is_written = false;
        for (half, (found, wanted)) in (0..).zip(found.iter().zip(wanted)) {
            let own = found.copies[number].as_deref();
            for (block, bytes) in wanted.chunks(BLOCK).enumerate() {
                let at = block * BLOCK;
                if own.and_then(|own| own.get(at..at + bytes.len())) != Some(bytes) {
                    device.write_at(self.half_start(half) + at as u64, bytes)?;
                    is_written = true;
                }
            }
        }
        if is_written {
            device.flush()?; // the labels come later, because they make the device a copy
        }
        Ok(())
    }
}

/// Damaged blocks of a copy that another copy may have. A unit of an only copy is judged by its
/// records alone.
fn find_units(number: usize, halves: &Halves) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (half, copies) in halves.copies.iter().enumerate() {
        let Some(own) = copies.copies[number].as_deref() else { continue };
        let damaged = copies.find_damaged(own, &halves.laps);
        findings.extend(find_blocks(&damaged, copies.unit).map(|block| Finding {
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
