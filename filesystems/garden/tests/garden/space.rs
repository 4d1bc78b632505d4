//! The end of the space: operations that do not fit are refused completely, and deleting always
//! works.

use senesce_fsapi::{FileSystem, FsError, FsResult, Ino, NewNode, SetAttributes, SetXattrMode, Timestamp};
use senesce_garden::{FormatOptions, Garden, Limits, VolumeOptions};

use crate::{
    guard::guard,
    rig::{Rig, SEVERAL, SMALL, Shape, TIGHT, VOLUME, caller, findings, open, shared},
};

pub const NARROW: Shape = Shape { groups: &[(3, true)], media: &[], stripes: 160, log_bytes: 400 << 10 };

fn make(fs: &dyn FileSystem, name: &str) -> FsResult<Ino> {
    fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).map(|attributes| attributes.ino)
}

/// Makes files until the space is used up. Returns their names.
pub fn fill(fs: &dyn FileSystem, bytes: usize) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let name = format!("file {}", names.len());
        let ino = match make(fs, &name) {
            Ok(ino) => ino,
            Err(FsError::NoSpace) => return names,
            Err(error) => panic!("{error}"),
        };
        names.push(name);
        match fs.write(&caller(2), ino, 0, &vec![7; bytes]) {
            Ok(written) if written == bytes => {}
            Ok(written) => assert!(written > 0),
            Err(FsError::NoSpace) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn full_aggregate_can_be_emptied_and_filled_again() {
    for (bytes, limits) in [(100, TIGHT), (9000, TIGHT), (300_000, Limits::default())] {
        let mut rig = Rig::on(&NARROW, guard(&shared(NARROW.devices())), limits);
        let empty = rig.fs().space().unwrap().free;
        let mut filled = Vec::new();
        for round in 0..3 {
            let names = fill(rig.fs(), bytes);
            filled.push(names.len());
            let left = rig.fs().space().unwrap().free;
            assert!(left * 3 < empty, "{left} of {empty} blocks are left, files of {bytes} bytes");
            assert_eq!(rig.findings(), Vec::<String>::new(), "full, files of {bytes} bytes");
            if round == 1 {
                rig.open().unwrap();
            }
            for name in &names {
                rig.fs().unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
            }
            assert_eq!(rig.findings(), Vec::<String>::new(), "empty, files of {bytes} bytes");
            assert_eq!(rig.fs().space().unwrap().free, empty, "round {round}, files of {bytes} bytes");
        }
        assert_eq!(filled[0], filled[1]);
        assert_eq!(filled[1], filled[2]);
    }
}

#[test]
fn deletes_show_before_the_next_consistency_point() {
    let rig = Rig::on(&SMALL, shared(SMALL.devices()), Limits::default());
    let (fs, empty) = (rig.fs(), rig.fs().space().unwrap().free);
    let write = |name: &str| {
        let ino = make(fs, name).unwrap();
        fs.write(&caller(2), ino, 0, &[7; 400_000]).unwrap();
        rig.garden().consistency_point().unwrap();
    };
    let remove = |name: &str| fs.unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
    write("alone");
    let filled = fs.space().unwrap().free;
    assert!(filled + 97 < empty, "{filled} of {empty}");
    remove("alone");
    let shown = fs.space().unwrap().free;
    assert!(shown > filled + 90 && shown <= empty, "{shown} after {filled} of {empty}");
    assert!(!rig.garden().has_uncounted_removals());
    rig.garden().consistency_point().unwrap();
    let left = fs.space().unwrap().free;
    assert!(left >= shown, "{shown} blocks were shown, {left} are free");

    // Blocks of a snapshot do not become free. The count waits for the consistency point, and the
    // garden reports that.
    write("held");
    rig.garden().create_snapshot(VOLUME, b"monday", Timestamp::default()).unwrap();
    let held = fs.space().unwrap().free;
    remove("held");
    assert!(fs.space().unwrap().free <= held);
    assert!(rig.garden().has_uncounted_removals());
    rig.garden().consistency_point().unwrap();
    assert!(!rig.garden().has_uncounted_removals());
    assert!(fs.space().unwrap().free <= held);
}

/// Truncation to a length above 0 changes a block, which needs a new place before the old one is
/// free.
#[test]
fn files_on_a_full_aggregate_can_be_truncated() {
    let rig = Rig::on(&NARROW, guard(&shared(NARROW.devices())), TIGHT);
    let names = fill(rig.fs(), 60_000);
    // The remaining space is too small for a new file, but may suffice for blocks of an existing
    // one.
    let last = rig.fs().lookup(Ino::ROOT, names[0].as_bytes()).unwrap();
    while rig.fs().write(&caller(2), last.ino, last.size, &[8; 100]).is_ok() {
        for block in 0.. {
            if rig.fs().write(&caller(2), last.ino, last.size + 5000 * block, &[8; 5000]).is_err() {
                break;
            }
        }
        rig.garden().consistency_point().unwrap();
    }
    let mut cut = 0;
    for name in &names {
        let file = rig.fs().lookup(Ino::ROOT, name.as_bytes()).unwrap();
        for size in [40_961, 5000, 1].into_iter().filter(|size| *size < file.size) {
            let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
            assert_eq!(rig.fs().set_attributes(&caller(3), file.ino, &change).unwrap().size, size);
            cut += 1;
        }
    }
    assert!(cut > 20, "{cut} cuts");
    assert_eq!(rig.findings(), Vec::<String>::new());
    assert!(rig.fs().space().unwrap().free > 10 * names.len() as u64);
}

#[test]
fn full_volume_in_a_large_aggregate_is_emptied() {
    let devices = shared(SMALL.devices());
    crate::rig::format(&SMALL, &devices);
    let garden = open(&devices, TIGHT).unwrap();
    garden.create_volume(b"small", &VolumeOptions { blocks: 300, inodes: 100, seed: 1 }).unwrap();
    garden.create_volume(b"other", &VolumeOptions { blocks: 5000, inodes: 100, seed: 1 }).unwrap();
    let fs = garden.volume(b"small").unwrap();
    for _ in 0..3 {
        let names = fill(&fs, 8192);
        // Another volume of the aggregate remains usable.
        let other = garden.volume(b"other").unwrap();
        let ino = make(&other, "file").unwrap();
        assert_eq!(other.write(&caller(1), ino, 0, &[1; 50_000]).unwrap(), 50_000);
        other.unlink(&caller(1), Ino::ROOT, b"file").unwrap();
        for name in &names {
            fs.unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
        }
        garden.consistency_point().unwrap();
        assert_eq!(findings(&devices), Vec::<String>::new());
    }
}

#[test]
fn exhausted_inodes_mean_no_space() {
    let devices = shared(SMALL.devices());
    crate::rig::format(&SMALL, &devices);
    let garden = open(&devices, TIGHT).unwrap();
    garden.create_volume(b"few", &VolumeOptions { blocks: 500, inodes: 64, seed: 1 }).unwrap();
    let fs = garden.volume(b"few").unwrap();
    let names = fill(&fs, 1);
    assert_eq!(names.len(), 64 - 16);
    let ino = fs.lookup(Ino::ROOT, b"file 3").unwrap().ino;
    let refused = fs.set_xattr(&caller(1), ino, b"user.a", b"b", SetXattrMode::Any);
    assert!(matches!(refused, Err(FsError::NoSpace)), "{refused:?}");
    fs.unlink(&caller(1), Ino::ROOT, b"file 7").unwrap();
    fs.set_xattr(&caller(1), ino, b"user.a", b"b", SetXattrMode::Any).unwrap();
    assert_eq!(fs.space().unwrap().free_inodes, 0);
}

#[test]
fn truncating_a_file_frees_space() {
    let rig = Rig::new(&NARROW, TIGHT);
    let ino = make(rig.fs(), "large").unwrap();
    let mut written = 0;
    while let Ok(more) = rig.fs().write(&caller(1), ino, written, &[3; 10_000]) {
        written += more as u64;
    }
    fill(rig.fs(), 1);
    let change = SetAttributes { size: Some(0), ..SetAttributes::default() };
    rig.fs().set_attributes(&caller(2), ino, &change).unwrap();
    assert_eq!(rig.fs().write(&caller(3), ino, 0, &[4; 100_000]).unwrap(), 100_000);
    assert_eq!(rig.findings(), Vec::<String>::new());
}

#[test]
fn aggregate_too_small_for_its_maps_is_refused() {
    let shape = Shape { stripes: 20, ..NARROW };
    let devices = shared(shape.devices());
    let (log, drives) = devices.split_last().unwrap();
    let refused = Garden::format(&shape.options(), drives.to_vec(), log.clone());
    assert_eq!(refused.unwrap_err().to_string(), "60 blocks are too few for an aggregate");
}

#[test]
fn area_sizes_are_per_group_or_common() {
    let shape = Shape { stripes: 256, ..SEVERAL };
    for (sizes, wrong) in [(&[][..], true), (&[64], false), (&[64, 32], true), (&[64, 32, 16], false)] {
        let devices = shared(shape.devices());
        let (log, drives) = devices.split_last().unwrap();
        let options = FormatOptions { aa_stripes: sizes.to_vec(), ..shape.options() };
        let made = Garden::format(&options, drives.to_vec(), log.clone());
        let told = made.err().map(|error| error.to_string());
        let expected = format!("{} sizes of allocation areas for 3 RAID groups", sizes.len());
        assert_eq!(told, wrong.then_some(expected), "{sizes:?}");
    }
}

/// Opening removes files that were held at the loss of power. It has no additional space for that.
#[test]
fn full_aggregate_opens_with_many_orphans() {
    let mut rig = Rig::new(&NARROW, Limits::default());
    let ballast = make(rig.fs(), "ballast").unwrap();
    let names = fill(rig.fs(), 100);
    // One inode of each block stays, so the block changes and does not become a hole.
    let orphans: Vec<&String> = (0..).zip(&names).filter(|(at, _)| at % 16 != 0).map(|(_, name)| name).collect();
    for name in &orphans {
        let ino = rig.fs().lookup(Ino::ROOT, name.as_bytes()).unwrap().ino;
        rig.fs().open(ino).unwrap();
        rig.fs().unlink(&caller(3), Ino::ROOT, name.as_bytes()).unwrap();
    }
    let mut written = 0;
    while let Ok(more) = rig.fs().write(&caller(1), ballast, written, &[3; 10_000]) {
        written += more as u64;
    }
    rig.open().unwrap();
    assert_eq!(rig.findings(), Vec::<String>::new());
    let left = rig.fs().space().unwrap();
    let kept = 1 + (names.len() - orphans.len()) as u64;
    assert_eq!(left.inodes - left.free_inodes, kept, "{} orphans, {written} bytes of ballast", orphans.len());
}
