//! Fragments the free space of a volume.

use std::{ffi::OsStr, path::Path, time::Duration};

use rustix::io::Errno;
use schemars::JsonSchema;
use senesce_core::{Bytes, Rng, Seed};
use senesce_probe::{
    collect::{collect_btrfs_free_space, collect_free_extents},
    map::{BtrfsGroupType, RawExtent},
    score::{FreeSpaceFigures, compute_free_space},
};
use senesce_volume::{Custodian, check_interrupted};
use serde::Serialize;

use crate::{
    Error, Histogram, Result,
    apply::{Kind, Scratch, Workplace, check_writable, collect_kind},
    holes::plan_holes,
};

/// Name of the file that occupies the space that shall not be free.
pub const FILLER_NAME: &str = "senesce-free-space.filler";

/// The largest single allocation of the filler.
const LARGEST_BYTES: u64 = 1 << 30;
/// The number of checks whether freed space has appeared in the map, and the pause between them.
const SETTLE_LOOKS: u32 = 50;
const SETTLE_PAUSE: Duration = Duration::from_millis(20);
/// The most allocations of the filler on Btrfs; more would take minutes and much metadata.
const MOST_ALLOCATIONS: u64 = 2_000_000;

/// Options of [`fragment_free_space`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreeOptions {
    /// Free space after the run; default: half of the space that is free now.
    pub free: Option<Bytes>,
    /// The allowed distance from the histogram ([`Histogram::compute_distance`]).
    pub within: f64,
    /// Seed of the order of the holes.
    pub seed: Seed,
}

/// The result, measured by the file system's own map.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FreeReport {
    /// Free space before.
    pub before: FreeSpaceFigures,
    /// Free space that no file can use: the file system's own reserves, which every map shows as
    /// free.
    pub reserved_bytes: u64,
    /// Holes punched.
    pub holes: u64,
    /// Free space after.
    pub after: FreeSpaceFigures,
    /// Distance of the histogram after the run from the requested one.
    pub distance: f64,
    /// Size of the filler without its holes, bytes.
    pub filler_bytes: u64,
}

/// The free space of a volume before a run, and the part that the run would leave.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FreePlan {
    /// Free space now.
    pub before: FreeSpaceFigures,
    /// Space that files can use now, bytes. On Btrfs it includes unallocated space, which becomes
    /// block groups for data when the volume is filled.
    pub available_bytes: u64,
    /// Free space after the run, bytes.
    pub free_bytes: u64,
}

/// Checks a histogram for a volume without a write.
///
/// Errors: those of [`fragment_free_space`] that are known before the volume is filled.
pub fn plan_free_space(dir: &Path, wanted: &Histogram, options: &FreeOptions) -> Result<FreePlan> {
    let FreeGoal { before, available_bytes, free_bytes, .. } = FreeGoal::find(dir, wanted, options)?;
    check_writable(dir)?;
    let most = available_bytes.max(before.bytes);
    if free_bytes > most {
        let problem = format!("{} are free, and {} must stay free", Bytes(most), Bytes(free_bytes));
        return Err(Error::NotReachable { path: dir.to_owned(), problem });
    }
    Ok(FreePlan { before, available_bytes, free_bytes })
}

/// A histogram for a volume, after all checks that need no write.
struct FreeGoal {
    kind: Kind,
    block: u64,
    /// The unit of the filler's allocations, bytes.
    unit: u64,
    before: FreeSpaceFigures,
    /// See [`FreePlan::available_bytes`].
    available_bytes: u64,
    free_bytes: u64,
}

impl FreeGoal {
    fn find(dir: &Path, wanted: &Histogram, options: &FreeOptions) -> Result<Self> {
        let (kind, block) = collect_kind(dir)?;
        let refuse = |problem: String| Err(Error::Target { path: dir.to_owned(), problem });
        let (smallest, _) = wanted.shares[0];
        if smallest < block {
            let (smallest, block) = (Bytes(smallest), Bytes(block));
            return refuse(format!("free extents of {smallest} are not possible: its blocks have {block}"));
        }
        let before = collect_settled(dir, kind)?;
        // Computed before the fill, which leaves no free space.
        let available_bytes = collect_available(dir, kind, &before);
        let free_bytes = options.free.map_or(available_bytes.max(1) / 2, |free| free.0);
        // Btrfs frees an allocation only as a whole: there the filler consists of allocations of
        // the smallest size.
        let unit = if kind == Kind::Btrfs { smallest } else { block };
        let most = available_bytes.max(before.bytes);
        if kind == Kind::Btrfs && most / unit > MOST_ALLOCATIONS {
            return refuse(format!("{} in extents of {} are too many for Btrfs", Bytes(most), Bytes(unit)));
        }
        if dir.join(FILLER_NAME).symlink_metadata().is_ok() {
            return refuse(second());
        }
        Ok(Self { kind, block, unit, before, available_bytes, free_bytes })
    }
}

