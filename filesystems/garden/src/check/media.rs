//! Drives and log, as the check reads them: labels, superblocks, slots, parity.

use std::{cell::Cell, rc::Rc, sync::Arc};

use senesce_block::BlockDevice;

use super::{Bits, CheckPart, CheckProgress, CheckReport, Stripes, log};
use crate::{
    Damage,
    error::{Error, Result},
    format::{
        Block, OLD_VERSION, SLOT, compacted,
        label::{Aggregate, DriveLabel},
        pointer::{Form, Physical},
        slot::{self, Context, Kind},
        superblock::Superblock,
    },
    log::{LogDevices, find_aggregate},
    raid::{Geometry, LABELS, StripeRange, Want, fixed_context, slot_offset, superblock_slot},
    store::{Stranger, identify, of_version},
};

/// Stripes whose parity is computed at once.
const STRIPES_AT_ONCE: usize = 64;

pub(crate) struct Media {
    pub uuid: [u8; 16],
    pub geometry: Geometry,
    pub sb: Superblock,
    drives: Vec<Option<Arc<dyn BlockDevice>>>,
    /// Stripes that each drive holds: all, unless it is being filled.
    held: Vec<u64>,
    /// The stripes that an unfinished consistency point was writing. Their parity is wrong until
    /// the next opening.
    unfinished: Vec<StripeRange>,
    /// The receiver of progress, and the number of blocks read.
    pub tell: Option<Tell>,
    read: Cell<u64>,
}

/// Receives the progress of a check.
pub type Tell = Rc<dyn Fn(CheckProgress)>;

/// Blocks between two reports of progress.
const TOLD_EVERY: u64 = 256;

impl Media {
    pub fn open(drives: &[Arc<dyn BlockDevice>], log: &LogDevices, report: &mut CheckReport) -> Result<Self> {
        let (first, geometry, mut places) = place_drives(drives, log, report)?;
        let sb = newest_superblock(&places, first.uuid, report)?;
        for (number, drive) in (0..).zip(&mut places) {
            if sb.missing.contains(&number) {
                *drive = None; // its contents are too old
            }
            if drive.is_none() {
                report.missing_drives.push(number);
            }
        }
        let mut held = vec![u64::MAX; places.len()];
        for &(number, done) in &sb.filling {
            match held.get_mut(number as usize) {
                Some(held) if done < geometry.groups[geometry.group_of(number as usize)].stripes => *held = done,
                _ => {}
            }
        }
        report.find_too_many_missing(&geometry, &held);
        let unfinished = log::check(log, &first, &sb, report)?;
        report.cp = sb.cp;
        Ok(Self { uuid: first.uuid, geometry, sb, drives: places, held, unfinished, tell: None, read: Cell::new(0) })
    }

    /// Reads a block and its trailer, without any repair.
    pub fn read(&self, pvbn: u64) -> std::result::Result<(Context, Box<Block>), Damage> {
        self.read.set(self.read.get() + 1);
        if self.read.get().is_multiple_of(TOLD_EVERY) {
            let used = self.geometry.blocks().saturating_sub(self.sb.free);
            // Compacted blocks are read once for each of their chunks.
            self.tell(CheckPart::Blocks, self.read.get().min(used), used);
        }
        let slot = self.slot(pvbn)?;
        Ok((slot::decode(&slot)?, slot::payload(&slot)))
    }

    fn tell(&self, part: CheckPart, done: u64, of: u64) {
        if let Some(tell) = &self.tell {
            tell(CheckProgress { part, done, of });
        }
    }

    /// Reads a block of a container from its place in the map.
    pub fn read_volume_block(
        &self,
        vvbn: u64,
        owner: u64,
        at: Physical,
    ) -> std::result::Result<(Context, Box<Block>), Damage> {
        let (context, block) = self.read(at.pvbn)?;
        let want = match at.form {
            Form::Block | Form::Object => Want { kind: Kind::Volume, level: None, owner, block: vvbn, tag: at.tag },
            Form::Compacted => Want::compacted(owner, at.tag),
        };
        want.check(&context, at.pvbn)?;
        match at.form {
            Form::Block | Form::Object => Ok((context, block)),
            Form::Compacted => Ok((context, compacted::extract(&block, vvbn)?)),
        }
    }

