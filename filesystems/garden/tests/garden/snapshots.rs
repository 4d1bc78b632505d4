//! Snapshots keep their contents through changes of the volume, the drives and other snapshots.
//! Deleting one frees the space that only it used.

use senesce_fsapi::{
    FileSystem, FsError, Ino, NewNode, Timestamp,
    conformance::{collect_tree, find_difference},
};
use senesce_garden::{Garden, Limits, VolumeOptions};

use crate::{
    guard::guard,
    rig::{LARGE, Rig, SMALL, Shape, TIGHT, VOLUME, caller, shared},
};

const NOW: Timestamp = Timestamp { seconds: 77, nanoseconds: 5 };

pub fn make(fs: &dyn FileSystem, name: &str, bytes: &[u8]) -> Ino {
    let ino = fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    assert_eq!(fs.write(&caller(1), ino, 0, bytes).unwrap(), bytes.len());
    ino
}

fn names(garden: &Garden) -> Vec<String> {
    let all = garden.snapshots(VOLUME).unwrap();
    all.into_iter().map(|snapshot| String::from_utf8(snapshot.name).unwrap()).collect()
}

#[test]
fn snapshot_is_immutable() {
    let mut rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
    let kept = make(rig.fs(), "kept", &[1; 300_000]);
    make(rig.fs(), "gone", &[2; 20_000]);
    rig.garden().create_snapshot(VOLUME, b"monday", NOW).unwrap();
    let before = collect_tree(rig.fs()).unwrap();
    rig.fs().write(&caller(2), kept, 5000, &[3; 100_000]).unwrap();
    rig.fs().unlink(&caller(2), Ino::ROOT, b"gone").unwrap();
    make(rig.fs(), "new", &[4; 9000]);
    rig.garden().create_snapshot(VOLUME, b"tuesday", NOW).unwrap();
    let after = collect_tree(rig.fs()).unwrap();
    rig.fs().unlink(&caller(2), Ino::ROOT, b"kept").unwrap();
    assert_eq!(names(rig.garden()), ["monday", "tuesday"]);
    for _ in 0..2 {
        assert_eq!(rig.findings(), Vec::<String>::new());
        let monday = rig.garden().snapshot(VOLUME, b"monday").unwrap();
        let tuesday = rig.garden().snapshot(VOLUME, b"tuesday").unwrap();
        assert_eq!(find_difference(&before, &collect_tree(&monday).unwrap()), None);
        assert_eq!(find_difference(&after, &collect_tree(&tuesday).unwrap()), None);
        let refused: [Result<(), FsError>; 5] = [
            monday.write(&caller(3), kept, 0, &[1]).map(|_| ()),
            monday.unlink(&caller(3), Ino::ROOT, b"kept"),
            monday.make_node(&caller(3), Ino::ROOT, b"x", &NewNode::file(0)).map(|_| ()),
            monday.set_attributes(&caller(3), kept, &Default::default()).map(|_| ()),
            monday.remove_xattr(&caller(3), kept, b"user.a"),
        ];
        for result in refused {
            assert!(matches!(result, Err(FsError::ReadOnly)), "{result:?}");
        }
        monday.open(kept).unwrap();
        monday.release(kept, NOW).unwrap();
        assert_eq!(monday.space().unwrap().free, 0);
        rig.open().unwrap();
    }
    let monday = rig.garden().snapshot(VOLUME, b"monday").unwrap();
    rig.garden().delete_snapshot(VOLUME, b"monday").unwrap();
    assert!(matches!(monday.lookup(Ino::ROOT, b"kept"), Err(FsError::Stale)));
    assert_eq!(rig.findings(), Vec::<String>::new());
    rig.garden().create_snapshot(VOLUME, b"wednesday", NOW).unwrap();
    assert!(matches!(monday.lookup(Ino::ROOT, b"kept"), Err(FsError::Stale)), "another one has its slot");
    let tuesday = rig.garden().snapshot(VOLUME, b"tuesday").unwrap();
    assert_eq!(find_difference(&after, &collect_tree(&tuesday).unwrap()), None);
    assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
    assert_eq!(find_difference(&after, &collect_tree(&tuesday).unwrap()), None);
    assert_eq!(names(rig.garden()), ["tuesday", "wednesday"]);
    assert_eq!(rig.findings(), Vec::<String>::new());
}

