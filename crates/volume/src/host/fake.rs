//! A host in memory: its objects, the calls, and a call that fails on demand.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use senesce_core::Bytes;
use senesce_vdisk::{DiskMount, Footprint, Identity, ProcessRef, Released, ServeConfig, TimeReport};

use super::{
    DeviceNumber, DeviceStat, DiskServer, EngineConfig, EngineServer, FileId, HeldDevice, Host, LoopDevice, MountEntry,
    ProcessId, ToolOutput,
};
use crate::{Error, FileSystemKind, Result, SCAN_BYTES};

/// The calls that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// None.
    None,
    /// The call of this index fails and has no effect.
    Once(usize),
    /// The call of this index and all later ones fail and have no effect, as after a kill.
    Death(usize),
}

/// The objects of the machine, and the calls so far.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub files: BTreeMap<PathBuf, FileId>,
    pub loops: BTreeMap<PathBuf, FileId>,
    /// Marks of loop devices.
    pub marks: BTreeMap<PathBuf, String>,
    /// Mounted disks by name: the mount point, and whether their processes are alive.
    pub disks: BTreeMap<String, (PathBuf, bool)>,
    pub mounts: Vec<MountEntry>,
    /// The served name of each process, by process id.
    pub processes: BTreeMap<u32, String>,
    /// Starts of image files with a file system, by inode.
    pub contents: BTreeMap<u64, Vec<u8>>,
    /// Names of the calls that had an effect or could have had one.
    pub calls: Vec<&'static str>,
    /// The number of calls. Disks read it, because they cannot reach the host.
    made: Arc<AtomicUsize>,
    /// Each drop of a disk's cache: the number of calls before it.
    pub cache_drops: Arc<Mutex<Vec<usize>>>,
    pub next_inode: u64,
    /// Number of unmounts that still report a busy mount.
    pub busy: u32,
    /// Whether mkfs reports success.
    pub mkfs_claims: bool,
    pub mkfs_works: bool,
}

pub(crate) struct FakeHost {
    pub world: Mutex<World>,
    pub fault: Mutex<Fault>,
    pub owner_lives: AtomicBool,
    pub free: Bytes,
    pub is_root: bool,
    pub kernel_knows: bool,
}

impl Default for FakeHost {
    fn default() -> Self {
        let world = World { mkfs_claims: true, mkfs_works: true, ..World::default() };
        Self {
            world: Mutex::new(world),
            fault: Mutex::new(Fault::None),
            owner_lives: AtomicBool::new(true),
            free: Bytes(1 << 40),
            is_root: true,
            kernel_knows: true,
        }
    }
}

impl FakeHost {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Whether the machine holds no object of ours.
    pub fn is_clean(&self) -> bool {
        let world = self.world();
        world.files.is_empty() && world.loops.is_empty() && world.mounts.is_empty() && world.disks.is_empty()
    }

    fn step(&self, name: &'static str) -> Result<MutexGuard<'_, World>> {
        let mut world = self.world();
        world.calls.push(name);
        world.made.store(world.calls.len(), Ordering::SeqCst);
        let number = world.calls.len() - 1;
        let fails = match *self.fault.lock().unwrap() {
            Fault::None => false,
            Fault::Once(at) => number == at,
            Fault::Death(at) => number >= at,
        };
        if fails { Err(fake_error(name, io::ErrorKind::Other)) } else { Ok(world) }
    }

    fn make(&self, name: &'static str, path: &Path) -> Result<FileId> {
        let mut world = self.step(name)?;
        if world.files.contains_key(path) {
            return Err(fake_error(name, io::ErrorKind::AlreadyExists));
        }
        world.next_inode += 1;
        let id = FileId { device: 1, inode: world.next_inode };
        world.files.insert(path.to_owned(), id);
        Ok(id)
    }

    fn remove(&self, name: &'static str, path: &Path) -> Result<()> {
        let mut world = self.step(name)?;
        world.files.remove(path).map(drop).ok_or_else(|| fake_error(name, io::ErrorKind::NotFound))
    }
}

struct FakeEngine(ProcessId);

impl EngineServer for FakeEngine {
    fn process(&self) -> &ProcessId {
        &self.0
    }

    fn mount_again(&mut self) -> Result<()> {
        Ok(())
    }

