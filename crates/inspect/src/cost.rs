//! The modelled time of reading the tree, for four layouts.
//!
//! - `as_it_lies` is the layout that was found.
//! - `defragmented` has every file in one piece, where its first piece is now. It is the layout
//!   after a defragmenter that moves no other file away. Defragmenting does not move metadata.
//! - `best_order` has every content after the one that is read before it. Metadata stays where it
//!   is. It is the layout after `senesce defrag`.
//! - `fresh_copy` has the files one after the other, in the order in which a copy makes them.
//!   Metadata is before all contents, in the same order.
//!
//! [`LossSeconds`](crate::LossSeconds) splits the loss against a fresh copy with the help of
//! `defragmented`. The time of a request, with its seek, counts for the data that it reads.
//!
//! A copy makes files in the order in which the old file system lists them. The new file system may
//! list them in another order: ext4 lists names by a hash with a seed of its own. So a reader of a
//! fresh ext4 does not read the files of a directory in the order of their places. The model
//! shuffles them. XFS and Btrfs list files in the order in which they were made. XFS puts each new
//! directory into the next allocation group, and the model does so too.

use schemars::JsonSchema;
use senesce_core::{BlockRequest, Nanos};
use senesce_device::DeviceModel;
use serde::Serialize;

/// A figure for each of the four layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LayoutCosts<T> {
    /// The layout that was found.
    pub as_it_lies: T,
    /// Every file in one piece.
    pub defragmented: T,
    /// One content after the other, in the order of reading. Metadata stays where it is.
    pub best_order: T,
    /// One file after the other, as a copy makes them.
    pub fresh_copy: T,
}

impl<T> LayoutCosts<T> {
    /// Applies a function to the figure of every layout.
    pub fn map<U>(self, each: impl Fn(T) -> U) -> LayoutCosts<U> {
        LayoutCosts {
            as_it_lies: each(self.as_it_lies),
            defragmented: each(self.defragmented),
            best_order: each(self.best_order),
            fresh_copy: each(self.fresh_copy),
        }
    }
}

/// The kind of layout that a device reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The found layout, or one that moving contents makes of it.
    Found,
    /// A fresh copy, which is planned in one address space.
    FreshCopy,
}

/// A modelled device, with the time and the requests of its reads.
struct Reader {
    device: Box<dyn DeviceModel>,
    now: Nanos,
    /// The part of `now` that metadata took.
    metadata: Nanos,
    requests: u64,
    bytes: u64,
    metadata_bytes: u64,
}

impl Reader {
    fn new(device: Box<dyn DeviceModel>) -> Self {
        Self { device, now: Nanos(0), metadata: Nanos(0), requests: 0, bytes: 0, metadata_bytes: 0 }
    }

    /// Reads one request after the other, metadata first. Returns the time of all of them.
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

/// The cost of reading the tree on one device, in all layouts.
pub(crate) struct Meter {
    pub name: String,
    as_it_lies: Reader,
    defragmented: Reader,
    best_order: Reader,
    fresh_copy: Reader,
}

impl Meter {
    /// A meter with a separate device for each layout.
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

    /// Reads the next entry of the tree in the found layout: metadata, then content. Returns the
    /// time.
    pub fn read_as_it_lies(&mut self, metadata: &[BlockRequest], content: &[BlockRequest]) -> Nanos {
        self.as_it_lies.read(metadata, content)
    }

    /// Reads the next entry in the defragmented layout. `moved` is the range of sectors to which
    /// its content moves, as first and end.
    ///
    /// Other files may be in that range, because the model does not move them away. A drive buffers
    /// the sectors that it read, so reading the moved content could bring those files into the
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

    /// Reads the next entry in the best order, or with its content at the place that a plan has for
    /// it.
    pub fn read_best_order(&mut self, metadata: &[BlockRequest], content: &[BlockRequest]) {
        self.best_order.read(metadata, content);
    }

    /// Reads the next entry in the fresh copy.
    pub fn read_fresh_copy(&mut self, metadata: &[BlockRequest], content: &[BlockRequest]) -> Nanos {
        self.fresh_copy.read(metadata, content)
    }

    /// Seconds of all reads so far.
    pub fn seconds(&self) -> LayoutCosts<f64> {
        self.all().map(|reader| reader.now.as_secs_f64())
    }

    /// The part of [`Self::seconds`] that metadata took.
    pub fn metadata_seconds(&self) -> LayoutCosts<f64> {
        self.all().map(|reader| reader.metadata.as_secs_f64())
    }

    /// The number of requests so far.
    pub fn requests(&self) -> LayoutCosts<u64> {
        self.all().map(|reader| reader.requests)
    }

    /// Bytes read so far in the found layout.
    pub fn bytes(&self) -> u64 {
        self.as_it_lies.bytes
    }

    /// The part of [`Self::bytes`] that is content.
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
