//! Devices of a log as callers name them, and the search for the copies on them.

use std::sync::Arc;

use senesce_block::{BlockDevice, SliceDevice};
use senesce_core::Bytes;

use crate::{
    check::Finding,
    error::{Error, Result},
    format::{
        BLOCK, Block, Damage, OLD_VERSION,
        label::{Aggregate, LogLabel, LogShape, MIN_HALF_BYTES, OldLogLabel},
        log_lap::{FAR, Lap, Stamps},
        log_record::{STAMP, is_whole},
        superblock::{LogState, Superblock},
        zero_block,
    },
    store::read_labels,
};

/// The devices of a log: one for each copy, or one that holds both.
#[derive(Clone, Default)]
pub struct LogDevices {
    devices: Vec<Arc<dyn BlockDevice>>,
    /// The number of devices at the end that hold nothing, and may become copies that are lost.
    spare: usize,
    is_shared: bool,
}

impl LogDevices {
    /// No device: every copy is lost.
    pub fn none() -> Self {
        Self::default()
    }

    /// One device with two copies, one after the other. Only
    /// [`Garden::format`](crate::Garden::format) needs this.
    pub fn twice(device: Arc<dyn BlockDevice>) -> Self {
        Self { is_shared: true, ..device.into() }
    }

    /// Adds a device that may be overwritten. It becomes a copy of the log if one is lost.
    #[must_use]
    pub fn with_spare(mut self, device: Arc<dyn BlockDevice>) -> Self {
        self.devices.push(device);
        self.spare += 1;
        self
    }

    /// Allows to overwrite each of the devices that holds no copy.
    #[must_use]
    pub fn spare(self) -> Self {
        Self { spare: self.devices.len(), ..self }
    }

    /// Replaces each device by the result of `wrap` for its number and the device.
    #[must_use]
    pub fn map(mut self, mut wrap: impl FnMut(usize, Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice>) -> Self {
        self.devices = self.devices.into_iter().enumerate().map(|(number, device)| wrap(number, device)).collect();
        self
    }

    /// The devices.
    pub fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.devices
    }

    fn is_spare(&self, number: usize) -> bool {
        number + self.spare >= self.devices.len()
    }

    /// The shape of a new log on these devices.
    ///
    /// Errors: no device, more than two, or one that is too small.
    pub(crate) fn plan(&self) -> Result<LogShape> {
        let copies = if self.is_shared { 2 } else { self.devices.len() };
        let smallest = self.devices.iter().min_by_key(|device| device.size());
        let (Some(smallest), 1..=2) = (smallest, copies) else {
            return Err(Error::invalid(format!("{copies} devices for the log; 1 or 2")));
        };
        let bytes = smallest.size().0 / if self.is_shared { 2 } else { 1 };
        let half_bytes = (bytes.saturating_sub(2 * BLOCK as u64) / 2) & !(BLOCK as u64 - 1);
        if half_bytes < MIN_HALF_BYTES {
            let least = LogShape { half_bytes: MIN_HALF_BYTES, ..LogShape::OLD }.copy_bytes();
            return Err(Error::WrongDevice {
                device: smallest.name().to_owned(),
                what: format!("a log of {bytes} bytes; {least} at least"),
            });
        }
        Ok(LogShape { half_bytes, copies: copies as u8, is_shared: self.is_shared })
    }

    /// The device that contains a place.
    fn whole(&self, place: usize, shape: &LogShape) -> &Arc<dyn BlockDevice> {
        &self.devices[place / if shape.is_shared { usize::from(shape.copies) } else { 1 }]
    }

