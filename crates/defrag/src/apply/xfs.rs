//! XFS: contents are copied into one contiguous donor, which is carved into a donor for each file,
//! and each file then shares its donor's blocks by FIDEDUPERANGE.
//!
//! A shared block at the end of a file must be the last one of the donor too. So each file needs a
//! donor of its own, with its size. To be adjacent to each other, these are carved from one large
//! donor: the small donor clones the range, and the large one frees it. The small donor then is the
//! only owner, so cutting it to the file's size writes in place.

use senesce_core::Extent;

use super::{
    BatchReport, Donor, Mover, Skip, Steps, by_file, is_placed, prefetch, read_extents,
    share::{Source, Stops},
    sys,
    writing::Writing,
};
use crate::{
    Tree,
    plan::{Batch, Part},
};

/// Moves files on an XFS, as the module describes.
pub(super) struct XfsMover {
    pub block_bytes: u64,
}

impl Mover for XfsMover {
    fn move_batch(&mut self, tree: &Tree, batch: &Batch, steps: &mut Steps<'_>) -> BatchReport {
        let donor = match Donor::reserve_longest(tree, batch, batch.bytes()) {
            Ok(donor) => donor,
            Err(why) => return BatchReport::default().skip_all(batch, why),
        };
        let mut next = 0;
        let start = |part: &Part| {
            next += part.length;
            next - part.length
        };
        let starts: Vec<u64> = batch.parts.iter().map(start).collect();
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
        prefetch(tree, batch, steps, None);
        let (mut copied, mut writing) = (Vec::new(), Writing::default());
        for parts in by_file(batch) {
            let (own, rest) = starts.split_at(parts.len());
            starts = rest;
            let source = Source::open(tree, parts);
            let copy = source.and_then(|source| {
                source.check_sharing(tree)?;
                for (part, &at) in parts.iter().zip(own) {
                    if !source.copy(part, (&donor.file, at), (steps, &mut writing))? {
                        return Ok(None);
                    }
                    report.written_bytes += part.length;
                }
                Ok(Some(()))
            });
            match copy {
                Ok(Some(())) => copied.push((parts, own)),
                Ok(None) => break,
                Err(why) => report.skip(parts[0].entry, why),
            }
        }
        // The kernel shares what is on the device, and a power cut must not find a file with blocks
        // that were never written.
        if let Err(error) = donor.file.sync_all() {
            return report.skip_all(batch, Skip::io(&error));
        }
        for (parts, own) in copied {
            // It is opened again: a batch has more files than a process may have open.
            let carved = Source::open(tree, parts).and_then(|source| {
                source.check_sharing(tree)?;
                self.carve(tree, &source, (donor, own), steps)
            });
            if !report.note(parts[0].entry, carved) {
                break;
            }
        }
        report
    }
}

impl XfsMover {
    /// Makes a file share the donor's blocks at `starts`, one for each range, and frees them in the
    /// donor. Returns the bytes. `None` if the caller stopped the work.
    fn carve(
        &self,
        tree: &Tree,
        source: &Source<'_>,
        (donor, starts): (&Donor, &[u64]),
        steps: &mut Steps<'_>,
    ) -> Result<Option<u64>, Skip> {
        let own = tree.create_unnamed([source.parts[0].entry])?;
        let mut wanted: Vec<Extent> = Vec::new();
        for (part, &at) in source.parts.iter().zip(starts) {
            sys::clone_range(&donor.file, at, part.length, (&own, part.logical)).map_err(Skip::of)?;
            sys::punch(&donor.file, at, part.length).map_err(Skip::of)?;
            wanted.extend(donor.place(at, part.logical, part.length));
        }
        if !source.size_bytes.is_multiple_of(self.block_bytes) {
            own.set_len(source.size_bytes).map_err(|error| Skip::io(&error))?;
        }
        source.check_sharing(tree)?;
        if !source.share(&own, (steps, Stops::Anywhere))? {
            return Ok(None);
        }
        // XFS frees the blocks of a file without a name some time after its last user closes it.
        // Until then the blocks count as shared, and the next batch would leave the rest of the
        // file alone.
        own.set_len(0).map_err(|error| Skip::io(&error))?;
        let found = read_extents(&source.file, tree)?;
        match is_placed(&found, &wanted) {
            true => Ok(Some(wanted.iter().map(|extent| extent.length).sum())),
            false => Err(Skip::Changed),
        }
    }
}
