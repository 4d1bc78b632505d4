//! ext4: blocks are exchanged with those of a donor by MOVE_EXT.
//!
//! One donor holds the space of a whole batch. The kernel copies the contents, and the donor
//! receives the old blocks. They are free when it is closed. The kernel writes the copied contents
//! before the transaction that exchanges the blocks (`ext4_jbd2_inode_add_write`). So a power cut
//! leaves either the old or the new blocks, with the same content.
//!
//! The kernel (read: up to 6.19, measured: 6.18) does not record the exchange for `fdatasync`
//! (`i_datasync_tid`). If a program overwrites a moved block and calls `fdatasync`, the call does
//! not wait for the exchange. A loss of power then restores the old block, without the write. So
//! the mover commits each exchange at once. Between the exchange and the end of its commit, a
//! window remains. It lasts as long as the commit. No call of the mover closes it, because the
//! program may have its file open, and `fdatasync` acquires no lock that the mover could hold.

use std::{
    fs::{self, File},
    io::Write,
    num::NonZero,
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::{
    fs::{Advice, Mode, OFlags, fadvise, fchmod},
    io::Errno,
};
use senesce_core::Extent;

use super::{BatchReport, Donor, Mover, Skip, Steps, by_file, is_placed, prefetch, read_extents, read_into_cache, sys};
use crate::{
    Error, Tree,
    plan::{Batch, Part},
};

/// The longest range that the kernel caches as a whole, bytes.
const LARGEST_FOLIO_BYTES: u64 = 2 << 20;

/// The data that the journal of an ext4 protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journal {
    /// Metadata. Contents are written before it.
    Ordered,
    /// Contents too. Then the kernel moves no files.
    OfData,
    /// There is no journal.
    None,
    /// The kernel's list of options cannot be read, as in some containers.
    Unknown,
}

/// Finds how the ext4 at `path` uses its journal.
pub(super) fn find_journal(path: &Path) -> Journal {
    let options = fs::metadata(path).ok().and_then(|meta| {
        let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        let device = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        fs::read_to_string(Path::new("/proc/fs/ext4").join(device.file_name()?).join("options")).ok()
    });
    let Some(options) = options else { return Journal::Unknown };
    match options.lines().find_map(|line| line.strip_prefix("data=")) {
        Some("journal") => Journal::OfData,
        Some(_) => Journal::Ordered,
        None => Journal::None,
    }
}

/// Moves files on an ext4, as the module describes.
pub(super) struct Ext4Mover {
    pub block_bytes: u64,
    /// Whether the file system may have no journal. Then the mover also syncs each moved file.
    pub may_lack_journal: bool,
    pub moves_programs: bool,
}

impl Mover for Ext4Mover {
    fn move_batch(&mut self, tree: &Tree, batch: &Batch, steps: &mut Steps<'_>) -> BatchReport {
        let starts = plan_starts(batch);
        let bytes = starts.last().zip(batch.parts.last()).map_or(0, |(start, part)| start + part.length);
        let donor = match Donor::reserve_longest(tree, batch, bytes) {
            Ok(donor) => donor,
            Err(why) => return BatchReport::default().skip_all(batch, why),
        };
        self.move_into(tree, batch, (&donor, &starts), steps)
    }

    fn move_into(
        &mut self,
        tree: &Tree,
        batch: &Batch,
        (donor, mut starts): (&Donor, &[u64]),
        steps: &mut Steps<'_>,
    ) -> BatchReport {
        let mut report = BatchReport::default();
        prefetch(tree, batch, steps, Some(drop_large_pages));
        let mut unchecked: Vec<(&[Part], Vec<Extent>)> = Vec::new();
        let mut files = Files { mover: self, tree, donor, steps, written_bytes: 0 };
        for parts in by_file(batch) {
            let (own, rest) = starts.split_at(parts.len());
            starts = rest;
            match files.move_file(parts, own) {
                Ok((wanted, true)) => unchecked.push((parts, wanted)),
                Ok((_, false)) => break,
                Err(why) => report.skip(parts[0].entry, why),
            }
        }
        report.written_bytes = files.written_bytes;
        for (parts, wanted) in unchecked {
            let entry = parts[0].entry;
            let found = tree.open(entry, OFlags::RDONLY).and_then(|(file, _)| read_extents(&file, tree));
            match found {
                Ok(found) if is_placed(&found, &wanted) => {
                    report.moved.push(entry);
                    report.moved_bytes += wanted.iter().map(|extent| extent.length).sum::<u64>();
                }
                Ok(_) => report.skip(entry, Skip::Changed),
                Err(why) => report.skip(entry, why),
            }
        }
        report
    }

    /// Moves a block between two files without a name. An ext4 with bigalloc or without extents (an
    /// ext3) refuses that.
    fn check(&self, tree: &Tree) -> Result<(), Error> {
        let try_move = || -> Result<u64, Skip> {
            let (mut file, donor) = (tree.create_unnamed([])?, tree.create_unnamed([])?);
            file.write_all(&vec![1; self.page_bytes() as usize]).map_err(|error| Skip::io(&error))?;
            sys::allocate(&donor, self.page_bytes()).map_err(Skip::of)?;
            file.sync_all().map_err(|error| Skip::io(&error))?;
            sys::move_extent(&file, &donor, 0, 0, self.page_bytes() / self.block_bytes).map_err(Skip::of)
        };
        match try_move() {
            Err(Skip::NotSupported) => Err(Error::NotSupported {
                path: tree.path().to_owned(),
                problem: "this ext4 moves no blocks (it has bigalloc, or was made as ext3)".to_owned(),
                hint: None,
            }),
            _ => Ok(()),
        }
    }
}

