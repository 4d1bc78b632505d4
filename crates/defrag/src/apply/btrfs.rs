//! Btrfs: contents are copied into a donor for each file, and each file then shares its donor's
//! blocks by FIDEDUPERANGE.
//!
//! A block group keeps an extent for as long as any part of it is in use. So each file needs a
//! donor of its own: a common one would keep the space of all files until the last of them is gone.
//!
//! The allocator puts a small extent into the first hole that is long enough, so the donors of
//! small files would be as far from each other as the files are. The mover therefore fills the
//! small holes first: a donor that does not follow the one before becomes part of a *plug*, a file
//! without a name that only holds space, and its file gets another donor. When the holes are full,
//! donors follow each other. If the donors of the plug follow each other for some length, the
//! allocator is in a large hole, and the next donor starts a new run there. The plug costs metadata
//! only, and its space is free when the mover is dropped.
//!
//! Newer kernels use the longest hole of a block group first, so they alternate between holes of
//! the same length. So the plug remembers the end of every run of its donors.
//!
//! If snapshots or other files share the blocks of a file, all of them share the blocks of the
//! donor afterwards. So sharing stays, and every snapshot gains.

use std::{collections::BTreeMap, fs::File};

use senesce_core::Extent;
use senesce_probe::map::ExtentFlags;

use super::{
    BatchReport, Mover, Skip, by_file, clip, is_placed,
    owners::{Owner, Owners},
    prefetch, read_extents, read_map,
    share::Source,
    sys,
};
use crate::{
    Tree,
    plan::{Batch, Part},
};

/// A hole of at least this length is a large one, bytes: a seek before it costs little.
const LARGE_HOLE_BYTES: u64 = 1 << 20;

/// A donor of at least this length is used where it is, bytes: a seek before it costs little.
const LONG_BYTES: u64 = 16 << 20;

/// The number of holes of the same length between which the allocator alternates, at most.
const MOST_HOLES: u64 = 8;

/// At least one part in this number of the free space stays for donors and other programs. The free
/// space is that at the creation of the plug.
const KEPT_SHARE: u64 = 4;

/// The plug has at most this number of extents, because each takes space of the metadata.
const PLUG_EXTENTS: u64 = 200_000;

/// Moves files on a Btrfs, as the module describes.
pub(super) struct BtrfsMover {
    plug: Option<Plug>,
    /// Whether small holes may be filled. Not on a file system with quotas: the plug would count in
    /// the quota of the subvolume, and other programs would find no space.
    may_plug: bool,
    /// End of the last donor of each size class on the device. The allocator puts each class into
    /// block groups of its own.
    ends: [Option<u64>; 3],
    /// End of the last donor of any class.
    last_end: Option<u64>,
    /// Finds the owners of shared blocks. `None` if files that share blocks stay.
    owners: Option<Owners>,
}

/// Holes that are filled during the work.
struct Plug {
    file: File,
    bytes: u64,
    extents: u64,
    /// The space that stays free, bytes.
    kept_bytes: u64,
    /// Runs of adjacent donors of the plug: the end on the device, and the length in bytes.
    runs: BTreeMap<u64, u64>,
    /// Bytes that the plug received since the last donor that is used.
    since_used_bytes: u64,
}

impl Plug {
    fn new(tree: &Tree, beside: usize) -> Result<Self, Skip> {
        let file = tree.create_unnamed([beside])?;
        let kept_bytes = free_bytes(&file)? / KEPT_SHARE;
        Ok(Self { file, bytes: 0, extents: 0, kept_bytes, runs: BTreeMap::new(), since_used_bytes: 0 })
    }

    /// Whether a run of donors may start at this one: it is in a large hole, and the hole of the
    /// previous run is used up. That run ends at `end`. Its hole counts as used up if the allocator
    /// has used only other holes for some time.
    fn may_start(&self, donor: &Donated<'_>, end: Option<u64>) -> bool {
        let is_large = self.run_before(donor).is_some_and(|run| run + donor.bytes() >= LARGE_HOLE_BYTES);
        is_large && (end.is_none() || self.since_used_bytes >= LARGE_HOLE_BYTES.max(MOST_HOLES * donor.bytes()))
    }

    /// The length of the run that the donor continues.
    fn run_before(&self, donor: &Donated<'_>) -> Option<u64> {
        let start = donor.start()?;
        self.runs.get(&start).copied().filter(|_| donor.follows(Some(start)))
    }

