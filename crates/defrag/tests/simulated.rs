//! Plans on a simulated file system. Its mover stops, skips files, or finds no space, at any
//! moment.

use std::collections::BTreeMap;

use proptest::prelude::*;
use senesce_core::{Extent, ManualClock, RelPath};
use senesce_defrag::{
    ApplyOptions, Batch, BatchReport, Mover, Part, PlanOptions, Skip, Steps, Tree, apply_plan, plan_moves,
};
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::{ExtentFlags, RawExtent},
};

const BLOCK: u64 = 4096;

/// A device of blocks with contents, and the files that have them.
struct Disk {
    /// The content of each block. `None`: the block is free.
    blocks: Vec<Option<u64>>,
    /// The place of each block of each file.
    files: Vec<BTreeMap<u64, usize>>,
}

impl Disk {
    /// Makes files with these numbers of blocks. `stride` scatters the blocks, so that neighbours
    /// are not adjacent. `holes`: every file has a hole in its middle.
    fn new(sizes: &[u64], stride: usize, holes: bool, free: usize) -> Self {
        let total: u64 = sizes.iter().sum();
        let mut places: Vec<usize> = (0..total as usize).collect();
        places.sort_by_key(|at| (at % stride, *at));
        let mut disk = Self { blocks: vec![None; total as usize + free], files: Vec::new() };
        let mut places = places.into_iter();
        for (number, &size) in sizes.iter().enumerate() {
            let mut file = BTreeMap::new();
            for at in 0..size {
                let place = places.next().unwrap();
                let logical = at + if holes && at >= size / 2 { 3 } else { 0 };
                disk.blocks[place] = Some((number as u64) << 32 | logical);
                file.insert(logical, place);
            }
            disk.files.push(file);
        }
        disk
    }

    /// The contents of each file, as a reader finds them.
    fn contents(&self) -> Vec<BTreeMap<u64, Option<u64>>> {
        let read = |file: &BTreeMap<u64, usize>| file.iter().map(|(at, place)| (*at, self.blocks[*place])).collect();
        self.files.iter().map(read).collect()
    }

    /// The map that the kernel would report.
    fn survey(&self) -> Vec<Surveyed> {
        let surveyed = |(number, file): (usize, &BTreeMap<u64, usize>)| {
            let mut extents: Vec<Extent> = Vec::new();
            for (&at, &place) in file {
                let (logical, physical) = (at * BLOCK, place as u64 * BLOCK);
                match extents.last_mut() {
                    Some(last) if last.logical + last.length == logical && last.end() == physical => {
                        last.length += BLOCK;
                    }
                    _ => extents.push(Extent { logical, physical, length: BLOCK }),
                }
            }
            let raw = |extent| RawExtent { extent, flags: ExtentFlags::default() };
            Surveyed {
                path: RelPath::new(format!("{number:04}").as_bytes()).unwrap(),
                kind: EntryKind::File,
                inode: number as u64 + 12,
                links: 1,
                is_executable: false,
                size_bytes: file.keys().last().map_or(0, |last| (last + 1) * BLOCK),
                allocated_bytes: file.len() as u64 * BLOCK,
                modified_unix_seconds: 0,
                born_unix_seconds: None,
                extents: extents.into_iter().map(raw).collect(),
            }
        };
        self.files.iter().enumerate().map(surveyed).collect()
    }

    /// The free blocks, longest extents first, in reverse: the mover pops blocks from the end.
    fn free_places(&self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.blocks.len()).collect();
        let mut extents: Vec<&[usize]> =
            all.chunk_by(|a, b| self.blocks[*a].is_none() == self.blocks[*b].is_none()).collect();
        extents.retain(|extent| self.blocks[extent[0]].is_none());
        extents.sort_by_key(|extent| std::cmp::Reverse(extent.len()));
        extents.concat().into_iter().rev().collect()
    }

    fn free(&self) -> usize {
        self.blocks.iter().filter(|block| block.is_none()).count()
    }
}

/// The fault of each file, in turn. `None`: the file moves.
type Faults = Vec<Option<Skip>>;

/// Moves files of a simulated disk block by block, and fails as the faults say.
struct Simulated {
    disk: Disk,
    faults: Faults,
    /// Steps that ran after one that was refused.
    steps_after_stop: u64,
}

impl Simulated {
    /// Copies a block to a free one, then frees the old one.
    fn move_block(&mut self, entry: usize, logical: u64, to: usize) {
        let place = self.disk.files[entry].get_mut(&logical).expect("the plan moves only blocks of the file");
        let from = std::mem::replace(place, to);
        assert!(self.disk.blocks[to].is_none(), "a block in use is overwritten");
        self.disk.blocks[to] = self.disk.blocks[from].take();
    }

    fn move_file(&mut self, parts: &[Part], free: &mut Vec<usize>, steps: &mut Steps<'_>) -> Result<bool, Skip> {
        let entry = parts[0].entry;
        let fault = self.faults.pop().flatten();
        for (number, part) in parts.iter().enumerate() {
            let mut done = 0;
            while done < part.length {
                // A fault in the middle of a file leaves a part of it at its new place.
                if let Some(why) = fault.filter(|_| number > 0 || done > 0) {
                    return Err(why);
                }
                let bytes = steps.next_bytes(part.length - done);
                self.steps_after_stop += u64::from(steps.is_stopped());
                if !steps.may_start(bytes) {
                    return Ok(false);
                }
                steps.time(bytes, || {
                    for at in 0..bytes / BLOCK {
                        let to = free.pop().expect("it was reserved");
                        self.move_block(entry, (part.logical + done) / BLOCK + at, to);
                    }
                });
                done += bytes;
            }
        }
        fault.map_or(Ok(true), Err)
    }
}

