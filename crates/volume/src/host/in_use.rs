//! Finds the users of a file or block device. Every verb calls this before it writes or saves.
//!
//! The same bytes can have many names: a partition and its disk, a loop device and its backing file
//! or device, two loop devices on one file, an array and its members. The search visits every node
//! that shares bytes with the target and collects the uses of each node.

use std::{
    collections::HashSet,
    fmt, fs,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};

use super::{
    DeviceNumber, FileId,
    locks::{find_lock, is_claimed},
    loop_devices::{Attached, list_attached},
    mounts::{SeenMount, list_mounts},
    swaps::list_swaps,
};
use crate::{Error, Result};

/// One use of a file or block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// A file system on it is mounted.
    Mounted {
        /// The mounted device.
        device: PathBuf,
        /// The mount point.
        point: PathBuf,
        /// A process that sees the mount, if this process does not.
        process: Option<u32>,
    },
    /// The kernel swaps to it.
    Swap {
        /// The device or file.
        area: PathBuf,
    },
    /// Another block device is built on it: an array, a mapping, a cache.
    Held {
        /// The device that it is built on.
        device: PathBuf,
        /// The device above.
        holder: PathBuf,
    },
    /// A loop device is attached to it.
    Loop {
        /// The backing file or device.
        backing: PathBuf,
        /// The loop device.
        device: PathBuf,
    },
    /// A program has locked it.
    Locked {
        /// The file or device.
        path: PathBuf,
        /// The process that holds the lock, if the kernel names it.
        process: Option<u32>,
    },
    /// A program or the kernel has opened it exclusively.
    Claimed {
        /// The device.
        device: PathBuf,
    },
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, point, process } => {
                write!(f, "{} is mounted on {}", device.display(), point.display())?;
                process.map_or(Ok(()), |pid| write!(f, " in the mount namespace of process {pid}{}", name_of(pid)))
            }
            Self::Swap { area } => write!(f, "the kernel swaps to {}", area.display()),
            Self::Held { device, holder } => write!(f, "{} is built on {}", holder.display(), device.display()),
            Self::Loop { backing, device } => {
                write!(f, "the loop device {} is attached to {}", device.display(), backing.display())
            }
            Self::Locked { path, process } => match process {
                Some(pid) if *pid == std::process::id() => {
                    write!(f, "this command already has {} open for another purpose", path.display())
                }
                Some(pid) => write!(f, "process {pid}{} has locked {}", name_of(*pid), path.display()),
                None => write!(f, "another process has locked {}", path.display()),
            },
            Self::Claimed { device } => {
                write!(f, "the kernel or another process has claimed {} for itself", device.display())
            }
        }
    }
}

impl Use {
    /// The process and mount point, if it is a mount in another mount namespace.
    pub(super) fn mounted_elsewhere(&self) -> Option<(u32, &Path)> {
        match self {
            Self::Mounted { point, process: Some(pid), .. } => Some((*pid, point)),
            _ => None,
        }
    }
}

/// The command of a process, in parentheses. Empty if the process is gone.
pub(super) fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if name.trim().is_empty() { String::new() } else { format!(" ({})", name.trim()) }
}

/// The relation of a node to the one that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// It is the target, whose own locks the caller checks.
    Target,
    /// It is built on a node that was visited: a partition, a loop device.
    Above,
    /// The loop device that was visited is attached to it.
    BelowLoop,
    /// The partition that was visited is a part of it.
    BelowPartition,
    /// The mapping or array that was visited is built on it.
    BelowMapping,
}

/// A place that shares bytes with the target.
#[derive(Clone, Debug)]
struct Node {
    id: NodeId,
    name: PathBuf,
    /// The bytes of this node that the target shares, first and end.
    range: (u64, u64),
    reached: Reached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NodeId {
    Device(DeviceNumber),
    File(FileId),
}

/// Finds every use of an open file or block device, except the claims and locks on the target
/// itself.
///
/// `name` is the name of a file in messages. Errors: `/proc` or `/sys` cannot be read. Cost: reads
/// the mounts of each mount namespace once, and opens each attached loop device.
pub(super) fn find_uses(target: impl AsFd, name: &Path) -> Result<Vec<Use>> {
    let stat = rustix::fs::fstat(&target).map_err(Error::io("look up", name))?;
    let (id, name) = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => {
            let number = DeviceNumber::of(stat.st_rdev);
            (NodeId::Device(number), node_name(number).unwrap_or_else(|| name.to_owned()))
        }
        _ => (NodeId::File(FileId { device: stat.st_dev, inode: stat.st_ino }), name.to_owned()),
    };
    let mut search = Search {
        mounts: list_mounts()?,
        loops: list_attached()?,
        swaps: list_swaps()?,
        seen: HashSet::from([id]),
        open: vec![Node { id, name, range: (0, u64::MAX), reached: Reached::Target }],
        uses: Vec::new(),
    };
    while let Some(node) = search.open.pop() {
        search.visit(&node)?;
    }
    Ok(search.uses)
}