    /// Keeps the space of a donor. Returns whether it may keep more.
    fn keep(&mut self, donor: &Donated<'_>) -> Result<bool, Skip> {
        let run = donor.bytes() + self.run_before(donor).unwrap_or(0);
        if let Some(start) = donor.start() {
            self.runs.remove(&start);
        }
        self.runs.extend(donor.end().map(|end| (end, run)));
        self.since_used_bytes += donor.bytes();
        for Part { logical, length, .. } in donor.parts {
            // The kernel clones only what is before the end of the file.
            donor.file.set_len(logical + length).map_err(|error| Skip::io(&error))?;
            sys::clone_range(&donor.file, *logical, *length, (&self.file, self.bytes)).map_err(Skip::of)?;
            self.bytes += length;
            self.extents += 1;
        }
        // Other programs may have used space since the work started.
        Ok(self.extents < PLUG_EXTENTS && free_bytes(&self.file)? >= self.kept_bytes)
    }
}

fn free_bytes(file: &File) -> Result<u64, Skip> {
    let space = rustix::fs::fstatvfs(file).map_err(Skip::of)?;
    Ok(space.f_bavail * space.f_frsize)
}

/// A donor with the ranges that are reserved for a file.
struct Donated<'a> {
    parts: &'a [Part],
    file: File,
    extents: Vec<Extent>,
}

impl<'a> Donated<'a> {
    fn reserve(tree: &Tree, parts: &'a [Part]) -> Result<Self, Skip> {
        let file = tree.create_unnamed([parts[0].entry])?;
        for Part { logical, length, .. } in parts {
            sys::reserve(&file, *logical, *length).map_err(Skip::of)?;
        }
        let extents = read_extents(&file, tree)?;
        Ok(Self { parts, file, extents })
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.length).sum()
    }

    /// Whether it is in one piece that starts at `at`.
    fn follows(&self, at: Option<u64>) -> bool {
        self.start() == at && self.extents.windows(2).all(|pair| pair[0].end() == pair[1].physical)
    }

    /// Number of neighbours in the file that are not adjacent on the device.
    fn breaks(&self) -> u64 {
        let is_break =
            |pair: &&[Extent]| pair[0].logical + pair[0].length == pair[1].logical && pair[0].end() != pair[1].physical;
        self.extents.windows(2).filter(is_break).count() as u64
    }

    /// The class of the longest extent that the allocator searched: up to 128 KiB, up to 8 MiB, or
    /// more (`btrfs_calc_block_group_size_class`).
    fn size_class(&self) -> usize {
        let longest = self.parts.iter().map(|part| part.length).max().unwrap_or(0);
        usize::from(longest > 128 << 10) + usize::from(longest > 8 << 20)
    }

    fn start(&self) -> Option<u64> {
        self.extents.first().map(|first| first.physical)
    }

    fn end(&self) -> Option<u64> {
        self.extents.last().map(Extent::end)
    }
}

impl Mover for BtrfsMover {
    fn move_batch(&mut self, tree: &Tree, batch: &Batch, pace: &mut dyn FnMut(u64) -> bool) -> BatchReport {
        let mut report = BatchReport::default();
        // Other programs may have used space since the last batch.
        let is_short = |plug: &Plug| free_bytes(&plug.file).map_or(true, |free| free < plug.kept_bytes);
        if self.plug.as_ref().is_some_and(is_short) {
            (self.plug, self.may_plug) = (None, false);
        }
        prefetch(tree, batch);
        let donors = match self.reserve_all(tree, batch, pace, &mut report) {
            Ok(Some(donors)) => donors,
            Ok(None) => return report,
            Err(why) => {
                // After any error, other programs get the space of the plug back.
                self.plug = None;
                self.may_plug = false;
                return report.skip_all(batch, why);
            }
        };
        for donor in donors {
            let moved = self.move_file(tree, &donor, &mut report.written_bytes, pace);
            if !report.note(donor.parts[0].entry, moved) {
                break;
            }
        }
        report
    }
}

impl BtrfsMover {
    pub fn new(has_quotas: bool, owners: Option<Owners>) -> Self {
        Self { plug: None, may_plug: !has_quotas, ends: [None; 3], last_end: None, owners }
    }