#[test]
fn invalid_snapshot_names_are_refused() {
    let rig = Rig::new(&SMALL, Limits::default());
    let garden = rig.garden();
    garden.create_snapshot(VOLUME, b"a", NOW).unwrap();
    let told = |result: senesce_garden::Result<()>| result.unwrap_err().to_string();
    assert_eq!(told(garden.create_snapshot(VOLUME, b"a", NOW)), "a snapshot a exists");
    assert_eq!(
        told(garden.create_snapshot(VOLUME, b"", NOW)),
        "the name of a snapshot has 0 bytes; 1 to 128 are possible"
    );
    assert_eq!(
        told(garden.create_snapshot(VOLUME, &[b'x'; 129], NOW)),
        "the name of a snapshot has 129 bytes; 1 to 128 are possible"
    );
    assert_eq!(told(garden.create_snapshot(b"other", b"a", NOW)), "no volume other");
    assert_eq!(told(garden.delete_snapshot(VOLUME, b"b")), "volume home has no snapshot b");
    assert_eq!(garden.snapshot(VOLUME, b"b").err().unwrap().to_string(), "volume home has no snapshot b");
    assert_eq!(garden.snapshots(VOLUME).unwrap()[0].created, NOW);
}

#[test]
fn deleting_everything_restores_the_free_space() {
    // The volume is smaller than the aggregate and limits the space.
    let mut rig = small_volume(&LARGE, 5000);
    rig.garden().consistency_point().unwrap();
    let (before, space) = (rig.garden().report().free, rig.fs().space().unwrap());
    for round in 0..2 {
        for number in 0..12_u8 {
            make(rig.fs(), &format!("file {number}"), &vec![number; 40_000 * usize::from(number)]);
            if number % 3 == 0 {
                rig.garden().create_snapshot(VOLUME, format!("snapshot {number}").as_bytes(), NOW).unwrap();
            }
        }
        for number in 0..12 {
            rig.fs().unlink(&caller(1), Ino::ROOT, format!("file {number}").as_bytes()).unwrap();
        }
        rig.garden().consistency_point().unwrap();
        assert!(rig.garden().report().free + 400 < before, "snapshots hold the deleted blocks");
        for number in [6, 0, 9, 3] {
            assert_eq!(rig.findings(), Vec::<String>::new());
            rig.garden().delete_snapshot(VOLUME, format!("snapshot {number}").as_bytes()).unwrap();
            if round == 1 {
                rig.open().unwrap();
            }
        }
        assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
        assert_eq!(rig.findings(), Vec::<String>::new());
        // The container map may have one or two blocks more, because other VVBNs are in use.
        assert!(before - rig.garden().report().free <= 2, "round {round}: {}", rig.garden().report().free);
        assert_eq!(rig.fs().space().unwrap(), space, "round {round}");
    }
}

/// A guarded volume of `blocks` blocks.
fn small_volume(shape: &Shape, blocks: u64) -> Rig {
    let devices = guard(&shared(shape.devices()));
    crate::rig::format(shape, &devices);
    let garden = crate::rig::open(&devices, TIGHT).unwrap();
    garden.create_volume(VOLUME, &VolumeOptions { blocks, inodes: 200, seed: 3 }).unwrap();
    Rig { fs: Some(garden.volume(VOLUME).unwrap()), garden: Some(garden), ..Rig::closed(devices, TIGHT) }
}

const NARROW: Shape = Shape { groups: &[(3, true)], media: &[], stripes: 240, log_bytes: 400 << 10 };