/// The reason why a second filler is refused.
fn second() -> String {
    format!("{FILLER_NAME} exists already; remove it first")
}

/// Fills the volume of `dir` with one file in `dir`, and punches holes into it until the free space
/// follows the histogram. The filler stays; its removal frees the space again.
///
/// The volume is full during the run, so use a scratch volume. On ext4 and XFS, free space means
/// that of the whole device; on Btrfs, that of the block groups for data. The file system's own
/// reserves are part of the histogram.
///
/// Errors: not ext4, XFS or Btrfs; not root; an earlier filler exists; too little or too scattered
/// free space; a larger distance from the histogram than allowed. The new filler is removed then.
/// Cost: on ext4 and XFS one call per hole. On Btrfs also one per smallest extent that fits into
/// the volume.
pub fn fragment_free_space(
    custodian: &Custodian,
    dir: &Path,
    wanted: &Histogram,
    options: &FreeOptions,
) -> Result<FreeReport> {
    let FreeGoal { kind, block, unit, before, free_bytes, .. } = FreeGoal::find(dir, wanted, options)?;
    let refuse = |problem: String| Err(Error::Target { path: dir.to_owned(), problem });
    let place = dir.join(FILLER_NAME);
    let refuse_second = || refuse(second());
    let workplace = Workplace::open(custodian, dir)?;
    let filler = workplace.create(OsStr::new(FILLER_NAME), "filler", 0o600)?;
    fill(&filler, if kind == Kind::Btrfs { unit } else { LARGEST_BYTES }, block)?;
    let reserved = collect_free(dir, kind)?;
    let holes = compute_holes(wanted, free_bytes, &reserved, unit);
    if holes.is_empty() {
        return refuse(format!("{} are too few for any hole", Bytes(free_bytes)));
    }
    let runs = compute_runs(filler.extents()?, unit);
    let lengths: Vec<u64> = runs.iter().map(|run| run.iter().map(|piece| piece.units).sum()).collect();
    let mut rng = Rng::for_purpose(options.seed, "holes of free space");
    let mut placed = plan_holes(&lengths, &holes, &mut rng).map_err(|hole| Error::NotReachable {
        path: dir.to_owned(),
        problem: format!(
            "no space for a free extent of {}: the filler has {} in {} runs, the longest has {}, and {} must be free",
            Bytes(hole * unit),
            Bytes(lengths.iter().sum::<u64>() * unit),
            lengths.len(),
            Bytes(lengths.iter().max().copied().unwrap_or(0) * unit),
            Bytes(free_bytes),
        ),
    })?;
    // Long holes first: the map of the filler itself grows, and needs blocks.
    placed.sort_by_key(|(_, _, units)| std::cmp::Reverse(*units));
    for (run, first, units) in &placed {
        check_interrupted("the fragmentation of free space")?;
        punch(&filler, &runs[*run], *first, *units, unit)?;
    }
    filler.sync()?;
    let after = collect_free(dir, kind)?;
    let distance = wanted.compute_distance(after.buckets.iter().map(|bucket| (bucket.bucket_bytes, bucket.bytes)));
    if distance > options.within {
        let found: Vec<String> = after
            .buckets
            .iter()
            .filter(|bucket| bucket.bytes > 0)
            .map(|b| format!("{}:{:.2}%", Bytes(b.bucket_bytes), 100.0 * b.bytes as f64 / after.bytes.max(1) as f64))
            .collect();
        let problem = format!(
            "requested {wanted}, reached {} (distance {distance:.3}, allowed {}); the file system reserves {}",
            found.join(","),
            options.within,
            Bytes(reserved.bytes)
        );
        return Err(Error::NotReachable { path: dir.to_owned(), problem });
    }
    let filler_bytes = filler.extents()?.iter().map(|raw| raw.extent.length).sum();
    let holes = placed.len() as u64;
    // Another run may have finished in the meantime.
    if !filler.rename_new(&place)? {
        return refuse_second();
    }
    Ok(FreeReport { before, reserved_bytes: reserved.bytes, holes, after, distance, filler_bytes })
}

/// Returns the space that files can use now. Only Btrfs can have more than its map of free space
/// shows: unallocated space. statfs divides that by the number of copies of the data.
fn collect_available(dir: &Path, kind: Kind, before: &FreeSpaceFigures) -> u64 {
    let told = rustix::fs::statvfs(dir).map_or(before.bytes, |info| info.f_bavail * info.f_frsize);
    if kind == Kind::Btrfs { told } else { told.min(before.bytes) }
}

/// Returns the free space when its map holds at least the free bytes that statfs reports, or after
/// a second. ext4 adds freed blocks to its map at the end of a commit, which may follow the return
/// of the sync that waited for it. Blocks that ext4 has reserved for writers are never in the map,
/// so the two may always differ.
fn collect_settled(dir: &Path, kind: Kind) -> Result<FreeSpaceFigures> {
    for _ in 0..if kind == Kind::Ext4 { SETTLE_LOOKS } else { 0 } {
        let found = collect_free(dir, kind)?;
        if rustix::fs::statvfs(dir).is_ok_and(|told| found.bytes >= told.f_bavail * told.f_frsize) {
            return Ok(found);
        }
        check_interrupted("the wait for freed space")?;
        std::thread::sleep(SETTLE_PAUSE);
    }
    collect_free(dir, kind)
}