impl Mover for Simulated {
    fn move_batch(&mut self, _: &Tree, batch: &Batch, steps: &mut Steps<'_>) -> BatchReport {
        let mut report = BatchReport::default();
        let mut free = self.disk.free_places();
        if (free.len() as u64) * BLOCK < batch.bytes() {
            let mut entries: Vec<usize> = batch.parts.iter().map(|part| part.entry).collect();
            entries.dedup();
            report.skipped = entries.into_iter().map(|entry| (entry, Skip::NoSpace)).collect();
            return report;
        }
        for parts in batch.parts.chunk_by(|a, b| a.entry == b.entry) {
            let entry = parts[0].entry;
            let bytes: u64 = parts.iter().map(|part| part.length).sum();
            match self.move_file(parts, &mut free, steps) {
                Ok(true) => {
                    report.moved.push(entry);
                    report.moved_bytes += bytes;
                    report.written_bytes += bytes;
                }
                Ok(false) => break,
                Err(why) => report.skipped.push((entry, why)),
            }
        }
        report
    }
}

fn options(keep: u64, batch: u64, piece: u64) -> PlanOptions {
    let options = PlanOptions::for_blocks(BLOCK);
    PlanOptions { keep_bytes: keep * BLOCK, batch_bytes: batch * BLOCK, piece_bytes: piece * BLOCK, ..options }
}

fn fault() -> impl proptest::strategy::Strategy<Value = Option<Skip>> {
    let why = prop_oneof![Just(Skip::Changed), Just(Skip::Busy), Just(Skip::Refused), Just(Skip::Failed)];
    prop::option::weighted(0.2, why)
}

proptest! {
    /// No fault and no stop changes contents, and the counts match the moves.
    #[test]
    fn faults_and_stops_lose_no_block(
        sizes in prop::collection::vec(1u64..40, 1..40),
        stride in 1usize..30,
        holes: bool,
        free in 0usize..600,
        (keep, batch, piece) in (4u64..200, 1u64..300, 0u64..20),
        faults in prop::collection::vec(fault(), 0..60),
        stop_after in prop::option::of(0u64..100),
    ) {
        let disk = Disk::new(&sizes, stride, holes, free);
        let before = (disk.contents(), disk.free());
        let tree = Tree::with_entries(std::env::temp_dir().as_path(), disk.survey()).unwrap();
        let order: Vec<usize> = (0..sizes.len()).collect();
        let plan = plan_moves(&tree.entries, &order, &options(keep, batch, piece));
        let has_faults = faults.iter().any(Option::is_some);
        let mut mover = Simulated { disk, faults, steps_after_stop: 0 };
        let (clock, mut steps, mut progress) = (ManualClock::default(), 0, 0);
        let mut pace = |_: u64| {
            steps += 1;
            stop_after.is_none_or(|most| steps <= most)
        };
        let apply = ApplyOptions { pace: &mut pace, progress: &mut |bytes| progress = bytes, clock: &clock };
        let applied = apply_plan(&tree, &plan, &mut mover, apply).unwrap();
        prop_assert_eq!((mover.disk.contents(), mover.disk.free()), before);
        prop_assert_eq!(mover.steps_after_stop, 0);
        prop_assert_eq!(applied.is_stopped, stop_after.is_some_and(|most| steps > most));
        prop_assert_eq!(applied.steps.calls, steps - u64::from(applied.is_stopped));
        let skipped: u64 = applied.skipped.values().map(|skipped| skipped.files).sum();
        if applied.is_stopped {
            prop_assert!(progress <= plan.bytes());
        } else {
            prop_assert_eq!(progress, plan.bytes());
            // A file in two batches can move with one and be skipped with the other.
            prop_assert!(applied.files + skipped >= plan.files());
        }
        if !applied.is_stopped && !has_faults && skipped == 0 {
            prop_assert_eq!((applied.files, applied.moved_bytes), (plan.files(), plan.bytes()));
        }
    }

    /// Runs that are stopped again and again finish the work. Each run continues where the last one
    /// stopped, if that one moved enough.
    #[test]
    fn a_repeated_run_continues(sizes in prop::collection::vec(1u64..30, 2..40), stride in 2usize..20) {
        const KEEP: u64 = 40;
        let total: u64 = sizes.iter().sum();
        let mut disk = Disk::new(&sizes, stride, false, 5 * total as usize);
        let before = disk.contents();
        let order: Vec<usize> = (0..sizes.len()).collect();
        let (mut runs, mut moved) = (0, 0);
        loop {
            let tree = Tree::with_entries(std::env::temp_dir().as_path(), disk.survey()).unwrap();
            let plan = plan_moves(&tree.entries, &order, &options(KEEP, total, 0));
            if plan.batches.is_empty() {
                break;
            }
            let mut mover = Simulated { disk, faults: Vec::new(), steps_after_stop: 0 };
            let (clock, mut left) = (ManualClock::default(), 3 * KEEP * BLOCK);
            let mut pace = |bytes: u64| {
                let may_start = left > 0;
                left = left.saturating_sub(bytes);
                may_start
            };
            let apply = ApplyOptions { pace: &mut pace, progress: &mut |_| {}, clock: &clock };
            moved += apply_plan(&tree, &plan, &mut mover, apply).unwrap().moved_bytes;
            disk = mover.disk;
            runs += 1;
            prop_assert!(runs <= total / KEEP + 2, "{} files after {runs} runs", plan.files());
        }
        prop_assert_eq!(disk.contents(), before);
        // A run moves at most one short sequence again, that of the last files before the stop.
        prop_assert!(moved <= (total + runs * KEEP) * BLOCK, "{moved} bytes in {runs} runs");
    }
}
