//! The cause of each jump of a reader: a fragmented file, files that are not adjacent, or the
//! metadata between them.

use schemars::JsonSchema;
use senesce_core::{BlockOp, BlockRequest, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use crate::map::{Placement, RawExtent};

/// The owner of a position on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The content of a file, by its number.
    File(u64),
    /// Anything else.
    Metadata,
}

/// The jumps of a reader by cause. A jump between two extents of one file is intrafile, between two
/// files interfile. Every other jump, to or from a position without file content, is metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossFigures {
    /// Positions that the reader visited, except the first: accesses - 1.
    pub steps: u64,
    /// Steps that do not start where the previous access ended.
    pub jumps: u64,
    /// Jumps within a file.
    pub intrafile: u64,
    /// Jumps between files.
    pub interfile: u64,
    /// Jumps to and from metadata. `None` if the location of metadata is unknown; `jumps` then does
    /// not include them.
    pub metadata: Option<u64>,
    /// Intrafile / jumps; `None` without jumps.
    pub intrafile_share: Option<f64>,
    /// Interfile / jumps; `None` without jumps.
    pub interfile_share: Option<f64>,
    /// Metadata / jumps; `None` without jumps, or if the location of metadata is unknown.
    pub metadata_share: Option<f64>,
}

/// Counts the jumps of a sequence of accesses.
#[derive(Clone, Debug, Default)]
pub(super) struct LossCounter {
    before: Option<(Owner, u64)>,
    steps: u64,
    intrafile: u64,
    interfile: u64,
    metadata: u64,
}

impl LossCounter {
    /// Adds the next access: the owners of its first and last byte (or sector), its start and its
    /// end.
    pub(super) fn add(&mut self, first: Owner, last: Owner, start: u64, end: u64) {
        let Some((before, end_before)) = self.before.replace((last, end)) else { return };
        self.steps += 1;
        if start == end_before {
            return;
        }
        match (before, first) {
            (Owner::File(a), Owner::File(b)) if a == b => self.intrafile += 1,
            (Owner::File(_), Owner::File(_)) => self.interfile += 1,
            _ => self.metadata += 1,
        }
    }

    /// Returns the figures. `metadata_known` is whether the accesses included metadata.
    pub(super) fn finish(&self, metadata_known: bool) -> LossFigures {
        let jumps = self.intrafile + self.interfile + self.metadata;
        let share = |part: u64| (jumps > 0).then(|| part as f64 / jumps as f64);
        LossFigures {
            steps: self.steps,
            jumps,
            intrafile: self.intrafile,
            interfile: self.interfile,
            metadata: metadata_known.then_some(self.metadata),
            intrafile_share: share(self.intrafile),
            interfile_share: share(self.interfile),
            metadata_share: if metadata_known { share(self.metadata) } else { None },
        }
    }
}

/// Maps positions of a device to the files whose content they hold. Only for extents in the space
/// of the device, not for those of Btrfs.
#[derive(Clone, Debug, Default)]
pub struct DataMap {
    /// First sector, sector after the last, file; unordered until built.
    pieces: Vec<(u64, u64, u64)>,
    files: u64,
}

/// Collects the files of a [`DataMap`], normally those of the tree that is read.
#[derive(Clone, Debug, Default)]
pub struct DataMapBuilder(DataMap);

impl DataMapBuilder {
    /// Adds the extents of the next file. Cost: 24 bytes an extent.
    pub fn add_file(&mut self, extents: &[RawExtent]) {
        let placed = extents.iter().filter(|raw| matches!(raw.placement(), Placement::Placed | Placement::Encoded));
        let file = self.0.files;
        self.0.pieces.extend(placed.map(|raw| {
            let end = raw.extent.physical.saturating_add(raw.extent.length);
            (raw.extent.physical / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES), file)
        }));
        self.0.files += 1;
    }

    /// Returns the map. Cost: sorts the extents.
    pub fn finish(mut self) -> DataMap {
        self.0.pieces.sort_unstable();
        self.0
    }
}

impl DataMap {
    /// The file whose content a sector holds. If several files share it, the result is always the
    /// same one of them.
    fn owner(&self, sector: u64) -> Owner {
        let behind = self.pieces.partition_point(|piece| piece.0 <= sector);
        match self.pieces[..behind].last() {
            Some(&(_, end, file)) if sector < end => Owner::File(file),
            _ => Owner::Metadata,
        }
    }
}

