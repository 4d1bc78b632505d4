//! The system calls without a safe form in rustix: loop devices, block devices, Btrfs control,
//! locks, I/O priority, cachestat.
//!
//! Numbers and layouts: `linux/loop.h`, `linux/fs.h`, `linux/btrfs.h`, `linux/mman.h`.

use std::{
    ffi::c_void,
    os::fd::{AsFd, AsRawFd},
};

use rustix::{
    io::{Errno, Result},
    ioctl::{Getter, Ioctl, IoctlOutput, NoArg, Opcode, Setter, ioctl},
};

const LOOP_CLR_FD: Opcode = 0x4C01;
const LOOP_GET_STATUS64: Opcode = 0x4C05;
const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_GET_FREE: Opcode = 0x4C82;
const BLKFLSBUF: Opcode = 0x1261;
const BLKGETSIZE64: Opcode = 0x8008_1272;
const BTRFS_IOC_FORGET_DEV: Opcode = 0x5000_9405;

/// The loop device does not go through the page cache of the backing file.
pub const LO_FLAGS_DIRECT_IO: u32 = 16;

/// The loop device cannot be written.
pub const LO_FLAGS_READ_ONLY: u32 = 1;
/// The loop device is detached when its last user closes it.
pub const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LoopInfo64 {
    /// `st_dev` of the backing file.
    pub device: u64,
    /// Inode of the backing file.
    pub inode: u64,
    /// `st_rdev` of the backing file: its number if it is a block device.
    pub rdevice: u64,
    /// Start of the device in the backing file, bytes.
    pub offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    /// `LO_FLAGS_*`.
    pub flags: u32,
    /// The name that the attaching program gave. It ends at the first zero.
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

impl LoopInfo64 {
    /// The name that the attaching program gave, as in [`loop_configure`].
    pub fn name(&self) -> &[u8] {
        self.file_name.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

// The kernel reads and writes exactly these sizes.
const _: () = assert!(size_of::<LoopInfo64>() == 232 && size_of::<LoopConfig>() == 304);

/// `struct btrfs_ioctl_vol_args`.
#[repr(C)]
struct VolArgs {
    fd: i64,
    name: [u8; 4088],
}

const _: () = assert!(size_of::<VolArgs>() == 4096);

/// `LOOP_CTL_GET_FREE`: it has no argument, and the result of the call is the answer.
struct GetFree;

// SAFETY: the opcode takes no pointer and the kernel writes no memory; the output is the plain
// result.
unsafe impl Ioctl for GetFree {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(result: IoctlOutput, _: *mut c_void) -> Result<u32> {
        u32::try_from(result).map_err(|_| Errno::OVERFLOW)
    }
}

/// The number of a free loop device. Another process may attach it at any time.
pub fn loop_get_free(control: impl AsFd) -> Result<u32> {
    // SAFETY: `GetFree` describes LOOP_CTL_GET_FREE, which passes no memory.
    unsafe { ioctl(control, GetFree) }
}

/// Attaches `image` to the loop device `device`. `BUSY` if another process attached it first. The
/// kernel keeps 63 bytes of `name`.
pub fn loop_configure(device: impl AsFd, image: impl AsFd, block_size: u32, flags: u32, name: &[u8]) -> Result<()> {
    let mut file_name = [0; 64];
    let length = name.len().min(63);
    file_name[..length].copy_from_slice(&name[..length]);
    let info = LoopInfo64 {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags,
        file_name,
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let config = LoopConfig { fd: image.as_fd().as_raw_fd() as u32, block_size, info, reserved: [0; 8] };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, whose layout `LoopConfig` has.
    unsafe { ioctl(device, Setter::<LOOP_CONFIGURE, LoopConfig>::new(config)) }
}

/// Status of a loop device; `NXIO` if it is not attached.
pub fn loop_status(device: impl AsFd) -> Result<LoopInfo64> {
    // SAFETY: LOOP_GET_STATUS64 writes one whole `struct loop_info64`, whose layout `LoopInfo64`
    // has; every bit pattern is valid for it.
    unsafe { ioctl(device, Getter::<LOOP_GET_STATUS64, LoopInfo64>::new()) }
}

/// As [`loop_status`]. `None` if the device is not attached, or if the server of its file is dead.
pub fn loop_status_if_attached(device: impl AsFd) -> Result<Option<LoopInfo64>> {
    match loop_status(device) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::NXIO | Errno::NOTCONN | Errno::CONNABORTED) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns the process whose `fcntl` lock prevents a lock on the whole file (0 or less if the lock
/// has no process). `None` if there is no such lock. Acquires no lock.
pub fn find_range_lock(file: impl AsFd, exclusive: bool) -> Result<Option<i32>> {
    let kind = if exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
    let mut lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: F_OFD_GETLK reads and writes one `struct flock`; the descriptor is borrowed for the
    // call.
    match unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ if lock.l_type == libc::F_UNLCK as libc::c_short => Ok(None),
        _ => Ok(Some(lock.l_pid)),
    }
}

/// Detaches a loop device, or marks it to be detached by its last user.
pub fn loop_clear(device: impl AsFd) -> Result<()> {
    // SAFETY: LOOP_CLR_FD has no argument.
    unsafe { ioctl(device, NoArg::<LOOP_CLR_FD>::new()) }
}

/// Writes back and drops the buffer cache of a block device.
pub fn flush_buffers(device: impl AsFd) -> Result<()> {
    // SAFETY: BLKFLSBUF has no argument.
    unsafe { ioctl(device, NoArg::<BLKFLSBUF>::new()) }
}

/// Size of a block device, bytes.
pub fn device_size(device: impl AsFd) -> Result<u64> {
    // SAFETY: BLKGETSIZE64 writes one u64.
    unsafe { ioctl(device, Getter::<BLKGETSIZE64, u64>::new()) }
}

/// Makes Btrfs forget an unmounted device that it has seen.
pub fn btrfs_forget(control: impl AsFd, device: &[u8]) -> Result<()> {
    let mut args = VolArgs { fd: 0, name: [0; 4088] };
    args.name.get_mut(..device.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(device);
    // SAFETY: BTRFS_IOC_FORGET_DEV reads one `struct btrfs_ioctl_vol_args`, whose layout `VolArgs`
    // has.
    unsafe { ioctl(control, Setter::<BTRFS_IOC_FORGET_DEV, VolArgs>::new(args)) }
}

/// Pages of a file or device in the page cache (cachestat, Linux 6.5); `NOSYS` on older kernels.
pub fn cached_pages(file: impl AsFd) -> Result<u64> {
    /// The number is the same on every architecture.
    const CACHESTAT: libc::c_long = 451;
    // struct cachestat_range { off, len }: from 0, length 0 is "to the end".
    let range = [0u64; 2];
    // struct cachestat: cached, dirty, writeback, evicted, recently evicted.
    let mut stat = [0u64; 5];
    // SAFETY: both pointers are to live arrays with the sizes of the kernel's structures. The
    // descriptor is borrowed for the call.
    let result = unsafe {
        libc::syscall(CACHESTAT, file.as_fd().as_raw_fd(), range.as_ptr(), stat.as_mut_ptr(), 0 as libc::c_uint)
    };
    match result {
        0 => Ok(stat[0]),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Lets all other I/O run before that of this thread and of the threads that it starts.
pub fn set_idle_priority() -> rustix::io::Result<()> {
    /// `IOPRIO_WHO_PROCESS`; 0 is the caller.
    const WHO_PROCESS: libc::c_long = 1;
    /// `IOPRIO_CLASS_IDLE`, shifted to its bits.
    const IDLE: libc::c_long = 3 << 13;
    // SAFETY: ioprio_set takes three numbers and touches no memory.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, IDLE) } {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
        _ => Ok(()),
    }
}
