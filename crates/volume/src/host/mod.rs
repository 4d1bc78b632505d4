//! The privileged acts behind one trait, so that their order can be tested without privileges.

mod claim;
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
mod loops;
mod medium;
mod mountinfo;
mod mounts;
mod options;
mod probe;
mod swaps;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use senesce_core::Bytes;
use senesce_vdisk::{Footprint, Identity, Released, ServeConfig, TimeReport};
use serde::{Deserialize, Serialize};

use claim::await_release;
pub use claim::{Claim, Purpose};
pub use in_use::Use;
pub use ioctl::set_idle_priority;
pub use linux::LinuxHost;
pub(crate) use linux_device::{attach_read_only, btrfs_forget, queue_dir, read as read_device};
pub use linux_file::cached_pages;
pub(crate) use locks::flock_owner;
pub use medium::{Medium, MediumKind, find_medium};
pub use mountinfo::{MountEntry, parse_mountinfo};
pub use mounts::{SeenMount, list_mounts};
pub use options::{MountOptions, parse_mount_options};

use crate::{FileSystemKind, Result};

/// Which file a path led to, as `stat` numbers it.
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

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Its start in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// A loop device as it was set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// Its node, `/dev/loopN`.
    pub path: PathBuf,
    /// Whether reads and writes bypass the page cache of the host's file system.
    pub direct_io: bool,
    /// Logical block size, bytes.
    pub block_size_bytes: u32,
}

/// What the kernel counted on a block device since it appeared.
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

/// A program that ran to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Whether it ended with 0.
    pub success: bool,
    /// How it ended, in words.
    pub status: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A block device that this process holds open and that nothing else uses. Checks and writes use the same descriptor.
pub trait HeldDevice {
    /// The device's name for programs that take no descriptor.
    fn node(&self) -> &Path;
    /// Refuses a device that is not empty, unless `force`.
    fn check_content(&self, force: bool) -> Result<()>;
    /// Reads from it; returns fewer bytes at its end.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>>;
    /// Overwrites a part of it with zeros.
    fn wipe(&self, offset: u64, length: usize) -> Result<()>;
    /// Lets another process claim it. It stays open.
    fn share(&mut self) -> Result<()>;
}

/// A disk in virtual time while it is served. Dropped, it is given back if it was not before.
pub trait DiskServer: Send {
    /// What it holds on the machine.
    fn footprint(&self) -> &Footprint;
    /// What its processes did, and could not do, to be safe under memory pressure: for the record.
    fn notes(&self) -> &[String];
    /// Makes the modelled device cold: nothing in its own memory.
    fn cool(&mut self) -> Result<()>;
    /// Virtual time, and where it went.
    fn time(&mut self) -> Result<TimeReport>;
    /// Begins a log of all requests in a new file.
    fn start_log(&mut self, path: &Path) -> Result<()>;
    /// Ends the log; it is whole when this returns.
    fn stop_log(&mut self) -> Result<()>;
}

/// What an engine of our own is to serve, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// What the list of mounts calls it.
    pub source: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// What is mounted.
    pub what: EngineWhat,
}

/// What an engine serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineWhat {
    /// The engine that its device says it is of.
    OnDevice {
        /// The device.
        device: PathBuf,
        /// Options of `senesce fs mount`, `name=value`, comma-separated.
        options: String,
    },
    /// An empty file system in memory, which is gone with its server.
    Memory {
        /// What it may hold.
        size: Bytes,
    },
}

/// An engine of our own while it serves a mount. Dropped, its process ends.
pub trait EngineServer: Send {
    /// The process.
    fn process(&self) -> &ProcessId;
    /// Unmounts and mounts again, so that the kernel has nothing of it in memory; only of a file system in memory.
    fn mount_again(&mut self) -> Result<()>;
    /// Waits for its end, which begins when it is unmounted. Errors: it did not end well, and why.
    fn wait_end(&mut self) -> Result<()>;
}

/// The acts that need privileges or touch the machine. [`LinuxHost`] does them.
pub trait Host: Send + Sync {
    /// Whether we are root.
    fn is_root(&self) -> bool;
    /// Whether the kernel can mount `kind`, now or after loading a module.
    fn kernel_knows(&self, kind: FileSystemKind) -> Result<bool>;
    /// Where a program is; `None` if it is not installed.
    fn find_tool(&self, name: &str) -> Option<PathBuf>;
    /// Runs a program with an environment of its own and no input.
    fn run_tool(&self, program: &Path, arguments: &[String]) -> Result<ToolOutput>;
    /// This process.
    fn this_process(&self) -> Result<ProcessId>;
    /// Whether that very process still runs.
    fn is_alive(&self, process: &ProcessId) -> bool;
    /// Whether that very process runs this program with the argument `mark`, which names the mount that it serves.
    fn identify(&self, process: &ProcessId, mark: &str) -> Identity;
    /// Kills that very process if [`Host::identify`] returns that it is ours. Returns that identity.
    fn kill(&self, process: &ProcessId, mark: &str) -> Result<Identity>;
    /// Waits, for retries.
    fn pause(&self, time: Duration);

