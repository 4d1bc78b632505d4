//! The host of this process.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{fs::OFlags, io::Errno, mount::UnmountFlags};
use senesce_core::Bytes;
use senesce_vdisk::{Footprint, Identity, Launch, ProcessRef, Released, ServeConfig};

use super::{
    DeviceNumber, DeviceStat, DiskServer, EngineConfig, EngineServer, FileId, HeldDevice, Host, LoopDevice, MountEntry,
    ProcessId, ReleaseTries, ToolOutput, await_release, claim_patiently, ioctl, linux_device, linux_disk, linux_engine,
    linux_file, loop_devices, parse_mount_options, parse_mountinfo,
};
use crate::{
    Error, FileSystemKind, Result, circumstances,
    f2fs::{START_BYTES, check_single_device},
};

/// statfs(2).
const FUSE_MAGIC: u64 = 0x6573_5546;

/// The machine itself. An adapter that reads `/proc` and `/sys`, runs programs and waits in real
/// time.
#[derive(Clone, Debug)]
pub struct LinuxHost {
    /// The directories of programs. `PATH` is not used, because `/usr/sbin` is often missing in it.
    pub tool_dirs: Vec<PathBuf>,
    /// Whether loop devices bypass the page cache of the host's file system, if it can be bypassed.
    pub direct_io: bool,
    /// The program that serves disks in virtual time. By default it is the running one with its
    /// hidden verb.
    pub disk_server: Launch,
    /// The program that makes and serves engines of ours. By default it is the running one, which
    /// hands `fs mkfs` and `fs serve` over.
    pub engine_server: Launch,
    /// The number of tries while an unmounted device is still in use.
    pub release_tries: ReleaseTries,
    /// Receives a sentence before a long wait for another process. By default it does nothing.
    pub on_wait: fn(&str),
}

impl Default for LinuxHost {
    fn default() -> Self {
        let dirs = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];
        Self {
            tool_dirs: dirs.into_iter().map(PathBuf::from).collect(),
            direct_io: true,
            disk_server: linux_disk::default_launch(),
            engine_server: linux_engine::default_launch(),
            release_tries: ReleaseTries::default(),
            on_wait: |_| {},
        }
    }
}

/// Field 22 of `/proc/PID/stat`. The command's name in field 2 may contain blanks and parentheses.
fn parse_start_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let state = rest.split_whitespace().next()?;
    // A zombie holds no resource.
    if state == "Z" || state == "X" {
        return None;
    }
    rest.split_whitespace().nth(19)?.parse().ok()
}

fn process(pid: u32) -> Result<Option<ProcessId>> {
    let boot = "/proc/sys/kernel/random/boot_id";
    let boot_id = fs::read_to_string(boot).map_err(Error::std("read", boot))?.trim().to_owned();
    let path = format!("/proc/{pid}/stat");
    let Ok(stat) = fs::read_to_string(&path) else { return Ok(None) };
    Ok(parse_start_ticks(&stat).map(|start_ticks| ProcessId { pid, start_ticks, boot_id }))
}

fn reference(process: &ProcessId) -> ProcessRef {
    ProcessRef { pid: process.pid, start_ticks: process.start_ticks, boot: process.boot_id.parse().ok() }
}

