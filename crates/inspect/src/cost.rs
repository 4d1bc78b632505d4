//! The modelled time of reading the tree, for three layouts.
//!
//! *As it lies* is the layout that was found. *Defragmented* has every file in one piece where its first piece lies now:
//! what a defragmenter gains that moves no file away. A *fresh copy* has one file after the other in the order in which a
//! copy makes them. So the loss against a fresh copy has parts: intrafile (contents as they lie − defragmented),
//! interfile (contents defragmented − in a fresh copy) and metadata (as they lie − in a fresh copy). Defragmenting leaves
//! the metadata where they are; in a fresh copy they lie in front of all contents, in the order in which a copy makes
//! them. Each request's time belongs to what it fetches; the way there too.
//!
//! A copy makes files in the order in which the old file system lists them, and the new one may list them in another: ext4
//! lists by a hash with a seed of its own. So its fresh copies are read in an order, within each directory, that is not
//! the order they lie in, and the model shuffles them. XFS and Btrfs list as files were made. XFS puts each new
//! directory into the next of its allocation groups, the model too.

use senesce_core::{BlockRequest, Extent, Nanos};
use senesce_device::{ColdRead, DeviceModel, Readahead, compute_cold_reads};
use serde::Serialize;

/// A figure for each of the three layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LayoutCosts<T> {
    /// The layout that was found.
    pub as_it_lies: T,
    /// Every file in one piece.
    pub defragmented: T,
    /// One file after the other, as a copy makes them.
    pub fresh_copy: T,
}

impl<T> LayoutCosts<T> {
    /// The same for every layout, by a function of it.
    pub fn map<U>(self, each: impl Fn(T) -> U) -> LayoutCosts<U> {
        LayoutCosts {
            as_it_lies: each(self.as_it_lies),
            defragmented: each(self.defragmented),
            fresh_copy: each(self.fresh_copy),
        }
    }
}

/// A modelled device that reads.
struct Reader {
    device: Box<dyn DeviceModel>,
    now: Nanos,
    /// What of it went to metadata.
    metadata: Nanos,
    requests: u64,
    bytes: u64,
    metadata_bytes: u64,
}

impl Reader {
    fn new(device: Box<dyn DeviceModel>) -> Self {
        Self { device, now: Nanos(0), metadata: Nanos(0), requests: 0, bytes: 0, metadata_bytes: 0 }
    }

    /// Reads one request after the other, first metadata, then content; gives the time it took.
    fn read(&mut self, metadata: &[BlockRequest], content: &[BlockRequest]) -> Nanos {
        let began = self.now;
        self.serve(metadata);
        self.metadata.0 += self.now.since(began).0;
        self.metadata_bytes += metadata.iter().map(BlockRequest::bytes).sum::<u64>();
        self.serve(content);
        self.now.since(began)
    }

    fn serve(&mut self, requests: &[BlockRequest]) {
        for request in requests {
            self.now = self.device.serve(request, self.now);
            self.bytes += request.bytes();
        }
        self.requests += requests.len() as u64;
    }
}

/// What reading an entry of the tree asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryReads<'a> {
    /// Requests before the content.
    pub metadata: &'a [BlockRequest],
    /// The content, in file order, on the device.
    pub extents: &'a [Extent],
    /// Its size.
    pub size_bytes: u64,
}

/// Adds up what reading costs on one device.
pub(crate) struct Meter {
    pub name: String,
    as_it_lies: Reader,
    defragmented: Reader,
    fresh_copy: Reader,
    readahead: Readahead,
}

impl Meter {
    /// A meter with a device of each layout's own, all the same.
    pub fn new<E>(make: impl Fn() -> Result<Box<dyn DeviceModel>, E>, readahead: Readahead) -> Result<Self, E> {
        let reader = || make().map(Reader::new);
        let first = reader()?;
        let name = first.device.name().to_owned();
        Ok(Self { name, as_it_lies: first, defragmented: reader()?, fresh_copy: reader()?, readahead })
    }

    /// Reads the next entry of the tree as it lies, and defragmented; gives the time of the first.
    ///
    /// Errors: extents that overlap or are out of order; nothing is read then.
    pub fn read(&mut self, entry: &EntryReads<'_>) -> Result<Nanos, senesce_device::Error> {
        let start = entry.extents.first().map_or(0, |extent| extent.physical);
        let as_it_lies = self.plan(entry.extents.to_vec(), entry.size_bytes)?;
        let defragmented = self.plan(in_one_piece(entry.extents, start), entry.size_bytes)?;
        self.defragmented.read(entry.metadata, &defragmented);
        Ok(self.as_it_lies.read(entry.metadata, &as_it_lies))
    }

    /// Reads the next entry of the tree as it lies, and nothing else; gives the time.
    pub fn read_as_it_lies(&mut self, entry: &EntryReads<'_>) -> Result<Nanos, senesce_device::Error> {
        let requests = self.plan(entry.extents.to_vec(), entry.size_bytes)?;
        Ok(self.as_it_lies.read(entry.metadata, &requests))
    }

