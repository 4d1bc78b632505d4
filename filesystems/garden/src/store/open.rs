//! Making an aggregate, and opening its last consistency point.

use std::{collections::BTreeMap, sync::Arc};

use senesce_block::BlockDevice;
use senesce_fsapi::FileKind;
use senesce_objects::ObjectStore;

use super::{
    AGGREGATE, Activity, Allocator, Cache, Counts, Freed, Gardener, KeySet, LeftOut, Limits, Moves, Objects, Packing,
    Reading, ScrubReport, Store, aggregate, chunk_counts,
    find_drives::{Drives, check_alignment, find_drives, read_superblock},
    volumes::fixed_file,
};
use crate::{
    aggregate::report::OpeningReport,
    check::Finding,
    error::{Error, Result},
    format::{
        BLOCK, Damage, SLOT, VERSION,
        inode::{INODE, Inode},
        label::{Aggregate, DriveLabel, Group, Medium},
        object::{MAX_OBJECTS, RECORD},
        slot::{self, Kind},
        snapshot::{MAX_SNAPSHOTS, SNAPSHOT},
        superblock::{LogState, Superblock},
        volume::VOLUME,
    },
    log::{Accepted, Copies, Found, Log, LogDevices, Repair, find_aggregate},
    raid::{Drive, FIXED_SLOTS, Geometry, LABELS, Raid, fixed_context},
};

/// Options of a new aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// The identity. Drives and logs with another one are refused.
    pub uuid: [u8; 16],
    /// RAID groups: the number of data drives, and whether another drive holds parity. Drives are
    /// given in this order.
    pub groups: Vec<(u16, bool)>,
    /// The medium of each group; empty if all are disks. With both media, flash is a tier before
    /// the disks.
    pub media: Vec<Medium>,
    /// Stripes of an allocation area, for each group, or one value for all. Good sizes depend on
    /// the drives: the length of a request, or of an erase unit.
    pub aa_stripes: Vec<u32>,
    /// Stripes of a tetris: blocks fill these drive by drive.
    pub tetris_stripes: u32,
    /// Whether the drives and the log hold zeros already. Otherwise they are zeroed, which takes a
    /// write of all bytes.
    pub zeroed: bool,
}

/// An opened aggregate, and the operations of its log that must be replayed.
pub(crate) struct Opened {
    pub store: Store,
    pub found: Found,
}

/// Makes an empty aggregate. All data on the devices are lost.
pub(crate) fn format(options: &FormatOptions, drives: Vec<Arc<dyn BlockDevice>>, logs: &LogDevices) -> Result<()> {
    let geometry = plan_geometry(options, &drives)?;
    for (index, drive) in (0..).zip(&drives) {
        check_alignment(drive)?;
        if !options.zeroed {
            zero(drive, geometry.drive_bytes(geometry.group_of(index)))?;
        }
    }
    let raid = Raid::new(geometry.clone(), drives.iter().cloned().map(Drive::Here).collect())?;
    let aggregate = Aggregate {
        version: VERSION,
        uuid: options.uuid,
        tetris_stripes: options.tetris_stripes,
        groups: geometry.groups.clone(),
        log: logs.plan()?,
    };
    Log::format(logs, &aggregate, options.zeroed)?;
    let root = Inode::new(FileKind::File);
    let sb = Superblock {
        version: VERSION,
        uuid: options.uuid,
        cp: 0,
        point: 0,
        previous: 0,
        applied: 0,
        free: geometry.blocks(),
        next_object: 0,
        cold: 0,
        volumes: 0,
        root,
        missing: vec![],
        filling: vec![],
        logs: LogState::default(),
        closed: false,
    };
    let (log, ..) = Log::open(&Copies::find(logs, &aggregate, Some(&sb))?, &sb, Accepted::default())?;
    let mut store = Store::new(raid, log, aggregate, sb, 1, Limits::default());
    let files = u64::from(aggregate::MAX_VOLUMES);
    store.sb.root = fixed_file(AGGREGATE, (aggregate::FIRST_CONTAINER + files) * INODE as u64);
    let bitmap = fixed_file(AGGREGATE, geometry.blocks().div_ceil(8));
    store.put_inode(AGGREGATE, aggregate::BITMAP, &bitmap)?;
    store.put_inode(AGGREGATE, aggregate::VOLUMES, &fixed_file(AGGREGATE, files * VOLUME as u64))?;
    let snapshots = fixed_file(AGGREGATE, u64::from(MAX_SNAPSHOTS) * SNAPSHOT as u64);
    store.put_inode(AGGREGATE, aggregate::SNAPSHOTS, &snapshots)?;
    let chunks = fixed_file(AGGREGATE, geometry.blocks() * chunk_counts::COUNTS);
    store.put_inode(AGGREGATE, aggregate::CHUNKS, &chunks)?;
    store.put_inode(AGGREGATE, aggregate::OBJECTS, &fixed_file(AGGREGATE, MAX_OBJECTS * RECORD as u64))?;
    store.new_areas();
    if store.kept() >= geometry.blocks() {
        return Err(Error::invalid(format!("{} blocks are too few for an aggregate", geometry.blocks())));
    }
    for (place, drive) in (0..).zip(&drives) {
        store.write_label(place, drive)?;
    }
    store.consistency_point()
}

