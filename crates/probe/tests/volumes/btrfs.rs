//! The collected trees of Btrfs against its own figures and tools.

use std::{collections::BTreeMap, path::Path};

use senesce_probe::{
    Error,
    collect::{collect_btrfs_free_space, collect_free_extents},
    map::{BtrfsFreeSpace, BtrfsGroupType, BtrfsProfile, BtrfsSource},
    score::compute_free_space,
};

use crate::support::{LoopDevice, Volume, fragment_free_space, run};

/// The number after a label of `btrfs filesystem usage -b` or `btrfs inspect-internal dump-super`.
fn number_after(text: &str, label: &str) -> u64 {
    let line = text.lines().find(|line| line.trim_start().starts_with(label));
    let line = line.unwrap_or_else(|| panic!("{label}: {text}"));
    line.trim_start()[label.len()..].split_whitespace().next().unwrap().trim_end_matches(',').parse().unwrap()
}

/// Total and used bytes by kind and profile, as `btrfs filesystem df -b` prints the kernel's space
/// info.
fn space_info(mountpoint: &Path) -> BTreeMap<String, (u64, u64)> {
    let text = run("btrfs", &["filesystem", "df", "-b", mountpoint.to_str().unwrap()]);
    let lines = text.lines().filter(|line| !line.starts_with("GlobalReserve"));
    lines
        .map(|line| {
            let (name, figures) = line.split_once(": ").unwrap();
            let number = |label: &str| {
                let (_, rest) = figures.split_once(label).unwrap();
                rest.split(',').next().unwrap().trim().parse().unwrap()
            };
            (name.to_owned(), (number("total="), number("used=")))
        })
        .collect()
}

fn sums(space: &BtrfsFreeSpace) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for group in &space.groups {
        let has = |purpose| group.group_type.contains(purpose);
        let purpose = match () {
            () if has(BtrfsGroupType::DATA) && has(BtrfsGroupType::METADATA) => "Data+Metadata",
            () if has(BtrfsGroupType::DATA) => "Data",
            () if has(BtrfsGroupType::METADATA) => "Metadata",
            () => "System",
        };
        let profile = match group.group_type.profile() {
            BtrfsProfile::Single => "single",
            BtrfsProfile::Dup => "DUP",
            BtrfsProfile::Raid0 => "RAID0",
            BtrfsProfile::Raid1 => "RAID1",
            BtrfsProfile::Raid10 => "RAID10",
            BtrfsProfile::Raid5 => "RAID5",
            BtrfsProfile::Raid6 => "RAID6",
            BtrfsProfile::Raid1c3 => "RAID1C3",
            BtrfsProfile::Raid1c4 => "RAID1C4",
        };
        let sum: &mut (u64, u64) = sums.entry(format!("{purpose}, {profile}")).or_default();
        sum.0 += group.length_bytes;
        sum.1 += group.used_bytes;
    }
    sums
}

/// Bytes that the kernel reserves, by purpose. On a writable volume these are the superblocks.
fn kept_by_the_kernel(mountpoint: &Path) -> BTreeMap<&'static str, u64> {
    let uuid = run("findmnt", &["--noheadings", "--output", "UUID", "--target", mountpoint.to_str().unwrap()]);
    let directory = format!("/sys/fs/btrfs/{}/allocation", uuid.trim());
    let read = |name: &'static str| {
        let text = std::fs::read_to_string(format!("{directory}/{name}/bytes_readonly")).ok()?;
        Some((name, text.trim().parse().unwrap()))
    };
    ["data", "metadata", "system", "mixed"].into_iter().filter_map(read).collect()
}

fn kept_as_we_see_it(space: &BtrfsFreeSpace) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for group in &space.groups {
        let has = |purpose| group.group_type.contains(purpose);
        let name = match (has(BtrfsGroupType::DATA), has(BtrfsGroupType::METADATA)) {
            (true, true) => "mixed",
            (true, false) => "data",
            (false, true) => "metadata",
            (false, false) => "system",
        };
        *sums.entry(name).or_default() += group.reserved_bytes;
    }
    sums
}