    /// Restores a block from the other drives of its group.
    pub fn rebuilt(&self, pvbn: u64) -> std::result::Result<(Context, Box<Block>), Damage> {
        let place = self.geometry.locate(pvbn).ok_or_else(|| self.outside(pvbn))?;
        let mut slot = slot::Slot::zeros();
        self.rebuild(place.group, place.stripe, self.geometry.first_drive(place.group) + place.drive, &mut slot)?;
        Ok((slot::decode(&slot)?, slot::payload(&slot)))
    }

    /// Reads a block and its trailer, without checks.
    pub fn slot(&self, pvbn: u64) -> std::result::Result<slot::Slot, Damage> {
        let place = self.geometry.locate(pvbn).ok_or_else(|| self.outside(pvbn))?;
        let mut slot = slot::Slot::zeros();
        let number = self.geometry.first_drive(place.group) + place.drive;
        match &self.drives[number] {
            Some(drive) if place.stripe < self.held[number] => drive
                .read_at(slot_offset(place.stripe), &mut slot[..])
                .map_err(|error| Damage::new("drive", "answer", error, "a block"))?,
            _ => self.rebuild(place.group, place.stripe, number, &mut slot)?,
        }
        Ok(slot)
    }

    fn outside(&self, pvbn: u64) -> Damage {
        Damage::new("pointer", "PVBN", pvbn, format!("less than {}", self.geometry.blocks()))
    }

    /// The drive and offset of a block.
    pub fn slot_place(&self, pvbn: u64) -> Option<(usize, u64)> {
        let place = self.geometry.locate(pvbn)?;
        Some((self.geometry.first_drive(place.group) + place.drive, slot_offset(place.stripe)))
    }

    /// Restores the slot of a drive that does not hold the stripe: the XOR of the others. Errors:
    /// no parity, or another drive is missing too.
    fn rebuild(
        &self,
        group: usize,
        stripe: u64,
        missing: usize,
        out: &mut slot::Slot,
    ) -> std::result::Result<(), Damage> {
        let (first, shape) = (self.geometry.first_drive(group), self.geometry.groups[group]);
        if !shape.parity {
            return Err(Damage::new("drive", "answer", "nothing, and its RAID group has no parity", "a block"));
        }
        let mut other = slot::Slot::zeros();
        for number in (first..first + shape.drives()).filter(|&number| number != missing) {
            let too_many =
                || Damage::new("drive", "answer", "nothing, and another of its RAID group is missing", "a block");
            let drive = self.drives[number].as_ref().filter(|_| stripe < self.held[number]).ok_or_else(too_many)?;
            let read = drive.read_at(slot_offset(stripe), &mut other[..]);
            read.map_err(|error| Damage::new("drive", "answer", error, "a block"))?;
            out.iter_mut().zip(other.iter()).for_each(|(sum, byte)| *sum ^= byte);
        }
        Ok(())
    }

    /// Sums stripes that all drives of a group hold. With parity, the sum is zeros.
    pub fn check_parity(&self, used: &Bits, which: Stripes, report: &mut CheckReport) -> Result<()> {
        let stripes = match which {
            Stripes::InUse => self.stripes_in_use(used),
            Stripes::All => self.all_stripes(),
        };
        let (mut done, of) = (0, stripes.iter().map(Bits::count).sum());
        for (group, stripes) in stripes.iter().enumerate() {
            let shape = self.geometry.groups[group];
            let first = self.geometry.first_drive(group);
            let places = first..first + shape.drives();
            if self.drives[places.clone()].iter().any(Option::is_none) {
                continue;
            }
            let held = self.held[places].iter().copied().min().unwrap_or(0);
            let stripes: Vec<u64> = stripes.iter().take_while(|stripe| *stripe < held).collect();
            let follows = |one: &u64, other: &u64| one + 1 == *other;
            for run in stripes.chunk_by(follows).flat_map(|run| run.chunks(STRIPES_AT_ONCE)) {
                self.tell(CheckPart::Stripes, done, of);
                done += run.len() as u64;
                self.add_up(group, run, report)?;
            }
        }
        Ok(())
    }

