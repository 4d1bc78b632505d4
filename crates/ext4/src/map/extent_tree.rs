//! One node of an extent tree, in the inode or in a block of its own.
//!
//! Source: the kernel's documentation of the format, "Extent Tree".

use super::Run;
use crate::{
    Problem,
    bytes::{u16_at, u32_at, wide},
    checksum::crc32c,
};

const MAGIC: u16 = 0xF30A;
const HEADER_BYTES: usize = 12;
const ENTRY_BYTES: usize = 12;
/// The kernel makes no deeper trees: five levels of blocks map every possible file.
const MAX_DEPTH: u16 = 5;
/// Larger lengths mean "allocated but never written".
const MAX_WRITTEN_BLOCKS: u32 = 32_768;

/// The limits of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Levels below it. `None` for the root, which has its own depth.
    pub(super) depth: Option<u16>,
    /// The first block of the file that it may map.
    pub(super) from: u64,
    /// The block of the file after the last one that it may map.
    pub(super) to: u64,
    /// Blocks of the file system.
    pub(super) blocks: u64,
    /// The lowest block that a file can have.
    pub(super) first_block: u64,
}

impl Bounds {
    fn check(&self, what: &str, entry: usize, start: u64, length: u64) -> Result<(), Problem> {
        if start < self.first_block || start + length > self.blocks {
            let text = format!("{what} {entry} points to blocks {start} to {}, of {}", start + length - 1, self.blocks);
            return Err(text.into());
        }
        Ok(())
    }
}

/// A child node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) block: u64,
    pub(super) bounds: Bounds,
}

/// Checks a node. Appends its extents to `runs` and its child nodes to `children`.
///
/// Valid nodes map every block of the file at most once, because child nodes have disjoint ranges.
/// The depth falls by one at each level, so that there are no cycles.
pub(super) fn parse_node(
    bytes: &[u8],
    bounds: &Bounds,
    runs: &mut Vec<Run>,
    children: &mut Vec<Child>,
) -> Result<(), Problem> {
    let magic = u16_at(bytes, 0);
    if magic != MAGIC {
        return Err(format!("it has the magic number {magic:#06x}, not {MAGIC:#06x}").into());
    }
    let (entries, most, depth) = (usize::from(u16_at(bytes, 2)), usize::from(u16_at(bytes, 4)), u16_at(bytes, 6));
    let fitting = bytes.len().saturating_sub(HEADER_BYTES) / ENTRY_BYTES;
    if entries > most || most > fitting {
        return Err(format!("it has {entries} entries of at most {most}, and space for {fitting}").into());
    }
    match bounds.depth {
        Some(expected) if depth != expected => return Err(format!("its depth is {depth}, not {expected}").into()),
        None if depth > MAX_DEPTH => return Err(format!("its depth is {depth}, more than {MAX_DEPTH}").into()),
        _ => {}
    }
    if depth > 0 && entries == 0 {
        return Err(format!("its depth is {depth}, and it has no entries").into());
    }
    let at = |entry: usize| HEADER_BYTES + entry * ENTRY_BYTES;
    let mut from = bounds.from; // the lowest block with which the next entry may start
    for entry in 0..entries {
        let at_entry = at(entry);
        let logical = u64::from(u32_at(bytes, at_entry));
        if logical < from || logical >= bounds.to {
            let to = bounds.to;
            return Err(format!("entry {entry} starts at block {logical} of the file, outside {from}..{to}").into());
        }
        if depth == 0 {
            let length = u32::from(u16_at(bytes, at_entry + 4));
            let unwritten = length > MAX_WRITTEN_BLOCKS;
            let blocks = u64::from(if unwritten { length - MAX_WRITTEN_BLOCKS } else { length });
            if blocks == 0 || logical + blocks > bounds.to {
                let to = bounds.to;
                return Err(format!("entry {entry} maps {blocks} blocks from {logical}, past the limit {to}").into());
            }
            let physical = wide(u32_at(bytes, at_entry + 8), u32::from(u16_at(bytes, at_entry + 6)));
            bounds.check("entry", entry, physical, blocks)?;
            runs.push(Run { logical, physical, blocks, unwritten });
            from = logical + blocks;
        } else {
            let block = wide(u32_at(bytes, at_entry + 4), u32::from(u16_at(bytes, at_entry + 8)));
            bounds.check("index", entry, block, 1)?;
            let to = if entry + 1 < entries { u64::from(u32_at(bytes, at(entry + 1))) } else { bounds.to };
            children.push(Child { block, bounds: Bounds { depth: Some(depth - 1), from: logical, to, ..*bounds } });
            from = logical + 1;
        }
    }
    Ok(())
}