/// Makes files of some blocks until the space is used up.
fn fill(fs: &dyn FileSystem, names: &mut Vec<String>) {
    for number in names.len().. {
        let name = format!("file {number}");
        match fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)) {
            Ok(made) => {
                names.push(name);
                match fs.write(&caller(1), made.ino, 0, &[7; 9000]) {
                    Ok(9000) => continue,
                    Ok(_) | Err(FsError::NoSpace) => return,
                    Err(error) => panic!("{error}"),
                }
            }
            Err(FsError::NoSpace) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Removes files until that fails. Returns the number of remaining files.
fn empty(fs: &dyn FileSystem, names: &mut Vec<String>) -> usize {
    while let Some(name) = names.last() {
        match fs.unlink(&caller(1), Ino::ROOT, name.as_bytes()) {
            Ok(()) => drop(names.pop()),
            Err(FsError::NoSpace) => break,
            Err(error) => panic!("{error}"),
        }
    }
    names.len()
}

#[test]
fn snapshots_of_a_full_volume_can_be_deleted() {
    for (is_small, snapshots) in [(false, 1), (false, 4), (true, 3)] {
        let told = format!("{snapshots} snapshots, small volume: {is_small}");
        let mut rig = if is_small { small_volume(&SMALL, 400) } else { small_volume(&NARROW, 5000) };
        let start = (rig.garden().report().free, rig.fs().space().unwrap().free);
        let mut names = Vec::new();
        for number in 0..snapshots {
            for _ in 0..4 {
                let name = format!("file {}", names.len());
                make(rig.fs(), &name, &[number; 9000]);
                names.push(name);
            }
            rig.garden().create_snapshot(VOLUME, format!("{number}").as_bytes(), NOW).unwrap();
        }
        fill(rig.fs(), &mut names);
        let full = names.len();
        assert_eq!(rig.findings(), Vec::<String>::new(), "{told}");
        // A snapshot of everything, if there is space for it. Then deleting a file frees nothing.
        let of_all = rig.garden().create_snapshot(VOLUME, b"all", NOW).is_ok();
        let before = rig.fs().space().unwrap().free;
        let left = empty(rig.fs(), &mut names);
        rig.garden().consistency_point().unwrap();
        assert!(!of_all || rig.fs().space().unwrap().free <= before, "{told}");
        assert_eq!(rig.findings(), Vec::<String>::new(), "{told}, {left} of {full} files left");
        rig.open().unwrap();
        for name in rig.garden().snapshots(VOLUME).unwrap().into_iter().map(|snapshot| snapshot.name).rev() {
            rig.garden().delete_snapshot(VOLUME, &name).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(rig.findings(), Vec::<String>::new(), "{told}");
        }
        assert_eq!(empty(rig.fs(), &mut names), 0, "{told}");
        rig.garden().reclaim_step(u64::MAX).unwrap();
        assert_eq!(rig.findings(), Vec::<String>::new(), "{told}");
        let end = (rig.garden().report().free, rig.fs().space().unwrap().free);
        assert!(start.0.abs_diff(end.0) <= 2 && start.1.abs_diff(end.1) <= 2, "{told}: {end:?}, not {start:?}");
        assert!(!is_small || start.1 == end.1, "{told}: {end:?}, not {start:?}");
    }
}

/// Blocks of deleted snapshots are reclaimed before an operation is refused.
#[test]
fn deleted_snapshots_are_reclaimed_before_refusing_writes() {
    let rig = Rig::new(&NARROW, TIGHT);
    let mut names = Vec::new();
    fill(rig.fs(), &mut names);
    let full = names.len();
    let half = full / 2;
    for name in names.drain(half..) {
        rig.fs().unlink(&caller(1), Ino::ROOT, name.as_bytes()).unwrap();
    }
    rig.garden().create_snapshot(VOLUME, b"a", NOW).unwrap();
    assert_eq!(empty(rig.fs(), &mut names), 0);
    rig.garden().delete_snapshot(VOLUME, b"a").unwrap();
    fill(rig.fs(), &mut names);
    assert!(names.len() + 2 >= full, "{} files, {full} before", names.len());
    assert_eq!(rig.findings(), Vec::<String>::new());
}

#[test]
fn volume_is_restored_from_a_snapshot() {
    let mut rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
    make(rig.fs(), "kept", &[1; 300_000]);
    rig.garden().create_snapshot(VOLUME, b"a", NOW).unwrap();
    let want = collect_tree(rig.fs()).unwrap();
    let free = rig.garden().report().free;
    rig.fs().unlink(&caller(2), Ino::ROOT, b"kept").unwrap();
    let other = make(rig.fs(), "other", &[2; 500_000]);
    rig.fs().open(other).unwrap();
    let refused = rig.garden().restore_snapshot(VOLUME, b"a").unwrap_err();
    assert_eq!(refused.to_string(), "in use");
    rig.fs().release(other, NOW).unwrap();
    rig.garden().restore_snapshot(VOLUME, b"a").unwrap();
    for _ in 0..2 {
        assert_eq!(find_difference(&want, &collect_tree(rig.fs()).unwrap()), None);
        assert_eq!(rig.findings(), Vec::<String>::new());
        assert_eq!(rig.garden().diff(VOLUME, b"a", None).unwrap(), []);
        rig.open().unwrap();
    }
    assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
    assert!(rig.garden().report().free.abs_diff(free) < 12, "{} of {free}", rig.garden().report().free);
    make(rig.fs(), "new", &[3; 100_000]);
    rig.garden().delete_snapshot(VOLUME, b"a").unwrap();
    rig.garden().reclaim_step(u64::MAX).unwrap();
    assert_eq!(rig.findings(), Vec::<String>::new());
}

#[test]
fn restore_frees_files_held_in_the_snapshot() {
    let rig = small_volume(&LARGE, 5000);
    rig.garden().consistency_point().unwrap();
    let before = rig.fs().space().unwrap();
    let held = make(rig.fs(), "held", &[1; 100_000]);
    rig.fs().open(held).unwrap();
    rig.fs().unlink(&caller(2), Ino::ROOT, b"held").unwrap();
    rig.garden().create_snapshot(VOLUME, b"a", NOW).unwrap();
    assert_eq!(rig.fs().space().unwrap().free_inodes, before.free_inodes - 1);
    rig.fs().release(held, NOW).unwrap();
    for _ in 0..2 {
        rig.garden().restore_snapshot(VOLUME, b"a").unwrap();
        assert_eq!(rig.fs().space().unwrap().free_inodes, before.free_inodes);
        assert_eq!(rig.findings(), Vec::<String>::new());
    }
    rig.garden().delete_snapshot(VOLUME, b"a").unwrap();
    assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
    assert_eq!(rig.findings(), Vec::<String>::new());
    assert_eq!(rig.fs().space().unwrap(), before);
}