    /// Reads the next file of the fresh copy: metadata, and so many bytes in one piece. Gives the time.
    pub fn read_fresh(
        &mut self,
        metadata: &[BlockRequest],
        start_bytes: u64,
        length_bytes: u64,
    ) -> Result<Nanos, senesce_device::Error> {
        let extent = Extent { logical: 0, physical: start_bytes, length: length_bytes };
        let extents = if length_bytes > 0 { vec![extent] } else { Vec::new() };
        let requests = self.plan(extents, length_bytes)?;
        Ok(self.fresh_copy.read(metadata, &requests))
    }

    fn plan(&self, extents: Vec<Extent>, size_bytes: u64) -> Result<Vec<BlockRequest>, senesce_device::Error> {
        compute_cold_reads(&[ColdRead::File { size_bytes, extents }], &self.readahead)
    }

    /// Seconds so far.
    pub fn seconds(&self) -> LayoutCosts<f64> {
        self.all().map(|reader| reader.now.as_secs_f64())
    }

    /// What of them went to metadata.
    pub fn metadata_seconds(&self) -> LayoutCosts<f64> {
        self.all().map(|reader| reader.metadata.as_secs_f64())
    }

    /// Requests so far.
    pub fn requests(&self) -> LayoutCosts<u64> {
        self.all().map(|reader| reader.requests)
    }

    /// Bytes read so far, as it lies.
    pub fn bytes(&self) -> u64 {
        self.as_it_lies.bytes
    }

    /// What of them is content.
    pub fn content_bytes(&self) -> u64 {
        self.as_it_lies.bytes - self.as_it_lies.metadata_bytes
    }

    fn all(&self) -> LayoutCosts<&Reader> {
        LayoutCosts { as_it_lies: &self.as_it_lies, defragmented: &self.defragmented, fresh_copy: &self.fresh_copy }
    }
}

/// The extents moved together, so that the first begins at `start_bytes`; holes in the file stay holes.
fn in_one_piece(extents: &[Extent], start_bytes: u64) -> Vec<Extent> {
    let mut next = start_bytes;
    let mut moved: Vec<Extent> = Vec::new();
    for extent in extents {
        let here = Extent { physical: next, ..*extent };
        next += extent.length;
        match moved.last_mut() {
            Some(last) if last.continues_into(&here) => last.length += here.length,
            _ => moved.push(here),
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(logical: u64, physical: u64, length: u64) -> Extent {
        Extent { logical, physical, length }
    }

    #[test]
    fn moving_together_keeps_holes_and_bytes() {
        let moved = in_one_piece(&[extent(0, 900, 10), extent(10, 100, 5), extent(50, 200, 7)], 4000);
        assert_eq!(moved, [extent(0, 4000, 15), extent(50, 4015, 7)]);
    }

    /// Every request takes a second, and one more if it does not go on where the last one ended.
    struct Steps(u64);

    impl DeviceModel for Steps {
        fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos {
            let seconds = 1 + u64::from(request.sector != self.0);
            self.0 = request.end();
            Nanos(arrival.0 + seconds * 1_000_000_000)
        }

        fn name(&self) -> &str {
            "steps"
        }
    }

    #[test]
    fn the_loss_has_three_parts() {
        let mut meter =
            Meter::new(|| Ok::<_, ()>(Box::new(Steps(0)) as Box<dyn DeviceModel>), Readahead::default()).unwrap();
        let request = |sector| BlockRequest { issued: Nanos(0), op: senesce_core::BlockOp::Read, sector, sectors: 8 };
        // Two files of two blocks: the first in two pieces, the second in one, far away; metadata before each.
        let pieces = [extent(0, 40960, 4096), extent(4096, 81920, 4096)];
        let first = EntryReads { metadata: &[request(1 << 30)], extents: &pieces, size_bytes: 8192 };
        let second = EntryReads { metadata: &[request(1 << 31)], extents: &[extent(0, 1 << 30, 8192)], ..first };
        assert_eq!([first, second].map(|entry| meter.read(&entry).unwrap().0 / 1_000_000_000), [6, 4]);
        // In the fresh copy one request brings the metadata of both, in front of them.
        let times = [(&[request(0)][..], 4096), (&[], 12288)]
            .map(|(metadata, at)| meter.read_fresh(metadata, at, 8192).unwrap().0 / 1_000_000_000);
        assert_eq!(times, [2, 1]);
        assert_eq!(meter.seconds(), LayoutCosts { as_it_lies: 10.0, defragmented: 8.0, fresh_copy: 3.0 });
        assert_eq!(meter.metadata_seconds(), LayoutCosts { as_it_lies: 4.0, defragmented: 4.0, fresh_copy: 1.0 });
        assert_eq!(meter.requests(), LayoutCosts { as_it_lies: 5, defragmented: 4, fresh_copy: 3 });
        assert_eq!((meter.bytes(), meter.content_bytes()), (16384 + 8192, 16384));
    }
}