    /// The stripes of each group with parity that have a block in use.
    fn stripes_in_use(&self, used: &Bits) -> Vec<Bits> {
        let mut stripes = vec![Bits::default(); self.geometry.groups.len()];
        for place in used.iter().filter_map(|pvbn| self.geometry.locate(pvbn)) {
            if self.geometry.groups[place.group].parity {
                stripes[place.group].insert(place.stripe);
            }
        }
        stripes
    }

    fn all_stripes(&self) -> Vec<Bits> {
        let all = |stripes| {
            (0..stripes).fold(Bits::default(), |mut bits, stripe| {
                bits.insert(stripe);
                bits
            })
        };
        self.geometry
            .groups
            .iter()
            .map(|shape| if shape.parity { all(shape.stripes) } else { Bits::default() })
            .collect()
    }

    /// Sums adjacent stripes of a group without missing drives.
    fn add_up(&self, group: usize, stripes: &[u64], report: &mut CheckReport) -> Result<()> {
        let first = self.geometry.first_drive(group);
        let drives = &self.drives[first..first + self.geometry.groups[group].drives()];
        let mut sum = vec![0; stripes.len() * SLOT];
        let mut own = sum.clone();
        for drive in drives.iter().flatten() {
            drive.read_at(slot_offset(stripes[0]), &mut own)?;
            sum.iter_mut().zip(&own).for_each(|(sum, byte)| *sum ^= byte);
        }
        for (&stripe, sum) in stripes.iter().zip(sum.as_chunks::<SLOT>().0) {
            let is_unfinished = self.unfinished.iter().any(|range| {
                range.group as usize == group && (range.first..range.first + range.count).contains(&stripe)
            });
            if is_unfinished {
                continue;
            }
            report.stripes += 1;
            if let Some(at) = sum.iter().position(|&byte| byte != 0) {
                let damage = Damage::new("stripe", "parity", format!("a difference at byte {at}"), "none");
                report.find(format!("stripe {stripe} of RAID group {group}"), damage);
            }
        }
        Ok(())
    }
}

type FixedSlot = std::result::Result<(Context, Box<Block>), Damage>;

/// Drives by their places.
type Placed = Vec<Option<Arc<dyn BlockDevice>>>;

/// The aggregate of the labels, and the place of each drive. Each damaged label is a finding.
/// Errors: no label can be read, drives of several aggregates.
fn place_drives(
    drives: &[Arc<dyn BlockDevice>],
    log: &LogDevices,
    report: &mut CheckReport,
) -> Result<(Aggregate, Geometry, Placed)> {
    let (mut labels, mut strangers) = (Vec::new(), Vec::new());
    for drive in drives {
        let read = |slot| -> Result<std::result::Result<DriveLabel, Damage>> {
            Ok(read_fixed(drive, slot)?.and_then(|(context, block)| {
                let label = DriveLabel::decode(&block)?;
                same_context(context, Kind::Label, 0, 0).map(|()| label)
            }))
        };
        let is_short = drive.size().0 < (LABELS[1] + 1) * SLOT as u64;
        let first =
            if is_short { Err(Damage::new("drive", "bytes", drive.size().0, "a label")) } else { read(LABELS[0])? };
        let is_old = first.as_ref().is_ok_and(|label| label.aggregate.version == OLD_VERSION);
        // Version 7 has no second label.
        let second = if is_old || is_short { first.clone() } else { read(LABELS[1])? };
        let place = |slot: u64| format!("label of {} in slot {slot}", drive.name());
        for (slot, found) in LABELS.into_iter().zip([&first, &second]) {
            if let Err(damage) = found {
                report.find(place(slot), damage.clone());
            }
        }
        if let (Ok(one), Ok(other)) = (&first, &second)
            && one != other
        {
            report.find(place(LABELS[1]), Damage::new("drive label", "drive", other.drive, one.drive));
        }
        match first.or(second) {
            Ok(label) => labels.push((label, drive.clone())),
            Err(damage) => strangers.push(Stranger { device: drive.clone(), why: damage.to_string() }),
        }
    }
    let first = labels.first().map(|(label, _)| label.aggregate.clone()).or_else(|| find_aggregate(log));
    let Some(first) = first else {
        return Err(Error::invalid("no drive has a label that can be read"));
    };
    let geometry = Geometry::of(&first)?;
    let taken = labels.iter().map(|(label, _)| label.drive).collect();
    let (known, _) = identify(strangers, taken, &first, &geometry);
    labels.extend(
        known.into_iter().map(|(drive, number)| (DriveLabel { aggregate: first.clone(), drive: number }, drive)),
    );
    let mut places: Placed = vec![None; geometry.drives()];
    for (label, drive) in labels {
        let wrong = |what: &str| Error::WrongDevice { device: drive.name().to_owned(), what: what.to_owned() };
        if label.aggregate != first {
            return Err(wrong("a drive of another aggregate"));
        }
        match places.get_mut(label.drive as usize) {
            Some(place @ None) => *place = Some(of_version(drive, first.version)),
            _ => return Err(wrong("a place that is taken, or is none")),
        }
    }
    Ok((first, geometry, places))
}