fn collect_free(dir: &Path, kind: Kind) -> Result<FreeSpaceFigures> {
    Ok(match kind {
        Kind::Ext4 | Kind::Xfs => compute_free_space(collect_free_extents(dir)?.iter().map(|free| free.length_bytes)),
        Kind::Btrfs => {
            let space = collect_btrfs_free_space(dir)?;
            compute_free_space(space.free_extents(BtrfsGroupType::DATA).map(|free| free.length_bytes))
        }
    })
}

/// Allocates all free space, first `largest` bytes at a time, then less.
fn fill(filler: &Scratch, largest: u64, block: u64) -> Result<()> {
    let (mut at, mut size, mut retried) = (0, largest, false);
    while size >= block {
        check_interrupted("the filling of free space")?;
        match filler.allocate(at, size) {
            Ok(()) => (at, retried) = (at + size, false),
            // Space that was just freed is available after a sync.
            Err(Errno::NOSPC) if !retried => {
                filler.sync()?;
                retried = true;
            }
            Err(Errno::NOSPC) => size /= 2,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::sys("allocate", &filler.path)(error)),
        }
    }
    filler.sync()
}

/// Lengths of the holes, units: for each share, the space that is not yet free.
fn compute_holes(wanted: &Histogram, free_bytes: u64, reserved: &FreeSpaceFigures, unit: u64) -> Vec<u64> {
    let mut holes = Vec::new();
    for &(size, share) in &wanted.shares {
        let there = reserved.buckets.iter().find(|bucket| bucket.bucket_bytes == size).map_or(0, |bucket| bucket.bytes);
        let missing = (share * free_bytes as f64 - there as f64).max(0.0);
        holes.extend(std::iter::repeat_n(size / unit, (missing / size as f64).round() as usize));
    }
    holes
}

/// A part of a run: its position in the filler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    logical: u64,
    units: u64,
}

/// Returns the filler in the order of the device: runs of whole units that are adjacent.
fn compute_runs(mut extents: Vec<RawExtent>, unit: u64) -> Vec<Vec<Piece>> {
    extents.sort_by_key(|raw| raw.extent.physical);
    let mut runs: Vec<(u64, Vec<Piece>)> = Vec::new();
    for raw in extents {
        let extent = raw.extent;
        // Only an aligned unit, which was allocated as a whole, can be freed as a whole.
        let skipped = extent.logical.next_multiple_of(unit) - extent.logical;
        let units = extent.length.saturating_sub(skipped) / unit;
        if units == 0 {
            continue;
        }
        let (physical, piece) = (extent.physical + skipped, Piece { logical: extent.logical + skipped, units });
        let end = physical + units * unit;
        match runs.last_mut() {
            Some((before, pieces)) if *before == physical => {
                *before = end;
                pieces.push(piece);
            }
            _ => runs.push((end, vec![piece])),
        }
    }
    runs.into_iter().map(|(_, pieces)| pieces).collect()
}

fn punch(filler: &Scratch, run: &[Piece], first: u64, units: u64, unit: u64) -> Result<()> {
    let (mut skip, mut left) = (first, units);
    for piece in run {
        if left == 0 {
            break;
        }
        if skip >= piece.units {
            skip -= piece.units;
            continue;
        }
        let here = left.min(piece.units - skip);
        let (start, length) = (piece.logical + skip * unit, here * unit);
        if filler.punch(start, length) == Err(Errno::NOSPC) {
            filler.sync()?;
            filler.punch(start, length).map_err(Error::sys("punch a hole into", &filler.path))?;
        }
        (skip, left) = (0, left - here);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use senesce_core::Extent;

    use super::*;

    #[test]
    fn runs_have_whole_units_in_device_order() {
        let raw = |logical, physical, length| RawExtent {
            extent: Extent { logical, physical, length },
            flags: Default::default(),
        };
        let extents = vec![raw(0, 100, 40), raw(40, 60, 40), raw(85, 300, 40), raw(130, 400, 5)];
        let piece = |logical, units| Piece { logical, units };
        assert_eq!(compute_runs(extents, 10), [vec![piece(40, 4), piece(0, 4)], vec![piece(90, 3)]]);
    }

    #[test]
    fn holes_add_the_missing_shares() {
        let wanted: Histogram = "4KiB:25%,16KiB:75%".parse().unwrap();
        let reserved = compute_free_space([16_384, 16_384, 1 << 20]);
        assert_eq!(compute_holes(&wanted, 8 * 16_384, &reserved, 4096), [vec![1; 8], vec![4; 4]].concat());
    }
}
