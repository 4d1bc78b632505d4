//! Btrfs: contents are copied into a donor for each file, and each file then shares its donor's
//! blocks by FIDEDUPERANGE.
//!
//! A block group keeps an extent for as long as any part of it is in use. So each file needs a
//! donor of its own: a common one would keep the space of all files until the last of them is gone.
//!
//! [`Runs`] makes adjacent donors.
//!
//! If snapshots or other files share the blocks of a file, all of them share the blocks of the
//! donor afterwards. So sharing stays, and every snapshot gains.

use std::fs::File;

use senesce_core::Extent;
use senesce_probe::map::ExtentFlags;

use super::{
    BatchReport, Mover, Skip, Steps, clip, is_placed,
    owners::{Owner, Owners},
    prefetch, read_extents, read_map,
    runs::{Donated, Runs, Space},
    share::{Source, Stops},
    sys,
    writing::Writing,
};
use crate::{
    Tree,
    plan::{Batch, Part},
};

/// Each call leaves an item in the map of the file, and Btrfs does not join such items. So short
/// calls would cost metadata for as long as the file exists.
const LEAST_STEP_BYTES: u64 = 1 << 20;

/// Moves files on a Btrfs, as the module describes.
pub(super) struct BtrfsMover {
    runs: Runs,
    plug: Option<Plug>,
    /// Finds the owners of shared blocks. `None` if files that share blocks stay.
    owners: Option<Owners>,
}

/// Holes that are filled during the work: a file without a name, and its bytes.
struct Plug {
    file: File,
    bytes: u64,
}

/// The free space of the file system.
struct FileSpace<'a> {
    tree: &'a Tree,
    plug: &'a mut Option<Plug>,
}

impl Space for FileSpace<'_> {
    type Donor = File;

    fn reserve(&mut self, parts: &[Part]) -> Result<(File, Vec<Extent>), Skip> {
        let file = self.tree.create_unnamed([parts[0].entry])?;
        for Part { logical, length, .. } in parts {
            sys::reserve(&file, *logical, *length).map_err(Skip::of)?;
        }
        let extents = read_extents(&file, self.tree)?;
        Ok((file, extents))
    }

    fn plug(&mut self, donor: &File, parts: &[Part]) -> Result<(), Skip> {
        let plug = match &mut *self.plug {
            Some(plug) => plug,
            none => none.insert(Plug { file: self.tree.create_unnamed([parts[0].entry])?, bytes: 0 }),
        };
        for Part { logical, length, .. } in parts {
            // The kernel clones only what is before the end of the file.
            donor.set_len(logical + length).map_err(|error| Skip::io(&error))?;
            sys::clone_range(donor, *logical, *length, (&plug.file, plug.bytes)).map_err(Skip::of)?;
            plug.bytes += length;
        }
        Ok(())
    }

    fn unplug(&mut self) {
        *self.plug = None;
    }

    fn free_bytes(&self) -> Result<u64, Skip> {
        self.tree.free_bytes()
    }
}

impl Mover for BtrfsMover {
    fn move_batch(&mut self, tree: &Tree, batch: &Batch, steps: &mut Steps<'_>) -> BatchReport {
        let mut report = BatchReport::default();
        prefetch(tree, batch, steps, None);
        let mut space = FileSpace { tree, plug: &mut self.plug };
        let mut pace = |bytes: u64| steps.may_start(bytes);
        let donors = match self.runs.reserve_batch(&mut space, batch, &mut pace, &mut report) {
            Ok(Some(donors)) => donors,
            Ok(None) => return report,
            Err(why) => return report.skip_all(batch, why),
        };
        for donor in donors {
            let moved = self.move_file(tree, &donor, &mut report.written_bytes, steps);
            if !report.note(donor.parts[0].entry, moved) {
                break;
            }
        }
        report
    }

    fn least_step_bytes(&self) -> u64 {
        LEAST_STEP_BYTES
    }
}

impl BtrfsMover {
    pub fn new(has_quotas: bool, owners: Option<Owners>) -> Self {
        Self { runs: Runs::new(!has_quotas), plug: None, owners }
    }

    /// Copies a file into its donor, and makes the file and all others that share its blocks share
    /// those of the donor. Returns the bytes. `None` if the caller stopped the work.
    fn move_file(
        &mut self,
        tree: &Tree,
        donor: &Donated<'_, File>,
        written_bytes: &mut u64,
        steps: &mut Steps<'_>,
    ) -> Result<Option<u64>, Skip> {
        let source = Source::open(tree, donor.parts)?;
        // The owners are known before the copy: if one cannot be opened, nothing is written.
        let found = self.find_owners(tree, &source)?;
        if let Some(owners) = &mut self.owners {
            owners.charge(&found)?;
        }
        drop(found);
        let mut writing = Writing::default();
        for part in donor.parts {
            if !source.copy(part, (&donor.donor, part.logical), (steps, &mut writing))? {
                return Ok(None);
            }
            *written_bytes += part.length;
        }
        // A snapshot may have been made during the copy.
        let owners = self.find_owners(tree, &source)?;
        for (at, owner) in owners.iter().enumerate() {
            if let Err(why) = owner.share(&source, &donor.donor, steps) {
                // The source still has the old blocks. If one owner cannot move, none does. An
                // owner that cannot move back keeps the donor's blocks, with the same contents.
                for moved in &owners[..=at] {
                    let _ = moved.share(&source, &source.file, steps);
                }
                return Err(why);
            }
        }
        let stops = if owners.is_empty() { Stops::Anywhere } else { Stops::Nowhere };
        if !source.share(&donor.donor, (steps, stops))? {
            return Ok(None);
        }
        let found = read_extents(&source.file, tree)?;
        match is_placed(&found, &donor.extents) {
            true => Ok(Some(donor.bytes())),
            false => Err(Skip::Changed),
        }
    }

    /// The other files that share the blocks of the ranges of a file.
    fn find_owners(&mut self, tree: &Tree, source: &Source<'_>) -> Result<Vec<Owner>, Skip> {
        let Some(owners) = &mut self.owners else {
            source.check_sharing(tree)?;
            return Ok(Vec::new());
        };
        let map = read_map(&source.file, tree)?;
        let shared: Vec<Extent> =
            map.iter().filter(|raw| raw.flags.contains(ExtentFlags::SHARED)).map(|raw| raw.extent).collect();
        let of_part = |part: &Part| clip(&shared, part.logical, part.length);
        let shared: Vec<Extent> = source.parts.iter().flat_map(of_part).collect();
        owners.find(tree, source, (&map, &shared))
    }
}