/// Ages the volume, and compares the collected space with Btrfs' figures.
fn equals_btrfs_own_figures(arguments: &[&str], options: &str, source: BtrfsSource) -> BtrfsFreeSpace {
    let volume = Volume::new("btrfs", 600, arguments, options);
    fragment_free_space(&volume.mountpoint, 6000);
    crate::support::write_fragmented(&volume.mountpoint, 3, 30);
    volume.unmount();
    volume.mount();
    let space = collect_btrfs_free_space(&volume.mountpoint).unwrap();
    let mountpoint = volume.mountpoint.to_str().unwrap();
    assert_eq!(space.source, source, "{arguments:?} {options}");
    assert_eq!(space.sector_bytes, 4096);

    assert_eq!(sums(&space), space_info(&volume.mountpoint), "totals and used bytes by kind");
    assert_eq!(space.mismatch_bytes(), 0, "used, reserved and free make up every group");
    assert_eq!(kept_as_we_see_it(&space), kept_by_the_kernel(&volume.mountpoint));
    for group in &space.groups {
        let inside = |free: &senesce_probe::map::FreeExtent| {
            free.start_bytes >= group.start_bytes && free.start_bytes + free.length_bytes <= group.end_bytes()
        };
        assert!(group.free.iter().all(inside), "{group:?}");
    }

    let usage = run("btrfs", &["filesystem", "usage", "-b", mountpoint]);
    let [device] = &space.devices[..] else { panic!("one device: {:?}", space.devices) };
    assert_eq!(device.size_bytes, number_after(&usage, "Device size:"));
    assert_eq!(device.allocated_bytes, number_after(&usage, "Device allocated:"));
    let unallocated: u64 = device.unallocated.iter().map(|extent| extent.length_bytes).sum();
    assert_eq!(unallocated + device.reserved_bytes, number_after(&usage, "Device unallocated:"));

    // On the device: the free space of each copy, and the unallocated space.
    let free = space.device_free_extents(device.id).unwrap();
    let copies: u64 = space.groups.iter().map(|group| group.free_bytes() * group.stripes.len() as u64).sum();
    assert_eq!(free.iter().map(|extent| extent.length_bytes).sum::<u64>(), copies + unallocated);
    let data = compute_free_space(space.free_extents(BtrfsGroupType::DATA).map(|extent| extent.length_bytes));
    assert!(data.extents > 500, "the free space was to be fragmented: {data:?}");
    space
}

#[test]
fn btrfs_free_space_equals_its_own_figures() {
    if !senesce_testkit::root_or_skip("mounts Btrfs images") {
        return;
    }
    let dup = equals_btrfs_own_figures(&[], "noatime,nodiscard", BtrfsSource::FreeSpaceTree);
    let reserved: u64 = dup.groups.iter().map(|group| group.reserved_bytes).sum();
    // The second superblock, at 64 MiB, is in one of the groups, because the first 200 MiB of the
    // volume are allocated.
    assert_eq!(reserved, 64 << 10, "a stripe is reserved for the superblock: {:?}", dup.groups);
    let single = ["-m", "single", "-d", "single"];
    equals_btrfs_own_figures(&single, "noatime,nodiscard", BtrfsSource::FreeSpaceTree);
    equals_btrfs_own_figures(&["--mixed"], "noatime,nodiscard", BtrfsSource::FreeSpaceTree);
}

/// A Btrfs over several loop devices. Drop unmounts it before it detaches them.
struct Array {
    mountpoint: tempfile::TempDir,
    _devices: Vec<LoopDevice>,
}

impl Array {
    fn new(devices: usize, arguments: &[&str]) -> Self {
        let devices: Vec<LoopDevice> = (0..devices).map(|_| LoopDevice::sparse(300)).collect();
        let paths: Vec<&str> = devices.iter().map(|device| device.path().to_str().unwrap()).collect();
        run("mkfs.btrfs", &[arguments, &["-q"], &paths].concat());
        let options: Vec<String> = paths.iter().map(|path| format!("device={path}")).collect();
        let options = format!("noatime,nodiscard,{}", options.join(","));
        let mountpoint = tempfile::tempdir().unwrap();
        run("mount", &["-o", &options, paths[0], mountpoint.path().to_str().unwrap()]);
        Self { mountpoint, _devices: devices }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.mountpoint.path()).status();
    }
}

#[test]
fn every_profile_of_several_devices_adds_up() {
    if !senesce_testkit::root_or_skip("mounts Btrfs over several loop devices") {
        return;
    }
    for (data, metadata, devices) in [("raid0", "raid1", 2), ("raid10", "raid1c3", 4), ("raid5", "raid1c4", 4)] {
        let array = Array::new(devices, &["-d", data, "-m", metadata]);
        fragment_free_space(array.mountpoint.path(), 3000);
        // Freed blocks become free when the transaction that frees them is committed.
        run("btrfs", &["filesystem", "sync", array.mountpoint.path().to_str().unwrap()]);
        let space = collect_btrfs_free_space(array.mountpoint.path()).unwrap();
        assert_eq!(space.mismatch_bytes(), 0, "{data}");
        assert_eq!(sums(&space), space_info(array.mountpoint.path()), "{data}");
        assert_eq!(space.devices.len(), devices);
        let striped = space.groups.iter().filter(|group| group.group_type.profile().is_striped()).count();
        assert!(striped > 0 && space.device_free_extents(1).is_none(), "{data}");
        assert_eq!(kept_as_we_see_it(&space), kept_by_the_kernel(array.mountpoint.path()), "{data}");
        let reserved: Vec<u64> = space.groups.iter().map(|group| group.reserved_bytes).collect();
        assert!(reserved.iter().sum::<u64>() > 0, "{data}: {reserved:?}");
    }
}

