//! What a file lends those who run it, and loses when somebody without privilege writes to it.

use std::sync::{Arc, OnceLock};

use fuser::{INodeNo, Notifier};
use senesce_fsapi::{Caller, FileSystem, FsError, FsResult, Ino, SetAttributes};

// inode(7)
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_RUNS: u32 = 0o010;
const CAPABILITIES: &[u8] = b"security.capability";

/// A way to tell the kernel that it no longer knows an inode's attributes; there is none before the mount is.
pub(crate) type Kernel = Arc<OnceLock<Notifier>>;

/// Takes them from a file that is about to be written to past the kernel's pages, where the kernel leaves that to who serves.
pub(crate) fn drop_privileges(fs: &dyn FileSystem, kernel: &Kernel, caller: &Caller, ino: Ino) -> FsResult<()> {
    match fs.remove_xattr(caller, ino, CAPABILITIES) {
        Ok(()) | Err(FsError::NoAttribute) => {}
        Err(error) => return Err(error),
    }
    let permissions = fs.attributes(ino)?.permissions;
    let left = without_privileges(permissions);
    if left != permissions {
        fs.set_attributes(caller, ino, &SetAttributes { permissions: Some(left), ..SetAttributes::default() })?;
        if let Some(kernel) = kernel.get() {
            // Attributes alone, no pages: nobody is waited for. It may have forgotten the inode.
            let _ = kernel.inval_inode(INodeNo(ino.0), -1, 0);
        }
    }
    Ok(())
}

/// Without the group's right to run a file its bit has another meaning, and stays.
fn without_privileges(permissions: u32) -> u32 {
    let group = if permissions & GROUP_RUNS == 0 { 0 } else { SET_GID };
    permissions & !(SET_UID | group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_s_bit_goes_if_the_group_may_run_it() {
        for (before, after) in [(0o644, 0o644), (0o4755, 0o755), (0o6755, 0o755), (0o6705, 0o2705), (0o3744, 0o3744)] {
            assert_eq!(without_privileges(before), after, "{before:o}");
        }
    }
}