/// Verifies the checksum after the entries of a block.
pub(super) fn verify_checksum(bytes: &[u8], seed: u32) -> Result<(), Problem> {
    let tail = HEADER_BYTES + ENTRY_BYTES * usize::from(u16_at(bytes, 4));
    let Some(covered) = bytes.get(..tail).filter(|_| tail + 4 <= bytes.len()) else {
        return Err("it has no space for its checksum".into());
    };
    let (stored, computed) = (u32_at(bytes, tail), crc32c(seed, covered));
    if stored == computed { Ok(()) } else { Err(Problem::Checksum { stored, computed }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { depth: None, from: 0, to: 1 << 32, blocks: 1000, first_block: 1 };

    fn node(depth: u16, entries: &[[u32; 3]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for half in [MAGIC, entries.len() as u16, 4, depth, 0, 0] {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
        for word in entries.iter().flatten() {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.resize(60, 0);
        bytes
    }

    fn parse(bytes: &[u8], bounds: &Bounds) -> Result<(Vec<Run>, Vec<Child>), String> {
        let (mut runs, mut children) = (Vec::new(), Vec::new());
        parse_node(bytes, bounds, &mut runs, &mut children).map_err(|problem| problem.to_string())?;
        Ok((runs, children))
    }

    #[test]
    fn written_and_unwritten_extents_are_distinguished() {
        // 32,768 is the longest written extent; one more means "1 block, unwritten".
        let bounds = Bounds { blocks: 100_000, ..BOUNDS };
        let (runs, _) = parse(&node(0, &[[0, 32_768, 100], [40_000, 32_769, 50]]), &bounds).unwrap();
        assert_eq!(
            runs,
            [
                Run { logical: 0, physical: 100, blocks: 32_768, unwritten: false },
                Run { logical: 40_000, physical: 50, blocks: 1, unwritten: true },
            ]
        );
    }

    #[test]
    fn child_ranges_end_at_their_neighbours() {
        let (_, children) = parse(&node(2, &[[0, 7, 0], [10, 8, 0]]), &BOUNDS).unwrap();
        let ranges: Vec<_> = children
            .iter()
            .map(|child| (child.block, child.bounds.depth, child.bounds.from, child.bounds.to))
            .collect();
        assert_eq!(ranges, [(7, Some(1), 0, 10), (8, Some(1), 10, 1 << 32)]);
    }

    #[test]
    fn contradictions_are_refused() {
        let mut no_magic = node(0, &[]);
        no_magic[0] = 0;
        let mut too_many = node(0, &[[0, 1, 5]]);
        too_many[2] = 5;
        let lower = Bounds { depth: Some(0), from: 10, to: 20, ..BOUNDS };
        let cases = [
            (no_magic, BOUNDS, "magic"),
            (too_many, BOUNDS, "5 entries of at most 4"),
            (node(6, &[[0, 1, 0]]), BOUNDS, "more than 5"),
            (node(1, &[]), BOUNDS, "no entries"),
            (node(1, &[[10, 7, 0]]), lower, "depth is 1, not 0"),
            (node(0, &[[9, 1, 7]]), lower, "outside 10..20"),
            (node(0, &[[19, 2, 7]]), lower, "past the limit 20"),
            (node(0, &[[0, 2, 7], [1, 1, 20]]), BOUNDS, "outside 2.."),
            (node(0, &[[0, 0, 7]]), BOUNDS, "0 blocks"),
            (node(0, &[[0, 1, 1000]]), BOUNDS, "blocks 1000 to 1000, of 1000"),
            (node(0, &[[0, 1, 0]]), BOUNDS, "blocks 0 to 0"),
            (node(1, &[[5, 7, 0], [5, 8, 0]]), BOUNDS, "entry 1 starts"),
            (node(1, &[[5, 5000, 0]]), BOUNDS, "index 0"),
        ];
        for (bytes, bounds, part) in cases {
            let message = parse(&bytes, &bounds).unwrap_err();
            assert!(message.contains(part), "{message} should say {part}");
        }
    }
}
