//! ext4: blocks are exchanged with those of a donor by MOVE_EXT.
//!
//! One donor holds the space of a whole batch. The kernel copies the contents, and the donor has
//! the old blocks then; they are free when it is closed. The kernel writes the copied contents
//! before the transaction that exchanges the blocks (`ext4_jbd2_inode_add_write`), so a power cut
//! leaves either the old or the new blocks, with the same content.

use rustix::fs::OFlags;
use senesce_core::Extent;

use super::{BatchReport, Donor, Mover, STEP_BYTES, Skip, by_file, is_placed, prefetch, read_extents, sys};
use crate::{
    Tree,
    plan::{Batch, Part},
};

/// The kernel exchanges whole pages: a block must be at the same place of its page in both files.
const PAGE_BYTES: u64 = 4096;

/// See the module.
pub(super) struct Ext4Mover {
    pub block_bytes: u64,
}

impl Mover for Ext4Mover {
    fn move_batch(&mut self, tree: &Tree, batch: &Batch, pace: &mut dyn FnMut(u64) -> bool) -> BatchReport {
        let mut report = BatchReport::default();
        let starts = self.plan_starts(batch);
        let bytes = starts.last().zip(batch.parts.last()).map_or(0, |(start, part)| start + part.length);
        let donor = match Donor::reserve(tree, batch, bytes) {
            Ok(donor) => donor,
            Err(why) => return report.skip_all(batch, why),
        };
        prefetch(tree, batch);
        let mut starts = starts.as_slice();
        let mut unchecked: Vec<(&[Part], Vec<Extent>)> = Vec::new();
        for parts in by_file(batch) {
            let (own, rest) = starts.split_at(parts.len());
            starts = rest;
            match self.move_file(tree, (parts, own), &donor, pace) {
                Ok((wanted, true)) => unchecked.push((parts, wanted)),
                Ok((_, false)) => break,
                Err(why) => report.skip(parts[0].entry, why),
            }
        }
        report.written_bytes = unchecked.iter().flat_map(|(parts, _)| *parts).map(|part| part.length).sum();
        if let Err(error) = donor.file.sync_all() {
            return report.skip_all(batch, Skip::io(&error));
        }
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
}

impl Ext4Mover {
    /// Where each range starts in the donor.
    fn plan_starts(&self, batch: &Batch) -> Vec<u64> {
        let mut next = 0u64;
        let start = |part: &Part| {
            let (want, is) = (part.logical % PAGE_BYTES, next % PAGE_BYTES);
            let start = next + (want + PAGE_BYTES - is) % PAGE_BYTES;
            next = start + part.length;
            start
        };
        batch.parts.iter().map(start).collect()
    }

    /// Moves the ranges of one file to their starts in the donor. Returns where they are wanted,
    /// and whether all of them were moved before the caller stopped the work.
    fn move_file(
        &self,
        tree: &Tree,
        (parts, starts): (&[Part], &[u64]),
        donor: &Donor,
        pace: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(Vec<Extent>, bool), Skip> {
        let (file, _) = tree.open(parts[0].entry, OFlags::RDWR)?;
        let mut wanted = Vec::new();
        for (part, &start) in parts.iter().zip(starts) {
            let mut done = 0;
            while done < part.length {
                let step = STEP_BYTES.min(part.length - done);
                if !pace(step) {
                    return Ok((wanted, false));
                }
                let blocks = |bytes: u64| bytes / self.block_bytes;
                let (from, to) = (blocks(part.logical + done), blocks(start + done));
                let moved = sys::move_extent(&file, &donor.file, from, to, blocks(step)).map_err(Skip::of)?;
                if moved == 0 {
                    return Err(Skip::Changed);
                }
                done += moved.min(blocks(step)) * self.block_bytes;
            }
            wanted.extend(donor.place(start, part.logical, part.length));
        }
        Ok((wanted, true))
    }
}
