//! The door between the file system and the tree.

use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

use bytes::Bytes;

use crate::{Batch, Result};

/// The longest key.
pub const MAX_KEY_BYTES: usize = 2048;

/// The longest value: a block of a file, or an extended attribute.
pub const MAX_VALUE_BYTES: usize = 4096;

/// What a change counts beside its key and what it carries.
pub const CHANGE_BYTES: usize = 64;

/// What a batch claims of the space, by what its maker knows: a blind write does not look at what it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Bytes of keys and values that are live after the batch and were not before; fewer, if negative.
    pub bytes: i64,
    /// It removes things: it may use the space that is kept for that.
    pub is_removal: bool,
}

/// What is claimed, and what can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The sum of all claims so far.
    pub bytes: u64,
    /// What that sum can be at most, without the space that is kept for removals.
    pub most: u64,
}

/// Keys with values, in the order of the keys' bytes.
///
/// Calls come from several threads. Each batch takes effect at once: a reading has all of it or nothing of it, but a
/// [`scan`](Self::scan) may see batches that came after it began.
///
/// Errors: each method gives `Device`, `Damaged` or `Stopped`.
pub trait KeyValue: Send + Sync {
    /// The value of a key; never an empty one.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Gives the keys from `from` on up to `to` (itself not among them) with their values to `sink`, in ascending order,
    /// until it breaks. `sink` is called without a lock: it may call back.
    fn scan(&self, from: &[u8], to: &[u8], sink: &mut dyn FnMut(&[u8], Bytes) -> ControlFlow<()>) -> Result<()>;

    /// Does all of a batch. Not durable before the next [`sync`](Self::sync); after a loss of power there are all batches up
    /// to one of them, in the order in which they were applied, and none behind.
    ///
    /// Errors: `NoSpace` if its claim is more than there is; then nothing is done. `Invalid` for a key or value that is too
    /// long.
    fn apply(&self, batch: Batch) -> Result<()>;

    /// All batches whose `apply` has returned are durable when it returns.
    fn sync(&self) -> Result<()>;

    /// The same, because something between these keys is to be durable: a store that is slow to make the rest durable may learn from it.
    fn sync_of(&self, keys: &Range<Vec<u8>>) -> Result<()> {
        let _ = keys; // a hint
        self.sync()
    }

    /// What a batch may come to at most: the bytes of its keys and of what its messages carry, and [`CHANGE_BYTES`] for each
    /// change. Never below 15 KiB.
    fn max_batch_bytes(&self) -> usize;

    /// What is claimed and can be. Cost: none that grows.
    fn live(&self) -> Live;

    /// Returns the bytes that may still be claimed. As long as this is not 0, a batch of a few KiB
    /// is not refused. Cost: where little is free, as that of making space.
    fn claimable(&self) -> u64 {
        let Live { bytes, most } = self.live();
        most.saturating_sub(bytes)
    }
}

macro_rules! passes_on {
    ($pointer:ty) => {
        impl<T: KeyValue + ?Sized> KeyValue for $pointer {
            fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
                (**self).get(key)
            }

            fn scan(
                &self,
                from: &[u8],
                to: &[u8],
                sink: &mut dyn FnMut(&[u8], Bytes) -> ControlFlow<()>,
            ) -> Result<()> {
                (**self).scan(from, to, sink)
            }

            fn apply(&self, batch: Batch) -> Result<()> {
                (**self).apply(batch)
            }

            fn sync(&self) -> Result<()> {
                (**self).sync()
            }

            fn sync_of(&self, keys: &Range<Vec<u8>>) -> Result<()> {
                (**self).sync_of(keys)
            }

            fn live(&self) -> Live {
                (**self).live()
            }

            fn claimable(&self) -> u64 {
                (**self).claimable()
            }

            fn max_batch_bytes(&self) -> usize {
                (**self).max_batch_bytes()
            }
        }
    };
}

passes_on!(Arc<T>);
passes_on!(&T);
