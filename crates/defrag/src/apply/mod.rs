//! Applies the moves.
//!
//! A [`Mover`] moves one batch at a time into new space. The space is in files without a name
//! (`O_TMPFILE`), so a kill at any moment leaves nothing: the kernel frees such files with their
//! last user, and after a power cut when it mounts the file system. So no journal is needed.

mod btrfs;
mod ext4;
mod foreign;
mod owners;
mod pool;
mod runs;
mod share;
mod space;
mod steps;
mod sys;
mod writing;
mod xfs;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    num::NonZero,
    os::unix::fs::FileExt,
    path::Path,
};

use rustix::{
    fs::{Advice, OFlags, fadvise},
    io::Errno,
};
use schemars::JsonSchema;
use senesce_core::{Clock, Extent};
use senesce_inspect::has_btrfs_quotas;
use senesce_probe::{
    collect::{collect_extents, collect_xfs_has_reflink},
    map::RawExtent,
};
use serde::Serialize;

pub(crate) use self::runs::{Runs, Space, size_class};
pub use self::space::{apply_space, find_left, find_segments, hold_in_thought};
pub use self::steps::{StepFigures, Steps};
pub(crate) use self::sys::balance_range;
use self::{
    btrfs::BtrfsMover,
    ext4::{Ext4Mover, Journal},
    foreign::describe_foreign,
    owners::Owners,
    xfs::XfsMover,
};
use crate::{
    Error, Tree,
    plan::{Batch, Part, Plan, PlanOptions, extents_of},
};

/// The smallest batch on a nearly full ext4 or XFS, bytes.
const LEAST_BATCH_BYTES: u64 = 1 << 20;
/// The hint for an ext4 without a journal.
const ADD_A_JOURNAL: &str = "unmount it and add a journal with `tune2fs -j DEVICE`; `senesce inspect` shows the cost of the \
                             best order without one";

/// Files of a batch on Btrfs. Each has an open donor, and a process may have 1,024 open files.
const BTRFS_BATCH_FILES: usize = 256;

/// Bytes of one read of contents. The kernel shortens longer advice to its window of read-ahead,
/// which has 128 KiB by default.
const READ_BYTES: u64 = 128 << 10;

/// Examples for each reason why a file was skipped.
const EXAMPLES: usize = 3;

/// The reason why a file of the plan was not moved. The file is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Skip {
    /// It was changed, renamed or removed after the tree was listed.
    Changed,
    /// Its program runs, or its pages are in use.
    Busy,
    /// It became executable after the tree was listed, and a program cannot start while its file
    /// moves.
    Program,
    /// It shares blocks with other files or snapshots since the tree was listed.
    Shared,
    /// Snapshots or copies that share its blocks cannot all be opened below the mount, or their new
    /// metadata would need too much space.
    Sharers,
    /// The caller may not write it, or it is immutable or append-only.
    Refused,
    /// The file system cannot move a file of this kind (encrypted, journalled data, DAX, swap
    /// file).
    NotSupported,
    /// No free space would leave the batch in at most half of its pieces.
    NoBetterSpace,
    /// There is too little free space.
    NoSpace,
    /// Another error of the system.
    Failed,
}

impl Skip {
    /// The reason, as it follows a number of files: "3 that changed after they were listed".
    pub fn words(self) -> &'static str {
        match self {
            Self::Changed => "that changed after they were listed",
            Self::Busy => "in use: running programs, or pages in memory (repeat the command after the programs exit)",
            Self::Program => "that became executable after they were listed (--programs moves them)",
            Self::Shared => "that share blocks since they were listed",
            Self::Sharers => "whose snapshots or copies cannot move with them, or need too much new metadata",
            Self::Refused => "not writable, immutable or append-only",
            Self::NotSupported => "of a kind that the file system does not move",
            Self::NoBetterSpace => "for which no free space would leave fewer pieces",
            Self::NoSpace => "for which no space is free",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn of(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::ISDIR | Errno::NXIO => Self::Changed,
            Errno::TXTBSY | Errno::BUSY | Errno::AGAIN => Self::Busy,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Refused,
            Errno::OPNOTSUPP | Errno::INVAL | Errno::NOTTY => Self::NotSupported,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            _ => Self::Failed,
        }
    }

    fn io(error: &std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::Failed, |code| Self::of(Errno::from_raw_os_error(code)))
    }
}

/// The result of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchReport {
    /// Files that are at their new places. The kernel's map confirms it.
    pub moved: Vec<usize>,
    /// Bytes of these files at their new places.
    pub moved_bytes: u64,
    /// Bytes that were written, including those of files that were skipped later.
    pub written_bytes: u64,
    /// Files that were not moved.
    pub skipped: Vec<(usize, Skip)>,
}