    /// The places of copies in the order of the devices, and whether each may be overwritten.
    pub(super) fn places(&self, shape: &LogShape) -> Result<Vec<(Arc<dyn BlockDevice>, bool)>> {
        let bytes = shape.copy_bytes();
        let count = if shape.is_shared { u64::from(shape.copies) } else { 1 };
        let mut places: Vec<(Arc<dyn BlockDevice>, bool)> = Vec::new();
        for (number, device) in self.devices.iter().enumerate() {
            for start in (0..count).map(|copy| copy * bytes) {
                let has = device.size().0;
                if has.saturating_sub(start) < bytes {
                    let what = format!("the log ends at byte {}; the device has {has}", start + bytes);
                    return Err(Error::WrongDevice { device: device.name().to_owned(), what });
                }
                let place: Arc<dyn BlockDevice> = match shape.is_shared {
                    true => Arc::new(SliceDevice::new(device.clone(), start, Bytes(bytes))?),
                    false => device.clone(),
                };
                places.push((place, self.is_spare(number)));
            }
        }
        Ok(places)
    }
}

impl From<Arc<dyn BlockDevice>> for LogDevices {
    fn from(device: Arc<dyn BlockDevice>) -> Self {
        Self { devices: vec![device], ..Self::default() }
    }
}

impl From<&Arc<dyn BlockDevice>> for LogDevices {
    fn from(device: &Arc<dyn BlockDevice>) -> Self {
        device.clone().into()
    }
}

impl From<Vec<Arc<dyn BlockDevice>>> for LogDevices {
    fn from(devices: Vec<Arc<dyn BlockDevice>>) -> Self {
        Self { devices, ..Self::default() }
    }
}

impl From<&Self> for LogDevices {
    fn from(other: &Self) -> Self {
        other.clone()
    }
}

/// Where the copies of a log are, according to labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlaces {
    /// Number of copies.
    pub copies: u32,
    /// Bytes of each copy.
    pub bytes: Bytes,
    /// Whether all copies are on one device, one after the other.
    pub is_shared: bool,
}

/// Where the copies of a log are.
pub(crate) struct Copies {
    pub shape: LogShape,
    pub stamps: Stamps,
    /// The place of each copy, by number.
    pub places: Vec<Place>,
    /// The generation in the labels of each copy, by number; `None` if no label is readable.
    pub generations: Vec<Option<u64>>,
    /// Damaged labels of copies that are known nevertheless.
    pub labels: Vec<Finding>,
}

/// The place of a copy.
#[derive(Clone)]
pub(crate) enum Place {
    Here(Arc<dyn BlockDevice>),
    /// A device that holds nothing yet.
    Spare(Arc<dyn BlockDevice>),
    Lost {
        why: String,
    },
}

impl Place {
    pub fn device(&self) -> Option<&Arc<dyn BlockDevice>> {
        match self {
            Self::Here(device) | Self::Spare(device) => Some(device),
            Self::Lost { .. } => None,
        }
    }
}

