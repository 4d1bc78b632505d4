//! From what drives were asked for to a trace of operations and consistency points.

use std::{collections::BTreeSet, ops::Range};

use senesce_garden::Trailer;
use senesce_sim::{
    CpuEvents,
    storage::{Operation, PointTrace},
};
use senesce_trials::{Point, Request};

use crate::{
    Entry,
    tape::{blocks, content, part},
};

/// An operation, from what drives were asked for while it was done.
///
/// The garden first reads blocks of pointers, then all blocks in chains from where pointers say that they lie, then blocks of the map,
/// and then in chains what lay elsewhere. So requests of contents are the first chains until they have as many blocks as there
/// are different ones that were found in the end; what comes behind was read again. All others are blocks of pointers, or of
/// the map if chains were read before.
///
/// Two things cannot be seen from outside. A place of a stale pointer that holds a block of pointers by now, met first, is taken for
/// one of those: it is read before the others all the same. One that holds another block of the same request is taken for that block.
///
/// `ahead`: all blocks that were read for it; those behind the client's are not waited for by name, but come in the same chains.
pub fn compute_operation(request: &Request, file: u64, ahead: &Range<u64>, entries: Vec<Entry>) -> Operation {
    let blocks = request.blocks.end - request.blocks.start;
    let mut operation = Operation { write: !request.is_read, blocks: blocks as u32, ..Operation::default() };
    let is_wanted =
        |trailer: &Trailer| request.is_read && content(trailer, file).is_some_and(|block| ahead.contains(&block));
    let found: BTreeSet<u64> = entries
        .iter()
        .filter_map(|entry| if let Entry::Read(_, trailers) = entry { Some(trailers) } else { None })
        .flat_map(|trailers| trailers.iter().flatten().filter(|&trailer| is_wanted(trailer)))
        .map(|trailer| trailer.block)
        .collect();
    let mut left = found.len();
    for entry in entries {
        let Entry::Read(chain, trailers) = entry else { continue };
        let has_content = trailers.len() > 1 || trailers.iter().flatten().any(is_wanted);
        let is_of_pointers = trailers.first().copied().flatten().is_some_and(|trailer| is_of_pointers(&trailer));
        if operation.reads.is_empty() && !has_content && is_of_pointers {
            operation.pointers.push(chain);
        } else if left > 0 || operation.reads.is_empty() {
            left = left.saturating_sub(trailers.len());
            operation.reads.push(chain);
        } else if has_content {
            operation.redirected.push(chain);
        } else {
            operation.lookups.push(chain);
        }
    }
    let read = found.range(request.blocks.clone()).count() as u64;
    operation.cache_hits = if request.is_read { (blocks - read) as u32 } else { 0 };
    operation
}

/// Inodes of volumes are contents of a file of their own with a small number; all that an aggregate has is pointers of some kind.
fn is_of_pointers(trailer: &Trailer) -> bool {
    !trailer.of_volume || trailer.level > 0 || trailer.file < FIRST_USER
}

/// The first number of a user's file in a volume, but for the root.
const FIRST_USER: u64 = 16;

/// A consistency point, from its operations, what drives were asked for after the last of them, and what the garden counted.
pub fn compute_point(operations: Vec<Operation>, counted: &Point, entries: Vec<Entry>) -> PointTrace {
    let (reads, writes) = part(entries);
    let moved = counted.relocations + counted.metadata_relocations;
    let events = CpuEvents {
        block_clean: counted.writes.blocks,
        xor: counted.writes.blocks + counted.parity_reads.blocks,
        // What is read for parity is only added up.
        context_check: blocks(&reads).saturating_sub(counted.parity_reads.blocks),
        map_lookup: moved,
        relocation: moved,
        fix_up: counted.fix_ups,
        ..CpuEvents::default()
    };
    PointTrace { operations, reads, writes, events, ..PointTrace::default() }
}

/// What of the processors' work is because blocks are moved: among what a point or several of them counted.
pub fn compute_cleaning_events(counted: &Point) -> CpuEvents {
    let moved = counted.relocations + counted.metadata_relocations;
    CpuEvents {
        relocation: moved,
        map_lookup: moved,
        block_clean: moved,
        xor: moved,
        context_check: counted.cleaning_reads.blocks,
        chain_issue: counted.cleaning_reads.requests,
        fix_up: counted.fix_ups,
        ..CpuEvents::default()
    }
}