impl BatchReport {
    fn skip(&mut self, entry: usize, why: Skip) {
        self.skipped.push((entry, why));
    }

    /// Notes the result of the move of a file: the bytes at their new places, `None` if the caller
    /// stopped the work, or the reason why the file was skipped. Returns whether the work
    /// continues.
    fn note(&mut self, entry: usize, moved: Result<Option<u64>, Skip>) -> bool {
        match moved {
            Ok(Some(bytes)) => {
                self.moved.push(entry);
                self.moved_bytes += bytes;
            }
            Ok(None) => return false,
            Err(why) => self.skip(entry, why),
        }
        true
    }

    fn skip_all(mut self, batch: &Batch, why: Skip) -> Self {
        let mut entries: Vec<usize> = batch.parts.iter().map(|part| part.entry).collect();
        entries.dedup();
        self.skipped.extend(entries.into_iter().map(|entry| (entry, why)));
        self
    }
}

/// Moves files on one kind of file system.
pub trait Mover {
    /// Moves a batch step by step. If a step may not run, the work stops. The files that moved
    /// before stay at their new places.
    ///
    /// The report has the files that cannot be moved. Contents, names, inode numbers and times of
    /// all files stay.
    fn move_batch(&mut self, tree: &Tree, batch: &Batch, steps: &mut Steps<'_>) -> BatchReport;

    /// Moves the ranges of a batch into space that the donor holds, each to its start in the donor.
    /// Otherwise as [`Mover::move_batch`]. A mover without this operation skips all files.
    fn move_into(&mut self, tree: &Tree, batch: &Batch, into: (&Donor, &[u64]), steps: &mut Steps<'_>) -> BatchReport {
        let _ = (tree, into, steps);
        BatchReport::default().skip_all(batch, Skip::NotSupported)
    }

    /// The shortest range of one call of a longer range, bytes.
    fn least_step_bytes(&self) -> u64 {
        steps::LEAST_BYTES
    }

    /// Tries a move on files without a name.
    ///
    /// Errors: the file system moves no files at all.
    fn check(&self, tree: &Tree) -> Result<(), Error> {
        let _ = tree;
        Ok(())
    }
}

/// Returns the mover of the file system at `path`, and its plan options.
///
/// `moves_programs` is whether executable files move, see [`Skip::Program`]. Errors: a file system
/// other than ext4, XFS and Btrfs; an ext4 without a journal or with journalled data; an XFS
/// without reflink; a read-only mount.
pub fn find_mover(path: &Path, moves_programs: bool) -> Result<(Box<dyn Mover>, PlanOptions), Error> {
    let info = rustix::fs::statfs(path).map_err(Error::sys("find the file system of", path))?;
    let space = rustix::fs::statvfs(path).map_err(Error::sys("find the file system of", path))?;
    let refuse_with = |problem: String, hint| Err(Error::NotSupported { path: path.to_owned(), problem, hint });
    let refuse = |problem| refuse_with(problem, None);
    if space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return refuse("it is mounted read-only".to_owned());
    }
    let mut options = PlanOptions::for_blocks(info.f_bsize as u64);
    let block_bytes = options.block_bytes;
    // A batch can choose among the free extents if it needs only a part of the free space.
    let part = space.f_bavail.saturating_mul(space.f_frsize) / 8;
    let part_bytes = part.clamp(LEAST_BATCH_BYTES, options.batch_bytes) / block_bytes * block_bytes;
    match info.f_type as u64 & 0xFFFF_FFFF {
        0xEF53 => {
            let may_lack_journal = match ext4::find_journal(path) {
                Journal::Ordered => false,
                Journal::Unknown => true,
                Journal::None => {
                    let problem = "this ext4 has no journal, so a power cut could lose contents";
                    return refuse_with(problem.to_owned(), Some(ADD_A_JOURNAL));
                }
                Journal::OfData => {
                    return refuse(
                        "this ext4 is mounted with data=journal, and the kernel then moves no blocks".to_owned(),
                    );
                }
            };
            options.moves_programs = moves_programs;
            // The kernel exchanges whole pages.
            options.align_bytes = block_bytes.max(rustix::param::page_size() as u64);
            options.batch_bytes = part_bytes;
            Ok((Box::new(Ext4Mover { block_bytes, may_lack_journal, moves_programs }), options))
        }
        0x5846_5342 if !collect_xfs_has_reflink(path)? => refuse(
            "this XFS cannot share blocks (it was made with reflink=0, or the kernel is older than 5.2)".to_owned(),
        ),
        0x5846_5342 => Ok((Box::new(XfsMover { block_bytes }), PlanOptions { batch_bytes: part_bytes, ..options })),
        0x9123_683E => {
            let owners = Owners::open(path);
            let moves_shared = owners.is_some();
            Ok((
                Box::new(BtrfsMover::new(has_btrfs_quotas(path), owners)),
                PlanOptions { batch_files: BTRFS_BATCH_FILES, moves_shared, ..options },
            ))
        }
        magic => {
            let (name, hint) = describe_foreign(magic);
            refuse_with(format!("defrag works on ext4, XFS and Btrfs, and this is {name}"), hint)
        }
    }
}

