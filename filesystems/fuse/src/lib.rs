//! Mounts an engine: translates between the FUSE protocol and
//! [`FileSystem`](senesce_fsapi::FileSystem).
//!
//! All changes come through the mount, so the kernel may cache names (also missing ones),
//! attributes and pages for the life of the mount. It opens files and directories without a
//! request. The kernel checks permissions (`default_permissions`) and clears set-id bits. Inodes
//! that it knows are held open in the engine until it forgets them.
//!
//! Several threads serve requests; the engine orders concurrent calls. A read that waits for a
//! remote store runs in another thread, or waits for one.
//!
//! Not supported: files without a name (O_TMPFILE) and POSIX ACLs, both with `EOPNOTSUPP`. Programs
//! then create a named file and use permissions. Reads do not change times of access.

mod adapter;
mod convert;
mod copy;
mod directory;
mod error;
mod held_inodes;
mod mount;
mod remote_reads;
mod reply;
mod wake_up;
mod write_modes;

pub use error::{Error, Result};
pub use mount::{MountOptions, Mounted, Now};
pub use wake_up::Alarm;
pub use write_modes::KernelPages;