    fn wait_end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// An empty device.
struct FakeDevice(PathBuf);

impl HeldDevice for FakeDevice {
    fn node(&self) -> &Path {
        &self.0
    }

    fn check_content(&self, _: bool) -> Result<()> {
        Ok(())
    }

    fn read(&self, _: u64, length: usize) -> Result<Vec<u8>> {
        Ok(vec![0; length])
    }

    fn wipe(&self, _: u64, _: usize) -> Result<()> {
        Ok(())
    }

    fn share(&mut self) -> Result<()> {
        Ok(())
    }
}

struct FakeServer {
    footprint: Footprint,
    made: Arc<AtomicUsize>,
    cache_drops: Arc<Mutex<Vec<usize>>>,
}

impl DiskServer for FakeServer {
    fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    fn notes(&self) -> &[String] {
        &[]
    }

    fn drop_device_cache(&mut self) -> Result<()> {
        self.cache_drops.lock().unwrap().push(self.made.load(Ordering::SeqCst));
        Ok(())
    }

    fn time(&mut self) -> Result<TimeReport> {
        Ok(TimeReport::default())
    }

    fn start_log(&mut self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn stop_log(&mut self) -> Result<()> {
        Ok(())
    }
}

fn fake_error(operation: &'static str, kind: io::ErrorKind) -> Error {
    Error::Io { operation, path: "fake".into(), source: kind.into() }
}

impl Host for FakeHost {
    fn is_root(&self) -> bool {
        self.is_root
    }

    fn kernel_knows(&self, _: FileSystemKind) -> Result<bool> {
        self.step("kernel_knows").map(|_| self.kernel_knows)
    }

    fn find_tool(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new("/fake").join(name))
    }

    fn run_tool(&self, _: &Path, arguments: &[String]) -> Result<ToolOutput> {
        let mut world = self.step("run_tool")?;
        let success = arguments == ["-V"] || world.mkfs_claims;
        if let (true, Some(at)) = (world.mkfs_works && success, arguments.iter().position(|word| word == "-U")) {
            let device = world.loops.iter().find(|(path, _)| arguments.iter().any(|word| *path == Path::new(word)));
            let inode = device.map(|(_, file)| file.inode).unwrap();
            let mut bytes = vec![0; SCAN_BYTES];
            bytes[1080..1082].copy_from_slice(&[0x53, 0xef]);
            let digits = arguments[at + 1].replace('-', "");
            for index in 0..16 {
                bytes[1128 + index] = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).unwrap();
            }
            world.contents.insert(inode, bytes);
        }
        let status = if success { "exit status: 0" } else { "exit status: 1" };
        let stderr = if success { "mke2fs fake" } else { "it did not work" };
        Ok(ToolOutput { success, status: status.into(), stdout: String::new(), stderr: stderr.into() })
    }

    fn this_process(&self) -> Result<ProcessId> {
        Ok(ProcessId { pid: 1, start_ticks: 2, boot_id: "fake".to_owned() })
    }

    fn is_alive(&self, process: &ProcessId) -> bool {
        match process.pid {
            1 => self.owner_lives.load(Ordering::SeqCst),
            pid => self.world().processes.contains_key(&pid),
        }
    }

    fn identify(&self, process: &ProcessId, mark: &str) -> Identity {
        match self.world().processes.get(&process.pid) {
            Some(found) if found == mark => Identity::Ours,
            Some(found) => Identity::Foreign(format!("process {} is {found}", process.pid)),
            None => Identity::Gone,
        }
    }

    fn kill(&self, process: &ProcessId, mark: &str) -> Result<Identity> {
        let identity = self.identify(process, mark);
        let mut world = self.step("kill")?;
        if identity == Identity::Ours {
            world.processes.remove(&process.pid);
        }
        Ok(identity)
    }

    fn pause(&self, _: Duration) {}

    fn free_bytes(&self, _: &Path) -> Result<Bytes> {
        self.step("free_bytes").map(|_| self.free)
    }

    fn is_in_memory(&self, _: &Path) -> Result<bool> {
        self.step("is_in_memory").map(|_| false)
    }

    fn file_id(&self, path: &Path) -> Result<Option<FileId>> {
        self.step("file_id").map(|world| world.files.get(path).copied())
    }

