//! Surveys of mounted trees: complete, in one order, without any change to the volume.

use std::{collections::HashMap, fs, os::unix::fs::symlink, path::Path};

use senesce_core::never;
use senesce_probe::collect::{EntryKind, SurveyFigures, Surveyed, collect_survey, collect_tree_extents};

use super::support::{Volume, run, write_fragmented};

fn survey(root: &Path, threads: usize) -> (Vec<Surveyed>, SurveyFigures) {
    let mut found = Vec::new();
    let figures = collect_survey(root, threads, &mut |entry| {
        found.push(entry);
        true
    });
    (found, figures.unwrap())
}

fn a_survey_is_complete_and_changes_nothing(volume: &Volume) {
    let sub = volume.path("sub");
    fs::create_dir(&sub).unwrap();
    for number in 0..3000usize {
        fs::write(sub.join(number.to_string()), vec![7; number * 3]).unwrap();
    }
    write_fragmented(&volume.mountpoint, 3, 20);
    fs::hard_link(sub.join("9"), volume.path("again")).unwrap();
    symlink("/", volume.path("away")).unwrap();
    // All data is on the device, and access times are old enough for a read to update them.
    volume.unmount();
    volume.mount();
    let below = sub.join("mounted");
    fs::create_dir(&below).unwrap();
    run("sync", &["-f", sub.to_str().unwrap()]);
    run("mount", &["-t", "tmpfs", "none", below.to_str().unwrap()]);
    fs::write(below.join("elsewhere"), "not here").unwrap();
    let accessed = |path: &Path| fs::metadata(path).unwrap().accessed().unwrap();
    let before = (accessed(&sub), accessed(&sub.join("2999")));
    let writes = || fs::read_to_string(Path::new("/sys/block").join(&volume.device[5..]).join("stat")).unwrap();
    let written = |stat: String| stat.split_whitespace().nth(6).unwrap().to_owned();
    let sectors_before = written(writes());

    let (one, figures) = survey(&volume.mountpoint, 1);
    let (many, same) = survey(&volume.mountpoint, 4);
    senesce_testkit::unmount(&below);
    assert_eq!(figures.errors, []);
    assert_eq!((figures.files, figures.further_links, figures.mounts_passed), (3003, 1, 1));
    assert_eq!((&one, &figures), (&many, &same), "neither order nor content depends on the threads");
    assert_eq!((accessed(&sub), accessed(&sub.join("2999"))), before);
    assert_eq!(written(writes()), sectors_before, "sectors were written");

    let by_path: HashMap<_, _> = one.iter().map(|entry| (entry.path.to_string(), entry)).collect();
    assert!(one[0].path.is_root() && one[0].kind == EntryKind::Directory);
    collect_tree_extents(&volume.mountpoint, 2, &never, &mut |file| {
        assert_eq!(by_path[&file.path.to_string()].extents, file.extents, "{}", file.path);
    })
    .unwrap();
    let mut seen = 0;
    collect_survey(&volume.mountpoint, 2, &mut |_| {
        seen += 1;
        seen < 5
    })
    .unwrap();
    assert_eq!(seen, 5, "it stops when `visit` returns false");
}

#[test]
fn ext4_is_surveyed() {
    if senesce_testkit::root_or_skip("mounts an ext4 image") {
        a_survey_is_complete_and_changes_nothing(&Volume::new("ext4", 128, &[], "strictatime"));
    }
}

#[test]
fn xfs_is_surveyed() {
    if senesce_testkit::root_or_skip("mounts an XFS image") {
        a_survey_is_complete_and_changes_nothing(&Volume::new("xfs", 300, &[], "strictatime,allocsize=4k"));
    }
}

#[test]
fn btrfs_is_surveyed() {
    if senesce_testkit::root_or_skip("mounts a Btrfs image") {
        a_survey_is_complete_and_changes_nothing(&Volume::new("btrfs", 256, &[], "strictatime"));
    }
}