/// Finds the last consistency point, corrects parity where an unfinished one was writing, and reads
/// the log.
///
/// Drives may be in any order; one of each group may be missing. Errors: those of [`find_drives`];
/// too many missing drives; logs of different aggregates; a log that follows a later point, unless
/// its loss is `accepted`.
pub(crate) fn open(
    drives: &[Arc<dyn BlockDevice>],
    logs: &LogDevices,
    limits: Limits,
    objects: Option<Arc<dyn ObjectStore>>,
    accepted: Accepted,
) -> Result<Opened> {
    let Drives { aggregate, geometry, sb, sb_slot, mut places, left_out, unread, labels } =
        find_drives(drives, find_aggregate(logs))?;
    let copies = Copies::find(logs, &aggregate, Some(&sb))?;
    // A superblock that may not be the last one does not prove that nothing came after it.
    let of_log = Superblock { closed: sb.closed && unread.is_empty(), ..sb.clone() };
    let (log, found, halves) = Log::open(&copies, &of_log, accepted)?;
    if let Some(point) = found.lost_point.filter(|_| !accepted.later_point) {
        return Err(lost_superblock(point, sb.cp, &unread));
    }
    let failed: Vec<u32> =
        found.unfinished.without.iter().copied().filter(|drive| !sb.missing.contains(drive)).collect();
    for &drive in &failed {
        if let Some(place) = places.get_mut(drive as usize) {
            *place = Drive::Missing { why: "it failed while a consistency point was written".to_owned() };
        }
    }
    let mut raid = Raid::new(geometry, places).map_err(|error| left_out_too(error, &left_out))?;
    let has_newest = |drive| read_superblock(drive, sb_slot, aggregate.uuid).is_ok_and(|found| found == sb);
    if !raid.present().all(|(_, drive)| has_newest(drive)) {
        // A loss of power interrupted the writes of superblocks, or one of them is damaged.
        raid.write_superblock(sb_slot, sb.cp, &sb.encode())?;
    }
    // Its writer may have been killed before the flush. Later steps assume that it is durable.
    raid.flush()?;
    let is_degraded = raid.missing() != sb.missing;
    let mut store = Store::new(raid, log, aggregate, sb, sb_slot, limits);
    let mut repaired = store.repair_labels(labels)?;
    let (unread_superblocks, lost_logs) = (unread, copies.why_lost());
    let log_loss = found.loss.clone();
    store.opening = OpeningReport { left_out, unread_superblocks, lost_logs, log_loss, ..OpeningReport::default() };
    store.objects.door = objects;
    // Numbers of consistency points are never reused, not even those of unfinished ones, because
    // tags depend on them.
    let last = found.unfinished.cp.max(found.later_point);
    store.sb.cp = last.max(Some(store.sb.cp)).unwrap_or_default();
    if is_degraded {
        // A missing drive may have a superblock that no other has: of the unfinished point, or of
        // changes of drives after it. The next number is above both, and is durable before anything
        // is overwritten.
        store.sb.cp += 1;
    }
    if found.loss.as_ref().is_some_and(|loss| !loss.was_closed) {
        // The numbers of unfinished consistency points are unknown.
        store.sb.cp += UNKNOWN_POINTS;
    }
    let aggregate = store.aggregate.clone();
    repaired.extend(store.log.make_old(&copies, aggregate.uuid)?);
    if let Some(repair) = Repair::new(&copies, &halves, &aggregate) {
        repaired.extend(store.repair_logs(&repair)?);
    }
    drop(halves);
    store.opening.repaired = repaired;
    let logs_changed = store.log.mirror().has_news();
    if found.later_point.is_some() || logs_changed || is_degraded && found.unfinished.cp.is_some() {
        // The next point will overwrite the records that prove a later point, so a superblock must
        // be above it first.
        store.commit_drives()?;
    }
    if found.unfinished.cp.is_some() {
        store.opening.uncorrected = store.raid.recover(&found.unfinished)?;
        store.raid.flush()?;
    }
    store.load_areas()?;
    store.load_volumes()?;
    store.load_snapshots()?;
    store.check_origins()?;
    store.load_objects()?;
    Ok(Opened { store, found })
}

