//! Files that are laid better: what changes by it below a volume, and what nobody sees.

use std::collections::BTreeSet;

use senesce_core::{Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, Timestamp};

use super::{
    Devices, NAME, Small, findings, make, open,
    relocate::{check_contents, contents, map, pointers, stale_pointers},
};
use crate::{DefragCounts, DefragFiles, Garden, Placing, VolumeFs, store::Key};

const BLOCK: u64 = 4096;
pub(super) const BLOCKS: u64 = 700;

/// Areas of 64 stripes on three drives; tetrises of 64.
fn small() -> Small {
    Small { groups: vec![3], stripes: 2048, aa_stripes: 64, tetris_stripes: 64 }
}

/// A file whose blocks were written in random order, some in each consistency point.
pub(super) fn with_random_file() -> (Devices, Garden, VolumeFs, Ino) {
    let (devices, garden, fs) = small().garden();
    let ino = make(&fs, "file");
    let mut rng = Rng::for_purpose(Seed(1), "defrag");
    let mut order: Vec<u64> = (0..BLOCKS).collect();
    rng.shuffle(&mut order);
    for (number, &block) in order.iter().enumerate() {
        fs.write(&Caller::default(), ino, block * BLOCK, &contents(block)).unwrap();
        if number % 7 == 6 {
            garden.consistency_point().unwrap();
        }
    }
    garden.consistency_point().unwrap();
    (devices, garden, fs, ino)
}

fn defragment(garden: &Garden, placing: Placing) -> DefragCounts {
    garden.defragment(NAME, DefragFiles::All, placing).unwrap()
}

#[test]
fn a_file_changes_its_places_and_nothing_else() {
    let (devices, garden, fs, ino) = with_random_file();
    garden.create_snapshot(NAME, b"before", Timestamp::default()).unwrap();
    let (before, map_before) = {
        let store = &mut *garden.shared().lock();
        (pointers(store), map(store))
    };
    let (free, held) = (garden.report().free, garden.held_blocks(NAME).unwrap());
    let done = defragment(&garden, Placing::FakeDirty);
    assert_eq!((done.files, done.blocks, done.moved, done.unread, done.no_space), (1, BLOCKS, BLOCKS, 0, 0));
    assert!(done.requests > 250 && done.predicted <= 14, "{done:?}");
    let after = garden.survey_layout(NAME, DefragFiles::All).unwrap();
    assert_eq!(
        (after.requests, after.moved),
        (done.predicted, 0),
        "as it was foreseen, and nothing is left to be done"
    );
    assert_eq!(garden.report().free, free, "no block more is in use");
    assert_eq!(garden.held_blocks(NAME).unwrap(), held, "no snapshot holds one more");
    assert_eq!(garden.diff(NAME, b"before", None).unwrap(), []);
    {
        let store = &mut *garden.shared().lock();
        let now = pointers(store);
        let names = |all: &[(Key, crate::format::pointer::Pointer)]| {
            all.iter().map(|(key, pointer)| (*key, pointer.vvbn)).collect::<Vec<_>>()
        };
        assert_eq!(names(&now), names(&before), "VVBNs stay, of every level");
        let changed: BTreeSet<(u64, u8)> = before
            .iter()
            .zip(&now)
            .filter(|((_, old), (_, new))| old.at != new.at)
            .map(|((key, _), _)| (key.file(), key.level()))
            .collect();
        assert_eq!(changed, BTreeSet::from([(0, 0), (0, 1), (ino.0, 0), (ino.0, 1)]), "contents, pointers, inodes");
        let map_after = map(store);
        assert!(map_before.iter().map(|at| at.0).eq(map_after.iter().map(|at| at.0)));
        let told = |key: Key, vvbn: u64| map_after.iter().find(|at| at.0 == vvbn).map(|at| (key, at.1));
        let is_told = now.iter().all(|(key, pointer)| told(*key, pointer.vvbn.unwrap()) == Some((*key, pointer.at)));
        assert!(is_told, "no pointer names an old place");
    }
    // That is the root of the snapshot, in the table of snapshots.
    assert_eq!(stale_pointers(&devices), 1);
    assert_eq!(findings(&devices), Vec::<String>::new());
    check_contents(&fs, ino, BLOCKS);
    check_contents(&garden.snapshot(NAME, b"before").unwrap(), ino, BLOCKS);

    let written = garden.report().counts.fake_writes;
    let again = defragment(&garden, Placing::FakeDirty);
    assert_eq!((again.blocks, again.moved, again.fixed), (BLOCKS, 0, 0));
    assert_eq!(garden.report().counts.fake_writes, written, "a second run does nothing");
}

