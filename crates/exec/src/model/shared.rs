//! One volume in memory for many threads.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use senesce_core::RelPath;
use senesce_oplog::{Op, Payload};

use super::ModelTarget;
use crate::{OpFailure, SpaceLeft, Target};

/// The same volume for every clone. One operation at a time.
impl Target for Arc<Mutex<ModelTarget>> {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        self.lock().unwrap_or_else(PoisonError::into_inner).apply(root, op, payload)
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        self.lock().unwrap_or_else(PoisonError::into_inner).space()
    }
}