/// The kernel's name of a block device, `/dev/NAME`, if that node exists and leads to it.
pub(super) fn node_name(number: DeviceNumber) -> Option<PathBuf> {
    let text = fs::read_to_string(sys_dir(number).join("uevent")).ok()?;
    let path = Path::new("/dev").join(text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?);
    let stat = rustix::fs::lstat(&path).ok()?;
    let is_it =
        FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice && DeviceNumber::of(stat.st_rdev) == number;
    is_it.then_some(path)
}

/// The entries of a directory of sysfs. Empty if it does not exist, because the kernel removed the
/// device.
fn list_dir(dir: &Path) -> Result<Vec<fs::DirEntry>> {
    let listed = fs::read_dir(dir).and_then(Iterator::collect);
    match listed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(Error::std("list", dir)),
    }
}

fn sys_dir(number: DeviceNumber) -> PathBuf {
    format!("/sys/dev/block/{}:{}", number.major, number.minor).into()
}

struct Search {
    mounts: Vec<SeenMount>,
    loops: Vec<Attached>,
    swaps: Vec<PathBuf>,
    seen: HashSet<NodeId>,
    open: Vec<Node>,
    uses: Vec<Use>,
}

impl Search {
    fn visit(&mut self, node: &Node) -> Result<()> {
        self.note_swap(node);
        self.note_lock(node)?;
        match node.id {
            NodeId::Device(number) => {
                self.note_mounts(node, number);
                self.visit_loops_above(node);
                self.visit_relatives(node, number)
            }
            NodeId::File(_) => {
                self.visit_loops_above(node);
                Ok(())
            }
        }
    }

    fn note(&mut self, found: Use) {
        if !self.uses.contains(&found) {
            self.uses.push(found);
        }
    }

    fn go_on(&mut self, node: Node) {
        if self.seen.insert(node.id) {
            self.open.push(node);
        }
    }

    /// Notes a mount in another namespace only if this namespace has no mount of the device.
    fn note_mounts(&mut self, node: &Node, number: DeviceNumber) {
        let of_node: Vec<&SeenMount> = self.mounts.iter().filter(|seen| seen.is_of(number)).collect();
        let here = of_node.iter().any(|seen| seen.process.is_none());
        let wanted: Vec<Use> = of_node
            .into_iter()
            .filter(|seen| seen.process.is_none() || !here)
            .map(|seen| Use::Mounted {
                device: node.name.clone(),
                point: seen.mount.point.clone(),
                process: seen.process,
            })
            .collect();
        wanted.into_iter().for_each(|found| self.note(found));
    }

    fn note_swap(&mut self, node: &Node) {
        let is_it = |area: &&PathBuf| match (rustix::fs::stat(area.as_path()), node.id) {
            (Ok(stat), NodeId::Device(number)) => {
                FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
                    && DeviceNumber::of(stat.st_rdev) == number
            }
            (Ok(stat), NodeId::File(id)) => FileId { device: stat.st_dev, inode: stat.st_ino } == id,
            (Err(_), _) => false,
        };
        if let Some(area) = self.swaps.iter().find(is_it).cloned() {
            self.note(Use::Swap { area });
        }
    }

    /// Notes a lock. The kernel has claims for devices only. Engines of senesce and virtual
    /// machines lock files.
    fn note_lock(&mut self, node: &Node) -> Result<()> {
        if node.reached == Reached::Target || self.is_served_by_a_process(node) {
            return Ok(());
        }
        // Another file may have this name now. Then the lock cannot be checked, but no new program
        // can open the node by that name.
        let Some(file) = open_if_same(&node.name, node.id) else { return Ok(()) };
        if let Some(found) = find_lock(&file, &node.name, FlockOperation::NonBlockingLockExclusive)? {
            self.note(found);
        }
        // Only if no visited node explains the claim.
        if let (NodeId::Device(_), Reached::BelowLoop) = (node.id, node.reached)
            && self.uses.is_empty()
            && is_claimed(&node.name)?
        {
            self.note(Use::Claimed { device: node.name.clone() });
        }
        Ok(())
    }

    /// Whether the file is on a FUSE file system. If its server is dead, an access would wait for
    /// it.
    fn is_served_by_a_process(&self, node: &Node) -> bool {
        let NodeId::File(id) = node.id else { return false };
        let number = DeviceNumber::of(id.device);
        self.mounts.iter().any(|seen| seen.mount.device == number && seen.mount.file_system.starts_with("fuse"))
    }

    fn visit_loops_above(&mut self, node: &Node) {
        let above: Vec<Attached> = self.loops.iter().filter(|found| is_attached_to(found, node.id)).cloned().collect();
        for found in above {
            let Some(range) = overlap(node.range, found.range()) else { continue };
            let id = NodeId::Device(found.number);
            if self.seen.contains(&id) {
                continue;
            }
            self.note(Use::Loop { backing: node.name.clone(), device: found.device.clone() });
            let range = (range.0 - found.offset, range.1 - found.offset);
            self.go_on(Node { id, name: found.device, range, reached: Reached::Above });
        }
    }

