//! The privileged operations as one trait, so that tests can check their order without privileges.

pub(crate) mod btrfs_attributes;
mod claim;
mod disk_kind;
#[cfg(test)]
pub(crate) mod fake;
mod in_use;
mod ioctl;
mod linux;
mod linux_device;
mod linux_disk;
mod linux_engine;
mod linux_file;
mod locks;
mod loop_devices;
mod mountinfo;
mod mounts;
mod options;
mod probe;
pub(crate) mod settle_calls;
mod swaps;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use senesce_core::Bytes;
use senesce_vdisk::{Footprint, Identity, Released, ServeConfig, TimeReport};
use serde::{Deserialize, Serialize};

pub use btrfs_attributes::{btrfs_sys_directory, find_btrfs_id};
pub use claim::{Claim, Purpose, ReleaseTries};
use claim::{await_release, claim_patiently};
pub use disk_kind::{Medium, MediumKind, find_medium};
pub use in_use::Use;
pub use ioctl::set_idle_priority;
pub use linux::LinuxHost;
pub(crate) use linux_device::{btrfs_forget, queue_dir, read as read_device};
pub use linux_file::cached_pages;
pub(crate) use locks::flock_owner;
pub(crate) use loop_devices::attach_read_only;
pub use mountinfo::{MountEntry, parse_mountinfo};
pub use mounts::{SeenMount, list_mounts};
pub use options::{MountOptions, parse_mount_options};

use crate::{FileSystemKind, Result};

/// The identity of a file, from `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// `st_dev` of the file system that holds it.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
}

/// Number of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl DeviceNumber {
    /// The number in a `st_dev` or `st_rdev`.
    pub fn of(device: u64) -> Self {
        Self { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
    }
}

/// A process. A later one with the same number has another identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Its start in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// An attached loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// Its node, `/dev/loopN`.
    pub path: PathBuf,
    /// Whether reads and writes bypass the page cache of the host's file system.
    pub direct_io: bool,
    /// Logical block size, bytes.
    pub block_size_bytes: u32,
}

/// The kernel's counters of a block device since it appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStat {
    /// Read requests completed.
    pub reads: u64,
    /// Sectors of 512 bytes read.
    pub read_sectors: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Sectors of 512 bytes written.
    pub written_sectors: u64,
    /// Milliseconds with at least one request in flight.
    pub busy_milliseconds: u64,
}

/// The result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Whether the exit status is 0.
    pub success: bool,
    /// The exit status in words.
    pub status: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl ToolOutput {
    /// Standard error, or standard output if that is empty: some tools print their errors there.
    pub fn errors(&self) -> &str {
        if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr }
    }
}

/// A block device that this process holds open and no other process uses. Checks and writes use the
/// same descriptor.
pub trait HeldDevice {
    /// The device's name for programs that take no descriptor.
    fn node(&self) -> &Path;
    /// Refuses a device that is not empty, unless `force`.
    fn check_content(&self, force: bool) -> Result<()>;
    /// Reads from it. Returns fewer bytes at its end.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>>;
    /// Overwrites a part of it with zeros.
    fn wipe(&self, offset: u64, length: usize) -> Result<()>;
    /// Lets another process claim it. The descriptor stays open.
    fn share(&mut self) -> Result<()>;
}

/// A served disk in virtual time. A drop releases it, if it was not released before.
pub trait DiskServer: Send {
    /// Its resources on the machine.
    fn footprint(&self) -> &Footprint;
    /// The protections of its processes against memory pressure that succeeded or failed, for the
    /// record.
    fn notes(&self) -> &[String];
    /// Empties the modelled device's cache.
    fn drop_device_cache(&mut self) -> Result<()>;
    /// Virtual time, and its parts.
    fn time(&mut self) -> Result<TimeReport>;
    /// Starts a log of all requests in a new file.
    fn start_log(&mut self, path: &Path) -> Result<()>;
    /// Stops the log. The log is complete when this returns.
    fn stop_log(&mut self) -> Result<()>;
}

/// The mount of an engine of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The source in the list of mounts.
    pub source: String,
    /// The mount point.
    pub point: PathBuf,
    /// The contents.
    pub what: EngineSource,
}

