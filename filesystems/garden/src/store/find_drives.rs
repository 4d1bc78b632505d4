//! Assignment of devices to drives, and the decision which drives are current.
//!
//! A label names the place of a drive, but not whether it is current: a drive that was missing for
//! a while may come back. Every drive that is written to has the last superblock or the one before.
//! A drive with neither, or one that the last superblock calls missing, is left out.

use std::{fmt, sync::Arc};

use senesce_block::BlockDevice;
use senesce_core::Bytes;

use super::identify_drives::{Stranger, identify};
use crate::{
    check::Finding,
    error::{Error, Result},
    format::{
        OLD_VERSION, SLOT,
        label::{Aggregate, DriveLabel},
        slot::{self, Kind},
        superblock::Superblock,
    },
    raid::{Drive, Geometry, LABELS, OldDrive, fixed_context, superblock_slot},
};

/// A device that was given and is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the device.
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
    pub aggregate: Aggregate,
    pub geometry: Geometry,
    pub sb: Superblock,
    /// The place (0 or 1) of the superblock.
    pub sb_slot: u64,
    pub places: Vec<Drive>,
    pub left_out: Vec<LeftOut>,
    /// Superblocks that cannot be read, and why.
    pub unread: Vec<String>,
    /// Damaged labels.
    pub labels: Vec<(u32, Finding)>,
}

/// A device with a label, and its newest superblock.
struct Candidate {
    device: Arc<dyn BlockDevice>,
    label: DriveLabel,
    /// Damaged copies of the label.
    damaged: Vec<Finding>,
    /// The number of its newest superblock; 0 if none was ever written, `None` if none can be read.
    newest: Option<u64>,
    found: Option<(Superblock, u64)>,
    /// Why superblocks cannot be read.
    unread: Vec<String>,
}

/// Assigns devices to places, in any order. `log` is the aggregate in the labels of the log, if
/// they can be read.
///
/// A drive whose labels are both damaged is identified by its superblocks and its blocks, or as the
/// only drive left. Errors: drives of several aggregates or geometries; two drives in one place; a
/// drive that is shorter than before; a device that is no drive while none is missing; a drive that
/// fails; another version of the format; no superblock.
pub(super) fn find_drives(devices: &[Arc<dyn BlockDevice>], log: Option<Aggregate>) -> Result<Drives> {
    let (mut strangers, mut left_out) = (Vec::new(), Vec::new());
    let mut labelled = Vec::new();
    for device in devices {
        check_alignment(device)?;
        match twice(device, || read_labels(device))? {
            Ok((label, damaged)) => labelled.push((device.clone(), label, damaged)),
            Err(error) if is_of_another_version(&error) => return Err(error),
            Err(error) => strangers.push(Stranger { device: device.clone(), why: error.to_string() }),
        }
    }
    let Some(label) = pick_label(&labelled).or(log) else {
        let none = strangers.first().map_or("no drives were given".to_owned(), |stranger| {
            format!("{} ({})", stranger.device.name(), stranger.why)
        });
        return Err(Error::invalid(format!("no drive of an aggregate: {none}")));
    };
    let geometry = Geometry::of(&label)?;
    for (device, own, _) in &labelled {
        check_member(device, own, &label, &geometry)?;
    }
    let taken = labelled.iter().map(|(_, label, _)| label.drive).collect();
    let (known, strangers) = identify(strangers, taken, &label, &geometry);
    for (device, drive) in known {
        let name = device.name().to_owned();
        let damage = crate::Damage::new("drive label", "copies", "damaged", "one that can be read");
        let damaged = vec![Finding { place: format!("label of {name}"), damage }];
        labelled.push((device, DriveLabel { aggregate: label.clone(), drive }, damaged));
    }
    let mut candidates = Vec::new();
    for (device, label, damaged) in labelled {
        candidates.push(read_candidate(&of_version(device, label.aggregate.version), label, damaged)?);
    }
    if candidates.is_empty() {
        return Err(Error::invalid("no drive has a label or a superblock of the aggregate"));
    }
    let newest = candidates.iter().filter_map(|candidate| candidate.found.clone()).max_by_key(|(sb, _)| sb.cp);
    let Some((sb, sb_slot)) = newest else {
        return Err(Error::invalid(format!("no superblock can be read on {}", candidates[0].device.name())));
    };
    let unread = candidates.iter().flat_map(|candidate| candidate.unread.iter().cloned()).collect();
    let (mut places, mut labels): (Vec<Drive>, _) = (Vec::new(), Vec::new());
    places.resize_with(geometry.drives(), || Drive::Missing { why: "it was not given".to_owned() });
    for candidate in candidates {
        let Candidate { device, label, damaged, newest, .. } = candidate;
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
            labels.extend(damaged.into_iter().map(|damaged| (label.drive, damaged)));
        }
    }
    let complete = places.iter().all(|place| !matches!(place, Drive::Missing { .. }));
    if complete && let Some(Stranger { device, why }) = strangers.first() {
        return Err(wrong(device, &format!("one device too many: {why}")));
    }
    left_out.extend(
        strangers.into_iter().map(|Stranger { device, why }| LeftOut { device: device.name().to_owned(), why }),
    );
    Ok(Drives { aggregate: label, geometry, sb, sb_slot, places, left_out, unread, labels })
}

