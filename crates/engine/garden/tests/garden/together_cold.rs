//! All that the gardener can do, at once: areas are cleaned, what is read is written together, blocks are packed, recompacted, found to
//! be the same, tiered into objects and moved from object to object, snapshots come and go, and power is lost.

use senesce_block::CrashPlan;
use senesce_core::{Rng, Seed};
use senesce_fsapi::{
    FileKind, FileSystem, Ino,
    conformance::{Operation, Place, Subject, set_root},
};
use senesce_garden::{FixUp, Gardening, Limits, Packing, WriteAfterRead};

use crate::{
    crash::{make, path, write},
    dedup::draw,
    gardening::EAGER,
    guard::guard,
    rig::{LARGE, Rig, Shape, VOLUME, caller, shared},
    snapshot_crash::{Event, Play, Setting, check_run, record_as},
    tier_crash::new_store,
};

const SHAPE: Shape = Shape { stripes: 1024, ..LARGE };
const AREAS: u64 = 16;
/// As little memory as lets windows of reading ahead grow to what is worth writing again.
const LIMITS: Limits = Limits { cache_bytes: 160 << 12, dirty_bytes: 96 << 12 };
const ALL: Gardening = Gardening {
    write_after_read: Some(WriteAfterRead { blocks_per_point: 4096, least_cpu_percent: 0, least_io_percent: 0 }),
    ..EAGER
};

fn file(number: u64) -> String {
    format!("file {number}")
}

/// What happens next, and the snapshots that there are then.
fn draw_event(rng: &mut Rng, names: &mut Vec<String>, number: u64) -> Event {
    match rng.below(40) {
        0 | 1 if names.len() < 5 => {
            names.push(format!("snapshot {number}"));
            Event::Create(names[names.len() - 1].clone())
        }
        2 if !names.is_empty() => Event::Delete(names.remove(rng.below(names.len() as u64) as usize)),
        3 | 4 => Event::MoveArea(rng.below(AREAS)),
        5 => Event::Scan(1 + rng.below(AREAS)),
        6 | 7 => Event::FixUp(1 + rng.below(300)),
        8 | 9 => Event::Dedup(1 + rng.below(200)),
        10 => Event::Reclaim(1),
        11 => Event::Recompact(1 + rng.below(500)),
        12 => Event::Tier(rng.below(20) as u16),
        13 | 14 => Event::DefragObjects,
        15 => Event::DeleteObjects,
        16 => Event::Orphans,
        17 if rng.chance(1, 3) => Event::Defrag,
        18..=20 => Event::Read(file(rng.below(6)), 0, 52),
        // What comes in pieces lies in pieces.
        21..=24 => {
            let (at, offset) = (Place::Path(file(5)), 4096 * rng.below(40));
            Event::Do(Operation::Write { at, offset, len: 4096, seed: number })
        }
        25..=27 => Event::Point,
        28 if rng.chance(1, 3) => Event::Do(Operation::Reopen),
        _ => Event::Do(draw(rng)),
    }
}

#[test]
fn nobody_sees_anything_of_all_that_gardening_does_at_once() {
    let packings = [
        Packing::default(),
        Packing { group_blocks: 2, compaction: true },
        Packing { group_blocks: 8, compaction: true },
    ];
    let mut sums = [0; 8];
    for (seed, (fix_up, packing)) in [FixUp::OnRead, FixUp::Scan, FixUp::Never].into_iter().zip(packings).enumerate() {
        let done = everything_goes_on(seed as u64, fix_up, packing);
        sums.iter_mut().zip(done).for_each(|(sum, new)| *sum += new);
    }
    let least = [300, 100, 20, 5, 200, 50, 15, 5];
    assert!(sums.iter().zip(least).all(|(sum, least)| *sum > least), "{sums:?}, and not more than {least:?}");
}