/// The contents that an engine serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineSource {
    /// The engine on a device, by the device's label.
    OnDevice {
        /// The device.
        device: PathBuf,
        /// Options of `senesce fs mount`, `name=value`, comma-separated.
        options: String,
    },
    /// An empty file system in memory. It is gone when its server exits.
    Memory {
        /// Its maximum size.
        size: Bytes,
    },
}

/// A mounted engine of ours. A drop stops its process.
pub trait EngineServer: Send {
    /// The process.
    fn process(&self) -> &ProcessId;
    /// Unmounts and mounts again, so that the kernel caches nothing of it. Only for a file system
    /// in memory.
    fn mount_again(&mut self) -> Result<()>;
    /// Waits for the exit of the process, which follows the unmount. Errors: it failed, with its
    /// message.
    fn wait_end(&mut self) -> Result<()>;
}

/// The operations that need privileges or change the machine. [`LinuxHost`] implements them.
pub trait Host: Send + Sync {
    /// Whether this process is root.
    fn is_root(&self) -> bool;
    /// Whether the kernel can mount `kind`, now or with a module that it loads.
    fn kernel_knows(&self, kind: FileSystemKind) -> Result<bool>;
    /// The path of a program. `None` if it is not installed.
    fn find_tool(&self, name: &str) -> Option<PathBuf>;
    /// Runs a program with a minimal environment and without input.
    fn run_tool(&self, program: &Path, arguments: &[String]) -> Result<ToolOutput>;
    /// This process.
    fn this_process(&self) -> Result<ProcessId>;
    /// Whether `process` still runs.
    fn is_alive(&self, process: &ProcessId) -> bool;
    /// Whether `process` runs this program with the argument `mark`, which names the mount that it
    /// serves.
    fn identify(&self, process: &ProcessId, mark: &str) -> Identity;
    /// Kills `process` if [`Host::identify`] returns that it is ours. Returns that identity.
    fn kill(&self, process: &ProcessId, mark: &str) -> Result<Identity>;
    /// Waits before a retry.
    fn pause(&self, time: Duration);

    /// Free bytes for this process in a directory.
    fn free_bytes(&self, dir: &Path) -> Result<Bytes>;
    /// Whether a directory is on tmpfs or ramfs.
    fn is_in_memory(&self, dir: &Path) -> Result<bool>;
    /// Identity of the file at `path`. Does not follow a symbolic link. `None` if it does not
    /// exist.
    fn file_id(&self, path: &Path) -> Result<Option<FileId>>;
    /// A directory's path without links. `None` if it does not exist.
    fn real_path(&self, dir: &Path) -> Result<Option<PathBuf>>;
    /// The files in a directory, without its directories. Empty if it does not exist.
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>>;
    /// Makes a new sparse file. Fails if the path exists. An error leaves nothing.
    fn create_file(&self, path: &Path, size: Bytes) -> Result<FileId>;
    /// Makes a new directory for this user only. Fails if the path exists.
    fn create_dir(&self, path: &Path) -> Result<FileId>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Removes a directory with its content.
    fn remove_tree(&self, path: &Path) -> Result<()>;
    /// Clones or copies `from` over the existing file `to`, with its holes. Returns the method.
    fn copy_image(&self, from: &Path, to: &Path) -> Result<&'static str>;
    /// Makes the file and its name durable.
    fn sync_file(&self, path: &Path) -> Result<()>;
    /// Drops a file's or device's clean pages from the host's cache. Returns the number of pages
    /// left, if the kernel can count them.
    fn drop_page_cache(&self, path: &Path) -> Result<Option<u64>>;

    /// Attaches an image to a free loop device, with direct I/O if the host supports it.
    fn attach_loop(&self, image: &Path) -> Result<LoopDevice>;
    /// The loop devices whose backing file is `file`.
    fn loops_backed_by(&self, file: FileId) -> Result<Vec<PathBuf>>;
    /// Identity of a loop device's backing file. `None` if it has none or is no loop device.
    fn loop_backing(&self, device: &Path) -> Result<Option<FileId>>;
    /// Path of a loop device's backing file, as the kernel shows it. `None` if it has none or is no
    /// loop device.
    fn loop_file(&self, device: &Path) -> Result<Option<PathBuf>>;
    /// Detaches a loop device.
    fn detach_loop(&self, device: &Path) -> Result<()>;

