//! Decides which files move and which stay. Pure.
//!
//! The files are in their order of reading. A *sequence* consists of files of which each is in one
//! piece and starts where the previous one ends. A long sequence stays: reading it costs one seek,
//! and moving it would save none. All short sequences between two long ones move together, into new
//! space. Of a large file, only the shattered ranges move.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use senesce_core::Extent;
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::{ExtentFlags, Placement},
};
use serde::Serialize;

use crate::{
    Strategy,
    shatter::{find_shattered, join},
};

/// A gap of at most this length between two files does not end a sequence, because a drive reads
/// over it.
const SMALL_GAP_BYTES: u64 = 64 << 10;

/// Decides the amount that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Bytes of a block of the file system.
    pub block_bytes: u64,
    /// A range keeps its place within this length when it moves into space that is held. A multiple
    /// of a block.
    pub align_bytes: u64,
    /// A sequence of at least this many bytes stays.
    pub keep_bytes: u64,
    /// The maximum of bytes of a batch. A batch needs this free space while it moves.
    pub batch_bytes: u64,
    /// The maximum of files of a batch.
    pub batch_files: usize,
    /// Whether the file system moves blocks that several files share.
    pub moves_shared: bool,
    /// Whether executable files move, see [`LeftWhy::Program`].
    pub moves_programs: bool,
    /// Whether files move to be adjacent, see [`Strategy::Order`].
    pub orders: bool,
    /// Pieces of a large file that are shorter than this move, see [`Strategy::Pieces`]. Zero moves
    /// none. Without [`PlanOptions::orders`], every file counts as large.
    pub piece_bytes: u64,
}

impl PlanOptions {
    /// The defaults for a file system with this block size.
    ///
    /// A 7,200 rpm disk needs at least 90 ms to read 16 MiB, so a seek of 10 ms before them costs
    /// at most a tenth. Reading and writing 1 MiB takes as long as a seek, so moving longer pieces
    /// pays back only after several reads.
    pub fn for_blocks(block_bytes: u64) -> Self {
        Self {
            block_bytes,
            align_bytes: block_bytes,
            keep_bytes: 16 << 20,
            batch_bytes: 64 << 20,
            batch_files: usize::MAX,
            moves_shared: false,
            moves_programs: true,
            orders: true,
            piece_bytes: 1 << 20,
        }
    }

    /// The same options with only these strategies.
    pub fn with_strategies(self, strategies: &[Strategy]) -> Self {
        Self {
            orders: strategies.contains(&Strategy::Order),
            piece_bytes: if strategies.contains(&Strategy::Pieces) { self.piece_bytes } else { 0 },
            ..self
        }
    }
}

/// A range of a file that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of the file among the entries of the tree.
    pub entry: usize,
    /// Offset in the file, bytes, a multiple of a block.
    pub logical: u64,
    /// Length, bytes, a multiple of a block.
    pub length: u64,
}

/// Ranges that move together, in the order of reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The ranges.
    pub parts: Vec<Part>,
    /// The number of pieces on the device now, in this order of reading.
    pub pieces: u64,
    /// The number of pieces in which they are read if the batch is contiguous. It is more than one
    /// if other ranges are read between them.
    pub runs: u64,
    /// The improvement of the move.
    pub strategy: Strategy,
}

impl Batch {
    /// Bytes that move.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.length).sum()
    }
}

/// The reason why a file is not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftWhy {
    /// Moving it would save too few seeks: it is in a long sequence, or in long pieces. Without
    /// [`PlanOptions::orders`]: it is not shattered.
    InOrder,
    /// It has no blocks: it is empty, all hole, or its content is in the metadata.
    NoBlocks,
    /// It has content that is not on the device yet (delayed allocation).
    BeingWritten,
    /// It is compressed or encrypted, so its length on the device is not known.
    Encoded,
    /// It shares blocks with other files or snapshots.
    Shared,
    /// It is executable, and a program cannot start while its file moves.
    Program,
    /// It has reserved blocks that are not written yet.
    Reserved,
    /// Its map of extents contradicts itself.
    Contradictory,
    /// Its batch did not fit into the budget.
    OverBudget,
}

impl LeftWhy {
    /// The reason, as it follows a number of files: "3 in order".
    pub fn words(self) -> &'static str {
        match self {
            Self::InOrder => "in order",
            Self::NoBlocks => "without blocks of their own",
            Self::BeingWritten => "with content not yet on the device",
            Self::Encoded => "compressed or encrypted",
            Self::Shared => "that share blocks with other files or snapshots",
            Self::Program => "that can be executed (--programs moves them)",
            Self::Reserved => "with reserved blocks",
            Self::Contradictory => "with a contradictory map of extents",
            Self::OverBudget => "over the budget",
        }
    }

    /// Whether such a file could gain from a move that is not possible.
    pub fn is_obstacle(self) -> bool {
        !matches!(self, Self::InOrder | Self::NoBlocks | Self::OverBudget)
    }
}

