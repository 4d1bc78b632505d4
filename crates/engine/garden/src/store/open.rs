//! Making an aggregate, and finding its last consistency point again.

use std::{collections::BTreeSet, sync::Arc};

use senesce_block::BlockDevice;
use senesce_fsapi::FileKind;

use super::{
    AGGREGATE, Activity, Allocator, Cache, Counts, Limits, Store, aggregate, container_of, volumes::fixed_file,
};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, SLOT,
        inode::{INODE, Inode},
        label::{DriveLabel, Group},
        slot::{self, Kind},
        superblock::Superblock,
        volume::VOLUME,
    },
    log::{Found, Log},
    raid::{FIXED_SLOTS, Geometry, Raid, fixed_context, slot_offset},
};

/// How an aggregate is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// Its identity; drives and logs of another one are refused.
    pub uuid: [u8; 16],
    /// RAID groups: data drives, and whether one more drive holds parity. The drives are given in this order.
    pub groups: Vec<(u16, bool)>,
    /// Stripes of an allocation area.
    pub aa_stripes: u32,
    /// Stripes that are filled drive by drive.
    pub tetris_stripes: u32,
    /// The drives hold zeros already; else they are zeroed, which takes as long as writing them.
    pub zeroed: bool,
}

/// An aggregate that was opened, and what its log says is still to be done.
pub(crate) struct Opened {
    pub store: Store,
    pub found: Found,
}

/// Makes an empty aggregate. All that the devices held is gone.
pub(crate) fn format(
    options: &FormatOptions,
    drives: Vec<Arc<dyn BlockDevice>>,
    log: Arc<dyn BlockDevice>,
) -> Result<()> {
    let geometry = plan_geometry(options, &drives)?;
    for (index, drive) in (0..).zip(&drives) {
        check_alignment(drive)?;
        if !options.zeroed {
            zero(drive, geometry.drive_bytes(geometry.group_of(index)))?;
        }
    }
    let raid = Raid::new(geometry.clone(), drives.iter().cloned().map(Some).collect())?;
    Log::format(&log, options.uuid)?;
    let (log, _) = Log::open(log, options.uuid, 0, 0)?;
    let root = Inode::new(FileKind::File);
    let sb = Superblock {
        uuid: options.uuid,
        cp: 0,
        applied: 0,
        free: geometry.blocks(),
        volumes: 0,
        root,
        missing: vec![],
    };
    let mut store = Store::new(raid, log, sb, 1, Limits::default());
    let files = u64::from(aggregate::MAX_VOLUMES);
    store.sb.root = fixed_file(AGGREGATE, container_of(aggregate::MAX_VOLUMES) * INODE as u64);
    let bitmap = fixed_file(AGGREGATE, geometry.blocks().div_ceil(8));
    store.put_inode(AGGREGATE, aggregate::BITMAP, &bitmap)?;
    store.put_inode(AGGREGATE, aggregate::VOLUMES, &fixed_file(AGGREGATE, files * VOLUME as u64))?;
    store.new_areas();
    if store.kept() >= geometry.blocks() {
        return Err(Error::invalid(format!("{} blocks are too few for an aggregate", geometry.blocks())));
    }
    for (index, drive) in (0..).zip(&drives) {
        let label = DriveLabel {
            uuid: options.uuid,
            drive: index,
            aa_stripes: options.aa_stripes,
            tetris_stripes: options.tetris_stripes,
            groups: geometry.groups.clone(),
        };
        drive.write_at(0, &slot::encode(&label.encode(), &fixed_context(Kind::Label, 0, 0))[..])?;
        drive.flush()?;
    }
    store.consistency_point()
}

/// Finds the last consistency point, makes parity right where an unfinished one was writing, and reads the log.
///
/// The drives may come in any order; those of a group but one suffice. Errors: two drives in one place, drives or logs of
/// different aggregates, too many missing, no valid superblock.
pub(crate) fn open(drives: &[Arc<dyn BlockDevice>], log: Arc<dyn BlockDevice>, limits: Limits) -> Result<Opened> {
    let (label, mut places) = collect_labels(drives)?;
    let geometry = Geometry::of(&label)?;
    let (sb, sb_slot) = find_superblock(places.iter().flatten(), label.uuid)?;
    for &missing in &sb.missing {
        if let Some(place) = places.get_mut(missing as usize) {
            *place = None;
        }
    }
    let raid = Raid::new(geometry, places)?;
    if !raid.present().all(|drive| read_superblock(drive, sb_slot, label.uuid).is_ok_and(|found| found == sb)) {
        // Power was lost while the superblocks were written, or one of them is damaged.
        raid.write_superblock(sb_slot, sb.cp, &sb.encode())?;
        raid.flush()?;
    }
    let (log, found) = Log::open(log, label.uuid, sb.cp, sb.applied)?;
    if found.unfinished.cp.is_some() {
        raid.recover(&found.unfinished)?;
        raid.flush()?;
    }
    let mut store = Store::new(raid, log, sb, sb_slot, limits);
    // Numbers of consistency points are never used twice, not even those of unfinished ones: tags tell them apart.
    store.sb.cp = found.unfinished.cp.unwrap_or(store.sb.cp);
    store.load_areas()?;
    store.load_volumes()?;
    Ok(Opened { store, found })
}

