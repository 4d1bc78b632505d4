//! Copies contents into a donor, and makes the file share the donor's blocks, for file systems with
//! reflinks.

use std::{fs::File, os::unix::fs::FileExt};

use rustix::fs::OFlags;

use senesce_probe::map::ExtentFlags;

use super::{Skip, Steps, read_into_cache, read_map, sys, writing::Writing};
use crate::{Tree, plan::Part};

/// Whether a call of several steps may stop between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stops {
    /// It may stop.
    Anywhere,
    /// All steps run.
    Nowhere,
}

/// Makes the target share a range of the donor. Each has its offset. Returns whether the caller let
/// it finish. Shared ranges stay shared.
///
/// Errors: [`Skip::Changed`] if the contents differ; the kernel refuses.
pub(super) fn dedupe(
    (donor, from): (&File, u64),
    (target, to): (&File, u64),
    length: u64,
    (steps, stops): (&mut Steps<'_>, Stops),
) -> Result<bool, Skip> {
    let mut done = 0;
    while done < length {
        let step = steps.next_bytes(length - done);
        if stops == Stops::Anywhere && !steps.may_start(step) {
            return Ok(false);
        }
        // The kernel writes changed pages, then compares. In the call, it would wait for these
        // writes, and read pages, while it holds the locks.
        sys::wait_for_writes(donor, from + done, step);
        sys::wait_for_writes(target, to + done, step);
        read_into_cache(donor, from + done, step);
        read_into_cache(target, to + done, step);
        let share = || sys::dedupe_range((donor, from + done), (target, to + done), step);
        match steps.time(step, share).map_err(Skip::of)? {
            sys::Deduped::Bytes(bytes) => done += bytes.min(step),
            sys::Deduped::Differs => return Err(Skip::Changed),
        }
    }
    Ok(true)
}

/// Bytes of one copy step.
const COPY_BYTES: usize = 1 << 20;

/// An open file of a batch, with its ranges.
pub(super) struct Source<'a> {
    pub parts: &'a [Part],
    pub file: File,
    pub size_bytes: u64,
}

impl<'a> Source<'a> {
    pub fn open(tree: &Tree, parts: &'a [Part]) -> Result<Self, Skip> {
        let (file, stat) = tree.open(parts[0].entry, OFlags::RDONLY)?;
        Ok(Self { parts, file, size_bytes: stat.st_size as u64 })
    }

    /// Refuses a file that shares blocks. A snapshot or clone made after the listing changes
    /// nothing else of a file, and a move would double the space of both.
    pub fn check_sharing(&self, tree: &Tree) -> Result<(), Skip> {
        match read_map(&self.file, tree)?.iter().any(|raw| raw.flags.contains(ExtentFlags::SHARED)) {
            true => Err(Skip::Shared),
            false => Ok(()),
        }
    }

    /// Bytes of a range up to the end of the content.
    pub fn content_bytes(&self, part: &Part) -> u64 {
        part.length.min(self.size_bytes.saturating_sub(part.logical))
    }

    /// Copies a range to `start` of the donor, and starts to write it to the device. Returns
    /// whether the caller let it finish.
    ///
    /// Errors: the file became shorter; reading or writing fails.
    pub fn copy(
        &self,
        part: &Part,
        (donor, start): (&File, u64),
        (steps, writing): (&mut Steps<'_>, &mut Writing<()>),
    ) -> Result<bool, Skip> {
        let length = self.content_bytes(part);
        let mut buffer = vec![0; COPY_BYTES.min(length as usize)];
        let mut done = 0;
        while done < length {
            let step = (length - done).min(COPY_BYTES as u64);
            if !steps.may_start(step) {
                return Ok(false);
            }
            let buffer = &mut buffer[..step as usize];
            self.file.read_exact_at(buffer, part.logical + done).map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => Skip::Changed,
                _ => Skip::io(&error),
            })?;
            donor.write_all_at(buffer, start + done).map_err(|error| Skip::io(&error))?;
            writing.start(donor, (), (start + done, step));
            for (_, start, length) in writing.take_old() {
                sys::wait_for_writes(donor, start, length);
            }
            done += step;
        }
        Ok(true)
    }

    /// Makes the file share all its ranges with the donor, which has them at the same offsets.
    /// Returns whether the caller let it finish. Shared ranges stay shared.
    ///
    /// Errors: the contents differ; the kernel refuses.
    pub fn share(&self, donor: &File, (steps, stops): (&mut Steps<'_>, Stops)) -> Result<bool, Skip> {
        for part in self.parts {
            let length = self.content_bytes(part);
            if !dedupe((donor, part.logical), (&self.file, part.logical), length, (steps, stops))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
