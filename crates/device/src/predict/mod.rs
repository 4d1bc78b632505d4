//! Predicts the block requests of a cold grep test from the places of files, without a trace or a
//! device.
//!
//! A cold reader reads the files in order, and the kernel reads ahead of it in windows
//! ([`compute_windows`]). Each window becomes one request for each run of adjacent blocks on the
//! device, cut at the largest request of the device. The requests are input for
//! [`compute_cost`](crate::compute_cost), like those of a trace.
//!
//! ```
//! use senesce_core::Extent;
//! use senesce_device::{ColdRead, Readahead, compute_cold_reads};
//!
//! // A file of 64 KiB in two pieces: two requests, in file order.
//! let extents = vec![
//!     Extent { logical: 0, physical: 40960, length: 16384 },
//!     Extent { logical: 16384, physical: 8192, length: 49152 },
//! ];
//! let reads = [ColdRead::File { size_bytes: 65536, extents }];
//! let requests = compute_cold_reads(&reads, &Readahead::default()).unwrap();
//! let places: Vec<_> = requests.iter().map(|request| (request.sector, request.sectors)).collect();
//! assert_eq!(places, [(80, 32), (16, 96)]);
//! ```
//!
//! Not modelled: the time at which metadata is read (the caller gives it), reads of other programs,
//! merges of windows in the block layer, pages that are cached already.

mod windows;

use std::collections::BTreeSet;

use senesce_core::{BlockOp, BlockRequest, Extent, Nanos, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use windows::each_window;
pub use windows::{Readahead, compute_windows};

use crate::Error;

/// An item that a cold reader fetches, in the order of the walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColdRead {
    /// Blocks of a directory, an inode table, an extent tree: one read, and only the first time.
    Metadata {
        /// First byte on the device.
        physical: u64,
        /// Bytes, with those that the file system fetches together with it (ext4: an aligned part
        /// of the inode table).
        length: u64,
    },
    /// The content of a file, from the first byte to the last.
    File {
        /// Its size. Allocated blocks after it are not read.
        size_bytes: u64,
        /// Its written extents in file order, on the device, without holes and unwritten extents.
        extents: Vec<Extent>,
    },
}

/// The requests of a cold reader in the order of their issue, all issued at time 0.
///
/// Every allocated byte of a file up to the end of its last page is read exactly once, in file
/// order. No request is longer than the largest one. A request crosses the border of two extents
/// only if they touch in the file and on the device. Metadata pages are read only once.
///
/// Errors: extents that are empty, overlap or are not in file order, with the number of the file.
/// Cost: linear in windows and extents.
pub fn compute_cold_reads<'a>(
    reads: impl IntoIterator<Item = &'a ColdRead>,
    readahead: &Readahead,
) -> Result<Vec<BlockRequest>, Error> {
    readahead.check()?;
    let mut requests = Vec::new();
    let mut cached = BTreeSet::new();
    for (number, read) in reads.into_iter().enumerate() {
        match read {
            ColdRead::Metadata { physical, length } => {
                read_metadata(*physical, *length, readahead, &mut cached, &mut requests);
            }
            ColdRead::File { size_bytes, extents } => {
                read_file(*size_bytes, &compute_runs(extents, number)?, readahead, &mut requests);
            }
        }
    }
    Ok(requests)
}

/// Adds the requests of [`compute_cold_reads`] for one file, from its size and its written extents
/// in file order.
///
/// Errors: the same; nothing is added then. Cost: allocates nothing for a file of one extent.
pub fn add_cold_reads(
    size_bytes: u64,
    extents: &[Extent],
    readahead: &Readahead,
    requests: &mut Vec<BlockRequest>,
) -> Result<(), Error> {
    readahead.check()?;
    match extents {
        [only] => {
            check_extent(only, None, 0)?;
            read_file(size_bytes, extents, readahead, requests);
        }
        _ => read_file(size_bytes, &compute_runs(extents, 0)?, readahead, requests),
    }
    Ok(())
}

/// Merges extents that touch. `number` names the file in errors.
fn compute_runs(extents: &[Extent], number: usize) -> Result<Vec<Extent>, Error> {
    let mut runs: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents {
        check_extent(extent, runs.last(), number)?;
        match runs.last_mut() {
            Some(last) if last.continues_into(extent) => last.length += extent.length,
            _ => runs.push(*extent),
        }
    }
    Ok(runs)
}

/// Refuses an extent that is impossible, or not after the previous one.
fn check_extent(extent: &Extent, before: Option<&Extent>, number: usize) -> Result<(), Error> {
    let problem = |what: &str| Error::NotComputable {
        figure: "requests of a cold read",
        problem: format!("read {number}: the extent at file offset {} {what}", extent.logical),
    };
    if extent.length == 0 {
        return Err(problem("is empty"));
    }
    if extent.logical.checked_add(extent.length).is_none() || extent.physical.checked_add(extent.length).is_none() {
        return Err(problem("ends beyond 2^64 bytes"));
    }
    match before {
        Some(last) if last.logical + last.length > extent.logical => {
            Err(problem("starts before the previous one ends"))
        }
        _ => Ok(()),
    }
}

fn read_file(size_bytes: u64, runs: &[Extent], readahead: &Readahead, requests: &mut Vec<BlockRequest>) {
    let mut next = 0;
    each_window(size_bytes, readahead, |window| {
        // Skips runs before the window. The last run may extend into the next window.
        while runs.get(next).is_some_and(|run| run.logical + run.length <= window.start) {
            next += 1;
        }
        for run in runs[next..].iter().take_while(|run| run.logical < window.end) {
            let (start, end) = (run.logical.max(window.start), (run.logical + run.length).min(window.end));
            add_run(run.physical + (start - run.logical), end - start, readahead.max_request_bytes, requests);
        }
    });
}

fn read_metadata(
    physical: u64,
    length: u64,
    readahead: &Readahead,
    cached: &mut BTreeSet<u64>,
    requests: &mut Vec<BlockRequest>,
) {
    let (page_bytes, max_bytes) = (readahead.page_bytes, readahead.max_request_bytes);
    // Adjacent new pages are one request.
    let (mut start, mut bytes) = (0, 0);
    for page in physical / page_bytes..physical.saturating_add(length).div_ceil(page_bytes) {
        if cached.insert(page) {
            if bytes == 0 {
                start = page * page_bytes;
            }
            bytes += page_bytes;
        } else {
            add_run(start, std::mem::take(&mut bytes), max_bytes, requests);
        }
    }
    add_run(start, bytes, max_bytes, requests);
}

/// Adds reads of a run of bytes, in whole sectors, none longer than the largest request.
fn add_run(start: u64, bytes: u64, max_bytes: u64, requests: &mut Vec<BlockRequest>) {
    if bytes == 0 {
        return;
    }
    let (mut sector, end) = (start / SECTOR_BYTES, (start + bytes).div_ceil(SECTOR_BYTES));
    while sector < end {
        let sectors = (end - sector).min(max_bytes / SECTOR_BYTES);
        requests.push(BlockRequest { issued: Nanos(0), op: BlockOp::Read, sector, sectors: sectors as u32 });
        sector += sectors;
    }
}

#[cfg(test)]
mod tests;