/// The jumps of a traced reader by cause: the discontinuities of the dynamic layout score.
///
/// In: requests in issue order, of which only the reads count; the location of the files' content.
/// Sectors without a file count as metadata: inodes, directories, maps, journals, and files that
/// the map lacks. Cost: a search in the map for each read.
pub fn compute_trace_loss(requests: impl IntoIterator<Item = BlockRequest>, files: &DataMap) -> LossFigures {
    let mut counter = LossCounter::default();
    for request in requests.into_iter().filter(|request| request.op == BlockOp::Read && request.sectors > 0) {
        let end = request.sector.saturating_add(u64::from(request.sectors));
        counter.add(files.owner(request.sector), files.owner(end - 1), request.sector, end);
    }
    counter.finish(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::{Extent, Nanos};

    use super::*;
    use crate::{map::ExtentFlags, score::compute_trace_figures};

    /// Extents of blocks of 4 KiB: (first block on the device, blocks).
    fn file(pieces: &[(u64, u64)]) -> Vec<RawExtent> {
        let extent = |&(at, blocks): &(u64, u64)| RawExtent {
            extent: Extent { logical: 0, physical: at * 4096, length: blocks * 4096 },
            flags: ExtentFlags(0),
        };
        pieces.iter().map(extent).collect()
    }

    fn read(block: u64, blocks: u64) -> BlockRequest {
        BlockRequest { issued: Nanos(0), op: BlockOp::Read, sector: block * 8, sectors: blocks as u32 * 8 }
    }

    fn map(files: &[Vec<RawExtent>]) -> DataMap {
        let mut builder = DataMapBuilder::default();
        files.iter().for_each(|extents| builder.add_file(extents));
        builder.finish()
    }

    #[test]
    fn jumps_are_classified() {
        let files = map(&[file(&[(10, 4), (20, 2)]), file(&[(22, 3), (100, 1)])]);
        let loss = compute_trace_loss(
            [
                read(10, 4),  // the first is no jump
                read(20, 2),  // within file 0
                read(22, 3),  // file 1 lies right behind: no jump
                read(100, 1), // within file 1
                read(5, 1),   // to metadata
                read(12, 1),  // and from it to file 0
                read(22, 1),  // to file 1
            ],
            &files,
        );
        assert_eq!((loss.steps, loss.jumps), (6, 5));
        assert_eq!((loss.intrafile, loss.interfile, loss.metadata), (2, 1, Some(2)));
        assert_eq!(loss.intrafile_share, Some(0.4));
    }

    #[test]
    fn without_reads_there_is_no_share() {
        let loss = compute_trace_loss([], &DataMap::default());
        assert_eq!((loss.steps, loss.jumps, loss.intrafile_share), (0, 0, None));
    }

    proptest! {
        #[test]
        fn causes_sum_to_the_discontinuities(
            files in prop::collection::vec(prop::collection::vec((0u64..90, 1u64..9), 0..4), 0..6),
            reads in prop::collection::vec((0u64..99, 1u64..9), 0..60),
        ) {
            let map = map(&files.iter().map(|pieces| file(pieces)).collect::<Vec<_>>());
            let reads: Vec<_> = reads.iter().map(|&(at, blocks)| read(at, blocks)).collect();
            let loss = compute_trace_loss(reads.iter().copied(), &map);
            prop_assert_eq!(loss.jumps, compute_trace_figures(reads.iter().copied()).reads.discontinuities);
            prop_assert_eq!(loss.intrafile + loss.interfile + loss.metadata.unwrap(), loss.jumps);
            prop_assert!(loss.jumps <= loss.steps);
            let shares = [loss.intrafile_share, loss.interfile_share, loss.metadata_share];
            prop_assert!(shares.iter().all(|share| share.is_some() == (loss.jumps > 0)));
            prop_assert!(loss.jumps == 0 || (shares.iter().flatten().sum::<f64>() - 1.0).abs() < 1e-9);
        }

        #[test]
        fn without_a_map_every_jump_is_metadata(reads in prop::collection::vec((0u64..99, 1u64..9), 0..60)) {
            let loss = compute_trace_loss(reads.iter().map(|&(at, blocks)| read(at, blocks)), &DataMap::default());
            prop_assert_eq!(loss.metadata, Some(loss.jumps));
        }
    }
}
