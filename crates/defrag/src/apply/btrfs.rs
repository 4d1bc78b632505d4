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

use std::fs::File;

use senesce_core::Extent;

use super::{BatchReport, Mover, Skip, by_file, is_placed, prefetch, read_extents, share::Source, sys};
use crate::{
    Tree,
    plan::{Batch, Part},
};

/// A hole of at least this length is a large one, bytes: a seek before it costs little.
const LARGE_HOLE_BYTES: u64 = 1 << 20;
/// The plug uses at most one part in this number of the space that is free when it is created.
/// Other programs keep the rest.
const PLUG_SHARE: u64 = 2;

/// The plug has at most this number of extents, because each takes space of the metadata.
const PLUG_EXTENTS: u64 = 200_000;

/// Moves files on a Btrfs, as the module describes.
pub(super) struct BtrfsMover {
    plug: Option<Plug>,
    /// Whether small holes may be filled. Not on a file system with quotas: the plug would count in
    /// the quota of the subvolume, and other programs would find no space.
    may_plug: bool,
    /// End of the last donor on the device.
    last_end: Option<u64>,
}

/// Holes that are filled during the work.
struct Plug {
    file: File,
    bytes: u64,
    extents: u64,
    most_bytes: u64,
    /// End of the plug's last donor on the device.
    end: Option<u64>,
    /// Bytes of the plug's last donors that are adjacent.
    run_bytes: u64,
}

impl Plug {
    fn new(tree: &Tree, beside: usize) -> Result<Self, Skip> {
        let file = tree.create_unnamed([beside])?;
        let most_bytes = free_bytes(&file)? / PLUG_SHARE;
        Ok(Self { file, bytes: 0, extents: 0, most_bytes, end: None, run_bytes: 0 })
    }

    /// Whether the next donor is in a large hole.
    fn is_in_large_hole(&self, donor: &Donated<'_>) -> bool {
        donor.follows(self.end) && self.run_bytes + donor.bytes() >= LARGE_HOLE_BYTES
    }

    /// Keeps the space of a donor. Returns whether it may keep more.
    fn keep(&mut self, donor: &Donated<'_>) -> Result<bool, Skip> {
        self.run_bytes = donor.bytes() + if donor.follows(self.end) { self.run_bytes } else { 0 };
        self.end = donor.end();
        for Part { logical, length, .. } in donor.parts {
            // The kernel clones only what is before the end of the file.
            donor.file.set_len(logical + length).map_err(|error| Skip::io(&error))?;
            sys::clone_range(&donor.file, *logical, *length, (&self.file, self.bytes)).map_err(Skip::of)?;
            self.bytes += length;
            self.extents += 1;
        }
        // Other programs may have used space since the work started.
        let is_enough = free_bytes(&self.file)? >= self.most_bytes;
        Ok(self.bytes < self.most_bytes && self.extents < PLUG_EXTENTS && is_enough)
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
        let starts = self.extents.first().map(|first| first.physical);
        starts == at && self.extents.windows(2).all(|pair| pair[0].end() == pair[1].physical)
    }

    /// Number of neighbours in the file that are not adjacent on the device.
    fn breaks(&self) -> u64 {
        let is_break =
            |pair: &&[Extent]| pair[0].logical + pair[0].length == pair[1].logical && pair[0].end() != pair[1].physical;
        self.extents.windows(2).filter(is_break).count() as u64
    }

    fn end(&self) -> Option<u64> {
        self.extents.last().map(Extent::end)
    }
}

impl Mover for BtrfsMover {
    fn move_batch(&mut self, tree: &Tree, batch: &Batch, pace: &mut dyn FnMut(u64) -> bool) -> BatchReport {
        let mut report = BatchReport::default();
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
            let moved = move_file(tree, &donor, &mut report.written_bytes, pace);
            if !report.note(donor.parts[0].entry, moved) {
                break;
            }
        }
        report
    }
}

impl BtrfsMover {
    pub fn new(has_quotas: bool) -> Self {
        Self { plug: None, may_plug: !has_quotas, last_end: None }
    }

    /// Reserves donors that are adjacent, in runs of some length. `None` if the caller stopped the
    /// work.
    ///
    /// Errors: no space, or none that would leave the batch in at most half of its pieces.
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
            if !donor.follows(self.last_end) {
                let is_large = donor.bytes() >= LARGE_HOLE_BYTES;
                if !is_large && self.may_plug {
                    let plug = match &mut self.plug {
                        Some(plug) => plug,
                        none => none.insert(Plug::new(tree, parts[0].entry)?),
                    };
                    if !plug.is_in_large_hole(&donor) {
                        if !plug.keep(&donor)? {
                            return Err(Skip::NoBetterSpace);
                        }
                        continue;
                    }
                }
                pieces += 1;
            }
            pieces += donor.breaks();
            self.last_end = donor.end();
            donors.push(donor);
            files.next();
        }
        if 2 * pieces > batch.pieces { Err(Skip::NoBetterSpace) } else { Ok(Some(donors)) }
    }
}

/// Copies a file into its donor and makes the file share it. Returns the bytes. `None` if the
/// caller stopped the work.
fn move_file(
    tree: &Tree,
    donor: &Donated<'_>,
    written_bytes: &mut u64,
    pace: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<u64>, Skip> {
    let source = Source::open(tree, donor.parts)?;
    for part in donor.parts {
        if !source.copy(part, (&donor.file, part.logical), pace)? {
            return Ok(None);
        }
        *written_bytes += part.length;
    }
    if !source.share(tree, &donor.file, pace)? {
        return Ok(None);
    }
    let found = read_extents(&source.file, tree)?;
    match is_placed(&found, &donor.extents) {
        true => Ok(Some(donor.bytes())),
        false => Err(Skip::Changed),
    }
}