    /// Visits partitions, the disk of a partition, the devices built on this one, and those that it
    /// is built on.
    fn visit_relatives(&mut self, node: &Node, number: DeviceNumber) -> Result<()> {
        let dir = sys_dir(number);
        for entry in list_dir(&dir)?.into_iter().filter(|entry| entry.path().join("partition").exists()) {
            let (part, start) = (entry.path(), start_of(&entry.path()));
            let Some(part_number) = number_in(&part) else { continue };
            let end = start.saturating_add(size_of(&part));
            let Some(range) = overlap(node.range, (start, end)) else { continue };
            let name = node_name(part_number).unwrap_or_else(|| Path::new("/dev").join(entry.file_name()));
            let (id, range) = (NodeId::Device(part_number), (range.0 - start, range.1 - start));
            self.go_on(Node { id, name, range, reached: Reached::Above });
        }
        // Siblings of the mapping that led here are built on other bytes of this device.
        if node.reached != Reached::BelowMapping {
            for holder in list_dir(&dir.join("holders"))? {
                let holder = Path::new("/dev").join(holder.file_name());
                self.note(Use::Held { device: node.name.clone(), holder });
            }
        }
        self.visit_below(node, number, &dir)
    }

    fn visit_below(&mut self, node: &Node, number: DeviceNumber, dir: &Path) -> Result<()> {
        let of_mapping = node.reached == Reached::BelowMapping;
        if dir.join("partition").exists()
            && let Some(disk) = number_in(&dir.join(".."))
        {
            let start = start_of(dir);
            let end = node.range.1.min(size_of(dir)).saturating_add(start);
            let reached = if of_mapping { Reached::BelowMapping } else { Reached::BelowPartition };
            self.go_below(disk, (node.range.0.saturating_add(start), end), reached);
        }
        for slave in list_dir(&dir.join("slaves"))? {
            if let Some(slave) = number_in(&slave.path()) {
                self.go_below(slave, (0, u64::MAX), Reached::BelowMapping);
            }
        }
        let Some(found) = self.loops.iter().find(|found| found.number == number).cloned() else {
            return Ok(());
        };
        let range = (node.range.0.saturating_add(found.offset), node.range.1.saturating_add(found.offset));
        let range = (range.0, range.1.min(found.range().1));
        let reached = if of_mapping { Reached::BelowMapping } else { Reached::BelowLoop };
        match found.backing_device {
            Some(device) => self.go_below(device, range, reached),
            None => self.go_on(Node { id: NodeId::File(found.backing), name: found.backing_name, range, reached }),
        }
        Ok(())
    }

    fn go_below(&mut self, number: DeviceNumber, range: (u64, u64), reached: Reached) {
        let name = node_name(number).unwrap_or_else(|| format!("{}:{}", number.major, number.minor).into());
        self.go_on(Node { id: NodeId::Device(number), name, range, reached });
    }
}

fn is_attached_to(found: &Attached, id: NodeId) -> bool {
    match (id, found.backing_device) {
        (NodeId::Device(number), Some(backing)) => number == backing,
        (NodeId::File(file), None) => file == found.backing,
        _ => false,
    }
}

/// The bytes that two ranges share.
fn overlap(one: (u64, u64), other: (u64, u64)) -> Option<(u64, u64)> {
    let (start, end) = (one.0.max(other.0), one.1.min(other.1));
    (start < end).then_some((start, end))
}

fn sectors_in(file: PathBuf) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.trim().parse::<u64>().unwrap_or(0).saturating_mul(512)
}

fn start_of(dir: &Path) -> u64 {
    sectors_in(dir.join("start"))
}

/// An unknown size counts as unlimited. An extra use only causes a refusal, but a missed use can
/// destroy data.
fn size_of(dir: &Path) -> u64 {
    match sectors_in(dir.join("size")) {
        0 => u64::MAX,
        size => size,
    }
}

fn number_in(dir: &Path) -> Option<DeviceNumber> {
    let text = fs::read_to_string(dir.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// Opens a path if it still leads to the node.
fn open_if_same(path: &Path, id: NodeId) -> Option<OwnedFd> {
    let is_same = |stat: rustix::fs::Stat| match id {
        NodeId::Device(number) => {
            FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice && DeviceNumber::of(stat.st_rdev) == number
        }
        NodeId::File(file) => FileId { device: stat.st_dev, inode: stat.st_ino } == file,
    };
    // Another file is not opened, because opening a tape or a pipe has effects.
    rustix::fs::stat(path).ok().filter(|stat| is_same(*stat))?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    rustix::fs::fstat(&file).ok().filter(|stat| is_same(*stat))?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_only_touch_do_not_overlap() {
        assert_eq!(overlap((0, 10), (10, 20)), None);
        assert_eq!(overlap((0, u64::MAX), (10, 20)), Some((10, 20)));
        assert_eq!(overlap((15, 30), (10, 20)), Some((15, 20)));
    }

    #[test]
    fn an_idle_file_has_no_uses() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(find_uses(file.as_file(), file.path()).unwrap(), []);
    }
}
