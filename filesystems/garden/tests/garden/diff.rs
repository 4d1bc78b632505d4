//! Differences between snapshots: they are complete, contain nothing equal, and equal parts are not
//! read.

use std::{collections::BTreeMap, ops::Range};

use senesce_core::{Rng, Seed};
use senesce_fsapi::{FallocateMode, FileKind, FileSystem, Ino, NewNode, SetAttributes, SetXattrMode, Timestamp};
use senesce_garden::{Change, InodeChange, Limits};

use crate::rig::{LARGE, Rig, SMALL, TIGHT, VOLUME, caller};

const NOW: Timestamp = Timestamp { seconds: 5, nanoseconds: 0 };
const BLOCK: usize = 4096;

fn make(fs: &dyn FileSystem, name: &str, bytes: usize) -> Ino {
    let ino = fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    fs.write(&caller(1), ino, 0, &vec![name.as_bytes()[0]; bytes]).unwrap();
    ino
}

/// Ranges of blocks from their first block to the one after their last.
fn runs(ends: &[(u64, u64)]) -> Vec<Range<u64>> {
    ends.iter().map(|&(first, end)| first..end).collect()
}

fn changed(ino: Ino, attributes: bool, blocks: &[(u64, u64)]) -> InodeChange {
    let change = Change::Changed { attributes };
    InodeChange { ino: ino.0, kind: FileKind::File, change, blocks: runs(blocks) }
}

#[test]
fn diff_reports_exactly_the_changes() {
    let rig = Rig::new(&SMALL, Limits::default());
    let (fs, garden) = (rig.fs(), rig.garden());
    let same = make(fs, "same", 50_000);
    let [over, longer, shorter, small, gone, spilt] =
        [("over", 50_000), ("longer", 9000), ("shorter", 60_000), ("small", 100), ("gone", 5000), ("tiny", 100)]
            .map(|(name, bytes)| make(fs, name, bytes));
    garden.create_snapshot(VOLUME, b"a", NOW).unwrap();
    let time = || caller(1);
    fs.write(&time(), over, 5 * BLOCK as u64, &[9; 2 * BLOCK]).unwrap();
    fs.write(&time(), longer, 12 * BLOCK as u64, &[9; BLOCK]).unwrap();
    fs.set_attributes(&time(), shorter, &SetAttributes { size: Some(BLOCK as u64), ..Default::default() }).unwrap();
    fs.write(&time(), small, 0, &[9; 10]).unwrap();
    fs.write(&time(), spilt, 0, &[9; 3 * BLOCK]).unwrap();
    fs.set_xattr(&time(), same, b"user.a", &[7; 300], SetXattrMode::Any).unwrap();
    fs.unlink(&time(), Ino::ROOT, b"gone").unwrap();
    garden.create_snapshot(VOLUME, b"b", NOW).unwrap();
    let new = make(fs, "new", 20_000);
    fs.set_xattr(&time(), same, b"user.a", &[8; 300], SetXattrMode::Any).unwrap();
    assert_eq!(new, gone, "the number is reused");

    let is_user = |change: &InodeChange| change.ino != Ino::ROOT.0;
    let diff = |from: &[u8], to| garden.diff(VOLUME, from, to).unwrap().into_iter().filter(is_user).collect::<Vec<_>>();
    let removed = InodeChange { ino: gone.0, kind: FileKind::File, change: Change::Removed, blocks: vec![] };
    let mut want = vec![
        changed(same, true, &[]),
        changed(over, false, &[(5, 7)]),
        changed(longer, true, &[(12, 13)]),
        changed(shorter, true, &[(1, 15)]),
        changed(small, false, &[(0, 1)]),
        removed.clone(),
        changed(spilt, true, &[(0, 3)]),
    ];
    want.sort_by_key(|change| change.ino);
    assert_eq!(diff(b"a", Some(b"b")), want);
    let created = InodeChange { change: Change::Created, blocks: runs(&[(0, 5)]), ..removed.clone() };
    assert_eq!(diff(b"b", None), [changed(same, true, &[]), created.clone()]);
    let at = want.iter().position(|change| *change == removed).unwrap();
    want.insert(at + 1, created);
    assert_eq!(diff(b"a", None), want);
    assert_eq!(garden.diff(VOLUME, b"a", Some(b"a")).unwrap(), []);
    let root = garden.diff(VOLUME, b"a", Some(b"b")).unwrap().remove(0);
    assert_eq!((root.ino, root.kind, root.blocks), (Ino::ROOT.0, FileKind::Directory, runs(&[(0, 1)])));
}

#[test]
fn cost_of_a_diff_depends_on_the_changes() {
    let mut rig = Rig::new(&LARGE, Limits::default());
    let files: Vec<Ino> = (0..300).map(|number| make(rig.fs(), &format!("file {number}"), 40_000)).collect();
    let large = make(rig.fs(), "large", 12 << 20);
    rig.garden().create_snapshot(VOLUME, b"a", NOW).unwrap();
    rig.fs().write(&caller(2), files[170], 2 * BLOCK as u64, &[1; BLOCK]).unwrap();
    rig.fs().write(&caller(2), large, 2700 * BLOCK as u64, &[1; BLOCK]).unwrap();
    rig.garden().create_snapshot(VOLUME, b"b", NOW).unwrap();
    rig.open().unwrap();
    let before = rig.garden().report().counts.volume_reads;
    let diff = rig.garden().diff(VOLUME, b"a", Some(b"b")).unwrap();
    let reads = rig.garden().report().counts.volume_reads - before;
    assert_eq!(diff, [changed(files[170], true, &[(2, 3)]), changed(large, true, &[(2700, 2701)])]);
    // In each tree: the pointers of the inode file and one or two of its blocks, and two levels of
    // pointers of the large file.
    assert!(reads <= 12, "{reads} blocks were read, of more than 6,000");
}

