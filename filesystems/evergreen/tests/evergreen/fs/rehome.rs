//! Sweeps of keys: callers see no difference, and renamed objects receive the keys of their new
//! paths.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use senesce_core::{Rng, Seed};
use senesce_evergreen::{EvergreenFs, KeySweepCounts, KeyValue, ModelStore, disk::KeyOrder};
use senesce_fsapi::{
    Caller, FileSystem, FsError, FsResult, Ino, NewNode, RenameMode, SetXattrMode,
    conformance::{Draw, Player, SequenceOptions, Subject, collect_tree, find_difference, resolve},
};

use super::rig::{Rig, large};

const CALLER: Caller = Caller { uid: 0, gid: 0, now: senesce_fsapi::Timestamp { seconds: 1, nanoseconds: 0 } };

/// A whole sweep, in steps of `step` bytes.
fn sweep<S: KeyValue>(fs: &EvergreenFs<S>, step: u64) -> KeySweepCounts {
    let mut sweep = fs.begin_key_sweep();
    while !fs.key_sweep_step(&mut sweep, step).unwrap() {}
    sweep.counts()
}

fn make_directory(fs: &impl FileSystem, parent: Ino, name: &str) -> Ino {
    fs.make_node(&CALLER, parent, name.as_bytes(), &NewNode::directory(0o755)).unwrap().ino
}