/// The start of each range in the donor. The kernel exchanges whole pages, so a block must have the
/// same place in its page in both files.
fn plan_starts(batch: &Batch) -> Vec<u64> {
    let page = rustix::param::page_size() as u64;
    let mut next = 0u64;
    let start = |part: &Part| {
        let start = next + (part.logical % page + page - next % page) % page;
        next = start + part.length;
        start
    };
    batch.parts.iter().map(start).collect()
}

impl Ext4Mover {
    fn page_bytes(&self) -> u64 {
        self.block_bytes.max(rustix::param::page_size() as u64)
    }
}

/// Drops the pages of a range from memory, so that the kernel reads them again one by one.
///
/// The kernel (measured: 6.18) caches pages that were written or read together as one large folio,
/// and moves one page after the other. The first one makes the folio dirty. For each further page,
/// the kernel then commits the journal up to four times while it holds the locks. A page that was
/// read alone needs no commit. Advice to read makes such pages.
fn drop_large_pages(file: &File, start: u64, length: u64) {
    // Only whole folios are dropped. A page that is dirty or mapped stays.
    let first = start / LARGEST_FOLIO_BYTES * LARGEST_FOLIO_BYTES;
    let end = (start + length).next_multiple_of(LARGEST_FOLIO_BYTES);
    sys::wait_for_writes(file, first, end - first);
    // It is only advice. If it fails, the moves take longer.
    let _ = fadvise(file, first, NonZero::new(end - first), Advice::DontNeed);
}

/// Commits all exchanges with the donor so far, and writes their contents.
///
/// `fsync` of the moved file would not be enough. If its extents are in a block of their own, as
/// those of a file with more than four, an exchange does not change the inode. `fsync` then waits
/// for nothing. A change of the donor's inode is in the transaction of the exchange or a later one.
fn commit(donor: &File) -> Result<(), Skip> {
    // The kernel changes the inode even if the mode stays the same.
    fchmod(donor, Mode::RUSR | Mode::WUSR).map_err(Skip::of)?;
    donor.sync_all().map_err(|error| Skip::io(&error))
}

/// The files of a batch while they move.
struct Files<'a, 'b> {
    mover: &'a Ext4Mover,
    tree: &'a Tree,
    donor: &'a Donor,
    steps: &'a mut Steps<'b>,
    written_bytes: u64,
}

impl Files<'_, '_> {
    /// Moves the ranges of one file to their starts in the donor. Returns the wanted extents, and
    /// whether all of them were moved before the caller stopped the work.
    fn move_file(&mut self, parts: &[Part], starts: &[u64]) -> Result<(Vec<Extent>, bool), Skip> {
        let mut wanted = Vec::new();
        for (part, &start) in parts.iter().zip(starts) {
            let mut done = 0;
            while done < part.length {
                let bytes = self.steps.next_bytes(part.length - done);
                if !self.steps.may_start(bytes) {
                    return Ok((wanted, false));
                }
                let rest = Part { logical: part.logical + done, length: bytes, ..*part };
                done += self.step(rest, start + done)?;
            }
            wanted.extend(self.donor.place(start, part.logical, part.length));
        }
        Ok((wanted, true))
    }

    /// Moves a range in one call. Returns the bytes that moved.
    ///
    /// A program cannot start while its file is open for writing. So the file is open for writing
    /// for the call only.
    fn step(&mut self, range: Part, start: u64) -> Result<u64, Skip> {
        let (own, stat) = self.tree.open(range.entry, OFlags::RDONLY)?;
        if !self.mover.moves_programs && stat.st_mode & 0o111 != 0 {
            return Err(Skip::Program);
        }
        // Otherwise the kernel reads page by page and waits for writes within the call, while it
        // holds the locks.
        sys::wait_for_writes(&own, range.logical, range.length);
        read_into_cache(&own, range.logical, range.length);
        let block_bytes = self.mover.block_bytes;
        let (file, _) = self.tree.open(range.entry, OFlags::RDWR)?;
        let (from, to, blocks) = (range.logical / block_bytes, start / block_bytes, range.length / block_bytes);
        let call = || sys::move_extent(&file, &self.donor.file, from, to, blocks);
        let moved = match self.steps.time(range.length, call) {
            Ok(0) | Err(Errno::NODATA) => return Err(Skip::Changed),
            Ok(moved) => moved.min(blocks) * block_bytes,
            Err(error) => return Err(Skip::of(error)),
        };
        drop(file);
        if self.mover.may_lack_journal {
            own.sync_all().map_err(|error| Skip::io(&error))?;
        }
        commit(&self.donor.file)?;
        self.written_bytes += moved;
        Ok(moved)
    }
}