/// A file in a tree: its attributes, contents and extended attributes.
type Seen = (String, Vec<u8>, Vec<Vec<u8>>);

fn collect_files(fs: &dyn FileSystem) -> BTreeMap<u64, Seen> {
    let mut files = BTreeMap::new();
    for number in 0..20 {
        let Ok(found) = fs.lookup(Ino::ROOT, format!("file {number}").as_bytes()) else { continue };
        let mut contents = vec![0; found.size as usize];
        fs.read(found.ino, 0, &mut contents).unwrap();
        let value = fs.get_xattr(found.ino, b"user.a").into_iter().collect();
        files.insert(
            found.ino.0,
            (format!("{:?}", senesce_fsapi::Attributes { allocated: 0, ..found }), contents, value),
        );
    }
    files
}

fn change_something(rng: &mut Rng, fs: &dyn FileSystem, second: i64) {
    let name = format!("file {}", rng.below(20));
    let caller = caller(second);
    let Ok(found) = fs.lookup(Ino::ROOT, name.as_bytes()) else {
        let ino = fs.make_node(&caller, Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
        fs.write(&caller, ino, rng.below(90_000), &vec![second as u8; rng.below(30_000) as usize]).unwrap();
        return;
    };
    match rng.below(6) {
        0 => fs.unlink(&caller, Ino::ROOT, name.as_bytes()).unwrap(),
        1 => {
            let size = Some([0, 100, 4096, 41_000, 90_000][rng.below(5) as usize]);
            fs.set_attributes(&caller, found.ino, &SetAttributes { size, ..Default::default() }).map(|_| ()).unwrap();
        }
        2 => fs.allocate(&caller, found.ino, FallocateMode::Punch, rng.below(50_000), 1 + rng.below(50_000)).unwrap(),
        3 => {
            let value = vec![second as u8; 1 + rng.below(300) as usize];
            fs.set_xattr(&caller, found.ino, b"user.a", &value, SetXattrMode::Any).unwrap();
        }
        _ => {
            let data = vec![second as u8; 1 + rng.below(20_000) as usize];
            fs.write(&caller, found.ino, rng.below(200_000), &data).map(|_| ()).unwrap();
        }
    }
}

/// Checks a diff against the contents of both trees.
fn check_diff(before: &BTreeMap<u64, Seen>, after: &BTreeMap<u64, Seen>, diff: &[InodeChange]) {
    for ino in before.keys().chain(after.keys()) {
        let told: Vec<&InodeChange> = diff.iter().filter(|change| change.ino == *ino).collect();
        let (one, other) = (before.get(ino), after.get(ino));
        match (&told[..], one, other) {
            ([], one, other) => assert_eq!(one, other, "inode {ino} was left out"),
            ([InodeChange { change: Change::Created, .. }], None, Some(_))
            | ([InodeChange { change: Change::Removed, .. }], Some(_), None)
            | ([_, _], Some(_), Some(_)) => {}
            ([InodeChange { change: Change::Changed { attributes }, blocks, .. }], Some(one), Some(other)) => {
                if !attributes {
                    assert_eq!((&one.0, &one.2), (&other.0, &other.2), "inode {ino}");
                }
                let end = one.1.len().max(other.1.len()).div_ceil(BLOCK);
                for block in (0..end).filter(|block| !blocks.iter().any(|run| run.contains(&(*block as u64)))) {
                    let part = |seen: &Seen| {
                        let mut whole = seen.1.clone();
                        whole.resize(end * BLOCK, 0);
                        whole[block * BLOCK..(block + 1) * BLOCK].to_vec()
                    };
                    assert_eq!(part(one), part(other), "inode {ino}, block {block} was left out: {blocks:?}");
                }
                assert!(*attributes || !blocks.is_empty());
            }
            other => panic!("inode {ino}: {other:?}"),
        }
    }
}

#[test]
fn diff_matches_a_full_comparison() {
    let rig = Rig::new(&LARGE, TIGHT);
    let mut rng = Rng::for_purpose(Seed(3), "diff");
    let mut seen: Vec<BTreeMap<u64, Seen>> = Vec::new();
    let mut second = 10;
    for round in 0..12 {
        for _ in 0..25 {
            second += 1;
            change_something(&mut rng, rig.fs(), second);
        }
        rig.garden().create_snapshot(VOLUME, format!("{round}").as_bytes(), NOW).unwrap();
        seen.push(collect_files(rig.fs()));
        for (from, before) in seen.iter().enumerate() {
            let diff = rig.garden().diff(VOLUME, format!("{from}").as_bytes(), None).unwrap();
            check_diff(before, seen.last().unwrap(), &diff);
            assert_eq!(diff.is_empty(), from == round, "{from} to {round}");
        }
    }
    let diff = rig.garden().diff(VOLUME, b"2", Some(b"7")).unwrap();
    check_diff(&seen[2], &seen[7], &diff);
    assert_eq!(rig.findings(), Vec::<String>::new());
}