#[test]
fn btrfs_without_a_free_space_tree_is_read_from_its_extents() {
    if !senesce_testkit::root_or_skip("mounts Btrfs images") {
        return;
    }
    let arguments = ["-R", "^free-space-tree"];
    equals_btrfs_own_figures(&arguments, "noatime,nodiscard", BtrfsSource::ExtentTree);
}

#[test]
fn free_extents_equal_those_of_dumped_trees() {
    if !senesce_testkit::root_or_skip("mounts a Btrfs image") {
        return;
    }
    let volume = Volume::new("btrfs", 600, &[], "noatime,nodiscard");
    fragment_free_space(&volume.mountpoint, 6000);
    volume.unmount();
    // The extent tree as another program prints it from the unmounted device: used space by block
    // group.
    let dump = run("btrfs", &["inspect-internal", "dump-tree", "-t", "extent", &volume.device]);
    let free_space_tree = run("btrfs", &["inspect-internal", "dump-tree", "-t", "10", &volume.device]);
    assert!(free_space_tree.contains("FREE_SPACE_BITMAP"), "the free space was to be kept in bitmaps");
    volume.mount();
    let space = collect_btrfs_free_space(&volume.mountpoint).unwrap();
    let node_bytes = 16384;
    let used: Vec<(u64, u64)> = dump
        .lines()
        // Keys also occur in the nodes above the leaves.
        .filter(|line| line.trim_start().starts_with("item "))
        .filter_map(|line| {
            let key = line.split_once("key (")?.1.split_once(')')?.0;
            let fields: Vec<&str> = key.split(' ').collect();
            let start = fields[0].parse().ok()?;
            match fields[1] {
                "EXTENT_ITEM" => Some((start, fields[2].parse().ok()?)),
                "METADATA_ITEM" => Some((start, node_bytes)),
                _ => None,
            }
        })
        .collect();
    assert!(used.len() > 1000, "the dump was to hold the files' extents, and has {}", used.len());
    for group in space.groups.iter().filter(|group| group.group_type.contains(BtrfsGroupType::DATA)) {
        // Data does not change by another mount.
        let mut at = group.start_bytes;
        let mut gaps = Vec::new();
        let inside = used.iter().filter(|(start, _)| (group.start_bytes..group.end_bytes()).contains(start));
        for (start, length) in inside.copied().chain([(group.end_bytes(), 0)]) {
            if start > at {
                gaps.push((at, start - at));
            }
            at = start + length;
        }
        let gap_bytes: u64 = gaps.iter().map(|gap| gap.1).sum();
        assert_eq!(group.free_bytes() + group.reserved_bytes, gap_bytes);
        if group.reserved_bytes == 0 {
            let ours: Vec<_> = group.free.iter().map(|free| (free.start_bytes, free.length_bytes)).collect();
            assert_eq!(ours, gaps);
        }
    }
}

#[test]
fn logical_extents_map_to_device_content() {
    use std::{fs::File, os::unix::fs::FileExt};
    if !senesce_testkit::root_or_skip("mounts a Btrfs image") {
        return;
    }
    let volume = Volume::new("btrfs", 600, &[], "noatime,nodiscard");
    let path = volume.path("file");
    let content: Vec<u8> = (0..1u32 << 18).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&path, &content).unwrap();
    let extents = senesce_probe::collect::collect_extents(&File::open(&path).unwrap(), &path).unwrap();
    let space = collect_btrfs_free_space(&volume.mountpoint).unwrap();
    let device = File::open(&volume.device).unwrap();
    for raw in extents {
        let (id, at) = space.device_position(raw.extent.physical).unwrap();
        assert_eq!(id, 1);
        let mut found = vec![0; raw.extent.length as usize];
        device.read_exact_at(&mut found, at).unwrap();
        let from = raw.extent.logical as usize;
        assert!(found == content[from..from + found.len()], "the content is not at {at}");
    }
}

#[test]
fn each_collector_refuses_other_file_systems() {
    if !senesce_testkit::root_or_skip("mounts an ext4 image") {
        return;
    }
    let btrfs = Volume::new("btrfs", 128, &[], "noatime,nodiscard");
    let error = collect_free_extents(&btrfs.mountpoint).unwrap_err();
    assert!(matches!(error, Error::NotSupported { magic: 0x9123_683E, .. }), "{error}");
    let ext4 = Volume::new("ext4", 16, &[], "noatime");
    let error = collect_btrfs_free_space(&ext4.mountpoint).unwrap_err();
    assert!(matches!(error, Error::NotSupported { magic: 0xEF53, .. }), "{error}");
}