impl Host for LinuxHost {
    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    fn kernel_knows(&self, kind: FileSystemKind) -> Result<bool> {
        let path = "/proc/filesystems";
        let text = fs::read_to_string(path).map_err(Error::std("read", path))?;
        if text.lines().any(|line| line.split_whitespace().last() == Some(kind.kernel_name())) {
            return Ok(true);
        }
        // mount(2) loads a module by itself if there is one.
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let modules = fs::read_to_string(format!("/lib/modules/{release}/modules.dep")).unwrap_or_default();
        let module = format!("/{}.ko", kind.kernel_name());
        Ok(modules.lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&module))))
    }

    fn find_tool(&self, name: &str) -> Option<PathBuf> {
        self.tool_dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file())
    }

    fn run_tool(&self, program: &Path, arguments: &[String]) -> Result<ToolOutput> {
        let output = Command::new(program)
            .args(arguments)
            // Variables such as MKE2FS_CONFIG must not change a volume without a record.
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(Error::std("run", program))?;
        Ok(ToolOutput {
            success: output.status.success(),
            status: output.status.to_string(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn this_process(&self) -> Result<ProcessId> {
        let pid = std::process::id();
        process(pid)?.ok_or_else(|| Error::NotPossible {
            operation: "read the start time in",
            path: format!("/proc/{pid}/stat").into(),
            why: "is /proc mounted?",
        })
    }

    fn is_alive(&self, owner: &ProcessId) -> bool {
        matches!(process(owner.pid), Ok(Some(found)) if found == *owner)
    }

    fn identify(&self, process: &ProcessId, mark: &str) -> Identity {
        reference(process).identify(mark)
    }

    fn kill(&self, process: &ProcessId, mark: &str) -> Result<Identity> {
        Ok(reference(process).kill_if_ours(mark)?)
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn free_bytes(&self, dir: &Path) -> Result<Bytes> {
        let stat = rustix::fs::statvfs(dir).map_err(Error::io("read the free space of", dir))?;
        Ok(Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn is_in_memory(&self, dir: &Path) -> Result<bool> {
        const TMPFS: u32 = 0x0102_1994;
        const RAMFS: u32 = 0x8584_58f6;
        let stat = rustix::fs::statfs(dir).map_err(Error::io("read the file system of", dir))?;
        Ok([TMPFS, RAMFS].contains(&(stat.f_type as u32)))
    }

    fn file_id(&self, path: &Path) -> Result<Option<FileId>> {
        match rustix::fs::lstat(path) {
            Ok(stat) => Ok(Some(FileId { device: stat.st_dev, inode: stat.st_ino })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(Error::io("look up", path)(errno)),
        }
    }

    fn real_path(&self, dir: &Path) -> Result<Option<PathBuf>> {
        match fs::canonicalize(dir) {
            Ok(real) => Ok(Some(real)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(Error::std("look up", dir)(error)),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        linux_file::list(dir)
    }

    fn create_file(&self, path: &Path, size: Bytes) -> Result<FileId> {
        linux_file::create(path, size)
    }

    fn create_dir(&self, path: &Path) -> Result<FileId> {
        // The directory may hold copies of private files, below a directory that all users share.
        fs::DirBuilder::new().mode(0o700).create(path).map_err(Error::std("create the directory", path))?;
        self.file_id(path).ok().flatten().ok_or_else(|| {
            let _ = fs::remove_dir(path);
            let detail = "it does not exist after its creation".to_owned();
            Error::Unverified { operation: "creation", path: path.to_owned(), detail }
        })
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(Error::std("remove", path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(Error::std("remove the directory", path))
    }

    fn remove_tree(&self, path: &Path) -> Result<()> {
        fs::remove_dir_all(path).map_err(Error::std("remove the tree", path))
    }

    fn copy_image(&self, from: &Path, to: &Path) -> Result<&'static str> {
        linux_file::copy_image(from, to)
    }

    fn sync_file(&self, path: &Path) -> Result<()> {
        linux_file::sync(path)
    }

    fn drop_page_cache(&self, path: &Path) -> Result<Option<u64>> {
        linux_file::drop_page_cache(path)
    }

    fn attach_loop(&self, image: &Path) -> Result<LoopDevice> {
        loop_devices::attach_loop(image, self.direct_io)
    }

    fn loops_backed_by(&self, file: FileId) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for device in loop_devices::attached_loops()? {
            match self.loop_backing(&device) {
                Ok(backing) if backing == Some(file) => found.push(device),
                Ok(_) => {}
                // Without permission to open it, `/sys` shows the path of its file.
                Err(error) if error.is_denied() => {
                    let is_it = |path: PathBuf| self.file_id(&path).is_ok_and(|found| found == Some(file));
                    if self.loop_file(&device).ok().flatten().is_some_and(is_it) {
                        found.push(device);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn loop_backing(&self, device: &Path) -> Result<Option<FileId>> {
        loop_devices::loop_backing(device)
    }

    fn loop_file(&self, device: &Path) -> Result<Option<PathBuf>> {
        match loop_devices::is_loop(device)? {
            true => loop_devices::backing_path(device),
            false => Ok(None),
        }
    }

    fn detach_loop(&self, device: &Path) -> Result<()> {
        loop_devices::detach(device)
    }

    fn start_disk(&self, config: ServeConfig) -> Result<Box<dyn DiskServer>> {
        linux_disk::start(&self.disk_server, config)
    }

    fn is_disk_served(&self, footprint: &Footprint) -> bool {
        linux_disk::is_served(footprint)
    }

    fn abort_disk(&self, footprint: &Footprint) -> Result<()> {
        senesce_vdisk::abort(footprint)?;
        Ok(())
    }

    fn release_disk(&self, footprint: &Footprint) -> Result<Released> {
        Ok(senesce_vdisk::release(footprint)?)
    }

    fn attach_disk(&self, file: &Path, mark: &str) -> Result<LoopDevice> {
        linux_disk::attach(file, mark)
    }

    fn loops_marked(&self, mark: &str) -> Result<Vec<PathBuf>> {
        linux_disk::marked(mark)
    }

    fn loop_mark(&self, device: &Path) -> Result<Option<String>> {
        linux_disk::mark(device)
    }

    fn detach_disk(&self, device: &Path) -> Result<()> {
        linux_disk::detach(device)
    }

    fn engine_program(&self) -> PathBuf {
        linux_engine::program(&self.engine_server).to_owned()
    }

    fn start_engine(&self, config: &EngineConfig) -> Result<Box<dyn EngineServer>> {
        linux_engine::start(&self.engine_server, config, process)
    }

    fn device_number(&self, path: &Path) -> Result<Option<DeviceNumber>> {
        linux_device::number(path)
    }

    fn device_size(&self, path: &Path) -> Result<Bytes> {
        let fd = linux_device::open_device(path, OFlags::RDONLY)?;
        Ok(Bytes(ioctl::device_size(&fd).map_err(Error::io("read the size of", path))?))
    }

    fn hold_device(&self, path: &Path) -> Result<Box<dyn HeldDevice>> {
        if linux_device::number(path)?.is_none() {
            return Err(Error::NotABlockDevice { path: path.to_owned() });
        }
        let claim = claim_patiently(path, |time| self.pause(time))?;
        match claim.is_device() {
            true => Ok(Box::new(claim)),
            false => Err(Error::NotABlockDevice { path: path.to_owned() }),
        }
    }

    fn read_device(&self, path: &Path, offset: u64, length: usize) -> Result<Vec<u8>> {
        linux_device::read(path, offset, length)
    }

    fn flush_device(&self, path: &Path) -> Result<()> {
        let fd = linux_device::open_device(path, OFlags::RDONLY)?;
        rustix::fs::fsync(&fd).map_err(Error::io("sync", path))?;
        ioctl::flush_buffers(&fd).map_err(Error::io("flush the buffers of", path))
    }

    fn await_release(&self, path: &Path) -> Result<()> {
        await_release(path, self.release_tries, |time| self.pause(time), self.on_wait)
    }

    fn read_ahead(&self, path: &Path) -> Result<u32> {
        linux_device::read_ahead(path)
    }

    fn set_read_ahead(&self, path: &Path, kib: u32) -> Result<u32> {
        linux_device::set_read_ahead(path, kib)
    }

    fn device_stat(&self, path: &Path) -> Result<DeviceStat> {
        linux_device::stat(path)
    }

    fn mounts(&self) -> Result<Vec<MountEntry>> {
        let path = "/proc/self/mountinfo";
        Ok(parse_mountinfo(&fs::read(path).map_err(Error::std("read", path))?))
    }

    fn mount(&self, source: &Path, point: &Path, kind: FileSystemKind, options: &str) -> Result<()> {
        let options = parse_mount_options(options)?;
        if kind == FileSystemKind::F2fs {
            check_single_device(source, &linux_device::read(source, 0, START_BYTES)?)?;
        }
        let data = std::ffi::CString::new(options.data)
            .map_err(|_| Error::MountOption { option: "data".to_owned(), problem: "contains a NUL byte" })?;
        rustix::mount::mount(source, point, kind.name(), options.flags, Some(data.as_c_str())).map_err(|errno| {
            // The kernel's EINVAL has no details. The two paths show at least where to search.
            Error::Io {
                operation: "mount",
                path: format!("{} on {}", source.display(), point.display()).into(),
                source: errno.into(),
            }
        })
    }

    fn unmount(&self, point: &Path, lazily: bool) -> Result<()> {
        let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() } | UnmountFlags::NOFOLLOW;
        rustix::mount::unmount(point, flags).map_err(Error::io("unmount", point))
    }

    fn forget_device(&self, device: &Path, kind: FileSystemKind) -> Result<()> {
        if kind == FileSystemKind::Btrfs {
            linux_device::btrfs_forget(device)?;
        }
        Ok(())
    }

    fn thaw(&self, point: &Path) {
        // An error is not reported: the unmount that follows shows whether it matters.
        if let Ok(fd) = linux_file::open(point, OFlags::RDONLY | OFlags::DIRECTORY) {
            let _ = super::settle_calls::thaw(&fd);
        }
    }

    fn sync_file_system(&self, root: &Path) -> Result<()> {
        let fd = linux_file::open(root, OFlags::RDONLY | OFlags::DIRECTORY)?;
        rustix::fs::syncfs(&fd).map_err(Error::io("sync the file system of", root))?;
        // FUSE does not forward a sync of a whole file system. For our engines, a sync of a
        // directory syncs all.
        let is_fuse = rustix::fs::fstatfs(&fd).is_ok_and(|found| found.f_type as u64 & 0xFFFF_FFFF == FUSE_MAGIC);
        if is_fuse { rustix::fs::fsync(&fd).map_err(Error::io("sync", root)) } else { Ok(()) }
    }

    fn circumstances(&self, device: Option<&Path>) -> Vec<(String, String)> {
        circumstances::collect_machine(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_time_is_parsed_after_any_name() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987 20 21";
        assert_eq!(parse_start_ticks(stat), Some(987));
        assert_eq!(parse_start_ticks("42 (x) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987"), None);
    }

    #[test]
    fn this_process_is_alive_and_another_start_is_not() {
        let host = LinuxHost::default();
        let me = host.this_process().unwrap();
        assert!(host.is_alive(&me));
        assert!(!host.is_alive(&ProcessId { start_ticks: me.start_ticks + 1, ..me.clone() }));
        assert!(!host.is_alive(&ProcessId { boot_id: "other".to_owned(), ..me }));
    }
}