/// Callbacks of an application.
pub struct ApplyOptions<'a> {
    /// Called before each step with its bytes. Returns `false` to stop.
    pub pace: &'a mut dyn FnMut(u64) -> bool,
    /// Called after each batch with the planned bytes of all batches so far.
    pub progress: &'a mut dyn FnMut(u64),
    /// Times the steps. The time of a step decides the size of the next one.
    pub clock: &'a dyn Clock,
}

/// The result of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Applied {
    /// Files that were moved, in whole or in part.
    pub files: u64,
    /// Bytes that were moved.
    pub moved_bytes: u64,
    /// Bytes that were written, without metadata.
    pub written_bytes: u64,
    /// Files that were skipped, by reason: the number and the first paths.
    pub skipped: BTreeMap<Skip, Skipped>,
    /// Whether the caller stopped the work before its end.
    pub is_stopped: bool,
    /// The times of the steps. Other programs that change a file wait while a step moves it.
    pub steps: StepFigures,
}

/// Files that were skipped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skipped {
    /// Files.
    pub files: u64,
    /// The paths of the first skipped files, from the root of the tree.
    pub examples: Vec<String>,
}

/// Moves all batches of a plan, one after the other.
///
/// Errors: the file system moves no files at all.
pub fn apply_plan(
    tree: &Tree,
    plan: &Plan,
    mover: &mut dyn Mover,
    options: ApplyOptions<'_>,
) -> Result<Applied, Error> {
    mover.check(tree)?;
    let mut tally = Tally::default();
    let mut steps = Steps::new(options.pace, options.clock).with_least_bytes(mover.least_step_bytes());
    let mut done_bytes = 0;
    for batch in &plan.batches {
        tally.add(tree, mover.move_batch(tree, batch, &mut steps));
        done_bytes += batch.bytes();
        (options.progress)(done_bytes);
        if steps.is_stopped() {
            break;
        }
    }
    Ok(tally.finish(&steps))
}

/// The sum of the reports of batches. A file that is in several batches counts once.
#[derive(Default)]
struct Tally {
    applied: Applied,
    moved: BTreeSet<usize>,
    skipped: BTreeSet<usize>,
}

impl Tally {
    fn add(&mut self, tree: &Tree, report: BatchReport) {
        self.applied.moved_bytes += report.moved_bytes;
        self.applied.written_bytes += report.written_bytes;
        self.moved.extend(report.moved);
        for (entry, why) in report.skipped {
            if !self.skipped.insert(entry) {
                continue;
            }
            let skipped = self.applied.skipped.entry(why).or_default();
            skipped.files += 1;
            if skipped.examples.len() < EXAMPLES {
                skipped.examples.push(tree.entries[entry].path.to_string());
            }
        }
    }

    fn finish(self, steps: &Steps<'_>) -> Applied {
        let files = self.moved.len() as u64;
        Applied { files, is_stopped: steps.is_stopped(), steps: steps.figures(), ..self.applied }
    }
}

/// The ranges of each file of a batch, one file after the other.
fn by_file(batch: &Batch) -> impl Iterator<Item = &[Part]> {
    batch.parts.chunk_by(|a, b| a.entry == b.entry)
}

/// Asks the kernel to read the contents of a batch in the order of the device, so that the moves
/// find them in memory. A disk then seeks in one direction only. Each read is a step for the pace.
/// `drop_pages` is called before all reads, with the first byte and the length of each range.
fn prefetch(tree: &Tree, batch: &Batch, steps: &mut Steps<'_>, drop_pages: Option<fn(&File, u64, u64)>) {
    let mut parts: Vec<(u64, &Part)> = Vec::new();
    for part in &batch.parts {
        let first = extents_of(&tree.entries[part.entry], part).next();
        parts.extend(first.map(|extent| (extent.physical, part)));
    }
    parts.sort_unstable_by_key(|(physical, _)| *physical);
    if let Some(drop_pages) = drop_pages {
        for (_, part) in &parts {
            if let Ok((file, _)) = tree.open(part.entry, OFlags::RDONLY) {
                drop_pages(&file, part.logical, part.length);
            }
        }
    }
    for (_, part) in parts {
        // It is only advice. If it fails, the move itself reads.
        let Ok((file, _)) = tree.open(part.entry, OFlags::RDONLY) else { continue };
        let mut done = 0;
        while done < part.length {
            let length = (part.length - done).min(READ_BYTES);
            if !steps.may_start(length) {
                return;
            }
            let _ = fadvise(&file, part.logical + done, NonZero::new(length), Advice::WillNeed);
            done += length;
        }
    }
}

