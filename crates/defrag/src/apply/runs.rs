//! Btrfs: donors that are adjacent, in runs of some length.
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
//! The same code decides for the kernel's space and for a model of it. The model predicts places.

use std::collections::BTreeMap;

use senesce_core::Extent;

use super::{BatchReport, Skip, by_file};
use crate::plan::{Batch, Part};

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

/// Space for donors.
pub(crate) trait Space {
    /// A file without a name that holds space.
    type Donor;

    /// Reserves a donor for the ranges of a file. Returns the places of the ranges.
    fn reserve(&mut self, parts: &[Part]) -> Result<(Self::Donor, Vec<Extent>), Skip>;

    /// Keeps the space of a donor in the plug.
    fn plug(&mut self, donor: &Self::Donor, parts: &[Part]) -> Result<(), Skip>;

    /// Frees the space of the plug.
    fn unplug(&mut self);

    /// Bytes that are free.
    fn free_bytes(&self) -> Result<u64, Skip>;
}

/// The size class of an extent: up to 128 KiB, up to 8 MiB, or more
/// (`btrfs_calc_block_group_size_class`).
pub(crate) fn size_class(bytes: u64) -> usize {
    usize::from(bytes > 128 << 10) + usize::from(bytes > 8 << 20)
}

/// Holes that are filled during the work.
struct Plug {
    extents: u64,
    /// The space that stays free, bytes.
    kept_bytes: u64,
    /// Runs of adjacent donors of the plug: the end on the device, and the length in bytes.
    runs: BTreeMap<u64, u64>,
    /// Bytes that the plug received since the last donor that is used.
    since_used_bytes: u64,
}

impl Plug {
    /// Whether a run of donors may start at this one: it is in a large hole, and the hole of the
    /// previous run is used up. That run ends at `end`. Its hole counts as used up if the allocator
    /// has used only other holes for some time.
    fn may_start<D>(&self, donor: &Donated<'_, D>, end: Option<u64>) -> bool {
        let is_large = self.run_before(donor).is_some_and(|run| run + donor.bytes() >= LARGE_HOLE_BYTES);
        is_large && (end.is_none() || self.since_used_bytes >= LARGE_HOLE_BYTES.max(MOST_HOLES * donor.bytes()))
    }

    /// The length of the run that the donor continues.
    fn run_before<D>(&self, donor: &Donated<'_, D>) -> Option<u64> {
        let start = donor.start()?;
        self.runs.get(&start).copied().filter(|_| donor.follows(Some(start)))
    }

    /// Keeps the space of a donor. Returns whether it may keep more.
    fn keep<S: Space>(&mut self, donor: &Donated<'_, S::Donor>, space: &mut S) -> Result<bool, Skip> {
        let run = donor.bytes() + self.run_before(donor).unwrap_or(0);
        if let Some(start) = donor.start() {
            self.runs.remove(&start);
        }
        self.runs.extend(donor.end().map(|end| (end, run)));
        self.since_used_bytes += donor.bytes();
        space.plug(&donor.donor, donor.parts)?;
        self.extents += donor.parts.len() as u64;
        // Other programs may have used space since the work started.
        Ok(self.extents < PLUG_EXTENTS && space.free_bytes()? >= self.kept_bytes)
    }
}

/// A donor with the ranges that are reserved for a file.
pub(crate) struct Donated<'a, D> {
    pub parts: &'a [Part],
    pub donor: D,
    pub extents: Vec<Extent>,
}

impl<D> Donated<'_, D> {
    pub fn bytes(&self) -> u64 {
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

    /// The class of the longest extent that the allocator searched. The allocator puts each class
    /// into block groups of its own.
    fn size_class(&self) -> usize {
        size_class(self.parts.iter().map(|part| part.length).max().unwrap_or(0))
    }

    fn start(&self) -> Option<u64> {
        self.extents.first().map(|first| first.physical)
    }

    fn end(&self) -> Option<u64> {
        self.extents.last().map(Extent::end)
    }
}

/// Runs of adjacent donors.
pub(crate) struct Runs {
    plug: Option<Plug>,
    /// Whether the plug may fill small holes. It may not if quotas are on: the plug would count in
    /// the quota of the subvolume, and other programs would find no space.
    may_plug: bool,
    /// End of the last donor of each size class on the device.
    ends: [Option<u64>; 3],
    /// End of the last donor of any class.
    last_end: Option<u64>,
}

impl Runs {
    pub fn new(may_plug: bool) -> Self {
        Self { plug: None, may_plug, ends: [None; 3], last_end: None }
    }

    /// Reserves the donors of a batch. `None` if the caller stopped the work.
    ///
    /// If the batch would be in more than half of its pieces, the report has its files, and there
    /// are no donors. Errors: no space, or the plug is full. Then no more holes are filled.
    pub fn reserve_batch<'a, S: Space>(
        &mut self,
        space: &mut S,
        batch: &'a Batch,
        pace: &mut dyn FnMut(u64) -> bool,
        report: &mut BatchReport,
    ) -> Result<Option<Vec<Donated<'a, S::Donor>>>, Skip> {
        // Other programs may have used space since the last batch.
        let is_short = |plug: &Plug| space.free_bytes().map_or(true, |free| free < plug.kept_bytes);
        if self.plug.as_ref().is_some_and(is_short) {
            self.unplug(space);
        }
        let reserved = self.reserve_all(space, batch, pace, report);
        if reserved.is_err() {
            // After any error, the space of the plug is free for other programs.
            self.unplug(space);
        }
        reserved
    }

    fn unplug(&mut self, space: &mut impl Space) {
        (self.plug, self.may_plug) = (None, false);
        space.unplug();
    }

    fn reserve_all<'a, S: Space>(
        &mut self,
        space: &mut S,
        batch: &'a Batch,
        pace: &mut dyn FnMut(u64) -> bool,
        report: &mut BatchReport,
    ) -> Result<Option<Vec<Donated<'a, S::Donor>>>, Skip> {
        let mut donors: Vec<Donated<'_, S::Donor>> = Vec::new();
        let mut pieces = batch.runs - 1;
        let mut files = by_file(batch).peekable();
        while let Some(&parts) = files.peek() {
            if !pace(0) {
                return Ok(None);
            }
            let donor = match space.reserve(parts) {
                Ok((donor, extents)) => Donated { parts, donor, extents },
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
                    none => {
                        let kept_bytes = space.free_bytes()? / KEPT_SHARE;
                        none.insert(Plug { extents: 0, kept_bytes, runs: BTreeMap::new(), since_used_bytes: 0 })
                    }
                };
                if !plug.may_start(&donor, self.ends[class]) {
                    if !plug.keep(&donor, space)? {
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
