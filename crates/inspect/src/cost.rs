//! The modelled time of reading the tree, for four layouts.
//!
//! *As it lies* is the layout that was found. *Defragmented* has every file in one piece where its
//! first piece is now: the layout after a defragmenter that moves no file away. In the *best order*
//! every content follows the one that is read before it, and metadata is where it is: the layout
//! after `senesce defrag`. A *fresh copy* has one file after the other in the order in which a copy
//! makes them. [`LossSeconds`](crate::LossSeconds) splits the loss against a fresh copy by these
//! three layouts. Defragmenting does not move metadata. In a fresh copy metadata is before all
//! contents, in the order in which a copy makes it. The time of a request, with the seek, counts
//! for the data that it reads.
//!
//! A copy makes files in the order in which the old file system lists them, and the new one may
//! list them in another: ext4 lists by a hash with a seed of its own. So its fresh copies are read
//! in an order, within each directory, that is not the order they lie in, and the model shuffles
//! them. XFS and Btrfs list as files were made. XFS puts each new directory into the next of its
//! allocation groups, the model too.

use senesce_core::{BlockRequest, Nanos};
use senesce_device::DeviceModel;
use serde::Serialize;

/// A figure for each of the four layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LayoutCosts<T> {
    /// The layout that was found.
    pub as_it_lies: T,
    /// Every file in one piece.
    pub defragmented: T,
    /// One content after the other in the order of reading, and metadata where it is.
    pub best_order: T,
    /// One file after the other, as a copy makes them.
    pub fresh_copy: T,
}

impl<T> LayoutCosts<T> {
    /// The same for every layout, by a function of it.
    pub fn map<U>(self, each: impl Fn(T) -> U) -> LayoutCosts<U> {
        LayoutCosts {
            as_it_lies: each(self.as_it_lies),
            defragmented: each(self.defragmented),
            best_order: each(self.best_order),
            fresh_copy: each(self.fresh_copy),
        }
    }
}

/// What a device is made to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The layout that was found, or what moving contents makes of it.
    Found,
    /// A fresh copy, planned in one row of positions.
    FreshCopy,
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

/// Adds up what reading costs on one device.
pub(crate) struct Meter {
    pub name: String,
    as_it_lies: Reader,
    defragmented: Reader,
    best_order: Reader,
    fresh_copy: Reader,
}

impl Meter {
    /// A meter with a device of each layout's own.
    pub fn new<E>(make: impl Fn(Reads) -> Result<Box<dyn DeviceModel>, E>) -> Result<Self, E> {
        let reader = |reads| make(reads).map(Reader::new);
        let first = reader(Reads::Found)?;
        let name = first.device.name().to_owned();
        Ok(Self {
            name,
            as_it_lies: first,
            defragmented: reader(Reads::Found)?,
            best_order: reader(Reads::Found)?,
            fresh_copy: reader(Reads::FreshCopy)?,
        })
    }

    /// Reads the next entry of the tree as it lies: metadata, then content. Gives the time.
    pub fn read_as_it_lies(&mut self, metadata: &[BlockRequest], content: &[BlockRequest]) -> Nanos {
        self.as_it_lies.read(metadata, content)
    }

    /// The same, defragmented. `moved` is the range of sectors to which content was moved, as first
    /// and end.
    ///
    /// Other files may be in that range, because the model does not move them away. A drive buffers
    /// the sectors that it read. So reading the moved content could bring those files into the
    /// buffer. Then joining one large file would seem to save the seeks to hundreds of small ones.
    /// The drive therefore forgets the range.
    pub fn read_defragmented(
        &mut self,
        metadata: &[BlockRequest],
        content: &[BlockRequest],
        moved: (u64, u64),
    ) -> Nanos {
        let device = &mut self.defragmented.device;
        device.forget_sectors(moved.0, moved.1);
        let took = self.defragmented.read(metadata, content);
        self.defragmented.device.forget_sectors(moved.0, moved.1);
        took
    }

    /// The same, in the best order, or at the places that a plan has for contents.
    pub fn read_best_order(&mut self, metadata: &[BlockRequest], content: &[BlockRequest]) {
        self.best_order.read(metadata, content);
    }

    /// The same, in the fresh copy.
    pub fn read_fresh_copy(&mut self, metadata: &[BlockRequest], content: &[BlockRequest]) -> Nanos {
        self.fresh_copy.read(metadata, content)
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
        LayoutCosts {
            as_it_lies: &self.as_it_lies,
            defragmented: &self.defragmented,
            best_order: &self.best_order,
            fresh_copy: &self.fresh_copy,
        }
    }
}