/// Files that are not moved for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    /// Files.
    pub files: u64,
    /// Bytes that they have on the device.
    pub bytes: u64,
}

/// The batches to move, and the files that stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The batches, in the order of reading.
    pub batches: Vec<Batch>,
    /// Files that stay.
    pub left: BTreeMap<LeftWhy, Left>,
    /// Bytes that all files have on the device.
    pub live_bytes: u64,
}

impl Plan {
    /// Files that move, in whole or in part.
    pub fn files(&self) -> u64 {
        let mut entries: Vec<usize> = self.parts().map(|part| part.entry).collect();
        entries.sort_unstable();
        entries.dedup();
        entries.len() as u64
    }

    /// Bytes that move.
    pub fn bytes(&self) -> u64 {
        self.parts().map(|part| part.length).sum()
    }

    /// The largest batch, bytes: the free space that the plan needs.
    pub fn space_bytes(&self) -> u64 {
        self.batches.iter().map(Batch::bytes).max().unwrap_or(0)
    }

    /// All ranges that move, in the order of reading.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.batches.iter().flat_map(|batch| &batch.parts)
    }

    /// Keeps the batches that gain most for each byte, up to `budget_bytes`.
    pub fn limit(&mut self, budget_bytes: u64) {
        let mut by_worth: Vec<usize> = (0..self.batches.len()).collect();
        // Pieces per byte, compared without a division.
        let worth = |at: &usize| (u128::from(self.batches[*at].pieces), u128::from(self.batches[*at].bytes()));
        by_worth.sort_by(|a, b| {
            let ((gain_a, bytes_a), (gain_b, bytes_b)) = (worth(a), worth(b));
            (gain_b * bytes_a).cmp(&(gain_a * bytes_b)).then(a.cmp(b))
        });
        let mut left = budget_bytes;
        let mut is_kept = vec![false; self.batches.len()];
        for at in by_worth {
            let bytes = self.batches[at].bytes();
            if bytes <= left {
                left -= bytes;
                is_kept[at] = true;
            }
        }
        let all = std::mem::take(&mut self.batches);
        for (batch, is_kept) in all.into_iter().zip(is_kept) {
            if is_kept {
                self.batches.push(batch);
                continue;
            }
            for parts in batch.parts.chunk_by(|a, b| a.entry == b.entry) {
                self.leave(LeftWhy::OverBudget, parts.iter().map(|part| part.length).sum());
            }
        }
    }

    fn leave(&mut self, why: LeftWhy, bytes: u64) {
        let left = self.left.entry(why).or_default();
        left.files += 1;
        left.bytes = left.bytes.saturating_add(bytes);
    }
}

/// Decides which ranges move.
///
/// `entries` are the entries of the tree. `order` are the indices of its files in the order of
/// reading, each once. Cost: linear.
pub fn plan_moves(entries: &[Surveyed], order: &[usize], options: &PlanOptions) -> Plan {
    let mut plan = Plan::default();
    let mut planner = Planner { entries, options, sequence: Sequence::default(), waiting: Vec::new() };
    let mut shared = BTreeSet::new();
    for &entry in order {
        let Surveyed { kind, extents, .. } = &entries[entry];
        debug_assert_eq!(*kind, EntryKind::File);
        // A damaged volume can report any length.
        let placed = extents.iter().filter(|raw| raw.placement() == Placement::Placed);
        let bytes = placed.fold(0u64, |sum, raw| sum.saturating_add(raw.extent.length));
        plan.live_bytes = plan.live_bytes.saturating_add(bytes);
        // Blocks that several files share move with the first of these files.
        let again = || crate::shared::has_seen(&mut shared, &entries[entry]).then_some(LeftWhy::Shared);
        match find_obstacle(&entries[entry], options).or_else(again) {
            // The reader seeks to it and back, so it ends a sequence.
            Some(why) => {
                plan.leave(why, bytes);
                if why != LeftWhy::NoBlocks {
                    planner.end_sequence(&mut plan);
                }
            }
            None => planner.place(File::of(entry, &entries[entry]), &mut plan),
        }
    }
    planner.end_sequence(&mut plan);
    planner.flush(&mut plan);
    plan
}

/// Whether all blocks of an entry can move.
pub(crate) fn can_move(entry: &Surveyed, options: &PlanOptions) -> bool {
    entry.kind == EntryKind::File && find_obstacle(entry, options).is_none()
}