/// The active file system finds all at once; the snapshot asks the map once what was written over.
#[test]
fn the_volume_reads_without_redirects_and_a_snapshot_with_them() {
    let (devices, garden, fs, ino) = with_random_file();
    garden.create_snapshot(NAME, b"before", Timestamp::default()).unwrap();
    defragment(&garden, Placing::FakeDirty);
    // Old places are written over.
    let other = make(&fs, "other");
    for round in 0..10 {
        fs.write(&Caller::default(), other, 0, &vec![round; 500 * BLOCK as usize]).unwrap();
        garden.consistency_point().unwrap();
    }
    drop((fs, garden));
    let garden = open(&devices);
    check_contents(&garden.volume(NAME).unwrap(), ino, BLOCKS);
    assert_eq!(garden.report().counts.redirects, 0);
    check_contents(&garden.snapshot(NAME, b"before").unwrap(), ino, BLOCKS);
    let counts = garden.report().counts;
    assert!(counts.redirects > 0 && counts.redirects <= BLOCKS + 10, "{counts:?}");
    assert_eq!(findings(&devices), Vec::<String>::new());
}

/// The contrast: what everybody did before blocks could move below a volume.
#[test]
fn the_traditional_way_costs_snapshots_space_and_shows_in_a_diff() {
    let (devices, garden, fs, ino) = with_random_file();
    garden.create_snapshot(NAME, b"before", Timestamp::default()).unwrap();
    let free = garden.report().free;
    let done = defragment(&garden, Placing::Traditional);
    assert_eq!(done.moved, BLOCKS);
    let diff = garden.diff(NAME, b"before", None).unwrap();
    assert!(diff.len() == 1 && diff[0].ino == ino.0 && diff[0].blocks.iter().eq([&(0..BLOCKS)]), "{diff:?}");
    assert!(garden.held_blocks(NAME).unwrap() >= BLOCKS);
    assert!(garden.report().free + BLOCKS <= free);
    check_contents(&fs, ino, BLOCKS);
    check_contents(&garden.snapshot(NAME, b"before").unwrap(), ino, BLOCKS);
    assert_eq!(defragment(&garden, Placing::FakeDirty).moved, 0);
    assert_eq!(findings(&devices), Vec::<String>::new());
}

/// What a client changes before the consistency point is a change like any other; what it does not stays under its VVBN.
#[test]
fn what_is_changed_in_between_is_changed_in_earnest() {
    let (devices, garden, fs, ino) = with_random_file();
    garden.create_snapshot(NAME, b"before", Timestamp::default()).unwrap();
    let mut defrag = garden.begin_defrag(NAME, DefragFiles::All, Placing::FakeDirty, false).unwrap();
    garden.defrag_step(&mut defrag, u64::MAX).unwrap();
    fs.write(&Caller::default(), ino, 300 * BLOCK, &contents(300)).unwrap();
    fs.write(&Caller::default(), ino, 17 * BLOCK + 5, &contents(17)[5..9]).unwrap();
    make(&fs, "another");
    garden.consistency_point().unwrap();
    let diff = garden.diff(NAME, b"before", None).unwrap();
    let blocks: Vec<_> = diff.iter().filter(|change| change.ino == ino.0).map(|change| change.blocks.clone()).collect();
    assert_eq!(blocks, [vec![17..18, 300..301]]);
    // Two blocks of contents and those above them, of pointers and of inodes; the maps.
    let held = garden.held_blocks(NAME).unwrap();
    assert!((4..20).contains(&held), "{held}");
    check_contents(&fs, ino, BLOCKS);
    check_contents(&garden.snapshot(NAME, b"before").unwrap(), ino, BLOCKS);
    assert_eq!(findings(&devices), Vec::<String>::new());
    // The snapshot has two blocks of pointers of its own now, and an inode that names the third: to blocks that moved.
    assert_eq!(stale_pointers(&devices), 2 * 255 + 1);
}