impl Copies {
    /// Finds the copies of an aggregate's log. `sb` is its newest superblock, if one can be read.
    ///
    /// Errors: a log of another aggregate; a device that is too small; two devices with the same
    /// copy, if the generation does not distinguish them.
    pub fn find(devices: &LogDevices, aggregate: &Aggregate, sb: Option<&Superblock>) -> Result<Self> {
        if aggregate.version == OLD_VERSION {
            return Self::find_old(devices, aggregate);
        }
        let shape = aggregate.log;
        let none = || Place::Lost { why: "it was not given".to_owned() };
        let mut found = Self {
            shape,
            stamps: Stamps::of(aggregate.version),
            places: vec![none(); shape.copies.into()],
            generations: vec![None; shape.copies.into()],
            labels: Vec::new(),
        };
        let state = sb.map_or(LogState::default(), |sb| sb.logs);
        let (mut holders, mut replaced, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (device, is_spare)) in devices.places(&shape)?.into_iter().enumerate() {
            let (known, damaged) = judge_labels(&device, aggregate)?;
            let unknown = Unknown { number, device, is_spare, damaged };
            match known {
                Some(label) if sb.is_some_and(|sb| is_begun(label, sb)) => {
                    let damage = Damage::new("log label", "generation", label.1, state.generations[label.0 as usize]);
                    let place = format!("log label of {}", unknown.device.name());
                    holders.push(Unknown { damaged: vec![Finding { place, damage }], ..unknown });
                }
                Some(label) => {
                    found.labels.extend(unknown.damaged);
                    replaced.extend(found.place(label, unknown.device, &state)?.map(|old| (label.0, old)));
                }
                None if holds_laps(&unknown.device, aggregate, sb.map_or(0, |sb| sb.point)) => holders.push(unknown),
                None => others.push(unknown),
            }
        }
        for Unknown { number, device, damaged, .. } in holders {
            let Some(copy) = found.find_free(number, state.without) else { continue };
            found.labels.extend(damaged);
            found.places[copy] = Place::Here(device);
        }
        for (copy, device) in replaced {
            // The newest superblock decides which of the two counts. The other one is filled again.
            let free = found.find_free(0, 0).filter(|_| !shape.is_shared);
            let free = free.ok_or_else(|| twice(&device, copy))?;
            found.places[free] = Place::Spare(device);
        }
        for Unknown { number, device, is_spare, damaged } in others {
            let Some(copy) = found.find_free(number, 0) else { continue };
            found.places[copy] = if is_spare {
                // A log of another aggregate may start before this place or end after it.
                check_spare(devices.whole(number, &shape), aggregate)?;
                Place::Spare(device)
            } else {
                let why = damaged.first().map_or(String::new(), |finding| format!(" ({})", finding.damage));
                Place::Lost { why: format!("{} holds no log of this aggregate{why}", device.name()) }
            };
        }
        Ok(found)
    }

    /// Puts a device where its label says. If another device has the same label, returns the one
    /// whose copy was replaced.
    ///
    /// Errors: `state` does not distinguish the two.
    fn place(
        &mut self,
        label: Known,
        device: Arc<dyn BlockDevice>,
        state: &LogState,
    ) -> Result<Option<Arc<dyn BlockDevice>>> {
        let (copy, generation) = (label.0 as usize, label.1);
        let wanted = state.generations[copy];
        match (self.places[copy].device(), self.generations[copy]) {
            (Some(_), Some(known)) if (known == wanted) == (generation == wanted) => Err(twice(&device, label.0)),
            (Some(_), Some(known)) if known == wanted => Ok(Some(device)),
            (old, _) => {
                let old = old.cloned();
                self.places[copy] = Place::Here(device);
                self.generations[copy] = Some(generation);
                Ok(old)
            }
        }
    }

    /// A free place for a device whose labels do not name one. `number` is the position among the
    /// given places, which decides on a shared device. Prefers copies that are not in `without`.
    fn find_free(&self, number: usize, without: u32) -> Option<usize> {
        let is_free = |copy: &usize| self.places[*copy].device().is_none();
        match self.shape.is_shared {
            true => Some(number % self.places.len()).filter(is_free),
            false => (0..self.places.len()).filter(is_free).min_by_key(|copy| without >> copy & 1),
        }
    }

    fn find_old(devices: &LogDevices, aggregate: &Aggregate) -> Result<Self> {
        let stamps = Stamps::Plain;
        let of =
            |shape, place| Self { shape, stamps, places: vec![place], generations: vec![None], labels: Vec::new() };
        let lost = |why: String| of(LogShape::OLD, Place::Lost { why });
        let Some(device) = devices.devices.first() else { return Ok(lost("it was not given".to_owned())) };
        let label = match read_block(device, 0).and_then(|block| OldLogLabel::decode(&block)) {
            Ok(label) => label,
            Err(damage) if devices.is_spare(0) => {
                let half_bytes = (device.size().0.saturating_sub(BLOCK as u64) / 2) & !(BLOCK as u64 - 1);
                if half_bytes < MIN_HALF_BYTES {
                    return Ok(lost(format!("{}: {damage}, and it is too small", device.name())));
                }
                check_spare(device, aggregate)?;
                let shape = LogShape { half_bytes, ..LogShape::OLD };
                return Ok(of(shape, Place::Spare(device.clone())));
            }
            Err(damage) => return Ok(lost(format!("{}: {damage}", device.name()))),
        };
        if label.uuid != aggregate.uuid {
            return Err(foreign(device));
        }
        if label.half_bytes > device.size().0.saturating_sub(BLOCK as u64) / 2 {
            let what = format!("two halves of {} bytes; the device has {}", label.half_bytes, device.size().0);
            return Err(Error::WrongDevice { device: device.name().to_owned(), what });
        }
        let shape = LogShape { half_bytes: label.half_bytes, ..LogShape::OLD };
        Ok(of(shape, Place::Here(device.clone())))
    }

