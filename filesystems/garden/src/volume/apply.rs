//! Applying an operation, for the first time or in a replay.

use senesce_fsapi::{Attributes, FsError, FsResult};

use crate::{
    format::{
        BLOCK,
        operation::{Act, Operation},
    },
    store::{Store, THAWED, is_snapshot},
};

/// The attributes that an operation returns, if any.
pub(crate) type Done = Option<Attributes>;

impl Store {
    /// Applies an operation completely or not at all: it checks everything before the first change.
    /// A failure after the first change (a damaged block in the middle) stops the engine.
    pub fn apply(&mut self, operation: &Operation<'_>) -> FsResult<Done> {
        self.check_running()?;
        if is_snapshot(operation.volume) {
            return Err(FsError::ReadOnly);
        }
        self.touched = false;
        let done = self.act(operation);
        if let Err(error) = &done
            && self.touched
        {
            let reason = crate::Error::invalid(format!("an operation failed half way: {error}"));
            self.stop(&reason);
        }
        done
    }

    fn act(&mut self, operation: &Operation<'_>) -> FsResult<Done> {
        let (space, caller) = (operation.volume, &operation.caller);
        match &operation.act {
            Act::SetAttributes { ino, change } => self.set_attributes(space, caller, *ino, change).map(Some),
            Act::MakeNode { directory, name, node, ino } => {
                self.make_node(space, caller, (*directory, name), node, *ino).map(Some)
            }
            Act::Symlink { directory, name, target, ino } => {
                self.make_symlink(space, caller, (*directory, name), target, *ino).map(Some)
            }
            Act::Link { ino, directory, name } => self.link(space, caller, *ino, (*directory, name)).map(Some),
            Act::Unlink { directory, name, held } => {
                self.unlink(space, caller, (*directory, name), *held).map(|()| None)
            }
            Act::Rmdir { directory, name, held } => self.rmdir(space, caller, (*directory, name), *held).map(|()| None),
            Act::Rename { from, name, to, new_name, how, held } => {
                self.rename(space, caller, (*from, name), (*to, new_name), *how, *held).map(|()| None)
            }
            Act::Write { ino, offset, data } => self.write(space, caller, *ino, *offset, *data).map(|()| None),
            Act::Allocate { ino, how, offset, len } => {
                self.allocate(space, caller, *ino, *how, *offset, *len).map(|()| None)
            }
            Act::SetXattr { ino, name, value, how, file } => {
                self.set_xattr(space, caller, *ino, (name, value), *how, *file).map(|()| None)
            }
            Act::RemoveXattr { ino, name } => self.remove_xattr(space, caller, *ino, name).map(|()| None),
            Act::Reap { ino } => self.reap(space, *ino).map(|()| None),
            Act::CloneRange { from, from_offset, to, to_offset, len } => {
                self.clone_range(space, caller, (*from, *from_offset), (*to, *to_offset), *len).map(|()| None)
            }
        }
    }
}

impl Store {
    /// The most blocks of a volume that an operation may change, and whether it frees blocks.
    ///
    /// Errors: those of reading.
    pub fn cost(&mut self, operation: &Operation<'_>) -> FsResult<(u64, bool)> {
        let changes_contents =
            matches!(operation.act, Act::Write { .. } | Act::SetAttributes { .. } | Act::Allocate { .. });
        let is_packed = changes_contents && self.volume(operation.volume)?.record.packing.was_on;
        let thawed = if is_packed { THAWED } else { 0 };
        let (blocks, frees) = match &operation.act {
            Act::CloneRange { from, from_offset, to, to_offset, len } => {
                let (from, to) = ((*from, *from_offset), (*to, *to_offset));
                (self.clone_cost(operation.volume, from, to, *len)?, false)
            }
            // Truncating a file frees blocks, at any length.
            Act::SetAttributes { ino, change } => {
                let (blocks, frees) = compute_cost(&operation.act);
                let size = self.try_inode(operation.volume, *ino)?.map_or(0, |inode| inode.size);
                (blocks, frees || change.size.is_some_and(|new| new < size))
            }
            act => compute_cost(act),
        };
        Ok((blocks + thawed, frees))
    }
}

/// The most blocks of a volume that an act may change, whatever the state of the volume. Also
/// whether it frees blocks, and so may use the reserve for deletions.
pub(crate) fn compute_cost(act: &Act<'_>) -> (u64, bool) {
    let blocks = |bytes: usize| {
        let contents = bytes.div_ceil(BLOCK) as u64 + 1;
        contents + contents.div_ceil(256) + 24
    };
    match act {
        Act::Write { data, .. } => (blocks(data.bytes.len()), false),
        Act::SetXattr { name, value, .. } => (blocks(name.len() + value.len()) + 40, false),
        Act::MakeNode { .. } | Act::Symlink { .. } | Act::Link { .. } => (56, false),
        // One longer name may make a directory tree that much higher.
        Act::Rename { .. } => (60, false),
        Act::SetAttributes { change, .. } => (32, change.size.is_none_or(|size| size == 0)),
        Act::Allocate { how, .. } => (40, matches!(how, senesce_fsapi::FallocateMode::Punch)),
        // All blocks copied, and each count in a block of its own. `Store::cost` has a better
        // estimate.
        Act::CloneRange { len, .. } => (8 * len.div_ceil(BLOCK as u64) + 32, false),
        Act::Unlink { .. } | Act::Rmdir { .. } | Act::RemoveXattr { .. } | Act::Reap { .. } => (48, true),
    }
}
