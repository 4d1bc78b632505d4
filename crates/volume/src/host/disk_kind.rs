//! Finds the kind of disk that stores the data of a path, as `/sys` describes it. The search
//! follows partitions, loop devices, device mapper and arrays.
//!
//! It does not guess. A disk of a virtual machine, of a USB bridge or of a network can be of any
//! kind. So it is unknown for any value of `rotational`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceNumber, mountinfo::parse_mountinfo};

/// The most layers that are followed. More layers are a cycle.
const LAYERS: u32 = 16;
/// Vendors and models of disks that a hypervisor or a cloud provides, in lower case.
const VIRTUAL: [&str; 9] =
    ["qemu", "vmware", "virtual", "vbox", "msft", "elastic block store", "persistentdisk", "ebs_volume", "xen"];

/// A kind of disk, by its costs of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MediumKind {
    /// A hard disk.
    Rotational,
    /// A SATA or SAS SSD.
    SataSsd,
    /// An NVMe SSD.
    Nvme,
    /// The kind is not known.
    Unknown,
}

/// The disk below a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Medium {
    /// Its kind.
    pub kind: MediumKind,
    /// The kernel's names of the disks, such as `sda`. Empty if there is none.
    pub disks: Vec<String>,
    /// The devices in `/sys/block` whose counters count each byte of the path once: the disk
    /// itself, or the array of several disks. The disks of a mirror count each written byte twice.
    #[serde(skip)]
    pub counters: Vec<String>,
    /// The disk in words, or the reason why it is unknown: `hard disk sda (ST4000)`, `virtio disk
    /// vda`.
    pub description: String,
}

impl Medium {
    /// Combines several disks that hold one file system. They have a kind if all have the same.
    pub fn of_several(all: Vec<Self>) -> Self {
        combine("it", all)
    }
}

/// Finds the disk below a block device, an image file, or a directory.
///
/// Returns [`MediumKind::Unknown`] with the reason if no disk is found, or if the disks are of
/// several kinds.
pub fn find_medium(path: &Path) -> Medium {
    let sys = Sys { root: PathBuf::from("/sys"), number_of: &number_below };
    match number_below(path) {
        Ok(number) => sys.find(number, LAYERS),
        Err(reason) => unknown(Vec::new(), reason),
    }
}

/// The number of a block device, or of the device that stores a file or directory.
fn number_below(path: &Path) -> Result<DeviceNumber, String> {
    let stat = rustix::fs::stat(path).map_err(|errno| format!("{} cannot be read: {errno}", path.display()))?;
    let split = |number| DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice {
        return Ok(split(stat.st_rdev));
    }
    let own = split(stat.st_dev);
    if own.major != 0 {
        return Ok(own);
    }
    // The file system has a virtual number, as Btrfs does. Its mount names the device.
    let mounts = parse_mountinfo(&fs::read("/proc/self/mountinfo").unwrap_or_default());
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let Some(mount) = above.max_by_key(|mount| mount.point.as_os_str().len()) else {
        return Err(format!("the mount of {} is not known", path.display()));
    };
    match rustix::fs::stat(&mount.source) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice => Ok(split(stat.st_rdev)),
        _ => Err(format!("{} without a disk of its own", mount.file_system)),
    }
}

fn unknown(disks: Vec<String>, description: String) -> Medium {
    Medium { kind: MediumKind::Unknown, counters: disks.clone(), disks, description }
}

/// `/sys`, or a copy of it for tests.
struct Sys<'a> {
    root: PathBuf,
    /// The number of the device that stores a file.
    number_of: &'a dyn Fn(&Path) -> Result<DeviceNumber, String>,
}

impl Sys<'_> {
    fn find(&self, number: DeviceNumber, layers: u32) -> Medium {
        let link = self.root.join(format!("dev/block/{}:{}", number.major, number.minor));
        let Some(mut dir) = fs::canonicalize(&link).ok().filter(|_| layers > 0) else {
            return unknown(Vec::new(), format!("device {}:{} without a disk", number.major, number.minor));
        };
        if dir.join("partition").exists() {
            dir.pop();
        }
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(file) = read(dir.join("loop/backing_file")) {
            return match (self.number_of)(Path::new(&file)) {
                Ok(number) => self.find(number, layers - 1),
                Err(reason) => unknown(Vec::new(), format!("{name} on {reason}")),
            };
        }
        let mut below: Vec<PathBuf> =
            fs::read_dir(dir.join("slaves")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        below.sort();
        if !below.is_empty() {
            let numbers = below.iter().filter_map(|slave| parse_number(&read(slave.join("dev"))?));
            return combine(&name, numbers.map(|number| self.find(number, layers - 1)).collect());
        }
        classify(&dir, name)
    }
}