impl Store {
    fn new(raid: Raid, log: Log, sb: Superblock, sb_slot: u64, limits: Limits) -> Self {
        Self {
            raid,
            log,
            committed: sb.cp,
            sb,
            sb_slot,
            cache: Cache::default(),
            dirty: BTreeSet::new(),
            volumes: Vec::new(),
            alloc: Allocator::default(),
            pending: BTreeSet::new(),
            limits,
            counts: Counts::default(),
            activity: Activity::default(),
            stopped: None,
            touched: false,
        }
    }
}

fn plan_geometry(options: &FormatOptions, drives: &[Arc<dyn BlockDevice>]) -> Result<Geometry> {
    let wanted: usize = options.groups.iter().map(|(data, parity)| usize::from(*data) + usize::from(*parity)).sum();
    if wanted != drives.len() {
        return Err(Error::invalid(format!("{} drives for RAID groups of {wanted}", drives.len())));
    }
    let mut rest = drives;
    let mut groups = Vec::new();
    for &(data_drives, parity) in &options.groups {
        let (own, others) = rest.split_at(usize::from(data_drives) + usize::from(parity));
        let smallest = own.iter().map(|drive| drive.size().0).min().unwrap_or(0);
        let stripes = (smallest / SLOT as u64).saturating_sub(FIXED_SLOTS);
        groups.push(Group { data_drives, parity, stripes });
        rest = others;
    }
    Geometry::new(groups, options.aa_stripes, options.tetris_stripes)
}

fn check_alignment(drive: &Arc<dyn BlockDevice>) -> Result<()> {
    if SLOT.is_multiple_of(drive.alignment() as usize) {
        return Ok(());
    }
    let what = format!(
        "takes multiples of {} bytes, and blocks here have {SLOT}: open it without O_DIRECT",
        drive.alignment()
    );
    Err(Error::WrongDevice { device: drive.name().to_owned(), what })
}

fn zero(drive: &Arc<dyn BlockDevice>, bytes: u64) -> Result<()> {
    let zeros = vec![0; 256 * SLOT];
    for offset in (0..bytes).step_by(zeros.len()) {
        let len = (bytes - offset).min(zeros.len() as u64) as usize;
        drive.write_at(offset, &zeros[..len])?;
    }
    Ok(())
}

type Places = Vec<Option<Arc<dyn BlockDevice>>>;

/// Puts each drive in its place. Drives without a readable label are left out, like missing ones.
fn collect_labels(drives: &[Arc<dyn BlockDevice>]) -> Result<(DriveLabel, Places)> {
    let wrong = |drive: &Arc<dyn BlockDevice>, what: &str| Error::WrongDevice {
        device: drive.name().to_owned(),
        what: what.to_owned(),
    };
    let mut first: Option<DriveLabel> = None;
    let mut places: Places = Vec::new();
    let mut unreadable = None;
    for drive in drives {
        check_alignment(drive)?;
        let label = match read_label(drive) {
            Ok(label) => label,
            Err(error) => {
                unreadable.get_or_insert(error);
                continue;
            }
        };
        let all = first.get_or_insert_with(|| label.clone());
        if label != (DriveLabel { drive: label.drive, ..all.clone() }) {
            return Err(wrong(drive, "a drive of another aggregate"));
        }
        let geometry = Geometry::of(&label)?;
        places.resize(geometry.drives(), None);
        let place = places.get_mut(label.drive as usize);
        let Some(place @ None) = place else { return Err(wrong(drive, "another drive has the same place")) };
        if drive.size().0 < slot_offset(geometry.groups[geometry.group_of(label.drive as usize)].stripes) {
            return Err(wrong(drive, "shorter than when it was formatted"));
        }
        *place = Some(drive.clone());
    }
    match (first, unreadable) {
        (Some(label), _) => Ok((label, places)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::invalid("no drives were given")),
    }
}

/// The label of a drive.
pub(crate) fn read_label(drive: &Arc<dyn BlockDevice>) -> Result<DriveLabel> {
    let damaged = |damage| Error::damaged(format!("label of {}", drive.name()), damage);
    if drive.size().0 < slot_offset(1) {
        let what = format!("{} bytes are too few for a drive", drive.size().0);
        return Err(Error::WrongDevice { device: drive.name().to_owned(), what });
    }
    let mut slot = slot::zero_slot();
    drive.read_at(0, &mut slot[..])?;
    slot::decode(&slot).and_then(|_| DriveLabel::decode(&slot::payload(&slot))).map_err(damaged)
}

/// The superblock in a place (0 or 1) of a drive.
pub(crate) fn read_superblock(drive: &Arc<dyn BlockDevice>, half: u64, uuid: [u8; 16]) -> Result<Superblock> {
    let damaged = |damage| Error::damaged(format!("superblock {half} of {}", drive.name()), damage);
    let mut slot = slot::zero_slot();
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

/// The newest superblock, and its place.
fn find_superblock<'a>(
    drives: impl Iterator<Item = &'a Arc<dyn BlockDevice>>,
    uuid: [u8; 16],
) -> Result<(Superblock, u64)> {
    let (mut best, mut worst): (Option<(Superblock, u64)>, Option<Error>) = (None, None);
    for drive in drives {
        for half in 0..2 {
            match read_superblock(drive, half, uuid) {
                Ok(sb) if best.as_ref().is_none_or(|(best, _)| best.cp < sb.cp) => best = Some((sb, half)),
                Ok(_) => {}
                Err(error) => worst = Some(error),
            }
        }
    }
    best.ok_or_else(|| worst.unwrap_or_else(|| Error::invalid("no drive has a superblock")))
}

const _: () = assert!(BLOCK.is_multiple_of(INODE) && BLOCK.is_multiple_of(VOLUME));