    /// Bytes free for us in a directory.
    fn free_bytes(&self, dir: &Path) -> Result<Bytes>;
    /// Whether a directory is on tmpfs or ramfs.
    fn is_in_memory(&self, dir: &Path) -> Result<bool>;
    /// Identity of what is at `path` (a symbolic link itself, not its target); `None` if nothing is.
    fn file_id(&self, path: &Path) -> Result<Option<FileId>>;
    /// A directory's path without links; `None` if it does not exist.
    fn real_path(&self, dir: &Path) -> Result<Option<PathBuf>>;
    /// The files in a directory, without its directories; none if it is gone.
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>>;
    /// Makes a new sparse file; fails if something is there. Leaves nothing behind on failure.
    fn create_file(&self, path: &Path, size: Bytes) -> Result<FileId>;
    /// Makes a new directory for this user only; fails if the path exists.
    fn create_dir(&self, path: &Path) -> Result<FileId>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Removes a directory with all in it.
    fn remove_tree(&self, path: &Path) -> Result<()>;
    /// Clones or copies `from` over the existing file `to`, holes kept; says how.
    fn copy_image(&self, from: &Path, to: &Path) -> Result<&'static str>;
    /// Makes the file and its name durable.
    fn sync_file(&self, path: &Path) -> Result<()>;
    /// Drops a file's or device's clean pages from the host's cache; returns the pages left, if the kernel tells.
    fn drop_cached_pages(&self, path: &Path) -> Result<Option<u64>>;

    /// Attaches an image to a free loop device, with direct I/O if that can be had.
    fn attach_loop(&self, image: &Path) -> Result<LoopDevice>;
    /// The loop devices whose backing file is `file`.
    fn loops_backed_by(&self, file: FileId) -> Result<Vec<PathBuf>>;
    /// Identity of a loop device's backing file; `None` if it has none or is no loop device.
    fn loop_backing(&self, device: &Path) -> Result<Option<FileId>>;
    /// Path of a loop device's backing file, as the kernel shows it; `None` if it has none or is no loop device.
    fn loop_file(&self, device: &Path) -> Result<Option<PathBuf>>;
    /// Detaches a loop device.
    fn detach_loop(&self, device: &Path) -> Result<()>;

    /// Serves a disk in virtual time. Leaves nothing behind on failure.
    fn start_disk(&self, config: ServeConfig) -> Result<Box<dyn DiskServer>>;
    /// Whether all the processes of a disk that is mounted are at work, so that nobody can wait for them for ever.
    fn is_disk_served(&self, footprint: &Footprint) -> bool;
    /// Makes all requests to a disk fail from now on.
    fn abort_disk(&self, footprint: &Footprint) -> Result<()>;
    /// Unmounts a disk and ends its processes; what was not there is as good.
    fn release_disk(&self, footprint: &Footprint) -> Result<Released>;
    /// Attaches a loop device with a mark to the file of a disk, with direct I/O and with requests that the disk takes
    /// whole; both are verified.
    fn attach_disk(&self, file: &Path, mark: &str) -> Result<LoopDevice>;
    /// The loop devices with this mark.
    fn loops_marked(&self, mark: &str) -> Result<Vec<PathBuf>>;
    /// The mark of a loop device; `None` if it is not attached or no loop device.
    fn loop_mark(&self, device: &Path) -> Result<Option<String>>;
    /// Detaches the loop device of a disk, and gives its setting back.
    fn detach_disk(&self, device: &Path) -> Result<()>;

    /// The program that makes engines of our own: this one.
    fn engine_program(&self) -> PathBuf;
    /// Mounts an engine of our own, served by a process. Leaves nothing behind on failure.
    fn start_engine(&self, config: &EngineConfig) -> Result<Box<dyn EngineServer>>;

    /// Number of a block device; `None` if the path is none.
    fn device_number(&self, path: &Path) -> Result<Option<DeviceNumber>>;
    /// Size of a block device.
    fn device_size(&self, path: &Path) -> Result<Bytes>;
    /// Opens a block device for this process alone. Errors: it is in use, or no block device.
    fn hold_device(&self, path: &Path) -> Result<Box<dyn HeldDevice>>;
    /// Reads from a device, past the cache of an earlier reader.
    fn read_device(&self, path: &Path, offset: u64, length: usize) -> Result<Vec<u8>>;
    /// Writes back and drops the buffer cache of a device.
    fn flush_device(&self, path: &Path) -> Result<()>;
    /// Waits up to 5 s until the kernel and all processes have released a device. An unmount does not
    /// release it if a copied mount namespace still has it mounted.
    ///
    /// Errors: `DeviceInUse`, which names that use.
    fn await_release(&self, path: &Path) -> Result<()>;
    /// The read-ahead, KiB.
    fn read_ahead(&self, path: &Path) -> Result<u32>;
    /// Sets the read-ahead, KiB; returns what the kernel took.
    fn set_read_ahead(&self, path: &Path, kib: u32) -> Result<u32>;
    /// The kernel's counters of a device.
    fn device_stat(&self, path: &Path) -> Result<DeviceStat>;

    /// All mounts, in the order they were made.
    fn mounts(&self) -> Result<Vec<MountEntry>>;
    /// Mounts a device.
    fn mount(&self, source: &Path, point: &Path, kind: FileSystemKind, options: &str) -> Result<()>;
    /// Unmounts; lazily means: gone from the tree at once, from the device when the last user ends.
    fn unmount(&self, point: &Path, lazily: bool) -> Result<()>;
    /// Tells the file system's driver that a device is gone (Btrfs remembers devices by UUID).
    fn forget_device(&self, device: &Path, kind: FileSystemKind) -> Result<()>;
    /// Writes back one file system, never the others.
    fn sync_file_system(&self, root: &Path) -> Result<()>;

    /// What is to be recorded about the machine, and about a device if there is one.
    fn circumstances(&self, device: Option<&Path>) -> Vec<(String, String)>;
}