/// Reads a slot at a fixed place. The outer error is that of the device.
fn read_fixed(drive: &Arc<dyn BlockDevice>, number: u64) -> Result<FixedSlot> {
    let mut slot = slot::Slot::zeros();
    drive.read_at(number * SLOT as u64, &mut slot[..])?;
    Ok(slot::decode(&slot).map(|context| (context, slot::payload(&slot))))
}

fn same_context(found: Context, kind: Kind, place: u64, cp: u64) -> std::result::Result<(), Damage> {
    let expected = fixed_context(kind, place, cp);
    if found == expected {
        return Ok(());
    }
    Err(Damage::new("trailer", "context", format!("{found:?}"), format!("{expected:?}")))
}

/// The newest superblock. The superblocks of both places must be whole and equal on all drives. The
/// older place may never have been written. There, the rest of a superblock that a loss of power
/// cut is no damage.
fn newest_superblock(
    drives: &[Option<Arc<dyn BlockDevice>>],
    uuid: [u8; 16],
    report: &mut CheckReport,
) -> Result<Superblock> {
    let mut all = Vec::new();
    for (number, drive) in (0..).zip(drives).filter_map(|(number, drive)| Some((number, drive.as_ref()?))) {
        for half in 0..2 {
            let found = read_fixed(drive, superblock_slot(half))?.and_then(|(context, block)| {
                let sb = Superblock::decode(&block)?;
                same_context(context, Kind::Superblock, 1 + half, sb.cp)?;
                let same = sb.uuid == uuid;
                let other = || Damage::new("superblock", "uuid", format!("{:?}", sb.uuid), format!("{uuid:?}"));
                if same { Ok(sb) } else { Err(other()) }
            });
            all.push((number, drive.name(), half, found));
        }
    }
    let newest = all.iter().filter_map(|(_, _, half, found)| Some((found.as_ref().ok()?, *half)));
    let Some((newest, place)) = newest.max_by_key(|(sb, _)| sb.cp) else {
        return Err(Error::invalid("no drive has a superblock that can be read"));
    };
    let newest = newest.clone();
    all.retain(|(number, ..)| !newest.missing.contains(number)); // these are too old
    let whole = all.iter().all(|(_, _, half, found)| *half != place || found.as_ref().is_ok_and(|sb| *sb == newest));
    for (_, name, half, found) in &all {
        let place_of = || format!("superblock {half} of {name}");
        match found {
            Ok(sb) if *half == place && *sb != newest => {
                report.find(place_of(), Damage::new("superblock", "consistency point", sb.cp, newest.cp));
            }
            Err(damage) if *half == place => report.find(place_of(), damage.clone()),
            // If the newest one is whole everywhere, the other place holds the previous one, or
            // nothing yet.
            Err(damage) if whole && newest.cp > 1 => report.find(place_of(), damage.clone()),
            _ => {}
        }
    }
    Ok(newest)
}
