//! Which device is which drive, and which of them are to be believed.
//!
//! A label says in which place a drive belongs, not whether it is up to date: a drive that was missing for a while may come
//! back. Every drive that an aggregate writes to has its last superblock or the one before; a drive that has neither, or
//! that the last one calls missing, is left out.

use std::{fmt, sync::Arc};

use senesce_block::BlockDevice;
use senesce_core::Bytes;

use crate::{
    error::{Error, Result},
    format::{
        SLOT,
        label::DriveLabel,
        slot::{self, Kind},
        superblock::Superblock,
    },
    raid::{Drive, Geometry, fixed_context, slot_offset},
};

/// A device that was given and is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub device: String,
    /// Why it is not used.
    pub why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.device, self.why)
    }
}

/// The drives of an aggregate in their places, and the last consistency point.
pub(super) struct Drives {
    pub label: DriveLabel,
    pub geometry: Geometry,
    pub sb: Superblock,
    /// The place (0 or 1) of the superblock.
    pub sb_slot: u64,
    pub places: Vec<Drive>,
    pub left_out: Vec<LeftOut>,
    /// Superblocks that cannot be read, and why.
    pub unread: Vec<String>,
}

/// A device with a label, and its newest superblock.
struct Candidate {
    device: Arc<dyn BlockDevice>,
    label: DriveLabel,
    /// The number of its last consistency point; 0 if it was never written, `None` if none can be read.
    newest: Option<u64>,
    found: Option<(Superblock, u64)>,
    /// Why others cannot be read.
    unread: Vec<String>,
}

/// Puts devices in their places, in whatever order they come.
///
/// Errors: drives of several aggregates or geometries, two in one place, one that is shorter than it was or that is no drive
/// at all while none is missing, one that does not answer, another version of the format, no superblock.
pub(super) fn find_drives(devices: &[Arc<dyn BlockDevice>]) -> Result<Drives> {
    let (mut strangers, mut left_out) = (Vec::new(), Vec::new());
    let mut candidates = Vec::new();
    for device in devices {
        check_alignment(device)?;
        match twice(device, || read_label(device))? {
            Ok(label) => candidates.push(read_candidate(device, label)?),
            Err(error) if is_of_another_version(&error) => return Err(error),
            Err(error) => strangers.push(LeftOut { device: device.name().to_owned(), why: error.to_string() }),
        }
    }
    let Some(label) = pick_label(&candidates) else {
        let none = strangers.first().map_or("no drives were given".to_owned(), ToString::to_string);
        return Err(Error::invalid(format!("no drive of an aggregate: {none}")));
    };
    let geometry = Geometry::of(&label)?;
    candidates.iter().try_for_each(|candidate| check_member(candidate, &label, &geometry))?;
    let newest = candidates.iter().filter_map(|candidate| candidate.found.clone()).max_by_key(|(sb, _)| sb.cp);
    let Some((sb, sb_slot)) = newest else {
        return Err(Error::invalid(format!("no superblock can be read on {}", candidates[0].device.name())));
    };
    let unread = candidates.iter().flat_map(|candidate| candidate.unread.iter().cloned()).collect();
    let mut places: Vec<Drive> = Vec::new();
    places.resize_with(geometry.drives(), || Drive::Missing { why: "it was not given".to_owned() });
    for candidate in candidates {
        let Candidate { device, label, newest, .. } = candidate;
        let place = label.drive as usize;
        if let Some(why) = find_staleness(label.drive, newest, &sb) {
            if let Drive::Missing { why: said } = &mut places[place] {
                said.clone_from(&why);
            }
            left_out.push(LeftOut { device: device.name().to_owned(), why });
        } else if !matches!(places[place], Drive::Missing { .. }) {
            return Err(wrong(&device, "another drive has the same place"));
        } else {
            let stripes = geometry.groups[geometry.group_of(place)].stripes;
            let filled = sb.filling.iter().find(|(drive, done)| *drive == label.drive && *done < stripes);
            places[place] = match filled {
                Some(&(_, done)) => Drive::Filling { device, done },
                None => Drive::Here(device),
            };
        }
    }
    let complete = places.iter().all(|place| !matches!(place, Drive::Missing { .. }));
    if complete && let Some(LeftOut { device, why }) = strangers.first() {
        let what = format!("one device too many: {why}");
        return Err(Error::WrongDevice { device: device.clone(), what });
    }
    left_out.extend(strangers);
    Ok(Drives { label, geometry, sb, sb_slot, places, left_out, unread })
}

/// Why a drive is not to be believed.
fn find_staleness(drive: u32, newest: Option<u64>, sb: &Superblock) -> Option<String> {
    match newest {
        _ if sb.missing.contains(&drive) => Some(format!(
            "too old: consistency point {} was made without it; it can only come back as a new drive",
            sb.cp
        )),
        None => Some("too old, perhaps: neither of its superblocks can be read".to_owned()),
        Some(cp) if cp < sb.previous => {
            Some(format!("too old: it is at consistency point {cp}, the aggregate at {}", sb.cp))
        }
        Some(_) => None,
    }
}

/// The label that most drives have; of several, the first.
fn pick_label(candidates: &[Candidate]) -> Option<DriveLabel> {
    let same = |label: &DriveLabel| candidates.iter().filter(|other| is_same_aggregate(&other.label, label)).count();
    let labels = candidates.iter().map(|candidate| &candidate.label);
    labels.rev().max_by_key(|label| same(label)).cloned()
}

