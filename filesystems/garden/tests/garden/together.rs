//! All at once: snapshots, cleaning by allocation and by a scan, fix-ups, clones, deduplication and
//! losses of power. Snapshots never change, and all space becomes free again.

use senesce_block::CrashPlan;
use senesce_core::{Rng, Seed};
use senesce_fsapi::{
    FileKind, FileSystem, Ino,
    conformance::{Operation, Place, Subject, collect_tree, find_difference, set_root},
};
use senesce_garden::{FixUp, Gardening, Medium, Packing};

use crate::{
    crash::{make, path, write},
    dedup::draw,
    gardening::EAGER,
    guard::guard,
    mixed::SHEDDING,
    rig::{LARGE, Rig, Shape, TIGHT, VOLUME, caller, shared},
    snapshot_crash::{Event, NOW, Play, check_run, record_packed, record_with},
};

const SHAPE: Shape = Shape { stripes: 1024, ..LARGE };
const AREAS: u64 = 16;

/// The next event. Updates the list of snapshots.
fn draw_event(rng: &mut Rng, names: &mut Vec<String>, number: u64, packs: bool) -> Event {
    match rng.below(24) {
        10 if packs => Event::Recompact(1 + rng.below(500)),
        0 | 1 if names.len() < 5 => {
            names.push(format!("snapshot {number}"));
            Event::Create(names[names.len() - 1].clone())
        }
        2 if !names.is_empty() => Event::Delete(names.remove(rng.below(names.len() as u64) as usize)),
        3 | 4 => Event::MoveArea(rng.below(AREAS)),
        5 => Event::Scan(1 + rng.below(AREAS)),
        6 => Event::FixUp(1 + rng.below(300)),
        7 | 8 => Event::Dedup(1 + rng.below(200)),
        9 => Event::Reclaim(1),
        10 | 11 => Event::Point,
        12 if rng.chance(1, 4) => Event::Do(Operation::Reopen),
        _ => Event::Do(draw(rng)),
    }
}

#[test]
fn snapshots_survive_all_gardening() {
    for (seed, fix_up) in [FixUp::OnRead, FixUp::Scan, FixUp::Never].into_iter().enumerate() {
        everything_goes_on(seed, &SHAPE, Gardening { fix_up, ..EAGER }, Packing::default());
    }
}

#[test]
fn snapshots_survive_gardening_of_two_media() {
    const MIXED: Shape = Shape { groups: &[(3, true), (2, true)], media: &[Medium::Hdd, Medium::Ssd], ..SHAPE };
    everything_goes_on(5, &MIXED, SHEDDING, Packing::default());
    everything_goes_on(6, &MIXED, SHEDDING, Packing { group_blocks: 2, compaction: true });
}

#[test]
fn snapshots_survive_gardening_of_packed_contents() {
    let goes_on = |(seed, fix_up, group_blocks)| {
        let packing = Packing { group_blocks, compaction: true };
        everything_goes_on(seed, &SHAPE, Gardening { fix_up, ..EAGER }, packing)
    };
    let recompacted: u64 = [(3, FixUp::OnRead, 2), (4, FixUp::Scan, 8)].map(goes_on).iter().sum();
    assert!(recompacted > 5, "{recompacted} chunks");
}

