//! Measures effective bandwidth by read size: the throughput of a reader that moves to another
//! position after each read.
//!
//! A device model can repeat the experiment with the same positions for the same seed. The natural
//! transfer size follows from either curve. This module neither computes it nor chooses the sizes.

use std::{
    fs::{File, OpenOptions},
    io::{Seek, SeekFrom},
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;
use senesce_core::{Bytes, Clock, Nanos, Rng, Seed};
use serde::{Deserialize, Serialize};

use super::{extents::collect_extents, grep::compute_wall};
use crate::{
    Error,
    map::{ExtentFlags, Placement},
};

/// Sizes and positions of direct reads are multiples of this, which every usual device allows.
const ALIGN_BYTES: u64 = 4096;

/// The reads of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferPoint {
    /// Bytes of each read.
    pub size_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// From before the first read to after the last.
    pub wall: Nanos,
    /// The quartiles of the times of single reads.
    pub quartiles: [Nanos; 3],
}

/// The end of the reads of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferLimit {
    /// The largest number of reads.
    pub reads: u64,
    /// The longest total time, effective once [`TransferLimit::LEAST_READS`] reads are done.
    pub time: Option<Nanos>,
}

impl TransferLimit {
    /// The number of reads that are made regardless of the time limit, unless `reads` is smaller:
    /// fewer are not meaningful.
    pub const LEAST_READS: u64 = 10;
}

impl TransferPoint {
    /// Effective bandwidth, MiB per second; none if no time passed.
    pub fn mib_per_second(&self) -> Option<f64> {
        let bytes = self.size_bytes as f64 * self.reads as f64;
        (self.wall.0 > 0).then(|| bytes / Bytes::MIB as f64 / self.wall.as_secs_f64())
    }

    /// The spread of single reads: interquartile range divided by median; none if the median is
    /// zero.
    pub fn spread(&self) -> Option<f64> {
        let [low, median, high] = self.quartiles;
        (median.0 > 0).then(|| high.since(low).0 as f64 / median.0 as f64)
    }
}

/// Reads each of the sizes at positions drawn uniformly from the multiples of the size, up to
/// `limit`, and measures the time. It makes one read at a time, and bypasses the page cache.
///
/// In: `path`, a block device or a file whose every block is written; `sizes_bytes`, multiples of
/// 4096. No other program may use the device, and the device's own caches must not be larger than
/// the data read. Out: a point for each size, in their order, with fewer reads than requested if
/// the time limit was reached. The positions depend only on seed, size and length.
///
/// Errors: a size that is no multiple of 4096 or does not fit; no reads; a file with holes or
/// preallocated blocks, which are read without the device; no direct reads on this file system; the
/// clock went backwards. Cost: reads `reads` times the sum of the sizes; a buffer of the largest.
pub fn collect_transfer_curve(
    path: &Path,
    sizes_bytes: &[u64],
    limit: TransferLimit,
    seed: Seed,
    clock: &dyn Clock,
) -> Result<Vec<TransferPoint>, Error> {
    let bad = |problem: String| Error::BadTransfer { path: path.to_owned(), problem };
    let (file, length_bytes) = open_source(path)?;
    if limit.reads == 0 {
        return Err(bad("zero reads have no bandwidth; request at least one".to_owned()));
    }
    for &size_bytes in sizes_bytes {
        if size_bytes == 0 || size_bytes % ALIGN_BYTES != 0 {
            return Err(bad(format!("reads of {size_bytes} bytes are not possible; use a multiple of {ALIGN_BYTES}")));
        }
        if size_bytes > length_bytes {
            return Err(bad(format!("reads of {size_bytes} bytes do not fit into its {length_bytes}")));
        }
    }
    let largest = usize::try_from(sizes_bytes.iter().copied().max().unwrap_or(0))
        .map_err(|_| bad("the largest read does not fit into memory".to_owned()))?;
    let mut space = vec![0u8; largest + ALIGN_BYTES as usize];
    let skip = space.as_ptr().align_offset(ALIGN_BYTES as usize);
    let buffer = &mut space[skip..skip + largest];
    let mut curve = Vec::with_capacity(sizes_bytes.len());
    for &size_bytes in sizes_bytes {
        // The stream has the name of the model's experiment, so that both read at the same
        // positions.
        let mut rng = Rng::for_purpose(seed, "effective bandwidth");
        let slots = length_bytes / size_bytes;
        let before = clock.now();
        let (mut now, mut times) = (before, Vec::new());
        let is_time_up = |now: Nanos| limit.time.is_some_and(|time| now.since(before) >= time);
        while (times.len() as u64) < limit.reads {
            if times.len() as u64 >= TransferLimit::LEAST_READS && is_time_up(now) {
                break;
            }
            let offset = rng.below(slots) * size_bytes;
            file.read_exact_at(&mut buffer[..size_bytes as usize], offset)
                .map_err(|source| Error::system("read", path, source))?;
            let after = clock.now();
            times.push(compute_wall("the transfer curve", now, after)?);
            now = after;
        }
        let wall = compute_wall("the transfer curve", before, now)?;
        curve.push(TransferPoint { size_bytes, reads: times.len() as u64, wall, quartiles: quartiles(&mut times) });
    }
    Ok(curve)
}