    /// The name of a device that holds a copy, for messages.
    pub fn name(&self) -> String {
        let name = |place: &Place| place.device().map(|device| device.name().to_owned());
        self.places.iter().find_map(name).unwrap_or_else(|| "log".to_owned())
    }

    /// Why copies are lost.
    pub fn why_lost(&self) -> Vec<String> {
        let why = |(number, place): (usize, &Place)| match place {
            Place::Lost { why } => Some(format!("copy {number} of the log is lost: {why}")),
            Place::Spare(device) => Some(format!("copy {number} of the log is lost; {} replaces it", device.name())),
            Place::Here(_) => None,
        };
        self.places.iter().enumerate().filter_map(why).collect()
    }
}

/// A copy and its generation.
type Known = (u32, u64);

/// A place whose labels do not name its copy.
struct Unknown {
    /// The position among the given places.
    number: usize,
    device: Arc<dyn BlockDevice>,
    is_spare: bool,
    damaged: Vec<Finding>,
}

/// Whether a loss of power interrupted the relabelling of this copy: the superblock reserves the
/// generation, but names another one.
fn is_begun((copy, generation): Known, sb: &Superblock) -> bool {
    let is_without = sb.logs.without >> copy & 1 == 1;
    generation == sb.cp && generation != sb.logs.generations[copy as usize] && !is_without
}

fn twice(device: &Arc<dyn BlockDevice>, copy: u32) -> Error {
    let what = format!("another device holds copy {copy} of the log, too");
    Error::WrongDevice { device: device.name().to_owned(), what }
}

/// Returns the copy that the labels of a place name, and the damaged labels.
///
/// Errors: a label of another aggregate.
fn judge_labels(device: &Arc<dyn BlockDevice>, aggregate: &Aggregate) -> Result<(Option<Known>, Vec<Finding>)> {
    let (mut known, mut damaged, mut is_foreign) = (None, Vec::new(), false);
    for offset in label_offsets(&aggregate.log) {
        let wanted = |label: LogLabel| {
            is_foreign |= label.aggregate.uuid != aggregate.uuid;
            let own = (label.copy, label.generation);
            match known {
                _ if label.aggregate != *aggregate => {
                    Err(Damage::new("log label", "aggregate", "another one's", "that of the drives' labels"))
                }
                Some(known) if known != own => {
                    let words = |(copy, generation)| format!("{copy} of generation {generation}");
                    Err(Damage::new("log label", "copy", words(own), words(known)))
                }
                _ => Ok(own),
            }
        };
        match read_block(device, offset).and_then(|block| LogLabel::decode(&block)).and_then(wanted) {
            Ok(found) => known = Some(found),
            Err(damage) => {
                damaged.push(Finding { place: format!("log label at byte {offset} of {}", device.name()), damage });
            }
        }
    }
    match (known, is_foreign) {
        (None, true) => Err(foreign(device)),
        _ => Ok((known, damaged)),
    }
}