/// The error if a durable superblock is on no drive any more.
fn lost_superblock(point: u64, newest: u64, unread: &[String]) -> Error {
    let found = match unread {
        [] => format!("{newest} in the newest"),
        unread => format!("{newest} in the newest that can be read ({})", unread.join("; ")),
    };
    Error::damaged(
        "superblocks",
        Damage::new("superblock", LOST_POINT, found, format!("{point}, which the log follows")),
    )
}

/// Numbers of consistency points that are skipped if the log does not show how many were
/// unfinished.
const UNKNOWN_POINTS: u64 = 1 << 12;

/// The field of a damage that stands for a lost superblock and all changes from its point on.
pub const LOST_POINT: &str = "consistency point";

fn left_out_too(error: Error, left_out: &[LeftOut]) -> Error {
    if left_out.is_empty() {
        return error;
    }
    let list: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    Error::invalid(format!("{error}; not used: {}", list.join(", ")))
}

impl Store {
    /// Writes the labels of a drive durably.
    pub(super) fn write_label(&self, place: u32, drive: &Arc<dyn BlockDevice>) -> Result<()> {
        let label = DriveLabel { drive: place, aggregate: self.aggregate.clone() };
        let slot = slot::encode(&label.encode(), &fixed_context(Kind::Label, 0, 0));
        for number in LABELS {
            drive.write_at(number * SLOT as u64, &slot[..])?;
            drive.flush()?; // one of the labels is whole at any time
        }
        Ok(())
    }

    /// Rewrites the labels of drives that have a damaged one, and returns the damage.
    fn repair_labels(&mut self, labels: Vec<(u32, Finding)>) -> Result<Vec<Finding>> {
        for (place, _) in &labels {
            let device = self.raid.present().find(|(own, _)| *own == *place as usize);
            let Some((place, device)) = device.map(|(place, device)| (place, device.clone())) else { continue };
            if let Err(failure) = self.write_label(place as u32, &device) {
                self.raid.fail(place, failure)?;
            }
        }
        Ok(labels.into_iter().map(|(_, finding)| finding).collect())
    }

    fn new(raid: Raid, log: Log, aggregate: Aggregate, sb: Superblock, sb_slot: u64, limits: Limits) -> Self {
        Self {
            raid,
            log,
            durable: sb.clone(),
            aggregate,
            opening: OpeningReport::default(),
            scrub: ScrubReport::default(),
            sb: Superblock { closed: false, ..sb },
            sb_slot,
            cache: Cache::default(),
            dirty: KeySet::default(),
            volumes: Vec::new(),
            deleted: BTreeMap::new(),
            views: BTreeMap::new(),
            alloc: Allocator::default(),
            pending: Freed::default(),
            limits,
            counts: Counts::default(),
            activity: Activity::default(),
            moves: Moves::default(),
            fakes: BTreeMap::new(),
            packing: Packing::default(),
            forecast: None,
            reading: Reading::default(),
            objects: Objects::default(),
            gardener: Gardener::default(),
            inflight: None,
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
    if !options.media.is_empty() && options.media.len() != options.groups.len() {
        let (media, groups) = (options.media.len(), options.groups.len());
        return Err(Error::invalid(format!("{media} media for {groups} RAID groups")));
    }
    let areas = match &options.aa_stripes[..] {
        &[same] => vec![same; options.groups.len()],
        each if each.len() == options.groups.len() => each.to_vec(),
        each => {
            let (areas, groups) = (each.len(), options.groups.len());
            return Err(Error::invalid(format!("{areas} sizes of allocation areas for {groups} RAID groups")));
        }
    };
    let media = options.media.iter().copied().chain(std::iter::repeat(Medium::Hdd));
    let mut rest = drives;
    let mut groups = Vec::new();
    for ((&(data_drives, parity), medium), area_stripes) in options.groups.iter().zip(media).zip(areas) {
        let (own, others) = rest.split_at(usize::from(data_drives) + usize::from(parity));
        let smallest = own.iter().map(|drive| drive.size().0).min().unwrap_or(0);
        let stripes = (smallest / SLOT as u64).saturating_sub(FIXED_SLOTS);
        groups.push(Group { data_drives, parity, medium, area_stripes, stripes });
        rest = others;
    }
    Geometry::new(groups, options.tetris_stripes)
}

fn zero(drive: &Arc<dyn BlockDevice>, bytes: u64) -> Result<()> {
    let zeros = vec![0; 256 * SLOT];
    for offset in (0..bytes).step_by(zeros.len()) {
        let len = (bytes - offset).min(zeros.len() as u64) as usize;
        drive.write_at(offset, &zeros[..len])?;
    }
    Ok(())
}

const _: () = assert!(BLOCK.is_multiple_of(INODE) && BLOCK.is_multiple_of(VOLUME));
