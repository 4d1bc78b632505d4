//! Turns the requests of drives into a trace of operations and consistency points.

use std::{collections::BTreeSet, ops::Range};

use senesce_garden::Trailer;
use senesce_sim::{
    CpuEvents,
    storage::{Operation, PointTrace},
};
use senesce_trials::{Point, Request};

use crate::{
    Entry,
    io_trace::{blocks, content, part},
};

/// An operation, from the requests to drives during it.
///
/// The garden first reads blocks of pointers, then all blocks in chains at the locations of the
/// pointers. If some were stale, it then reads blocks of the map, and the redirected blocks in
/// chains. So the first chains with contents are requests of contents, until they have the number
/// of different blocks that were found in the end. Later ones were read again. All other requests
/// are blocks of pointers, or of the map if chains were read before.
///
/// Two cases cannot be distinguished from outside. If the location of a stale pointer now holds a
/// block of pointers, and it comes first, it counts as one: it is read before the others anyway. If
/// it holds another block of the same request, it counts as that block.
///
/// `ahead` is the range of all blocks that were read. Blocks after the client's range are not
/// requested by themselves, but come in the same chains.
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

/// Inodes of a volume are contents of a file with a small number. All blocks of the aggregate
/// itself are pointers of some kind.
fn is_of_pointers(trailer: &Trailer) -> bool {
    !trailer.of_volume || trailer.level > 0 || trailer.file < FIRST_USER
}

/// The first number of a user's file in a volume, except the root.
const FIRST_USER: u64 = 16;

/// A consistency point, from its operations, the requests to drives after the last of them, and the
/// counters of the garden.
pub fn compute_point(operations: Vec<Operation>, counted: &Point, entries: Vec<Entry>) -> PointTrace {
    let (reads, writes) = part(entries);
    let moved = counted.relocations + counted.metadata_relocations;
    let events = CpuEvents {
        block_clean: counted.writes.blocks,
        xor: counted.writes.blocks + counted.parity_reads.blocks,
        // Blocks that are read for parity are not checked, only added.
        context_check: blocks(&reads).saturating_sub(counted.parity_reads.blocks),
        map_lookup: moved,
        relocation: moved,
        fix_up: counted.fix_ups,
        ..CpuEvents::default()
    };
    PointTrace { operations, reads, writes, events, ..PointTrace::default() }
}

/// The part of the processor work that is caused by relocation, from the counters of one or several
/// points.
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