/// The reason why a file cannot be moved. `None` if it can.
pub(crate) fn find_obstacle(entry: &Surveyed, options: &PlanOptions) -> Option<LeftWhy> {
    let has = |flag| entry.extents.iter().any(|raw| raw.flags.contains(flag));
    let is = |placement| entry.extents.iter().any(|raw| raw.placement() == placement);
    let is_aligned = |extent: &Extent| {
        [extent.logical, extent.physical, extent.length].iter().all(|number| number.is_multiple_of(options.block_bytes))
    };
    let end = entry.size_bytes.checked_next_multiple_of(options.block_bytes).unwrap_or(u64::MAX);
    if is(Placement::Unplaced) {
        Some(LeftWhy::BeingWritten)
    } else if is(Placement::Encoded) {
        Some(LeftWhy::Encoded)
    } else if !is(Placement::Placed)
        || is(Placement::Inline)
        || !entry.extents.iter().all(|raw| is_aligned(&raw.extent))
    {
        Some(LeftWhy::NoBlocks)
    } else if has(ExtentFlags::SHARED) && !options.moves_shared {
        Some(LeftWhy::Shared)
    } else if entry.is_executable && !options.moves_programs {
        Some(LeftWhy::Program)
    } else if has(ExtentFlags::UNWRITTEN) || entry.extents.iter().any(|raw| logical_end(&raw.extent) > Some(end)) {
        Some(LeftWhy::Reserved)
    } else if !is_in_order(entry) {
        Some(LeftWhy::Contradictory)
    } else {
        None
    }
}

fn logical_end(extent: &Extent) -> Option<u64> {
    extent.logical.checked_add(extent.length)
}

/// Whether no extent overlaps the previous one, and no sum overflows.
fn is_in_order(entry: &Surveyed) -> bool {
    let mut next = 0;
    entry.extents.iter().all(|raw| {
        let is_next = raw.extent.logical >= next && raw.extent.physical.checked_add(raw.extent.length).is_some();
        next = logical_end(&raw.extent).unwrap_or(u64::MAX);
        is_next && next < u64::MAX
    })
}

/// A file that can move.
struct File {
    parts: Vec<Part>,
    /// Its first and end byte on the device.
    start: u64,
    end: u64,
    pieces: u64,
    bytes: u64,
}

impl File {
    fn of(entry: usize, surveyed: &Surveyed) -> Self {
        let extents: Vec<Extent> = surveyed.extents.iter().map(|raw| raw.extent).collect();
        let breaks = extents.windows(2).filter(|pair| pair[0].end() != pair[1].physical).count() as u64;
        Self {
            start: extents.first().map_or(0, |first| first.physical),
            end: extents.last().map_or(0, Extent::end),
            pieces: breaks + 1,
            bytes: extents.iter().map(|extent| extent.length).sum(),
            parts: join(entry, extents),
        }
    }
}

/// Files of which each is in one piece and follows the previous one.
#[derive(Default)]
struct Sequence {
    files: Vec<File>,
    bytes: u64,
}

struct Planner<'a> {
    entries: &'a [Surveyed],
    options: &'a PlanOptions,
    sequence: Sequence,
    /// Short sequences that move together.
    waiting: Vec<Sequence>,
}

