//! GETFSMAP against `e2freefrag` and `xfs_spaceman`, to the last extent.

use senesce_probe::{
    collect::{collect_free_extents, collect_xfs_inode_chunk_bytes},
    score::compute_free_space,
};

use crate::support::{Volume, fragment_free_space, run};

#[test]
fn ext4_equals_e2freefrag() {
    if !senesce_testkit::root_or_skip("mounts an ext4 image") {
        return;
    }
    let volume = Volume::new("ext4", 64, &["-b", "4096"], "noatime");
    fragment_free_space(&volume.mountpoint, 4000);
    // After the unmount, the bitmaps on the device are exact.
    volume.unmount();
    let report = run("e2freefrag", &[&volume.device]);
    volume.mount();
    let free = collect_free_extents(&volume.mountpoint).unwrap();
    let figures = compute_free_space(free.iter().map(|extent| extent.length_bytes));
    let after = |label: &str| {
        let line = report.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{label}: {report}"));
        line[label.len()..].split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(figures.bytes, after("Free blocks:") * 4096, "{report}");
    assert_eq!(figures.largest_bytes >> 10, after("Max. free extent:"), "{report}");
    assert_eq!(figures.extents, after("Num. free extent:"), "{report}");
    assert!(figures.extents > 500, "the free space was to be fragmented: {figures:?}");
    // Rows of its histogram: `4K...    8K-  :   707   707   5.35%`: extents, then blocks.
    let theirs: Vec<(u64, u64, u64)> = report
        .lines()
        .filter_map(|line| {
            let (range, counts) = line.split_once(":")?;
            let start = range.trim().split("...").next().filter(|_| range.contains("..."))?;
            let mut counts = counts.split_whitespace().map(|n| n.parse::<u64>().unwrap_or(0));
            let (extents, blocks) = (counts.next()?, counts.next()?);
            Some((start.replace('K', "k").parse::<senesce_core::Bytes>().ok()?.0, extents, blocks * 4096))
        })
        .collect();
    let ours: Vec<_> = figures.buckets.iter().map(|b| (b.bucket_bytes, b.extents, b.bytes)).collect();
    let ours: Vec<_> = ours.into_iter().filter(|row| row.1 > 0).collect();
    assert_eq!(ours, theirs, "{report}");
}

#[test]
fn xfs_equals_spaceman() {
    if !senesce_testkit::root_or_skip("mounts an XFS image") {
        return;
    }
    for rmap in ["rmapbt=0", "rmapbt=1"] {
        let volume = Volume::new("xfs", 300, &["-b", "size=4096", "-m", rmap], "noatime");
        fragment_free_space(&volume.mountpoint, 6000);
        volume.unmount();
        volume.mount();
        let free = collect_free_extents(&volume.mountpoint).unwrap();
        let figures = compute_free_space(free.iter().map(|extent| extent.length_bytes));
        assert!(figures.extents > 500, "the free space was to be fragmented: {figures:?}");
        let report = run("xfs_spaceman", &["-c", "freesp -s", volume.mountpoint.to_str().unwrap()]);
        let after = |label: &str| {
            let line =
                report.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{label}: {report}"));
            line[label.len()..].trim().parse::<u64>().unwrap()
        };
        assert_eq!(figures.extents, after("total free extents"), "{rmap}: {report}");
        assert_eq!(figures.bytes, after("total free blocks") * 4096, "{rmap}: {report}");
        // Rows: from, to, extents, blocks, percent; by powers of two of blocks.
        let theirs: Vec<(u64, u64, u64)> = report
            .lines()
            .filter_map(|line| {
                let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
                (fields.len() >= 4).then(|| (fields[0] * 4096, fields[2], fields[3] * 4096))
            })
            .collect();
        let ours: Vec<_> =
            figures.buckets.iter().filter(|b| b.extents > 0).map(|b| (b.bucket_bytes, b.extents, b.bytes)).collect();
        assert_eq!(ours, theirs, "{rmap}: {report}");
    }
}

#[test]
fn xfs_reports_its_inode_chunk_size() {
    if !senesce_testkit::root_or_skip("mounts XFS and ext4 images") {
        return;
    }
    for inode_bytes in [512, 1024] {
        let volume = Volume::new("xfs", 300, &["-i", &format!("size={inode_bytes}")], "noatime");
        assert_eq!(collect_xfs_inode_chunk_bytes(&volume.mountpoint).unwrap(), Some(inode_bytes * 64));
    }
    let volume = Volume::new("ext4", 16, &[], "noatime");
    assert_eq!(collect_xfs_inode_chunk_bytes(&volume.mountpoint).unwrap(), None);
}
