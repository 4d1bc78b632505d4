//! Defragmentation: its changes below a volume, and the invariants that clients see.

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

/// Areas of 64 stripes on three drives; a tetris has 64 stripes.
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
fn defragmentation_changes_places_only() {
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
    assert_eq!((after.requests, after.moved), (done.predicted, 0), "as predicted, and nothing is left to do");
    assert_eq!(garden.report().free, free, "no additional block is in use");
    assert_eq!(garden.held_blocks(NAME).unwrap(), held, "snapshots hold no additional block");
    assert_eq!(garden.diff(NAME, b"before", None).unwrap(), []);
    {
        let store = &mut *garden.shared().lock();
        let now = pointers(store);
        let names = |all: &[(Key, crate::format::pointer::Pointer)]| {
            all.iter().map(|(key, pointer)| (*key, pointer.vvbn)).collect::<Vec<_>>()
        };
        assert_eq!(names(&now), names(&before), "VVBNs of every level stay");
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
    // The stale pointer is the snapshot's root, in the table of snapshots.
    assert_eq!(stale_pointers(&devices), 1);
    assert_eq!(findings(&devices), Vec::<String>::new());
    check_contents(&fs, ino, BLOCKS);
    check_contents(&garden.snapshot(NAME, b"before").unwrap(), ino, BLOCKS);

    let written = garden.report().counts.fake_writes;
    let again = defragment(&garden, Placing::FakeDirty);
    assert_eq!((again.blocks, again.moved, again.fixed), (BLOCKS, 0, 0));
    assert_eq!(garden.report().counts.fake_writes, written, "a second pass does nothing");
}

/// The volume finds all blocks at once. The snapshot needs the map for places that were
/// overwritten.
#[test]
fn only_snapshots_are_redirected_after_defragmentation() {
    let (devices, garden, fs, ino) = with_random_file();
    garden.create_snapshot(NAME, b"before", Timestamp::default()).unwrap();
    defragment(&garden, Placing::FakeDirty);
    // Overwrite the old places.
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

/// For comparison: the traditional method, without relocation below a volume.
#[test]
fn traditional_defragmentation_costs_space_and_differs() {
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

/// A client's change before the consistency point is an ordinary change; the other blocks keep
/// their VVBNs.
#[test]
fn changes_before_the_point_are_real_changes() {
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
    // Two blocks of contents, the blocks above them (of pointers and of inodes), and the maps.
    let held = garden.held_blocks(NAME).unwrap();
    assert!((4..20).contains(&held), "{held}");
    check_contents(&fs, ino, BLOCKS);
    check_contents(&garden.snapshot(NAME, b"before").unwrap(), ino, BLOCKS);
    assert_eq!(findings(&devices), Vec::<String>::new());
    // The snapshot now has two blocks of pointers of its own, with pointers to moved blocks, and an
    // inode that names the third one.
    assert_eq!(stale_pointers(&devices), 2 * 255 + 1);
}

/// The first file of a block is deleted, and the second one makes the block move. An earlier
/// snapshot knows only the first pointer, and the trailer still names that one.
#[test]
fn trailer_keeps_naming_the_first_pointer() {
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

/// A block with several pointers moves once. The other file finds it through the map, and its
/// pointer is fixed.
#[test]
fn shared_block_moves_once_and_stays_shared() {
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
            // The layout is good already; only the pointers of the clone are fixed.
            DefragFiles::All => assert_eq!((done.moved, done.fixed, done.blocks), (0, BLOCKS, 2 * BLOCKS)),
        }
        assert_eq!((garden.report().free, garden.sharing(NAME).unwrap()), (free, sharing));
        assert_eq!(findings(&devices), Vec::<String>::new());
        check_contents(&fs, ino, BLOCKS);
        check_contents(&fs, other, BLOCKS);
    }
    assert_eq!(stale_pointers(&devices), 0);

    // Both files at once: the second pointer follows the first.
    let (devices, garden, fs, ino) = with_random_file();
    let other = make(&fs, "clone");
    fs.clone_range(&Caller::default(), (ino, 0), (other, 0), BLOCKS * BLOCK).unwrap();
    garden.consistency_point().unwrap();
    let free = garden.report().free;
    let done = defragment(&garden, Placing::FakeDirty);
    assert_eq!(done.moved, 2 * BLOCKS, "both have a bad layout, and sharing is not considered");
    let written = garden.report().counts.fake_writes;
    assert!((BLOCKS..BLOCKS + 20).contains(&written), "{written} blocks written");
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