/// Reads a range, so that its pages are in memory.
fn read_into_cache(file: &File, start: u64, length: u64) {
    let mut buffer = vec![0; length.min(READ_BYTES) as usize];
    let mut done = 0;
    while done < length {
        // If the read fails, the call that needs the pages reports the error.
        match file.read_at(&mut buffer[..(length - done).min(READ_BYTES) as usize], start + done) {
            Ok(0) | Err(_) => return,
            Ok(read) => done += read as u64,
        }
    }
}

/// A file without a name that holds space.
pub struct Donor {
    file: File,
    /// The places of its bytes on the device.
    extents: Vec<Extent>,
}

impl Donor {
    /// Reserves space near the directory of the batch's first file.
    ///
    /// Errors: no space; none that would leave the batch in at most half of its pieces.
    fn reserve(tree: &Tree, batch: &Batch, bytes: u64) -> Result<Self, Skip> {
        let file = tree.create_unnamed(batch.parts.iter().map(|part| part.entry))?;
        sys::allocate(&file, bytes)
            .or_else(|error| match error {
                // Space that earlier batches left may become free only with the next commit of the
                // file system.
                Errno::NOSPC => rustix::fs::syncfs(&file).and_then(|()| sys::allocate(&file, bytes)),
                error => Err(error),
            })
            .map_err(Skip::of)?;
        let extents = read_extents(&file, tree)?;
        Self { file, extents }.check(batch)
    }

    /// The number of places where the reader must seek within the donor.
    fn pieces(&self) -> u64 {
        self.extents.windows(2).filter(|pair| pair[0].end() != pair[1].physical).count() as u64
    }

    /// Refuses space that would leave the batch in more than half of its pieces.
    fn check(self, batch: &Batch) -> Result<Self, Skip> {
        match 2 * (self.pieces() + batch.runs) > batch.pieces {
            true => Err(Skip::NoBetterSpace),
            false => Ok(self),
        }
    }

    /// The places of a range of the donor on the device, with the offsets of the file that receives
    /// it at `logical`.
    fn place(&self, start: u64, logical: u64, length: u64) -> impl Iterator<Item = Extent> + '_ {
        clip(&self.extents, start, length)
            .map(move |extent| Extent { logical: extent.logical - start + logical, ..extent })
    }
}

/// The parts of extents within a range of the file. Cost: logarithmic in the extents, and linear in
/// those found.
fn clip(extents: &[Extent], start: u64, length: u64) -> impl Iterator<Item = Extent> + '_ {
    let end = start + length;
    let first = extents.partition_point(|extent| extent.logical + extent.length <= start);
    extents[first..].iter().take_while(move |extent| extent.logical < end).map(move |extent| {
        let (from, to) = (extent.logical.max(start), (extent.logical + extent.length).min(end));
        Extent { logical: from, physical: extent.physical + (from - extent.logical), length: to - from }
    })
}

fn read_extents(file: &File, tree: &Tree) -> Result<Vec<Extent>, Skip> {
    Ok(read_map(file, tree)?.into_iter().map(|raw| raw.extent).collect())
}

fn read_map(file: &File, tree: &Tree) -> Result<Vec<RawExtent>, Skip> {
    collect_extents(file, tree.path()).map_err(|error| match std::error::Error::source(&error) {
        Some(source) => source.downcast_ref::<Errno>().map_or(Skip::Failed, |errno| Skip::of(*errno)),
        None => Skip::Failed,
    })
}

/// Whether every range of `wanted` is in `found` at its place. `found` may have other ranges, and
/// neighbours may be joined or cut in either.
fn is_placed(found: &[Extent], wanted: &[Extent]) -> bool {
    wanted.iter().all(|wanted| {
        let mut next = wanted.logical;
        for extent in clip(found, wanted.logical, wanted.length) {
            if extent.logical != next || extent.physical != wanted.physical + (extent.logical - wanted.logical) {
                return false;
            }
            next += extent.length;
        }
        next == wanted.logical + wanted.length
    })
}