/// The file that had a block first gives it up, and the one that got it later makes it move: a snapshot of before knows of one pointer only,
/// and the trailer goes on to name that.
#[test]
fn a_trailer_names_the_first_pointer_whichever_makes_the_block_move() {
    let (devices, garden, fs, ino) = with_random_file();
    garden.create_snapshot(NAME, b"before", Timestamp::default()).unwrap();
    let other = make(&fs, "clone");
    fs.clone_range(&Caller::default(), (ino, 0), (other, 0), BLOCKS * BLOCK).unwrap();
    fs.unlink(&Caller::default(), Ino::ROOT, b"file").unwrap();
    garden.consistency_point().unwrap();
    assert_eq!(defragment(&garden, Placing::FakeDirty).moved, BLOCKS);
    assert_eq!(findings(&devices), Vec::<String>::new());
    fs.unlink(&Caller::default(), Ino::ROOT, b"clone").unwrap();
    garden.consistency_point().unwrap();
    assert_eq!(findings(&devices), Vec::<String>::new());
    check_contents(&garden.snapshot(NAME, b"before").unwrap(), ino, BLOCKS);
}

/// A block that several pointers name moves once. The file that was not asked for finds it by the map, and is put right.
#[test]
fn a_shared_block_moves_once_and_stays_shared() {
    let (devices, garden, fs, ino) = with_random_file();
    let other = make(&fs, "clone");
    fs.clone_range(&Caller::default(), (ino, 0), (other, 0), BLOCKS * BLOCK).unwrap();
    garden.consistency_point().unwrap();
    let (free, sharing) = (garden.report().free, garden.sharing(NAME).unwrap());
    assert_eq!(sharing.saved, BLOCKS);
    for files in [DefragFiles::These(BTreeSet::from([ino])), DefragFiles::All] {
        let written = garden.report().counts.fake_writes;
        let done = garden.defragment(NAME, files.clone(), Placing::FakeDirty).unwrap();
        let written = garden.report().counts.fake_writes - written;
        match files {
            DefragFiles::These(_) => assert!(done.moved == BLOCKS && written >= BLOCKS),
            // They lie well already; the pointers of the clone are put right.
            DefragFiles::All => assert_eq!((done.moved, done.fixed, done.blocks), (0, BLOCKS, 2 * BLOCKS)),
        }
        assert_eq!((garden.report().free, garden.sharing(NAME).unwrap()), (free, sharing));
        assert_eq!(findings(&devices), Vec::<String>::new());
        check_contents(&fs, ino, BLOCKS);
        check_contents(&fs, other, BLOCKS);
    }
    assert_eq!(stale_pointers(&devices), 0);

    // Both at once: the second pointer follows the first.
    let (devices, garden, fs, ino) = with_random_file();
    let other = make(&fs, "clone");
    fs.clone_range(&Caller::default(), (ino, 0), (other, 0), BLOCKS * BLOCK).unwrap();
    garden.consistency_point().unwrap();
    let free = garden.report().free;
    let done = defragment(&garden, Placing::FakeDirty);
    assert_eq!(done.moved, 2 * BLOCKS, "both look bad, and it is not looked which blocks they share");
    let written = garden.report().counts.fake_writes;
    assert!((BLOCKS..BLOCKS + 20).contains(&written), "{written} blocks were written");
    assert_eq!(
        (garden.report().free, garden.sharing(NAME).unwrap().saved, stale_pointers(&devices)),
        (free, BLOCKS, 0)
    );
    assert_eq!(garden.survey_layout(NAME, DefragFiles::All).unwrap().moved, 0);
    check_contents(&fs, other, BLOCKS);
    assert_eq!(findings(&devices), Vec::<String>::new());

    // A clone of a block that waits to move shares it.
    let (devices, garden, fs, ino) = with_random_file();
    let mut defrag = garden.begin_defrag(NAME, DefragFiles::All, Placing::FakeDirty, false).unwrap();
    garden.defrag_step(&mut defrag, u64::MAX).unwrap();
    let other = make(&fs, "clone");
    fs.clone_range(&Caller::default(), (ino, 0), (other, 0), BLOCKS * BLOCK).unwrap();
    garden.consistency_point().unwrap();
    assert_eq!(garden.report().counts.fake_dirty, BLOCKS);
    assert_eq!(garden.sharing(NAME).unwrap().saved, BLOCKS);
    check_contents(&fs, other, BLOCKS);
    assert_eq!(findings(&devices), Vec::<String>::new());
}