fn is_same_aggregate(one: &DriveLabel, other: &DriveLabel) -> bool {
    *one == DriveLabel { drive: one.drive, ..other.clone() }
}

fn check_member(candidate: &Candidate, label: &DriveLabel, geometry: &Geometry) -> Result<()> {
    let Candidate { device, label: own, .. } = candidate;
    if own.uuid != label.uuid {
        return Err(wrong(device, "a drive of another aggregate"));
    }
    if !is_same_aggregate(own, label) {
        return Err(wrong(device, "its label has another geometry than those of the other drives"));
    }
    if own.drive as usize >= geometry.drives() {
        return Err(wrong(device, &format!("its label says drive {} of {}", own.drive, geometry.drives())));
    }
    let (has, wanted) = (device.size().0, geometry.drive_bytes(geometry.group_of(own.drive as usize)));
    if has < wanted {
        return Err(wrong(device, &format!("shorter than when it was formatted: {has} bytes of {wanted}")));
    }
    Ok(())
}

fn wrong(device: &Arc<dyn BlockDevice>, what: &str) -> Error {
    Error::WrongDevice { device: device.name().to_owned(), what: what.to_owned() }
}

fn is_of_another_version(error: &Error) -> bool {
    matches!(error, Error::Damaged { damage, .. } if damage.field == "version")
}

fn read_candidate(device: &Arc<dyn BlockDevice>, label: DriveLabel) -> Result<Candidate> {
    let (mut newest, mut found, mut unread) = (None, None, Vec::new());
    for half in 0..2 {
        let cp = match twice(device, || read_superblock(device, half, label.uuid))? {
            Ok(sb) => {
                let cp = sb.cp;
                if newest.is_none_or(|newest| newest < cp) {
                    found = Some((sb, half));
                }
                cp
            }
            Err(error) if is_of_another_version(&error) => return Err(error),
            Err(_) if is_zero(device, half) => 0,
            Err(error) => {
                unread.push(error.to_string());
                continue;
            }
        };
        newest = newest.max(Some(cp));
    }
    Ok(Candidate { device: device.clone(), label, newest, found, unread })
}

/// Reads something, again if the device fails. Errors: it fails twice. A drive that does not answer may be whole, and would be
/// too old as soon as something is written without it: that is for those to decide who can look at it.
fn twice<T>(device: &Arc<dyn BlockDevice>, read: impl Fn() -> Result<T>) -> Result<Result<T>> {
    let mut found = read();
    if matches!(found, Err(Error::Device(_))) {
        found = read();
    }
    match found {
        Err(Error::Device(failure)) => {
            Err(wrong(device, &format!("it does not answer ({failure}); to go on without it, open without it")))
        }
        found => Ok(found),
    }
}

fn is_zero(device: &Arc<dyn BlockDevice>, half: u64) -> bool {
    let mut slot = slot::Slot::zeros();
    device.read_at((1 + half) * SLOT as u64, &mut slot[..]).is_ok() && slot.iter().all(|&byte| byte == 0)
}

/// Errors: the device takes larger units only than blocks are here.
pub(super) fn check_alignment(drive: &Arc<dyn BlockDevice>) -> Result<()> {
    if SLOT.is_multiple_of(drive.alignment() as usize) {
        return Ok(());
    }
    let what = format!(
        "takes multiples of {} bytes, and blocks here have {SLOT}: open it without O_DIRECT",
        drive.alignment()
    );
    Err(wrong(drive, &what))
}

/// The label of a drive.
pub(crate) fn read_label(drive: &Arc<dyn BlockDevice>) -> Result<DriveLabel> {
    let damaged = |damage| Error::damaged(format!("label of {}", drive.name()), damage);
    if drive.size().0 < slot_offset(1) {
        let what = format!("{} bytes are too few for a drive", drive.size().0);
        return Err(Error::WrongDevice { device: drive.name().to_owned(), what });
    }
    let mut slot = slot::Slot::zeros();
    drive.read_at(0, &mut slot[..])?;
    slot::decode(&slot).and_then(|_| DriveLabel::decode(&slot::payload(&slot))).map_err(damaged)
}

/// How many bytes a drive takes of its device, as its label says.
pub(crate) fn drive_length(drive: &Arc<dyn BlockDevice>) -> Result<Bytes> {
    let label = read_label(drive)?;
    let geometry = Geometry::of(&label)?;
    match (label.drive as usize) < geometry.drives() {
        true => Ok(Bytes(geometry.drive_bytes(geometry.group_of(label.drive as usize)))),
        false => Err(wrong(drive, "has a label with a place that the aggregate does not have")),
    }
}

/// The superblock in a place (0 or 1) of a drive.
pub(crate) fn read_superblock(drive: &Arc<dyn BlockDevice>, half: u64, uuid: [u8; 16]) -> Result<Superblock> {
    let damaged = |damage| Error::damaged(format!("superblock {half} of {}", drive.name()), damage);
    let mut slot = slot::Slot::zeros();
    drive.read_at((1 + half) * SLOT as u64, &mut slot[..])?;
    let decode = || {
        let context = slot::decode(&slot)?;
        let sb = Superblock::decode(&slot::payload(&slot))?;
        if context != fixed_context(Kind::Superblock, 1 + half, sb.cp) || sb.uuid != uuid {
            return Err(crate::Damage::new("superblock", "place", format!("{context:?}"), "its own"));
        }
        Ok(sb)
    };
    decode().map_err(damaged)
}