/// Returns the number of chunks that recompaction moved.
fn everything_goes_on(seed: usize, shape: &Shape, gardening: Gardening, packing: Packing) -> u64 {
    let packs = packing.compaction;
    let mut rig = Rig::on(shape, guard(&shared(shape.devices())), TIGHT);
    set_root(rig.fs()).unwrap();
    rig.garden().set_packing(VOLUME, packing).unwrap();
    let free = |rig: &Rig| {
        rig.garden().consistency_point().unwrap();
        rig.garden().report().free
    };
    let before = free(&rig);
    let mut play = Play::new(gardening);
    let mut rng = Rng::for_purpose(Seed(seed as u64), "together");
    let (mut names, mut deleted) = (Vec::new(), 0);
    for number in 0..600 {
        let event = draw_event(&mut rng, &mut names, number, packs);
        play.play(&mut rig, &event);
        deleted += u32::from(matches!(event, Event::Delete(_)));
        if number % 100 == 99 {
            assert_eq!(play.state.find_difference(rig.garden()), None, "seed {seed}, event {number}");
            assert_eq!(rig.check(), Ok(()), "seed {seed}, event {number}");
        }
    }
    let [moved, fixed, shared] = play.gardened;
    assert!(
        moved > 300 && shared > if packs { 10 } else { 30 } && deleted > 5,
        "seed {seed}: {moved} moved, {shared} shared, {deleted} deleted"
    );
    assert!(fixed > 10, "seed {seed}: {fixed} fixed");
    let demoted = rig.garden().report().counts.demotions;
    assert_eq!(demoted > 0, gardening.demotion.is_some(), "seed {seed}: {demoted} went to disks");
    rig.open().unwrap();
    assert_eq!(play.state.find_difference(rig.garden()), None, "seed {seed}, opened again");

    for name in names {
        rig.garden().delete_snapshot(VOLUME, name.as_bytes()).unwrap();
    }
    for number in 0..5 {
        // The file may not exist.
        let _ = rig.fs().unlink(&caller(9), Ino::ROOT, format!("file {number}").as_bytes());
    }
    assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
    assert_eq!(rig.check(), Ok(()), "seed {seed}, emptied");
    // Some blocks of maps more, because other VVBNs are in use.
    let lost = before.saturating_sub(free(&rig));
    assert!(lost <= 8, "seed {seed}: {lost} blocks were not freed");
    play.recompacted
}

/// Compressed files that are partly overwritten with incompressible data, so that chunks become
/// alone in their blocks.
fn packed_events() -> Vec<Event> {
    let name = |name: &str| name.to_owned();
    // Lengths whose seeds grow contents that compress to a tenth, or not at all.
    let areas = || (0..8).map(Event::MoveArea);
    let tenth = |to: &str, offset, len| Event::Do(write(to, offset, len + (5 - (offset + len) % 3) % 3));
    let plain = |to: &str, offset, len| Event::Do(write(to, offset, len + (3 - (offset + len) % 3) % 3));
    let mut events = vec![
        Event::Do(make("one", FileKind::File)),
        tenth("one", 0, 60_000),
        Event::Do(make("two", FileKind::File)),
        tenth("two", 0, 10_000),
        Event::Point,
        Event::Create(name("a")),
        plain("one", 0, 16_000),
        plain("one", 32_768, 9000),
        Event::Do(Operation::CloneRange {
            from: Place::Path(path("one")),
            from_offset: 0,
            to: Place::Path(path("two")),
            to_offset: 4096,
            len: 20_480,
        }),
        Event::Point,
        Event::Recompact(500),
        Event::Point,
    ];
    events.extend(areas());
    events.extend([
        Event::Do(Operation::Truncate { at: Place::Path(path("one")), size: 50_000 }),
        Event::Delete(name("a")),
        Event::Reclaim(1),
        Event::Point,
        Event::Recompact(500),
        Event::Scan(8),
        tenth("two", 8192, 8000),
        Event::Point,
        Event::Recompact(500),
        Event::Do(Operation::Unlink { path: path("one") }),
        Event::Point,
        Event::FixUp(100),
        Event::Recompact(500),
        Event::Point,
    ]);
    events.extend(areas());
    events.push(Event::Point);
    events
}

#[test]
fn power_may_be_lost_with_packed_contents() {
    let events = packed_events();
    let run = record_packed(&events, None, EAGER, Packing { group_blocks: 2, compaction: true });
    let [moved, ..] = run.gardened;
    assert!(moved > 10 && run.recompacted > 3, "{moved} moved, {} of them to save blocks", run.recompacted);
    let plan = CrashPlan { exhaustive_up_to: 2, samples: 2, tears: 1, seed: Seed(23) };
    let states = check_run(&run, &plan, |_, _| {});
    assert!(states > 200, "{states} states");
    let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 0, seed: Seed(24) };
    check_run(&run, &plan, |count, devices| drop(devices.remove(count % 3)));
}

