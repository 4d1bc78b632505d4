//! Errors of volumes, with hints for the user.

use std::{io, path::PathBuf};

use senesce_core::Bytes;

use crate::FileSystemKind;

/// The class of an error, which the command line turns into its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// An operation failed.
    Failed,
    /// The caller requested something that is not possible.
    Usage,
    /// The machine lacks something: root, a tool, a kernel feature, space.
    Environment,
}

/// The reason why a volume could not be made, used or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file or device.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Only root may do this.
    #[error("not root: cannot {operation}")]
    NotRoot {
        /// The operation.
        operation: &'static str,
    },
    /// A tool is not installed.
    #[error("{tool} is not installed")]
    ToolMissing {
        /// Name of the program.
        tool: String,
        /// Debian package that has it.
        package: &'static str,
    },
    /// A tool failed.
    #[error("`{command}` failed ({status}): {stderr}")]
    ToolFailed {
        /// The command as it was run.
        command: String,
        /// Its exit status.
        status: String,
        /// The end of its output.
        stderr: String,
    },
    /// The kernel cannot mount this file system.
    #[error("this kernel does not know the file system {file_system}")]
    FileSystemNotInKernel {
        /// The file system.
        file_system: FileSystemKind,
    },
    /// The directory has too little space for the image.
    #[error("{} has {} free, and {} are needed", dir.display(), Bytes::shortage(*available, *needed).0, Bytes::shortage(*available, *needed).1)]
    NotEnoughSpace {
        /// Directory of the image.
        dir: PathBuf,
        /// Free space for this process, bytes.
        available: Bytes,
        /// Needed, bytes.
        needed: Bytes,
    },
    /// A volume would be smaller than its file system allows.
    #[error("{size} is too small for {file_system}: at least {}", minimum.rounded_up())]
    VolumeTooSmall {
        /// The file system.
        file_system: FileSystemKind,
        /// Requested size, bytes.
        size: Bytes,
        /// The smallest size that its mkfs accepts, bytes.
        minimum: Bytes,
    },
    /// A volume cannot hold its planned contents.
    #[error("{} has {size}, which is too small: its contents need {}, and the file system at least {}", place.display(), held.rounded_up(), own.rounded_up())]
    NoRoom {
        /// The device, or the image's directory.
        place: PathBuf,
        /// Size of the volume, bytes.
        size: Bytes,
        /// Bytes that the file system itself needs at least.
        own: Bytes,
        /// Size of the planned contents, bytes.
        held: Bytes,
    },
    /// An image would be larger than files and mkfs allow.
    #[error("an image of {size} is too large: {most} at most")]
    ImageTooLarge {
        /// Requested size, bytes.
        size: Bytes,
        /// The largest size, bytes.
        most: Bytes,
    },
    /// Images should be on a disk, and the directory is in memory.
    #[error("{} is on tmpfs: an image there is always in memory, so no read would be cold", dir.display())]
    InMemory {
        /// The directory.
        dir: PathBuf,
    },
    /// Images should be in memory, and the directory is not.
    #[error("{} is not on tmpfs, so an image there would not be in memory", dir.display())]
    NotInMemory {
        /// The directory.
        dir: PathBuf,
    },
    /// The kernel has a free loop device, but this process has no node for it.
    #[error("there is no loop device to attach {} to: {} does not exist", image.display(), node.display())]
    NoLoopDevice {
        /// The image.
        image: PathBuf,
        /// The free device.
        node: PathBuf,
    },
    /// A device is in use. `--force` does not help.
    #[error("{} is in use and was not touched: {by}", device.display())]
    DeviceInUse {
        /// The device or file.
        device: PathBuf,
        /// Each use, as a sentence.
        by: String,
        /// The first process and its mount point, if all uses are mounts in other namespaces.
        elsewhere: Option<Box<(u32, PathBuf)>>,
    },
    /// The program that knows foreign signatures is missing, and formatting was not forced.
    #[error("cannot check whether {} is empty: {tool} is not installed", device.display())]
    SignatureToolMissing {
        /// The device or file.
        device: PathBuf,
        /// The program.
        tool: &'static str,
    },
    /// A path leads to something that cannot be claimed.
    #[error("{} is {found}", path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
        /// The kind of file that it leads to.
        found: &'static str,
    },
    /// A device is not empty, and formatting was not forced.
    #[error("{} holds {found}; it was not touched", device.display())]
    HasSignature {
        /// The device.
        device: PathBuf,
        /// The contents that were found.
        found: String,
    },
    /// A path that should be a device is none.
    #[error("{} is not a block device", path.display())]
    NotABlockDevice {
        /// The path.
        path: PathBuf,
    },
    /// A step had no visible effect.
    #[error("{operation} of {} did not take effect: {detail}", path.display())]
    Unverified {
        /// The step.
        operation: &'static str,
        /// The file or device.
        path: PathBuf,
        /// The state that was found instead.
        detail: String,
    },
    /// The volume's backend or state does not allow this.
    #[error("cannot {operation} {}: {why}", path.display())]
    NotPossible {
        /// The operation.
        operation: &'static str,
        /// The file or device.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// A word for mkfs that could affect something else than the device.
    #[error("mkfs of {file_system}: {word:?} {problem}")]
    MkfsWord {
        /// The file system.
        file_system: FileSystemKind,
        /// The word.
        word: String,
        /// The problem.
        problem: String,
        /// The options that are allowed.
        allowed: String,
    },
    /// A mount option that is not for a new mount of this volume.
    #[error("mount option {option:?} {problem}")]
    MountOption {
        /// The option.
        option: String,
        /// The problem.
        problem: &'static str,
    },
    /// The run that owns a journal is alive.
    #[error("process {pid} still runs and owns the resources in {}", journal.display())]
    OwnerAlive {
        /// The journal.
        journal: PathBuf,
        /// Its process.
        pid: u32,
    },
    /// An earlier run in the same directory left resources.
    #[error("an earlier run left {count} mounts, devices or files, which {} lists", journal.display())]
    LeftOvers {
        /// The journal.
        journal: PathBuf,
        /// Number of resources.
        count: usize,
    },
    /// A journal that another user wrote, or could have written. If `clean` used it, that user
    /// would gain our rights.
    #[error("{} belongs to user {uid} or other users may write it; it was not used", path.display())]
    ForeignJournal {
        /// The journal.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Another user could change a directory that decides which files this user's processes write
    /// and remove.
    #[error("{} is not used: {} {problem}", path.display(), component.display())]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// The component of its path.
        component: PathBuf,
        /// The problem of the component, in words.
        problem: String,
    },
    /// A journal cannot be read.
    #[error("{} line {line}: {problem}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// The kernel refuses to mount a file system.
    #[error("the kernel does not mount the {file_system} on {} read-only{said}", path.display())]
    MountRefused {
        /// The device or image.
        path: PathBuf,
        /// Its file system.
        file_system: FileSystemKind,
        /// The kernel's message, in brackets. Empty if there is none.
        said: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel does not mount two file systems of one identity.
    #[error(
        "{} holds a {file_system} with the UUID {uuid}, and one with this UUID is mounted on {}",
        path.display(),
        mount_point.display()
    )]
    TwinMounted {
        /// The image.
        path: PathBuf,
        /// Its file system.
        file_system: FileSystemKind,
        /// The UUID of both.
        uuid: crate::Uuid,
        /// The mount point of the other one.
        mount_point: PathBuf,
    },
    /// A disk in virtual time could not be made, queried or released.
    #[error(transparent)]
    Disk(#[from] senesce_vdisk::Error),
    /// An engine of ours could not be mounted, or did not exit without an error.
    #[error("cannot mount a garden or an evergreen on {}: {problem}", point.display())]
    Engine {
        /// The mount point.
        point: PathBuf,
        /// The message of its process.
        problem: String,
    },
    /// A signal requested an exit.
    #[error("stopped by signal {signal} during {operation}")]
    Interrupted {
        /// The interrupted operation.
        operation: &'static str,
        /// Number of the signal.
        signal: i32,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::NotRoot { .. }
            | Error::ToolMissing { .. }
            | Error::FileSystemNotInKernel { .. }
            | Error::NotEnoughSpace { .. }
            | Error::InMemory { .. }
            | Error::NotInMemory { .. }
            | Error::DeviceInUse { .. }
            | Error::SignatureToolMissing { .. }
            | Error::HasSignature { .. }
            | Error::OwnerAlive { .. }
            | Error::LeftOvers { .. }
            | Error::TwinMounted { .. }
            | Error::NoLoopDevice { .. }
            | Error::UnsafeDirectory { .. }
            | Error::ForeignJournal { .. } => ErrorKind::Environment,
            Error::MountOption { .. }
            | Error::MkfsWord { .. }
            | Error::NotABlockDevice { .. }
            | Error::WrongKind { .. }
            | Error::VolumeTooSmall { .. }
            | Error::NoRoom { .. }
            | Error::ImageTooLarge { .. } => ErrorKind::Usage,
            Error::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied
                | io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Environment,
                _ => ErrorKind::Failed,
            },
            Error::Disk(senesce_vdisk::Error::Device { .. }) => ErrorKind::Usage,
            Error::Disk(senesce_vdisk::Error::NotStarted { .. }) => ErrorKind::Environment,
            _ => ErrorKind::Failed,
        }
    }

    /// Whether mkfs refused the UUID because another device seems to have it.
    pub fn is_taken_uuid(&self) -> bool {
        matches!(self, Self::ToolFailed { stderr, .. } if stderr.contains("non-unique UUID"))
    }

    /// Whether the cause is the machine and not the run.
    pub fn is_environment(&self) -> bool {
        self.kind() == ErrorKind::Environment
    }

    /// A hint for the user.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::NotRoot { .. } => {
                "run as root (sudo); or run in a guest kernel (`run` and `demo` have --guest uml); or name an existing \
                 directory as the volume, which needs no root"
                    .to_owned()
            }
            Error::ToolMissing { package, .. } => format!("apt-get install {package}"),
            Error::FileSystemNotInKernel { file_system } => {
                format!(
                    "load its module (modprobe {file_system}), run the plan in a guest kernel (--guest uml), or leave \
                     {file_system} out of the plan"
                )
            }
            Error::NotEnoughSpace { available, needed, .. } => {
                format!(
                    "name a directory with {} free for the images, or make the volumes smaller in the plan",
                    Bytes::shortage(*available, *needed).1
                )
            }
            Error::VolumeTooSmall { minimum, .. } => format!("make the volume {} or larger", minimum.rounded_up()),
            Error::NoRoom { own, held, .. } => {
                format!(
                    "make the volume larger than {}, or make the contents smaller (`age`: --set; plan: [workload])",
                    Bytes(held.0.saturating_add(own.0)).rounded_up()
                )
            }
            Error::ImageTooLarge { most, .. } => {
                format!("make the volume {most} or smaller; images are sparse, but their metadata are not")
            }
            Error::InMemory { .. } => {
                "name a directory on a disk (--out, volumes.dir), or set volumes.backend = \"memory\"".to_owned()
            }
            Error::NotInMemory { .. } => "use /dev/shm, or mount a tmpfs there".to_owned(),
            Error::DeviceInUse { elsewhere: Some(found), .. } => {
                let (pid, point) = (found.0, found.1.to_string_lossy());
                // Another user can choose the mount point, and a shell would execute parts of it.
                let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-".contains(char);
                let command = match point.chars().all(is_plain) {
                    true => format!(": nsenter --target {pid} --mount umount {point}"),
                    false => String::new(),
                };
                format!("wait until process {pid} exits, or unmount it there{command}")
            }
            Error::DeviceInUse { .. } => {
                "stop that use first (umount, losetup --detach), or name another device; --force does not help"
                    .to_owned()
            }
            Error::MkfsWord { allowed, .. } => format!("allowed are {allowed}; mkfs formats nothing but the volume"),
            Error::SignatureToolMissing { .. } => {
                "apt-get install util-linux; or pass --force if its contents may be destroyed".to_owned()
            }
            Error::WrongKind { .. } => "name a regular file or a block device itself".to_owned(),
            Error::HasSignature { .. } => "if its contents may be destroyed, add --force".to_owned(),
            Error::NotABlockDevice { .. } => "name a block device such as /dev/sdb, or use an image".to_owned(),
            Error::OwnerAlive { pid, .. } => format!("wait until process {pid} exits, or stop it: kill {pid}"),
            Error::NoLoopDevice { .. } => {
                "detach unused loop devices (losetup lists them), or give the container more of them".to_owned()
            }
            Error::UnsafeDirectory { component, .. } => format!(
                "remove the write permission of other users from {}, or name another directory (--out, --dir; SENESCE_REGISTRY for the list of runs)",
                component.display()
            ),
            Error::ForeignJournal { uid, .. } => format!("let user {uid} run `senesce clean`"),
            Error::Disk(senesce_vdisk::Error::NotStarted { .. }) => {
                "a disk in virtual time needs FUSE (/dev/fuse) and root; without device in the plan neither is used"
                    .to_owned()
            }
            Error::LeftOvers { .. } => "run `senesce clean` first".to_owned(),
            Error::TwinMounted { mount_point, .. } => {
                format!("unmount it first (umount {}): the kernel would treat both as one", mount_point.display())
            }
            Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                match rustix::process::geteuid().is_root() {
                    true => "this process is root already: a container's rules, a security module or an \
                             immutable file stops it"
                        .to_owned(),
                    false => "run as root".to_owned(),
                }
            }
            _ => return None,
        })
    }

    /// Adds operation and path to a system error.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(rustix::io::Errno) -> Error {
        let path = path.into();
        move |errno| Error::Io { operation, path, source: errno.into() }
    }

    /// As [`Error::io`], for errors of the standard library.
    pub(crate) fn std(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { operation, path, source }
    }

    /// Whether the system reported that a file does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the system refused it for lack of permission.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether the system reported that the object is busy.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()))
    }
}
