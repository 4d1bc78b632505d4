//! A target that only counts operations.

use std::io;

use senesce_core::{Bytes, RelPath};
use senesce_oplog::{Op, Payload};

use crate::{OpFailure, SpaceLeft, Target};

/// Counts operations without applying them, to measure the cost of everything except the file
/// system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NullTarget {
    /// The number of operations so far.
    pub operations: u64,
    /// Bytes of their contents.
    pub content_bytes: u64,
}

impl Target for NullTarget {
    fn apply(&mut self, _root: &RelPath, _op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        self.operations += 1;
        self.content_bytes += payload.map_or(0, Payload::len);
        Ok(())
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        Ok(SpaceLeft { capacity: Bytes(u64::MAX), free: Bytes(u64::MAX) })
    }
}