/// Combines several disks. They have a kind if all have the same.
fn combine(name: &str, all: Vec<Medium>) -> Medium {
    let kinds: BTreeSet<MediumKind> = all.iter().map(|medium| medium.kind).collect();
    let disks: BTreeSet<String> = all.iter().flat_map(|medium| medium.disks.clone()).collect();
    let descriptions: BTreeSet<&str> = all.iter().map(|medium| medium.description.as_str()).collect();
    let described = descriptions.into_iter().collect::<Vec<_>>().join(", ");
    let (kind, description) = match kinds.iter().collect::<Vec<_>>()[..] {
        [only] => (*only, described),
        [] => (MediumKind::Unknown, format!("{name}, whose disks are not known")),
        _ => (MediumKind::Unknown, format!("{name} on disks of several kinds: {described}")),
    };
    let counters = match &all[..] {
        [only] => only.counters.clone(),
        _ => vec![name.to_owned()],
    };
    Medium { kind, disks: disks.into_iter().collect(), counters, description }
}

/// Describes a disk that has no layers below it.
fn classify(dir: &Path, name: String) -> Medium {
    let words = |key: &str| read(dir.join("device").join(key)).unwrap_or_default();
    let model = format!("{} {}", words("vendor"), words("model")).trim().to_owned();
    let place = dir.to_string_lossy().into_owned();
    let transport = words("transport");
    let is = |prefix: &str| name.starts_with(prefix);
    let is_virtual = VIRTUAL.iter().any(|word| model.to_lowercase().contains(word));
    let rotational = read(dir.join("queue/rotational"));
    let kind = match () {
        () if is_virtual => Err("virtual disk"),
        () if is("nvme") && !transport.is_empty() && transport != "pcie" => Err("NVMe over a network"),
        () if is("nvme") => Ok((MediumKind::Nvme, "NVMe SSD")),
        // The values that a bridge reports are not reliable.
        () if is("sd") && place.contains("/usb") => Err("USB disk"),
        () if is("sd") && (place.contains("/session") || place.contains("/rport-")) => Err("disk of a storage network"),
        () if is("sd") && rotational.as_deref() == Some("1") => Ok((MediumKind::Rotational, "hard disk")),
        () if is("sd") && rotational.as_deref() == Some("0") => Ok((MediumKind::SataSsd, "SATA or SAS SSD")),
        () if is("vd") => Err("virtio disk"),
        () if is("xvd") => Err("Xen disk"),
        () if is("mmcblk") => Err("SD card or eMMC"),
        () if is("ram") || is("zram") || is("pmem") => Err("memory"),
        () if is("nbd") || is("rbd") || is("drbd") => Err("network disk"),
        () => Err("device"),
    };
    // For a virtio disk these files hold the number of its vendor, and no model.
    let model = if is("vd") { String::new() } else { model };
    let describe = |what: &str| match model.is_empty() {
        true => format!("{what} {name}"),
        false => format!("{what} {name} ({model})"),
    };
    match kind {
        Ok((kind, what)) => {
            Medium { kind, description: describe(what), counters: vec![name.clone()], disks: vec![name] }
        }
        Err(what) => unknown(vec![name.clone()], describe(what)),
    }
}

