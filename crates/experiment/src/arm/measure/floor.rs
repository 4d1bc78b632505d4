//! The FUSE floor: the time of the grep test of a tree through FUSE without an engine and a device.
//!
//! The tree is copied into a file system in memory, which the same adapter mounts with the same
//! number of threads. It is unmounted and mounted before every test, so that the kernel requests
//! everything.

use std::path::Path;

use senesce_core::Bytes;
use senesce_volume::{MemoryMount, copy_tree};

use super::{
    super::state::ArmContext,
    grep::{scan, verify_grep},
};
use crate::{Error, observer::Event};

/// The copy may use this part of the machine's memory: one in N.
const MEMORY_PART: u64 = 4;

/// A tree in memory that is mounted through FUSE.
pub(super) struct Floor(MemoryMount);

impl Floor {
    /// Copies the tree below `from`, if the arm's file system is mounted through FUSE. `None`, with
    /// a warning, if the tree is too large for the memory.
    pub(super) fn of_tree(context: &mut ArmContext<'_>, from: &Path) -> Result<Option<Self>, Error> {
        if !context.arm.file_system.kind.is_engine() {
            return Ok(None);
        }
        let space = rustix::fs::statvfs(from).map_err(|errno| Error::io("query", from)(errno.into()))?;
        let needed = (space.f_blocks - space.f_bfree) * space.f_frsize;
        let memory = rustix::system::sysinfo();
        let allowed = memory.totalram as u64 * u64::from(memory.mem_unit) / MEMORY_PART;
        if needed > allowed {
            context.observer.on_event(&Event::Warning {
                arm: context.arm.name.clone(),
                message: format!(
                    "the FUSE floor is not measured: the tree needs {}, and the limit is {} of memory",
                    Bytes(needed),
                    Bytes(allowed)
                ),
            });
            return Ok(None);
        }
        // The last pages of files, and directories, come on top.
        let size = Bytes(needed * 2 + 64 * Bytes::MIB);
        let name = format!("{}-floor", context.arm.name);
        let mount = MemoryMount::create(context.custodian, &context.paths.volumes(), &name, size)?;
        copy_tree(from, mount.root(), &context.world.stop())?;
        Ok(Some(Self(mount)))
    }

    /// Wall seconds of one cold grep test of the tree.
    pub(super) fn collect_seconds(&mut self, context: &ArmContext<'_>) -> Result<f64, Error> {
        self.0.remount_cold()?;
        let (_, _, figures) = scan(context, self.0.root())?;
        verify_grep(&figures)?;
        Ok(figures.wall.as_secs_f64())
    }

    /// Unmounts it and discards the copy.
    pub(super) fn finish(self) -> Result<(), Error> {
        Ok(self.0.destroy()?)
    }
}