    /// Serves a disk in virtual time. An error leaves nothing.
    fn start_disk(&self, config: ServeConfig) -> Result<Box<dyn DiskServer>>;
    /// Whether all processes of a mounted disk are alive, so that no request waits forever.
    fn is_disk_served(&self, footprint: &Footprint) -> bool;
    /// Makes all further requests to a disk fail.
    fn abort_disk(&self, footprint: &Footprint) -> Result<()>;
    /// Unmounts a disk and stops its processes. Missing parts are no error.
    fn release_disk(&self, footprint: &Footprint) -> Result<Released>;
    /// Attaches a loop device with a mark to the file of a disk. Verifies direct I/O, and the limit
    /// below which a request reaches the disk as one.
    fn attach_disk(&self, file: &Path, mark: &str) -> Result<LoopDevice>;
    /// The loop devices with this mark.
    fn loops_marked(&self, mark: &str) -> Result<Vec<PathBuf>>;
    /// The mark of a loop device. `None` if it is not attached or no loop device.
    fn loop_mark(&self, device: &Path) -> Result<Option<String>>;
    /// Detaches the loop device of a disk, and restores its setting.
    fn detach_disk(&self, device: &Path) -> Result<()>;

    /// The program that serves engines of ours: this one.
    fn engine_program(&self) -> PathBuf;
    /// Mounts an engine of ours, which a process serves. An error leaves nothing.
    fn start_engine(&self, config: &EngineConfig) -> Result<Box<dyn EngineServer>>;

    /// Number of a block device. `None` if the path is none.
    fn device_number(&self, path: &Path) -> Result<Option<DeviceNumber>>;
    /// Size of a block device.
    fn device_size(&self, path: &Path) -> Result<Bytes>;
    /// Opens a block device for this process only. Waits up to 5 s for mounts in other mount
    /// namespaces. Errors: it is in use, or no block device.
    fn hold_device(&self, path: &Path) -> Result<Box<dyn HeldDevice>>;
    /// Reads from a device.
    fn read_device(&self, path: &Path, offset: u64, length: usize) -> Result<Vec<u8>>;
    /// Writes back and drops the buffer cache of a device.
    fn flush_device(&self, path: &Path) -> Result<()>;
    /// Waits up to 10 s until the kernel and all processes have released a device. An unmount does
    /// not release it if a copied mount namespace still has it mounted. For such a mount it calls
    /// [`LinuxHost::on_wait`], and waits up to 30 s more. [`LinuxHost::release_tries`] changes both
    /// times.
    ///
    /// Errors: `DeviceInUse`, which names that use.
    fn await_release(&self, path: &Path) -> Result<()>;
    /// The read-ahead, KiB.
    fn read_ahead(&self, path: &Path) -> Result<u32>;
    /// Sets the read-ahead, KiB. Returns the value that the kernel set.
    fn set_read_ahead(&self, path: &Path, kib: u32) -> Result<u32>;
    /// The kernel's counters of a device.
    fn device_stat(&self, path: &Path) -> Result<DeviceStat>;

    /// All mounts, in the order of mounting.
    fn mounts(&self) -> Result<Vec<MountEntry>>;
    /// Mounts a device.
    fn mount(&self, source: &Path, point: &Path, kind: FileSystemKind, options: &str) -> Result<()>;
    /// Thaws the file system at a mount point if a killed run left it frozen. Else does nothing.
    fn thaw(&self, point: &Path);
    /// Unmounts. `lazily` detaches the mount from the tree at once, and from the device after its
    /// last user.
    fn unmount(&self, point: &Path, lazily: bool) -> Result<()>;
    /// Makes the file system's driver forget a device (Btrfs remembers devices by UUID).
    fn forget_device(&self, device: &Path, kind: FileSystemKind) -> Result<()>;
    /// Writes back one file system, and no other.
    fn sync_file_system(&self, root: &Path) -> Result<()>;

    /// Circumstances of the machine, and of a device if there is one.
    fn circumstances(&self, device: Option<&Path>) -> Vec<(String, String)>;
}