fn make_file(fs: &impl FileSystem, parent: Ino, name: &str, bytes: usize) -> Ino {
    let ino = fs.make_node(&CALLER, parent, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    fs.write(&CALLER, ino, 0, &vec![ino.0 as u8 | 1; bytes]).unwrap();
    ino
}

fn rename(fs: &impl FileSystem, from: (Ino, &str), to: (Ino, &str)) {
    let (from, to) = ((from.0, from.1.as_bytes()), (to.0, to.1.as_bytes()));
    fs.rename(&CALLER, from, to, RenameMode::Replace).unwrap();
}

/// A directory `old/sub` with files, one of them large, and a link, all with attributes; then `old`
/// is renamed.
fn renamed() -> Rig<ModelStore> {
    let rig = Rig::new(large(), KeyOrder::BirthPath);
    let fs = rig.fs();
    let old = make_directory(fs, Ino::ROOT, "old");
    let sub = make_directory(fs, old, "sub");
    for number in 0..10 {
        let file = make_file(fs, sub, &format!("f{number}"), 3000 * number);
        fs.set_xattr(&CALLER, file, b"user.a", &[7; 5000], SetXattrMode::Any).unwrap();
    }
    fs.set_xattr(&CALLER, sub, b"user.b", b"value", SetXattrMode::Any).unwrap();
    make_file(fs, sub, "large", 2 << 20);
    fs.symlink(&CALLER, sub, b"link", b"f1").unwrap();
    rename(fs, (Ino::ROOT, "old"), (Ino::ROOT, "new"));
    rig
}

#[test]
fn sweeps_do_not_change_random_trees() {
    for seed in 0..6 {
        let inodes_kept = if seed % 2 == 0 { 1000 } else { 2 };
        let mut rig = Rig::new(large(), KeyOrder::BirthPath).keeping(inodes_kept);
        let mut player = Player::default();
        let options = SequenceOptions { boundaries: vec![0, 1, 4096, 200_000], ..SequenceOptions::default() };
        let mut moved = 0;
        for (number, operation) in Draw::new(Seed(seed), &options).take(600).enumerate() {
            player.play(&mut rig, &operation);
            if number % 60 != 59 {
                continue;
            }
            let before = collect_tree(rig.fs()).unwrap();
            moved += sweep(rig.fs(), 1 + seed * 10_000).moved;
            let after = collect_tree(rig.fs()).unwrap();
            assert_eq!(find_difference(&before, &after), None, "seed {seed}, operation {number}");
            rig.check().unwrap();
            let again = sweep(rig.fs(), u64::MAX);
            assert_eq!(
                (again.moved, again.too_large, again.without_space),
                (0, 0, 0),
                "seed {seed}: nothing is left to move"
            );
        }
        assert!(moved > 0, "seed {seed}");
        rig.reopen().unwrap();
        rig.check().unwrap();
    }
}

#[test]
fn a_renamed_directory_moves_with_all_below_it() {
    let mut rig = renamed();
    let before = collect_tree(rig.fs()).unwrap();
    let counts = sweep(rig.fs(), 1);
    assert_eq!(counts.moved, 14, "two directories, ten files, one large, a link: {counts:?}");
    assert_eq!((counts.too_large, counts.without_space), (0, 0));
    assert!(counts.moved_bytes > 2 << 20, "{counts:?}");
    assert_eq!(find_difference(&before, &collect_tree(rig.fs()).unwrap()), None);
    let is_old = |key: &[u8]| key.windows(3).any(|part| part == b"old");
    let left = rig.fs().store().entries().iter().filter(|(key, _)| is_old(key)).count();
    assert_eq!(left, 0, "keys of the old path are left");
    rig.check().unwrap();
    rig.reopen().unwrap();
    assert_eq!(find_difference(&before, &collect_tree(rig.fs()).unwrap()), None);
}

#[test]
fn sweep_of_keys_by_number_has_no_work() {
    let rig = Rig::new(large(), KeyOrder::InodeNumber);
    assert!(rig.fs().begin_key_sweep().is_done());
}

#[test]
fn file_with_several_names_moves_with_all() {
    let mut rig = Rig::new(large(), KeyOrder::BirthPath);
    let fs = rig.fs();
    let (a, b) = (make_directory(fs, Ino::ROOT, "a"), make_directory(fs, Ino::ROOT, "b"));
    let (all, kept) = (make_file(fs, a, "all", 10_000), make_file(fs, b, "kept", 10_000));
    fs.link(&CALLER, all, b, b"second").unwrap();
    fs.link(&CALLER, all, a, b"third").unwrap();
    fs.link(&CALLER, kept, a, b"elsewhere").unwrap();
    rename(fs, (Ino::ROOT, "a"), (Ino::ROOT, "z"));
    let counts = sweep(fs, u64::MAX);
    // One name of `kept` implies its home. Names are read in the order of paths: `b/second` is the
    // first name of the other file.
    assert_eq!(counts.moved, 2, "{counts:?}");
    let keys = fs.store().entries();
    let is_in =
        |part: &[u8]| keys.iter().any(|(key, _)| key[0] == b'd' && key.windows(part.len()).any(|at| at == part));
    assert!(is_in(b"second") && is_in(b"kept") && !is_in(b"all"));
    rig.check().unwrap();
    assert_eq!(sweep(rig.fs(), u64::MAX).moved, 0);
    rig.fs().unlink(&CALLER, b, b"second").unwrap();
    rig.check().unwrap();
    assert_eq!(sweep(rig.fs(), u64::MAX).moved, 1, "the name that implied its home was removed");
    rig.check().unwrap();
}

#[test]
fn open_and_nameless_files_stay_usable() {
    let mut rig = renamed();
    let fs = rig.fs();
    let (open, gone) = (resolve(fs, b"new/sub/f4").unwrap(), resolve(fs, b"new/sub/f5").unwrap());
    fs.open(open).unwrap();
    fs.open(gone).unwrap();
    let sub = resolve(fs, b"new/sub").unwrap();
    fs.unlink(&CALLER, sub, b"f5").unwrap();
    sweep(fs, 1);
    for (ino, bytes) in [(open, 12_000), (gone, 15_000)] {
        let mut read = vec![0; 20_000];
        assert_eq!(fs.read(ino, 0, &mut read).unwrap(), bytes);
        assert!(read[..bytes].iter().all(|byte| *byte == ino.0 as u8 | 1));
        fs.write(&CALLER, ino, 100, b"more").unwrap();
        fs.release(ino, CALLER.now).unwrap();
    }
    rig.check().unwrap();
}

#[test]
fn objects_larger_than_a_batch_stay_and_count() {
    let mut rig = Rig::new(large(), KeyOrder::BirthPath);
    let fs = rig.fs();
    let old = make_directory(fs, Ino::ROOT, "old");
    make_file(fs, old, "huge", 9 << 20);
    make_file(fs, old, "small", 5000);
    rename(fs, (Ino::ROOT, "old"), (Ino::ROOT, "new"));
    let before = collect_tree(fs).unwrap();
    let counts = sweep(fs, u64::MAX);
    assert_eq!((counts.moved, counts.too_large), (2, 1), "{counts:?}");
    assert_eq!(find_difference(&before, &collect_tree(fs).unwrap()), None);
    rig.check().unwrap();
}

#[test]
fn full_store_moves_nothing() {
    let mut rig = Rig::new(ModelStore::new(1 << 20, 64 << 10), KeyOrder::BirthPath);
    let fs = rig.fs();
    let old = make_directory(fs, Ino::ROOT, "o");
    for number in 0..20 {
        make_file(fs, old, &format!("f{number:02}"), 5000);
    }
    rename(fs, (Ino::ROOT, "o"), (Ino::ROOT, "a longer name"));
    let filler = make_file(fs, Ino::ROOT, "filler", 0);
    let mut at = 0;
    while fs.write(&CALLER, filler, at, &[1; 100]).is_ok() {
        at += 100;
    }
    let before = collect_tree(fs).unwrap();
    let counts = sweep(fs, u64::MAX);
    assert!(counts.without_space > 0, "{counts:?}");
    assert_eq!(find_difference(&before, &collect_tree(fs).unwrap()), None);
    rig.check().unwrap();
    rig.fs().unlink(&CALLER, Ino::ROOT, b"filler").unwrap();
    assert_eq!(sweep(rig.fs(), u64::MAX).without_space, 0);
    assert_eq!(sweep(rig.fs(), u64::MAX).moved, 0);
    rig.check().unwrap();
}

#[test]
fn listings_continue_after_a_sweep() {
    let rig = renamed();
    let fs = rig.fs();
    let sub = resolve(fs, b"new/sub").unwrap();
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let mut last = None;
        fs.read_dir(sub, cookie, &mut |entry| {
            last = Some((entry.cookie, entry.name.to_vec()));
            std::ops::ControlFlow::Break(())
        })
        .unwrap();
        let Some((at, name)) = last else { break };
        (cookie, names) = (at, [names, vec![name]].concat());
        if names.len() == 4 {
            sweep(fs, u64::MAX);
        }
    }
    assert_eq!(names.len(), 12);
    assert!(names.is_sorted());
}