/// The quartiles of the times; zeros if there are none.
fn quartiles(times: &mut [Nanos]) -> [Nanos; 3] {
    times.sort_unstable();
    [1, 2, 3]
        .map(|quarter| times.get((times.len() * quarter).div_ceil(4).saturating_sub(1)).copied().unwrap_or_default())
}

/// Checks a file or device without a measurement. Errors: as
/// [`collect_transfer_curve`].
pub fn check_transfer_source(path: &Path) -> Result<(), Error> {
    open_source(path).map(drop)
}

fn open_source(path: &Path) -> Result<(File, u64), Error> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path)
        .map_err(|source| Error::system("open for direct reads", path, source))?;
    let length_bytes = measure_length(&file, path)?;
    Ok((file, length_bytes))
}

/// The length of a device, or of a file whose every byte is read from its device.
fn measure_length(mut file: &File, path: &Path) -> Result<u64, Error> {
    let metadata = file.metadata().map_err(|source| Error::system("read the metadata of", path, source))?;
    if metadata.file_type().is_block_device() {
        return file.seek(SeekFrom::End(0)).map_err(|source| Error::system("find the end of", path, source));
    }
    let bad = |problem: &str| Error::BadTransfer { path: path.to_owned(), problem: problem.to_owned() };
    if !metadata.is_file() {
        return Err(bad("it is neither a block device nor a file"));
    }
    let length_bytes = metadata.len();
    let written_bytes = match collect_extents(file, path) {
        Ok(extents) => {
            let written = extents
                .iter()
                .filter(|raw| raw.placement() == Placement::Placed && !raw.flags.contains(ExtentFlags::UNWRITTEN));
            written
                .map(|raw| {
                    length_bytes.min(raw.extent.logical + raw.extent.length) - raw.extent.logical.min(length_bytes)
                })
                .sum()
        }
        // If the file system does not report locations, `st_blocks` still has the allocated size.
        Err(_) => metadata.blocks() * 512,
    };
    if written_bytes < length_bytes {
        return Err(bad(
            "it has holes, preallocated or compressed blocks, which reads do not fetch unchanged from the device",
        ));
    }
    Ok(length_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_bytes_over_time() {
        let point = TransferPoint {
            size_bytes: 4 << 20,
            reads: 10,
            wall: Nanos(500_000_000),
            quartiles: [8, 10, 13].map(Nanos),
        };
        assert_eq!(point.spread(), Some(0.5));
        assert_eq!(point.mib_per_second(), Some(80.0));
        assert_eq!(TransferPoint { wall: Nanos(0), ..point }.mib_per_second(), None);
    }

    #[test]
    fn quartiles_are_those_of_single_times() {
        let of =
            |times: &[u64]| quartiles(&mut times.iter().copied().map(Nanos).collect::<Vec<_>>()).map(|time| time.0);
        assert_eq!(of(&[40, 10, 30, 20]), [10, 20, 30]);
        assert_eq!(of(&[5, 1, 4, 2, 3]), [2, 3, 4]);
        assert_eq!((of(&[7]), of(&[])), ([7; 3], [0; 3]));
    }
}