    /// Copies a file into its donor, and makes the file and all others that share its blocks share
    /// those of the donor. Returns the bytes. `None` if the caller stopped the work.
    fn move_file(
        &mut self,
        tree: &Tree,
        donor: &Donated<'_>,
        written_bytes: &mut u64,
        pace: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<u64>, Skip> {
        let source = Source::open(tree, donor.parts)?;
        // The owners are known before the copy: if one cannot be opened, nothing is written.
        let found = self.find_owners(tree, &source)?;
        if let Some(owners) = &mut self.owners {
            owners.charge(&found)?;
        }
        drop(found);
        for part in donor.parts {
            if !source.copy(part, (&donor.file, part.logical), pace)? {
                return Ok(None);
            }
            *written_bytes += part.length;
        }
        // A snapshot may have been made during the copy.
        let owners = self.find_owners(tree, &source)?;
        for (at, owner) in owners.iter().enumerate() {
            if let Err(why) = owner.share(&source, &donor.file) {
                // The source still has the old blocks. If one owner cannot move, none does. An
                // owner that cannot move back keeps the donor's blocks, with the same contents.
                for moved in &owners[..=at] {
                    let _ = moved.share(&source, &source.file);
                }
                return Err(why);
            }
        }
        let has_owners = !owners.is_empty();
        if !source.share(&donor.file, &mut |bytes| has_owners || pace(bytes))? {
            return Ok(None);
        }
        let found = read_extents(&source.file, tree)?;
        match is_placed(&found, &donor.extents) {
            true => Ok(Some(donor.bytes())),
            false => Err(Skip::Changed),
        }
    }

    /// The other files that share the blocks of the ranges of a file.
    fn find_owners(&mut self, tree: &Tree, source: &Source<'_>) -> Result<Vec<Owner>, Skip> {
        let Some(owners) = &mut self.owners else {
            source.check_sharing(tree)?;
            return Ok(Vec::new());
        };
        let map = read_map(&source.file, tree)?;
        let shared: Vec<Extent> =
            map.iter().filter(|raw| raw.flags.contains(ExtentFlags::SHARED)).map(|raw| raw.extent).collect();
        let of_part = |part: &Part| clip(&shared, part.logical, part.length);
        let shared: Vec<Extent> = source.parts.iter().flat_map(of_part).collect();
        owners.find(tree, source, (&map, &shared))
    }

    /// Reserves donors that are adjacent, in runs of some length. `None` if the caller stopped the
    /// work.
    ///
    /// If the batch would be in more than half of its pieces, the report has its files, and there
    /// are no donors. Errors: no space, or the plug is full.
    fn reserve_all<'a>(
        &mut self,
        tree: &Tree,
        batch: &'a Batch,
        pace: &mut dyn FnMut(u64) -> bool,
        report: &mut BatchReport,
    ) -> Result<Option<Vec<Donated<'a>>>, Skip> {
        let mut donors: Vec<Donated<'_>> = Vec::new();
        let mut pieces = batch.runs - 1;
        let mut files = by_file(batch).peekable();
        while let Some(&parts) = files.peek() {
            if !pace(0) {
                return Ok(None);
            }
            let donor = match Donated::reserve(tree, parts) {
                Ok(donor) => donor,
                Err(Skip::NoSpace) => return Err(Skip::NoSpace),
                Err(why) => {
                    report.skip(parts[0].entry, why);
                    files.next();
                    continue;
                }
            };
            let class = donor.size_class();
            if !donor.follows(self.ends[class]) && donor.bytes() < LONG_BYTES && self.may_plug {
                let plug = match &mut self.plug {
                    Some(plug) => plug,
                    none => none.insert(Plug::new(tree, parts[0].entry)?),
                };
                if !plug.may_start(&donor, self.ends[class]) {
                    if !plug.keep(&donor)? {
                        return Err(Skip::NoBetterSpace);
                    }
                    continue;
                }
            }
            pieces += u64::from(!donor.follows(self.last_end));
            if let Some(plug) = &mut self.plug {
                plug.since_used_bytes = 0;
            }
            pieces += donor.breaks();
            self.last_end = donor.end();
            self.ends[class] = donor.end();
            donors.push(donor);
            files.next();
        }
        // The next batches may gain more, so the plug stays.
        if 2 * pieces > batch.pieces {
            donors.iter().for_each(|donor| report.skip(donor.parts[0].entry, Skip::NoBetterSpace));
            donors.clear();
        }
        Ok(Some(donors))
    }
}