#[test]
fn tending_starts_after_renames_pause() {
    let mut rig = renamed();
    let fs = rig.fs();
    assert!(fs.needs_tending());
    assert_eq!(fs.tend(1 << 20).unwrap(), None, "there was a rename since the last call");
    let mut calls = 0;
    let mut last = KeySweepCounts::default();
    while let Some(counts) = fs.tend(1000).unwrap() {
        (last, calls) = (counts, calls + 1);
        assert!(calls < 100);
    }
    assert!(last.moved == 14 && calls > 5, "{last:?} in {calls} calls");
    assert!(!fs.needs_tending());
    rename(fs, (Ino::ROOT, "new"), (Ino::ROOT, "again"));
    // Continuous renames do not prevent the start.
    let began = (0..100).find(|number| {
        rename(fs, (Ino::ROOT, "again"), (Ino::ROOT, "other"));
        rename(fs, (Ino::ROOT, "other"), (Ino::ROOT, "again"));
        fs.tend(1).unwrap().is_some() && *number > 10
    });
    assert!(began.is_some());
    rig.check().unwrap();
}

#[test]
fn renamed_small_file_needs_no_tending() {
    let rig = Rig::new(large(), KeyOrder::BirthPath);
    make_file(rig.fs(), Ino::ROOT, "a", 5000);
    rename(rig.fs(), (Ino::ROOT, "a"), (Ino::ROOT, "b"));
    for _ in 0..3 {
        assert_eq!(rig.fs().tend(u64::MAX).unwrap(), None);
    }
}