/// Two files, the second of which is partly a clone of the first, snapshots of both, and all
/// relocations in between.
fn events() -> Vec<Event> {
    let clone = |from: &str, to: &str, len| {
        let place = |at: &str| Place::Path(path(at));
        Event::Do(Operation::CloneRange { from: place(from), from_offset: 0, to: place(to), to_offset: 0, len })
    };
    let name = |name: &str| name.to_owned();
    vec![
        Event::Do(make("one", FileKind::File)),
        Event::Do(write("one", 0, 60_000)),
        Event::Do(make("two", FileKind::File)),
        Event::Point,
        clone("one", "two", 40_960),
        Event::Create(name("a")),
        Event::Do(write("one", 8192, 20_000)),
        Event::MoveArea(0),
        Event::Do(write("two", 40_960, 20_000)),
        Event::Point,
        Event::MoveArea(1),
        Event::Create(name("b")),
        Event::Dedup(200),
        Event::Scan(8),
        Event::Do(write("one", 0, 60_000)),
        Event::MoveArea(2),
        Event::Point,
        Event::FixUp(100),
        Event::Delete(name("a")),
        Event::MoveArea(0),
        Event::Do(Operation::Unlink { path: path("two") }),
        Event::Reclaim(1),
        Event::MoveArea(3),
        Event::Point,
        Event::FixUp(100),
        Event::Delete(name("b")),
        Event::Scan(8),
        Event::Point,
    ]
}

#[test]
fn power_may_be_lost_during_all_gardening() {
    let run = record_with(&events(), None, EAGER);
    let [moved, fixed, _] = run.gardened;
    assert!(moved > 60 && fixed > 5, "{moved} moved, {fixed} fixed");
    let plan = CrashPlan { exhaustive_up_to: 2, samples: 2, tears: 1, seed: Seed(21) };
    let states = check_run(&run, &plan, |_, _| {});
    assert!(states > 200, "{states} states");
}

#[test]
fn drive_and_power_may_be_lost_during_gardening() {
    let run = record_with(&events(), None, EAGER);
    let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 0, seed: Seed(22) };
    let states = check_run(&run, &plan, |count, devices| drop(devices.remove(count % 3)));
    assert!(states > 60, "{states} states");
}

/// Blocks that only a snapshot uses move like all others, and its readers find them.
#[test]
fn blocks_of_snapshots_move() {
    let mut rig = Rig::on(&SHAPE, guard(&shared(SHAPE.devices())), TIGHT);
    let fs = rig.fs();
    let ino = fs.make_node(&caller(1), Ino::ROOT, b"file", &senesce_fsapi::NewNode::file(0o600)).unwrap().ino;
    let contents =
        |round: u64| -> Vec<u8> { (0..300 * 512_u64).flat_map(|at| (at * 3 + round).to_le_bytes()).collect() };
    fs.write(&caller(1), ino, 0, &contents(0)).unwrap();
    rig.garden().create_snapshot(VOLUME, b"a", NOW).unwrap();
    let tree = collect_tree(&rig.garden().snapshot(VOLUME, b"a").unwrap()).unwrap();
    rig.fs().write(&caller(2), ino, 0, &contents(1)).unwrap();
    rig.garden().consistency_point().unwrap();
    let held = rig.garden().held_blocks(VOLUME).unwrap();
    assert!(held >= 300, "{held} blocks that only the snapshot uses");

    let mut moved = 0;
    for area in 0..AREAS {
        let moves = rig.garden().move_area(0, area).unwrap();
        assert_eq!(moves.stuck, 0);
        moved += moves.blocks;
        rig.garden().consistency_point().unwrap();
    }
    assert!(moved >= held + 300, "{moved} moved of {held} and 300");
    assert_eq!(rig.garden().held_blocks(VOLUME).unwrap(), held);
    assert_eq!(rig.garden().diff(VOLUME, b"a", None).unwrap().len(), 1, "the file, and nothing that moved");
    assert_eq!(rig.findings(), Vec::<String>::new());
    // The old places are reused.
    for round in 2..6 {
        rig.fs().write(&caller(3), ino, 0, &contents(round)).unwrap();
        rig.garden().consistency_point().unwrap();
    }
    rig.open().unwrap();
    let snapshot = rig.garden().snapshot(VOLUME, b"a").unwrap();
    assert_eq!(find_difference(&tree, &collect_tree(&snapshot).unwrap()), None);
    let counts = rig.garden().report().counts;
    assert!(counts.redirects >= 100 && counts.redirects == counts.map_lookups, "{counts:?}");
    assert_eq!(rig.findings(), Vec::<String>::new());
}