fn read(path: PathBuf) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A copy of `/sys` with disks.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("dev/block")).unwrap();
            Self(dir)
        }

        /// Adds a device below a bus, with files in its directory.
        fn add(&self, place: &str, number: &str, files: &[(&str, &str)]) -> PathBuf {
            let dir = self.0.path().join("devices").join(place);
            for (file, text) in [("dev", number)].iter().chain(files) {
                let path = dir.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{text}\n")).unwrap();
            }
            symlink(&dir, self.0.path().join("dev/block").join(number)).unwrap();
            dir
        }

        fn find(&self, number: &str) -> Medium {
            let stored = |file: &Path| match file.to_str() {
                Some("/images/disk.img") => Ok(parse_number("8:2").unwrap()),
                _ => Err("tmpfs without a disk of its own".to_owned()),
            };
            let sys = Sys { root: self.0.path().to_owned(), number_of: &stored };
            sys.find(parse_number(number).unwrap(), LAYERS)
        }

        fn stack(&self, above: &Path, below: &Path) {
            let slaves = above.join("slaves");
            fs::create_dir_all(&slaves).unwrap();
            symlink(below, slaves.join(below.file_name().unwrap())).unwrap();
        }
    }

    #[test]
    fn bus_and_rotation_decide_the_kind() {
        let machine = Machine::new();
        let disk = |place: &str, number: &str, rotational: &str, model: &str| {
            machine.add(place, number, &[("queue/rotational", rotational), ("device/model", model)]);
            let found = machine.find(number);
            (found.kind, found.description)
        };
        let unknown = |text: &str| (MediumKind::Unknown, text.to_owned());
        assert_eq!(
            disk("ata1/sda", "8:0", "1", "ST4000"),
            (MediumKind::Rotational, "hard disk sda (ST4000)".to_owned())
        );
        assert_eq!(disk("ata2/sdb", "8:16", "0", "870").0, MediumKind::SataSsd);
        assert_eq!(disk("pci/nvme0n1", "259:0", "0", "980 PRO").0, MediumKind::Nvme);
        // Virtual disks report that they rotate.
        assert_eq!(disk("virtio1/vda", "254:0", "1", ""), unknown("virtio disk vda"));
        assert_eq!(disk("ata3/sdc", "8:32", "1", "QEMU HARDDISK"), unknown("virtual disk sdc (QEMU HARDDISK)"));
        assert_eq!(disk("usb2/sdd", "8:48", "1", "Flash"), unknown("USB disk sdd (Flash)"));
        assert_eq!(disk("session1/sde", "8:64", "0", "LUN"), unknown("disk of a storage network sde (LUN)"));
        assert_eq!(disk("pci/nvme1n1", "259:1", "0", "Amazon Elastic Block Store").0, MediumKind::Unknown);
        assert_eq!(machine.find("9:9"), super::unknown(Vec::new(), "device 9:9 without a disk".to_owned()));
    }

    #[test]
    fn layers_lead_to_the_disk() {
        let machine = Machine::new();
        let sda = machine.add("ata1/sda", "8:0", &[("queue/rotational", "1")]);
        let part = machine.add("ata1/sda/sda2", "8:2", &[("partition", "2")]);
        let sdb = machine.add("ata2/sdb", "8:16", &[("queue/rotational", "1")]);
        let nvme = machine.add("pci/nvme0n1", "259:0", &[("queue/rotational", "0")]);
        let (md, crypt) = (machine.add("virtual/md0", "9:0", &[]), machine.add("virtual/dm-0", "253:0", &[]));
        machine.stack(&md, &part);
        machine.stack(&md, &sdb);
        machine.stack(&crypt, &md);
        let found = machine.find("253:0");
        assert_eq!((found.kind, found.disks), (MediumKind::Rotational, vec!["sda".to_owned(), "sdb".to_owned()]));
        assert_eq!(found.counters, ["md0"], "a mirror's disks count each written byte twice");
        // A cache and its disk are of two kinds.
        let cached = machine.add("virtual/dm-1", "253:1", &[]);
        machine.stack(&cached, &sda);
        machine.stack(&cached, &nvme);
        let found = machine.find("253:1");
        assert!(found.kind == MediumKind::Unknown && found.description.contains("several kinds"), "{found:?}");
        // An image is on the disk that stores its file.
        machine.add("virtual/loop0", "7:0", &[("loop/backing_file", "/images/disk.img")]);
        let found = machine.find("7:0");
        assert_eq!((found.disks, found.counters), (vec!["sda".to_owned()], vec!["sda".to_owned()]));
        machine.add("virtual/loop1", "7:1", &[("loop/backing_file", "/dev/shm/disk.img")]);
        assert_eq!(machine.find("7:1").description, "loop1 on tmpfs without a disk of its own");
        // The search through a cycle of layers stops.
        machine.stack(&md, &crypt);
        assert_eq!(machine.find("253:0").kind, MediumKind::Unknown);
    }
}