fn act(fs: &dyn FileSystem, rng: &mut Rng) -> FsResult<()> {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let mut path = || (0..1 + rng.below(4)).map(|_| NAMES[rng.below(4) as usize]).collect::<Vec<_>>();
    let (from, to) = (path(), path());
    let parent = |path: &[&str]| resolve(fs, path[..path.len() - 1].join("/").as_bytes());
    let name = |path: &[&'static str]| path[path.len() - 1].as_bytes();
    let (from, to) = ((parent(&from)?, name(&from)), (parent(&to)?, name(&to)));
    match rng.below(10) {
        0 | 1 => fs.make_node(&CALLER, from.0, from.1, &NewNode::directory(0o755)).map(drop),
        2 => {
            let ino = fs.make_node(&CALLER, from.0, from.1, &NewNode::file(0o644))?.ino;
            fs.write(&CALLER, ino, 0, &vec![3; rng.below(300_000) as usize]).map(drop)
        }
        3 => fs.link(&CALLER, fs.lookup(from.0, from.1)?.ino, to.0, to.1).map(drop),
        4 => fs.unlink(&CALLER, from.0, from.1),
        5 => fs.rmdir(&CALLER, from.0, from.1),
        6 => fs.rename(&CALLER, from, to, RenameMode::Exchange),
        _ => fs.rename(&CALLER, from, to, RenameMode::Replace),
    }
}

#[test]
fn concurrent_renames_and_sweeps_keep_the_tree() {
    for seed in 0..3 {
        let mut rig = Rig::new(large(), KeyOrder::BirthPath).keeping(if seed == 0 { 1000 } else { 3 });
        let is_over = AtomicBool::new(false);
        let moved = thread::scope(|scope| {
            let fs = rig.fs();
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut rng = Rng::for_purpose(Seed(seed * 4 + thread), "threads that rename");
                        for _ in 0..3000 {
                            // Another thread may have removed or renamed the object. Damage is a
                            // failure.
                            let done = act(fs, &mut rng);
                            assert!(!matches!(done, Err(FsError::Io { .. } | FsError::Corrupt { .. })), "{done:?}");
                        }
                    })
                })
                .collect();
            let sweeper = scope.spawn(|| {
                let mut moved = 0;
                while !is_over.load(Ordering::Relaxed) {
                    moved += sweep(fs, 10_000).moved;
                }
                moved
            });
            for thread in threads {
                thread.join().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            sweeper.join().unwrap()
        });
        assert!(moved > 0, "seed {seed}");
        rig.check().unwrap();
        let tree = collect_tree(rig.fs()).unwrap();
        sweep(rig.fs(), u64::MAX);
        rig.check().unwrap();
        rig.reopen().unwrap();
        assert_eq!(find_difference(&tree, &collect_tree(rig.fs()).unwrap()), None);
    }
}

#[test]
fn sweep_skips_an_unreadable_object() {
    let mut rig = renamed();
    rig.reopen().unwrap();
    let fs = rig.fs();
    let keys = fs.store().entries();
    // The inode of `f3`: its home, and so its key, ends with its name and number.
    let inode = keys.iter().find(|(key, _)| {
        key[0] == b'm' && key.last() == Some(&0) && key.windows(3).any(|part| part == b"f3\0") && key.len() < 40
    });
    let mut batch = senesce_evergreen::Batch::new();
    batch.delete(inode.unwrap().0.clone());
    fs.store().apply(batch).unwrap();
    let mut sweep = fs.begin_key_sweep();
    while !fs.key_sweep_step(&mut sweep, u64::MAX).unwrap() {}
    assert_eq!((sweep.counts().unreadable, sweep.counts().moved), (1, 13), "{:?}", sweep.counts());
    let first = sweep.first_unreadable().unwrap();
    assert!(first.starts_with("inode "), "{first}");
}