    fn real_path(&self, dir: &Path) -> Result<Option<PathBuf>> {
        Ok(Some(dir.to_owned()))
    }

    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let world = self.step("list")?;
        Ok(world.files.keys().filter(|path| path.parent() == Some(dir)).cloned().collect())
    }

    fn create_file(&self, path: &Path, _: Bytes) -> Result<FileId> {
        self.make("create_file", path)
    }

    fn create_dir(&self, path: &Path) -> Result<FileId> {
        self.make("create_dir", path)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.remove("remove_file", path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.remove("remove_dir", path)
    }

    fn remove_tree(&self, path: &Path) -> Result<()> {
        self.remove("remove_tree", path)
    }

    fn copy_image(&self, _: &Path, _: &Path) -> Result<&'static str> {
        self.step("copy_image").map(|_| "fake")
    }

    fn sync_file(&self, _: &Path) -> Result<()> {
        self.step("sync_file").map(drop)
    }

    fn drop_page_cache(&self, _: &Path) -> Result<Option<u64>> {
        self.step("drop_page_cache").map(|_| Some(0))
    }

    fn attach_loop(&self, image: &Path) -> Result<LoopDevice> {
        let mut world = self.step("attach_loop")?;
        let file = *world.files.get(image).ok_or_else(|| fake_error("attach_loop", io::ErrorKind::NotFound))?;
        let path = PathBuf::from(format!("/dev/loop{}", world.loops.len()));
        world.loops.insert(path.clone(), file);
        Ok(LoopDevice { path, direct_io: true, block_size_bytes: 512 })
    }

    fn loops_backed_by(&self, file: FileId) -> Result<Vec<PathBuf>> {
        let world = self.step("loops_backed_by")?;
        Ok(world.loops.iter().filter(|(_, backing)| **backing == file).map(|(path, _)| path.clone()).collect())
    }

    fn loop_backing(&self, device: &Path) -> Result<Option<FileId>> {
        self.step("loop_backing").map(|world| world.loops.get(device).copied())
    }

    fn loop_file(&self, device: &Path) -> Result<Option<PathBuf>> {
        let world = self.step("loop_file")?;
        let backing = world.loops.get(device);
        Ok(backing.and_then(|backing| world.files.iter().find(|(_, id)| *id == backing)).map(|(path, _)| path.clone()))
    }

    fn detach_loop(&self, device: &Path) -> Result<()> {
        let mut world = self.step("detach_loop")?;
        assert!(!world.mounts.iter().any(|mount| mount.source == device), "detached while it is mounted");
        world.loops.remove(device);
        Ok(())
    }

    fn start_disk(&self, config: ServeConfig) -> Result<Box<dyn DiskServer>> {
        let mut world = self.step("start_disk")?;
        world.next_inode += 1;
        let file = FileId { device: 2, inode: world.next_inode };
        world.files.insert(config.disk_path(), file);
        world.disks.insert(config.name.clone(), (config.mount_point.clone(), true));
        let mut footprint = Footprint::planned(&config);
        footprint.server = Some(ProcessRef { pid: 7, start_ticks: 8, boot: None });
        footprint.guard = Some(ProcessRef { pid: 9, start_ticks: 10, boot: None });
        let (made, cache_drops) = (world.made.clone(), world.cache_drops.clone());
        Ok(Box::new(FakeServer { footprint, made, cache_drops }))
    }

    fn is_disk_served(&self, footprint: &Footprint) -> bool {
        self.world().disks.get(&footprint.name).is_some_and(|(_, lives)| *lives)
    }

    fn abort_disk(&self, _: &Footprint) -> Result<()> {
        self.step("abort_disk").map(drop)
    }

    fn release_disk(&self, footprint: &Footprint) -> Result<Released> {
        let mut world = self.step("release_disk")?;
        let released = |mount| Released { mount, killed: Vec::new(), spared: Vec::new() };
        let Some((point, _)) = world.disks.remove(&footprint.name) else {
            return Ok(released(DiskMount::AlreadyGone));
        };
        let file = world.files.remove(&point.join(ServeConfig::FILE_NAME)).unwrap();
        assert!(!world.loops.values().any(|backing| *backing == file), "unmounted below a loop device");
        Ok(released(DiskMount::Unmounted))
    }