/// Checks a device that may be overwritten.
///
/// Errors: it has a label of a drive, or of the log of another aggregate in any version.
fn check_spare(device: &Arc<dyn BlockDevice>, aggregate: &Aggregate) -> Result<()> {
    if read_labels(device).is_ok() {
        let what = "a drive of an aggregate; name another device for the log".to_owned();
        return Err(Error::WrongDevice { device: device.name().to_owned(), what });
    }
    let uuid = |block: &Block| {
        let new = LogLabel::decode(block).map(|label| label.aggregate.uuid);
        new.or_else(|_| OldLogLabel::decode(block).map(|label| label.uuid)).ok()
    };
    let is_foreign = label_blocks(device).filter_map(|block| uuid(&block)).any(|uuid| uuid != aggregate.uuid);
    // Units of this aggregate's log would have made the device a copy. The first half of any log
    // has the same offset.
    let mut halves = [0, aggregate.log.half_bytes].into_iter();
    match is_foreign || halves.any(|start| shown_units(device, start).any(|unit| is_whole(&unit))) {
        true => Err(foreign(device)),
        false => Ok(()),
    }
}

/// Whether a device has a readable label of the log of any garden.
pub(crate) fn is_log(device: &Arc<dyn BlockDevice>) -> bool {
    label_blocks(device).any(|block| LogLabel::decode(&block).is_ok() || OldLogLabel::decode(&block).is_ok())
}

/// Blocks that may be labels of a log: the first block, the one at the end of the copy, and the
/// last block of the device. The first block locates the end of the copy even if it is damaged.
fn label_blocks(device: &Arc<dyn BlockDevice>) -> impl Iterator<Item = Box<Block>> {
    let first = read_block(device, 0).ok();
    let other = first.as_ref().and_then(|first| LogLabel::other(first));
    let last = (device.size().0 / BLOCK as u64).checked_sub(1).map(|block| block * BLOCK as u64);
    first.into_iter().chain([other, last].into_iter().flatten().filter_map(|offset| read_block(device, offset).ok()))
}

fn foreign(device: &Arc<dyn BlockDevice>) -> Error {
    Error::WrongDevice { device: device.name().to_owned(), what: "the log of another aggregate".to_owned() }
}

/// Offsets of the labels of a copy.
pub(crate) fn label_offsets(shape: &LogShape) -> [u64; 2] {
    [0, shape.copy_bytes() - BLOCK as u64]
}

/// The aggregate that a readable label of the log names.
pub(crate) fn find_aggregate(devices: &LogDevices) -> Option<Aggregate> {
    let labels = devices.devices.iter().flat_map(label_blocks);
    labels.filter_map(|block| LogLabel::decode(&block).ok()).map(|label| label.aggregate).next()
}

fn read_block(device: &Arc<dyn BlockDevice>, offset: u64) -> std::result::Result<Box<Block>, Damage> {
    let mut block = zero_block();
    let read = device.read_at(offset, &mut block[..]);
    read.map_err(|error| Damage::new("log", "answer", error, "a block")).map(|()| block)
}

/// Units at the start of a half that are checked for the owner of the log.
const SHOWN: usize = 64;

/// Whether this aggregate wrote the halves of a place without labels.
fn holds_laps(device: &Arc<dyn BlockDevice>, aggregate: &Aggregate, point: u64) -> bool {
    let is_own = |unit: Vec<u8>| {
        let laps = Lap::find(aggregate.uuid, Stamps::of(aggregate.version), &unit[unit.len() - STAMP..]);
        is_whole(&unit) && laps.into_iter().any(|lap| lap.point.abs_diff(point) < FAR)
    };
    [0, aggregate.log.half_bytes].into_iter().any(|start| shown_units(device, start).any(is_own))
}

/// The first units of a half that starts at `start` after the first label. Skips zeros and units
/// that cannot be read.
fn shown_units(device: &Arc<dyn BlockDevice>, start: u64) -> impl Iterator<Item = Vec<u8>> {
    let unit = super::halves::unit_of(device);
    let part = unit.max(BLOCK);
    let parts = (0..(SHOWN * unit / part) as u64).filter_map(move |number| {
        let mut bytes = vec![0; part];
        device.read_at(BLOCK as u64 + start + number * part as u64, &mut bytes).ok().map(|()| bytes)
    });
    let units = parts.flat_map(move |bytes| bytes.chunks_exact(unit).map(<[u8]>::to_vec).collect::<Vec<_>>());
    units.filter(|unit| unit.iter().any(|&byte| byte != 0))
}
