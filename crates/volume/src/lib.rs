//! Volumes: images, mkfs, loop devices, mounts, cold caches, twins, and their cleanup.
//!
//! A [`Custodian`] records everything that a run acquires in a journal. A [`Volume`] is made with a
//! custodian and removed with it. After a kill, [`clean`] reads the journal, and removes the
//! resources of the run and nothing else.
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//! use senesce_core::{Bytes, Seed};
//! use senesce_volume::{
//!     Backend, Custodian, FileSystemKind, LinuxHost, Slot, Uuid, Volume, VolumeSpec,
//! };
//!
//! let custodian = Custodian::open(Arc::new(LinuxHost::default()), Path::new("/var/tmp/run-1"))?;
//! let size = Bytes(5 * Bytes::GIB);
//! let backend = Backend::Image { dir: "/var/tmp".into(), size, memory: false };
//! let spec = VolumeSpec::new(backend, FileSystemKind::Ext4);
//! let slot = Slot {
//!     name: "ext4-full".into(),
//!     uuid: Uuid::from_seed(Seed(1).derive("ext4-full")),
//!     mount_dir: "/var/tmp/run-1".into(),
//!     needed: Bytes(5 * Bytes::GIB),
//! };
//! let mut volume = Volume::create(&custodian, &spec, &slot)?;
//! std::fs::write(volume.root().join("hello"), "world").unwrap();
//! assert!(volume.remount_cold()?.is_cold);
//! volume.destroy()?;
//! # Ok::<(), senesce_volume::Error>(())
//! ```
//!
//! This crate does not know workloads and measurements. It never decides which device may be
//! destroyed. It changes only what the caller names. It refuses a device in use, and, unless
//! forced, one that is not empty.

mod circumstances;
mod copy;
mod error;
mod f2fs;
mod guest_owners;
mod host;
mod mkfs;
mod mkfs_trial;
mod mkfs_words;
mod read_ahead;
mod read_only;
mod resources;
mod room;
mod settle;
mod signals;
mod signature;
mod spec;
mod superblock;
mod supervised;
mod volume;

pub use circumstances::is_guest;
pub use copy::{CopyReport, copy_attributes, copy_tree, copy_tree_settled};
pub use error::{Error, ErrorKind, Result};
pub use guest_owners::{GuestOwners, set_guest_owners};
pub use host::{
    Claim, DeviceNumber, DeviceStat, DiskServer, EngineConfig, EngineServer, EngineSource, FileId, HeldDevice, Host,
    LinuxHost, LoopDevice, Medium, MediumKind, MountEntry, MountOptions, ProcessId, Purpose, ReleaseTries, SeenMount,
    ToolOutput, Use, btrfs_sys_directory, cached_pages, find_btrfs_id, find_medium, list_mounts, parse_mount_options,
    parse_mountinfo, set_idle_priority,
};
pub use mkfs::plan_mkfs;
pub use mkfs_trial::{MkfsTrial, try_mkfs};
pub use mkfs_words::check_mkfs_words;
pub use read_only::ReadOnlyMount;
pub use resources::{
    CleanAction, CleanMode, Custodian, ENGINE_SOURCE, GuestLock, JOURNAL_FILE_NAME, MountSource, Outcome, Registry,
    Resource, ResourceId, RunCleaned, check_place, check_run_dir, clean,
};
pub use room::{check_room, check_size};
pub use senesce_vdisk::{Pace, TimeReport};
pub use settle::{Pinned, Settler, find_unsettled, settled_mount_option};
pub use signals::{
    check_interrupted, install_signal_cleanup, interrupted, is_interrupted, notice_slow_end, wake_on_signal,
};
pub use signature::{SCAN_BYTES, Signature, find_signatures};
pub use spec::{Backend, FileSystemKind, Slot, Uuid, VirtualDevice, VolumeSpec};
pub use superblock::{SuperblockIdentity, read_superblock, read_used_bytes};
pub use supervised::{Supervised, run_supervised};
pub use volume::{
    ColdReport, Existing, MemoryMount, MkfsRecord, SnapshotReport, Volume, check_device, find_mounted_twin, rename_new,
};