/// Why a drive must not be used.
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

/// The aggregate that most labels name; of several, the first.
fn pick_label(labelled: &[(Arc<dyn BlockDevice>, DriveLabel, Vec<Finding>)]) -> Option<Aggregate> {
    let labels = || labelled.iter().map(|(_, label, _)| &label.aggregate);
    let same = |label: &Aggregate| labels().filter(|other| *other == label).count();
    labels().rev().max_by_key(|label| same(label)).cloned()
}

/// Presents a drive of an older version of the format as one of this version.
pub(crate) fn of_version(device: Arc<dyn BlockDevice>, version: u32) -> Arc<dyn BlockDevice> {
    if version == OLD_VERSION { Arc::new(OldDrive::new(device)) } else { device }
}

fn check_member(device: &Arc<dyn BlockDevice>, own: &DriveLabel, label: &Aggregate, geometry: &Geometry) -> Result<()> {
    if own.aggregate.uuid != label.uuid {
        return Err(wrong(device, "a drive of another aggregate"));
    }
    if own.aggregate != *label {
        return Err(wrong(device, "its label has another geometry than those of the other drives"));
    }
    if own.drive as usize >= geometry.drives() {
        return Err(wrong(device, &format!("its label says drive {} of {}", own.drive, geometry.drives())));
    }
    let device = &of_version(device.clone(), label.version);
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

fn read_candidate(device: &Arc<dyn BlockDevice>, label: DriveLabel, damaged: Vec<Finding>) -> Result<Candidate> {
    let (mut newest, mut found, mut unread) = (None, None, Vec::new());
    for half in 0..2 {
        let cp = match twice(device, || read_superblock(device, half, label.aggregate.uuid))? {
            Ok(sb) => {
                let cp = sb.cp;
                if newest.is_none_or(|newest| newest < cp) {
                    found = Some((sb, half));
                }
                cp
            }
            Err(error) if is_of_another_version(&error) => return Err(error),
            // Zeros: no superblock was ever written there.
            Err(_) if is_zero(device, half) => 0,
            Err(error) => {
                unread.push(error.to_string());
                continue;
            }
        };
        newest = newest.max(Some(cp));
    }
    Ok(Candidate { device: device.clone(), label, damaged, newest, found, unread })
}

/// Runs `read` again if the device fails. Errors: it fails twice. Such a drive may be intact, but
/// would be too old after the first write without it. So the administrator has to decide.
fn twice<T>(device: &Arc<dyn BlockDevice>, read: impl Fn() -> Result<T>) -> Result<Result<T>> {
    let mut found = read();
    if matches!(found, Err(Error::Device(_))) {
        found = read();
    }
    match found {
        Err(Error::Device(failure)) => Err(wrong(
            device,
            &format!("it does not answer ({failure}); to continue without this drive, do not name it"),
        )),
        found => Ok(found),
    }
}

fn is_zero(device: &Arc<dyn BlockDevice>, half: u64) -> bool {
    let mut slot = slot::Slot::zeros();
    device.read_at(superblock_slot(half) * SLOT as u64, &mut slot[..]).is_ok() && slot.iter().all(|&byte| byte == 0)
}

/// Errors: the device needs larger aligned requests than a slot.
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

/// The label of a drive, and its damaged copies. Errors: both copies are damaged.
pub(crate) fn read_labels(drive: &Arc<dyn BlockDevice>) -> Result<(DriveLabel, Vec<Finding>)> {
    if drive.size().0 < LEAST_BYTES {
        let what = format!("{} bytes are too few for a drive", drive.size().0);
        return Err(Error::WrongDevice { device: drive.name().to_owned(), what });
    }
    let first = read_label_slot(drive, LABELS[0])?;
    if let Ok(label) = &first
        && label.aggregate.version == OLD_VERSION
    {
        return Ok((label.clone(), Vec::new()));
    }
    // Version 7 has no second label; a block of a file is at its place.
    let second = read_label_slot(drive, LABELS[1])?;
    let place = |slot: u64| format!("label of {} in slot {slot}", drive.name());
    for (slot, found) in LABELS.into_iter().zip([&first, &second]) {
        // Another version is no damage.
        if let Err(damage) = found
            && damage.field == "version"
        {
            return Err(Error::damaged(place(slot), damage.clone()));
        }
    }
    let damaged = |slot, damage: crate::Damage| vec![Finding { place: place(slot), damage }];
    match (first, second) {
        (Ok(one), Ok(other)) if one == other => Ok((one, Vec::new())),
        (Ok(label), Err(damage)) => Ok((label, damaged(LABELS[1], damage))),
        (Err(damage), Ok(label)) => Ok((label, damaged(LABELS[0], damage))),
        (Ok(one), Ok(other)) => {
            let damage =
                crate::Damage::new("drive label", "drive", other.drive, format!("{}, as the first", one.drive));
            Ok((one, damaged(LABELS[1], damage)))
        }
        (Err(damage), Err(_)) => Err(Error::damaged(format!("label of {}", drive.name()), damage)),
    }
}

/// The label of a drive.
pub(crate) fn read_label(drive: &Arc<dyn BlockDevice>) -> Result<DriveLabel> {
    read_labels(drive).map(|(label, _)| label)
}

/// The aggregate in the first readable drive label.
pub(crate) fn find_aggregate(drives: &[Arc<dyn BlockDevice>]) -> Option<Aggregate> {
    drives.iter().find_map(|drive| Some(read_labels(drive).ok()?.0.aggregate))
}

/// The size of a drive of version 7 with one stripe.
const LEAST_BYTES: u64 = 4 * SLOT as u64;

/// The outer error is that of the device.
fn read_label_slot(drive: &Arc<dyn BlockDevice>, number: u64) -> Result<crate::format::Decoded<DriveLabel>> {
    let mut slot = slot::Slot::zeros();
    drive.read_at(number * SLOT as u64, &mut slot[..])?;
    Ok(slot::decode(&slot).and_then(|context| {
        let label = DriveLabel::decode(&slot::payload(&slot))?;
        let wanted = fixed_context(Kind::Label, 0, 0);
        let damage = || crate::Damage::new("trailer", "context", format!("{context:?}"), format!("{wanted:?}"));
        if context == wanted { Ok(label) } else { Err(damage()) }
    }))
}

/// The bytes that a drive occupies on its device, according to its label.
pub(crate) fn drive_length(drive: &Arc<dyn BlockDevice>) -> Result<Bytes> {
    let label = read_label(drive)?;
    let geometry = Geometry::of(&label.aggregate)?;
    if (label.drive as usize) >= geometry.drives() {
        return Err(wrong(drive, "has a label with a place that the aggregate does not have"));
    }
    let absent = if label.aggregate.version == OLD_VERSION { SLOT as u64 } else { 0 };
    Ok(Bytes(geometry.drive_bytes(geometry.group_of(label.drive as usize)) - absent))
}

/// The superblock in a place (0 or 1) of a drive.
pub(crate) fn read_superblock(drive: &Arc<dyn BlockDevice>, half: u64, uuid: [u8; 16]) -> Result<Superblock> {
    let damaged = |damage| Error::damaged(format!("superblock {half} of {}", drive.name()), damage);
    let mut slot = slot::Slot::zeros();
    drive.read_at(superblock_slot(half) * SLOT as u64, &mut slot[..])?;
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
