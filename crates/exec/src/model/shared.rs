//! One volume in memory for several threads.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use senesce_core::RelPath;
use senesce_oplog::{Op, Payload};

use super::ModelTarget;
use crate::{OpFailure, SpaceLeft, Target};

/// All clones use the same volume, one operation at a time.
impl Target for Arc<Mutex<ModelTarget>> {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        self.lock().unwrap_or_else(PoisonError::into_inner).apply(root, op, payload)
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        self.lock().unwrap_or_else(PoisonError::into_inner).space()
    }
}