/// Says how many blocks moved, pointers were put right, blocks were shared, and chunks were moved by recompaction; and what a play
/// says of objects and of reading.
fn everything_goes_on(seed: u64, fix_up: FixUp, packing: Packing) -> [u64; 8] {
    let mut rig = Rig::closed(guard(&shared(SHAPE.devices())), LIMITS);
    crate::rig::format(&SHAPE, &rig.devices);
    let store = new_store();
    rig.store = Some(store.clone());
    crate::rig::open(&rig.devices, LIMITS).unwrap().create_volume(VOLUME, &SHAPE.volume()).unwrap();
    rig.open().unwrap();
    set_root(rig.fs()).unwrap();
    rig.garden().set_packing(VOLUME, packing).unwrap();
    rig.garden().consistency_point().unwrap();
    let before = rig.garden().report().free;
    let mut play = Play::new(Gardening { fix_up, ..ALL });
    let mut rng = Rng::for_purpose(Seed(seed), "together with objects");
    let mut names = Vec::new();
    play.play(&mut rig, &Event::Do(make("file 5", FileKind::File)));
    play.play(&mut rig, &Event::Do(write("file 5", 0, 40 << 12)));
    for number in 0..600 {
        play.play(&mut rig, &draw_event(&mut rng, &mut names, number));
        if number % 50 == 49 {
            assert_eq!(play.state.find_difference(rig.garden()), None, "seed {seed}, event {number}");
            assert_eq!(rig.check(), Ok(()), "seed {seed}, event {number}");
        }
    }
    rig.open().unwrap();
    assert_eq!(play.state.find_difference(rig.garden()), None, "seed {seed}, opened again");

    for name in names {
        rig.garden().delete_snapshot(VOLUME, name.as_bytes()).unwrap();
    }
    for number in 0..6 {
        // One that is not there is none.
        let _ = rig.fs().unlink(&caller(9), Ino::ROOT, file(number).as_bytes());
    }
    assert_eq!(rig.garden().reclaim_step(u64::MAX).unwrap(), 0);
    for _ in 0..2 {
        rig.garden().consistency_point().unwrap();
        rig.garden().delete_objects().unwrap();
    }
    assert_eq!(rig.check(), Ok(()), "seed {seed}, emptied");
    // What is in objects yet are blocks of directories and maps, if any are.
    let cold = rig.garden().cold();
    assert!(cold.live <= 40 && cold.deletable == 0, "seed {seed}: {cold:?}");
    let lost = before.saturating_sub(rig.garden().report().free);
    assert!(lost <= 10, "seed {seed}: {lost} blocks did not come back");
    let ([moved, fixed, shared], [tiered, again, rewritten, deleted]) = (play.gardened, play.cold);
    [moved, fixed, shared, play.recompacted, tiered, again, rewritten, deleted]
}

/// Two files in pieces, one of them in part a clone of the other, which are read, tiered, written over and tiered again.
fn events() -> Vec<Event> {
    let name = |name: &str| name.to_owned();
    // The seed of what is written grows with its length: these lengths give what compresses to a tenth, and what does not at all.
    let tenth = |to: &str, offset, len| Event::Do(write(to, offset, len + (5 - (offset + len) % 3) % 3));
    let plain = |to: &str, offset, len| Event::Do(write(to, offset, len + (3 - (offset + len) % 3) % 3));
    let clone = Operation::CloneRange {
        from: Place::Path(path("one")),
        from_offset: 0,
        to: Place::Path(path("two")),
        to_offset: 4096,
        len: 20_480,
    };
    let mut events = vec![
        Event::Do(make("one", FileKind::File)),
        plain("one", 0, 80_000),
        Event::Do(make("two", FileKind::File)),
        tenth("two", 0, 60_000),
        Event::Point,
        plain("two", 0, 16_000),
        plain("two", 32_768, 9000),
    ];
    // Every other block later.
    for block in (0..18).step_by(2) {
        events.push(plain("one", block << 12, 4096));
    }
    events.extend([
        Event::Point,
        Event::Create(name("a")),
        Event::Do(clone),
        Event::Do(Operation::Reopen),
        Event::Read(name("one"), 0, 20),
        Event::Point,
        Event::Recompact(500),
        Event::MoveArea(0),
        Event::Tier(1),
        plain("one", 8192, 20_000),
        tenth("two", 12_288, 9000),
        Event::Dedup(200),
        Event::Create(name("b")),
        Event::Point,
        Event::Tier(0),
        Event::Delete(name("a")),
        Event::Reclaim(1),
        Event::Scan(8),
        Event::DefragObjects,
        Event::Point,
        Event::DeleteObjects,
        Event::Read(name("one"), 0, 20),
        Event::FixUp(100),
        plain("one", 0, 30_000),
        Event::Tier(0),
        Event::Recompact(500),
        Event::Delete(name("b")),
        Event::Do(Operation::Unlink { path: path("two") }),
        Event::Defrag,
        Event::MoveArea(1),
        Event::Orphans,
        Event::DefragObjects,
        Event::Point,
        Event::DeleteObjects,
        Event::MoveArea(2),
        Event::Point,
    ]);
    events
}

fn setting() -> Setting {
    let limits = Limits { cache_bytes: 160 << 12, dirty_bytes: 24 << 12 };
    let packing = Packing { group_blocks: 2, compaction: true };
    Setting { gardening: ALL, packing, limits, has_objects: true, ..Setting::default() }
}

#[test]
fn power_may_be_lost_while_blocks_go_to_objects_and_all_else_goes_on() {
    let run = record_as(&events(), &setting());
    let ([moved, fixed, _], [tiered, again, rewritten, deleted]) = (run.gardened, run.cold);
    assert!(
        moved > 20 && fixed > 2 && run.recompacted > 0 && tiered > 20 && again > 2 && rewritten > 5 && deleted > 1,
        "{moved} moved, {fixed} put right, {} recompacted, {:?}",
        run.recompacted,
        run.cold
    );
    let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 0, seed: Seed(31) };
    // In every third case a drive is lost, too.
    let states = check_run(&run, &plan, |count, devices| {
        if count % 3 == 0 {
            devices.remove(count / 3 % 3);
        }
    });
    assert!(states > 200, "{states} states");
}