impl Planner<'_> {
    /// Chooses the strategy of a file.
    fn place(&mut self, file: File, plan: &mut Plan) {
        let PlanOptions { orders, piece_bytes, keep_bytes, .. } = *self.options;
        if piece_bytes > 0 && file.pieces > 1 && (!orders || file.bytes >= keep_bytes) {
            self.end_sequence(plan);
            self.add_shattered(&file, plan);
        } else if orders {
            self.add(file, plan);
        } else {
            plan.leave(LeftWhy::InOrder, file.bytes);
        }
    }

    /// Makes batches of the shattered ranges of a file. The rest of it stays.
    fn add_shattered(&self, file: &File, plan: &mut Plan) {
        let entry = file.parts[0].entry;
        let extents: Vec<Extent> = self.entries[entry].extents.iter().map(|raw| raw.extent).collect();
        let runs = find_shattered(entry, &extents, self.options.piece_bytes, file.bytes / 2);
        let starts: BTreeSet<u64> = runs.iter().map(|run| run[0].logical).collect();
        let moved: u64 = runs.iter().flatten().map(|part| part.length).sum();
        if moved == 0 {
            plan.leave(LeftWhy::InOrder, file.bytes);
        } else if moved < file.bytes {
            plan.left.entry(LeftWhy::InOrder).or_default().bytes += file.bytes - moved;
        }
        let batches = cut_into_batches(runs.into_iter().flatten(), self.options).into_iter();
        plan.batches.extend(batches.map(|parts| {
            // A run that the previous batch started continues as one.
            let runs = parts[1..].iter().filter(|part| starts.contains(&part.logical)).count() as u64 + 1;
            Batch { pieces: count_pieces(self.entries, &parts), runs, strategy: Strategy::Pieces, parts }
        }));
    }

    fn add(&mut self, file: File, plan: &mut Plan) {
        let follows = self.sequence.files.last().is_some_and(|last| {
            let gap = file.start.checked_sub(last.end);
            last.pieces == 1 && file.pieces == 1 && gap.is_some_and(|gap| gap <= SMALL_GAP_BYTES)
        });
        if !follows {
            self.end_sequence(plan);
        }
        self.sequence.bytes += file.bytes;
        self.sequence.files.push(file);
    }

    /// Ends the current sequence. A long one stays, so the sequences before and after it move
    /// separately.
    fn end_sequence(&mut self, plan: &mut Plan) {
        let sequence = std::mem::take(&mut self.sequence);
        if sequence.files.is_empty() {
            return;
        }
        // Long pieces of a large file are as good as a long sequence.
        let pieces: u64 =
            sequence.files.iter().map(|file| file.pieces).sum::<u64>() - (sequence.files.len() as u64 - 1);
        if sequence.bytes / pieces >= self.options.keep_bytes {
            self.flush(plan);
            sequence.files.iter().for_each(|file| plan.leave(LeftWhy::InOrder, file.bytes));
        } else {
            self.waiting.push(sequence);
        }
    }

    /// Makes batches of the waiting sequences. A single one with whole files stays, because a move
    /// would save no seek.
    fn flush(&mut self, plan: &mut Plan) {
        let waiting = std::mem::take(&mut self.waiting);
        let is_whole = |sequence: &Sequence| sequence.files.iter().all(|file| file.pieces == 1);
        if waiting.len() <= 1 && waiting.iter().all(is_whole) {
            waiting
                .iter()
                .flat_map(|sequence| &sequence.files)
                .for_each(|file| plan.leave(LeftWhy::InOrder, file.bytes));
            return;
        }
        let parts = waiting.into_iter().flat_map(|sequence| sequence.files).flat_map(|file| file.parts);
        let batches = cut_into_batches(parts, self.options).into_iter();
        plan.batches.extend(batches.map(|parts| Batch {
            pieces: count_pieces(self.entries, &parts),
            runs: 1,
            strategy: Strategy::Order,
            parts,
        }));
    }
}

/// Groups ranges into batches. A range that is longer than a batch is cut.
fn cut_into_batches(parts: impl Iterator<Item = Part>, options: &PlanOptions) -> Vec<Vec<Part>> {
    let most_bytes = options.batch_bytes;
    let mut batches: Vec<Vec<Part>> = vec![Vec::new()];
    let (mut filled, mut files) = (0, 0);
    for mut part in parts {
        let is_new =
            |batch: Option<&Vec<Part>>| batch.and_then(|parts| parts.last()).map(|last| last.entry) != Some(part.entry);
        while part.length > 0 {
            files += usize::from(is_new(batches.last()));
            if filled > 0 && filled + part.length > most_bytes || files > options.batch_files {
                batches.push(Vec::new());
                (filled, files) = (0, 1);
            }
            let length = part.length.min(most_bytes);
            batches.last_mut().expect("the list starts with one").push(Part { length, ..part });
            filled += length;
            part.logical += length;
            part.length -= length;
        }
    }
    batches.retain(|parts| !parts.is_empty());
    batches
}

/// The number of pieces on the device in which these ranges are read one after the other.
pub(crate) fn count_pieces(entries: &[Surveyed], parts: &[Part]) -> u64 {
    let mut pieces = 0;
    let mut before: Option<(usize, u64)> = None;
    for part in parts {
        for Extent { physical, length, .. } in extents_of(&entries[part.entry], part) {
            let gap = before.and_then(|(entry, end)| Some((entry, physical.checked_sub(end)?)));
            let follows = gap.is_some_and(|(entry, gap)| gap == 0 || entry != part.entry && gap <= SMALL_GAP_BYTES);
            pieces += u64::from(!follows);
            before = Some((part.entry, physical + length));
        }
    }
    pieces
}

/// The extents of a range of a file. Cost: logarithmic in the extents of the file, and linear in
/// those found.
pub(crate) fn extents_of<'a>(entry: &'a Surveyed, part: &'a Part) -> impl Iterator<Item = Extent> + 'a {
    let end = part.logical + part.length;
    let first = entry.extents.partition_point(|raw| raw.extent.logical + raw.extent.length <= part.logical);
    let within = entry.extents[first..].iter().map(|raw| raw.extent).take_while(move |extent| extent.logical < end);
    within.map(move |Extent { logical, physical, length }| {
        let (from, to) = (logical.max(part.logical), (logical + length).min(end));
        Extent { logical: from, physical: physical + (from - logical), length: to - from }
    })
}