    fn attach_disk(&self, file: &Path, mark: &str) -> Result<LoopDevice> {
        let device = self.attach_loop(file)?;
        self.world().marks.insert(device.path.clone(), mark.to_owned());
        Ok(device)
    }

    fn loops_marked(&self, mark: &str) -> Result<Vec<PathBuf>> {
        let world = self.step("loops_marked")?;
        Ok(world.marks.iter().filter(|(_, found)| *found == mark).map(|(path, _)| path.clone()).collect())
    }

    fn loop_mark(&self, device: &Path) -> Result<Option<String>> {
        self.step("loop_mark").map(|world| world.marks.get(device).cloned())
    }

    fn detach_disk(&self, device: &Path) -> Result<()> {
        self.detach_loop(device)?;
        self.world().marks.remove(device);
        Ok(())
    }

    fn engine_program(&self) -> PathBuf {
        "/fake/senesce".into()
    }

    fn start_engine(&self, config: &EngineConfig) -> Result<Box<dyn EngineServer>> {
        self.mount(Path::new(&config.source), &config.point, FileSystemKind::Garden, "")?;
        Ok(Box::new(FakeEngine(ProcessId { pid: 3, start_ticks: 4, boot_id: "fake".to_owned() })))
    }

    fn device_number(&self, _: &Path) -> Result<Option<DeviceNumber>> {
        self.step("device_number").map(|_| Some(DeviceNumber { major: 8, minor: 0 }))
    }

    fn device_size(&self, _: &Path) -> Result<Bytes> {
        self.step("device_size").map(|_| Bytes(1 << 30))
    }

    fn hold_device(&self, path: &Path) -> Result<Box<dyn HeldDevice>> {
        self.step("hold_device").map(|_| Box::new(FakeDevice(path.to_owned())) as Box<dyn HeldDevice>)
    }

    fn read_device(&self, path: &Path, _: u64, length: usize) -> Result<Vec<u8>> {
        let world = self.step("read_device")?;
        let contents = world.loops.get(path).and_then(|file| world.contents.get(&file.inode));
        Ok(contents.cloned().unwrap_or_else(|| vec![0; length]))
    }

    fn flush_device(&self, _: &Path) -> Result<()> {
        self.step("flush_device").map(drop)
    }

    fn await_release(&self, _: &Path) -> Result<()> {
        self.step("await_release").map(drop)
    }

    fn read_ahead(&self, _: &Path) -> Result<u32> {
        self.step("read_ahead").map(|_| 2560)
    }

    fn set_read_ahead(&self, _: &Path, kib: u32) -> Result<u32> {
        self.step("set_read_ahead").map(|_| kib)
    }

    fn device_stat(&self, _: &Path) -> Result<DeviceStat> {
        self.step("device_stat").map(|_| DeviceStat::default())
    }

    fn mounts(&self) -> Result<Vec<MountEntry>> {
        self.step("mounts").map(|world| world.mounts.clone())
    }

    fn mount(&self, source: &Path, point: &Path, kind: FileSystemKind, options: &str) -> Result<()> {
        let mut world = self.step("mount")?;
        world.mounts.push(MountEntry {
            device: DeviceNumber { major: 7, minor: 0 },
            root: "/".into(),
            point: point.to_owned(),
            file_system: kind.name().to_owned(),
            source: source.to_owned(),
            options: options.to_owned(),
        });
        Ok(())
    }

    fn thaw(&self, _point: &Path) {}

    fn unmount(&self, point: &Path, lazily: bool) -> Result<()> {
        let mut world = self.step(if lazily { "unmount_lazily" } else { "unmount" })?;
        if world.busy > 0 && !lazily {
            world.busy -= 1;
            return Err(Error::io("unmount", point)(rustix::io::Errno::BUSY));
        }
        let at = world.mounts.iter().rposition(|mount| mount.point == point);
        world.mounts.remove(at.ok_or_else(|| fake_error("unmount", io::ErrorKind::InvalidInput))?);
        Ok(())
    }

    fn forget_device(&self, _: &Path, _: FileSystemKind) -> Result<()> {
        self.step("forget_device").map(drop)
    }

    fn sync_file_system(&self, _: &Path) -> Result<()> {
        self.step("sync_file_system").map(drop)
    }

    fn circumstances(&self, _: Option<&Path>) -> Vec<(String, String)> {
        Vec::new()
    }
}
