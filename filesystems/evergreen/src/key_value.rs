//! The interface between the file system and the tree.

use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

use bytes::Bytes;

use crate::{Batch, Result};

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 2048;

/// The longest value, in bytes: a block of a file, or an extended attribute.
pub const MAX_VALUE_BYTES: usize = 4096;

/// The size of a change in a batch, in bytes, without its key and its payload.
pub const CHANGE_BYTES: usize = 64;

/// The space that a batch claims. The caller computes it, because a blind write does not read the
/// value that it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Growth of the live keys and values in bytes; negative if they shrink.
    pub bytes: i64,
    /// Whether the batch removes things: then it may use the space reserved for removals.
    pub is_removal: bool,
}

/// The claimed space, and its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The sum of all claims, in bytes.
    pub bytes: u64,
    /// The limit of that sum, without the space reserved for removals.
    pub most: u64,
}

/// Keys with values, in the order of the keys' bytes.
///
/// Several threads may call it. A batch is atomic: a read sees all of it or nothing. A
/// [`scan`](Self::scan) may see batches that were applied after its start.
///
/// Errors: each method returns `Device`, `Damaged` or `Stopped`.
pub trait KeyValue: Send + Sync {
    /// Returns the value of a key; never an empty one.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Passes the keys from `from` up to `to` (exclusive) with their values to `sink`, in ascending
    /// order, until `sink` breaks. No lock is held during the call of `sink`: it may call the
    /// store.
    fn scan(&self, from: &[u8], to: &[u8], sink: &mut dyn FnMut(&[u8], Bytes) -> ControlFlow<()>) -> Result<()>;

    /// Applies a batch. It is durable after the next [`sync`](Self::sync). After a loss of power
    /// the store has a prefix of the batches, in the order of their calls.
    ///
    /// Errors: `NoSpace` if the claim exceeds the free space: then the store is unchanged.
    /// `Invalid` if a key or value is too long.
    fn apply(&self, batch: Batch) -> Result<()>;

    /// Makes all batches durable whose `apply` has returned.
    fn sync(&self) -> Result<()>;

    /// Like [`sync`](Self::sync). `keys` is a hint: the caller needs changes of these keys durable.
    /// A store for which the other changes are expensive may use it.
    fn sync_of(&self, keys: &Range<Vec<u8>>) -> Result<()> {
        let _ = keys; // a hint
        self.sync()
    }

    /// The size limit of a batch: the bytes of keys and payloads, and [`CHANGE_BYTES`] for each
    /// change. At least 15 KiB.
    fn max_batch_bytes(&self) -> usize;

    /// The claimed space and its limit. Cost: constant.
    fn live(&self) -> Live;

    /// Returns the bytes that may still be claimed. As long as this is not 0, the store accepts a
    /// batch of a few KiB. Cost: if little space is free, that of making space.
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
