//! The disk against arithmetic: its layout, its seeks, its rates, its buffer and its write cache.

use proptest::prelude::*;
use senesce_core::{Rng, Seed};

use super::*;
use crate::find_preset;

fn disk(preset: &str, changes: &[(&str, f64)]) -> Hdd {
    let mut spec = find_preset(preset).unwrap();
    for (key, value) in changes {
        spec.constants.get_mut(*key).unwrap().value = *value;
    }
    spec.check().unwrap();
    Hdd::new(&spec).unwrap()
}

fn request(op: BlockOp, sector: u64, sectors: u64) -> BlockRequest {
    BlockRequest { issued: Nanos(0), op, sector, sectors: sectors as u32 }
}

/// MB/s of `count` adjacent requests of `sectors` from `sector` on, each `pause` after the previous
/// one.
fn sequential(disk: &mut Hdd, op: BlockOp, sector: u64, sectors: u64, count: u64, pause: u64) -> f64 {
    // The positioning of the first request is not part of the rate.
    let start = disk.serve(&request(op, sector, sectors), Nanos(0));
    let mut now = start;
    for index in 1..=count {
        now = disk.serve(&request(op, sector + index * sectors, sectors), Nanos(now.0 + pause));
    }
    (count * sectors * SECTOR_BYTES) as f64 / now.since(start).as_secs_f64() / 1e6
}

#[track_caller]
fn assert_within(got: f64, want: f64, percent: f64) {
    assert!((got / want - 1.0).abs() * 100.0 <= percent, "{got} is not within {percent}% of {want}");
}

#[test]
fn mean_seek_of_random_pairs_matches_the_datasheet() {
    for (preset, read, write) in [("hdd-7200", 8.2, 8.2), ("hdd-10k", 4.0, 4.4)] {
        let disk = disk(preset, &[]);
        let mut rng = Rng::for_purpose(Seed(1), "pairs");
        let (mut sums, mut pairs) = ([0.0; 2], 0.0);
        while pairs < 200_000.0 {
            let cylinders = disk.geometry.cylinders();
            let distance = rng.below(cylinders).abs_diff(rng.below(cylinders));
            if distance > 0 {
                sums[0] += disk.read_seek.ms(distance);
                sums[1] += disk.write_seek.ms(distance);
                pairs += 1.0;
            }
        }
        assert_within(sums[0] / pairs, read, 0.5);
        assert_within(sums[1] / pairs, write, 0.5);
    }
}

#[test]
fn layout_of_the_10k_disk_matches_its_manual() {
    let disk = disk("hdd-10k", &[]);
    assert_within(disk.geometry.cylinders() as f64, 51_052.0, 1.0);
    let tracks = disk.geometry.cylinders() * 4;
    assert_within((disk.geometry.sectors() * SECTOR_BYTES / tracks) as f64, 360_000.0, 1.0);
}

#[test]
fn small_layout_matches_hand_computation() {
    // 6000 rpm = 10 ms per turn. Switches take 1 ms, so a track holds 11 ms of the sustained rate:
    // 5.12 MB/s * 11 ms = 110 sectors outside, half of that inside. 2 zones, 2 heads: 330 sectors
    // per pair of cylinders.
    let changes = [
        ("rotation", 6000.0),
        ("heads", 2.0),
        ("zones", 2.0),
        ("outer_rate", 5.12),
        ("inner_rate", 2.56),
        ("capacity", 0.00128 * 3.3),
        ("track_to_track_read", 1.0),
        ("track_to_track_write", 1.0),
        ("head_switch", 1.0),
    ];
    let disk = disk("hdd-7200", &changes);
    let geometry = &disk.geometry;
    assert_eq!(geometry.sectors(), 8250); // 25 cylinders of each zone: 25 * (220 + 110)
    assert_eq!(geometry.cylinders(), 50);
    let place = geometry.place(110 + 3);
    assert_eq!((place.cylinder, place.head, place.sector), (0, 1, 3));
    let place = geometry.place(5500 + 55);
    assert_eq!((place.cylinder, place.head, place.sector, place.sectors_per_track), (25, 1, 0, 55));
    // Each track starts a tenth of a turn (1 ms) after the previous one; a reader needs 11 ms for
    // each.
    assert_eq!(geometry.course(110), TURN + TURN / 10);
    assert_eq!(geometry.course_end(110), TURN);
    assert_eq!(geometry.course(220), 2 * (TURN + TURN / 10));
    assert_eq!(geometry.course(5555), 51 * (TURN + TURN / 10));
}

#[test]
fn adjacent_reads_have_the_rates_of_the_datasheet() {
    for (preset, outer, inner) in [("hdd-7200", 192.0, 92.0), ("hdd-10k", 65.3, 43.8)] {
        for sectors in [128, 1000, 4096] {
            let count = 400_000 / sectors;
            assert_within(sequential(&mut disk(preset, &[]), BlockOp::Read, 0, sectors, count, 0), outer, 1.0);
            let mut inside = disk(preset, &[]);
            let first = inside.geometry.sectors() - 500_000;
            assert_within(sequential(&mut inside, BlockOp::Read, first, sectors, count, 0), inner, 1.0);
        }
    }
}

#[test]
fn read_ahead_hides_short_pauses() {
    // 128 KiB take 0.68 ms. With a pause of 0.3 ms after each, the disk still streams; with 2 ms
    // the pauses dominate.
    let rate = sequential(&mut disk("hdd-7200", &[]), BlockOp::Read, 0, 256, 4000, 300_000);
    assert_within(rate, 192.0, 1.0);
    let rate = sequential(&mut disk("hdd-7200", &[]), BlockOp::Read, 0, 256, 4000, 2_000_000);
    assert_within(rate, 131.072 / (2.0 + 0.05 + 131.072 / 600.0), 1.0);
    // Without read-ahead, each request misses its sector and waits for most of a turn.
    let rate = sequential(&mut disk("hdd-7200", &[("read_ahead", 0.0)]), BlockOp::Read, 0, 256, 400, 300_000);
    assert_within(rate, 131.072 / (8.333 + 0.68), 10.0);
}

#[test]
fn random_read_costs_overhead_seek_half_turn_transfer() {
    let mut disk = disk("hdd-10k", &[]);
    let (total, mut now) = (disk.geometry.sectors(), Nanos(0));
    let mut rng = Rng::for_purpose(Seed(2), "places");
    let count = 20_000;
    for _ in 0..count {
        now = disk.serve(&request(BlockOp::Read, rng.below(total - 8), 8), now);
    }
    let each_ms = now.as_secs_f64() * 1e3 / f64::from(count);
    // Uniform sectors are a little nearer to each other than uniform cylinders, because outer
    // tracks hold more.
    assert_within(each_ms, 0.2 + 4.0 + 3.0 + 0.07, 2.0);
    let times = disk.totals().times;
    assert_eq!(times.sum(), now, "with one request at a time the parts are all of the time");
    assert_within(times.rotation.as_secs_f64() * 1e3 / f64::from(count), 3.0, 2.0);
    assert_within(times.seek.as_secs_f64() * 1e3 / f64::from(count), 4.0, 3.0);
    assert_eq!(times.queue, Nanos(0));
}

#[test]
fn repeated_read_is_served_from_the_buffer() {
    let mut disk = disk("hdd-7200", &[]);
    let first = disk.serve(&request(BlockOp::Read, 1000, 64), Nanos(0));
    let again = disk.serve(&request(BlockOp::Read, 1000, 64), first);
    assert_eq!(again.since(first), Nanos(50_000 + 54_613)); // overhead, 32 KiB over the link
    assert_eq!(disk.totals().buffer_hits, 1);
    let written = disk.serve(&request(BlockOp::Write, 1010, 8), again);
    let flushed = disk.serve(&request(BlockOp::Flush, 0, 0), written);
    disk.serve(&request(BlockOp::Read, 1000, 64), flushed);
    assert_eq!(disk.totals().buffer_hits, 1, "a write makes what was read old");
}

#[test]
fn forgotten_data_is_read_from_the_platters() {
    let mut disk = disk("hdd-7200", &[]);
    let written = disk.serve(&request(BlockOp::Write, 5000, 64), Nanos(0));
    let flushed = disk.serve(&request(BlockOp::Flush, 0, 0), written);
    let read = disk.serve(&request(BlockOp::Read, 1000, 64), flushed);
    disk.drop_device_cache();
    // Data of the read, of the read-ahead after it, and of the write.
    let mut now = read;
    for sector in [1000, 1064, 5000] {
        let done = disk.serve(&request(BlockOp::Read, sector, 64), now);
        assert_eq!(disk.totals().buffer_hits, 0, "sector {sector}");
        now = done;
    }
    disk.serve(&request(BlockOp::Read, 1000, 64), now);
    assert_eq!(disk.totals().buffer_hits, 1, "from then on it is kept as ever");
}

#[test]
fn only_forgotten_sectors_are_read_again() {
    let mut disk = disk("hdd-7200", &[]);
    let mut now = disk.serve(&request(BlockOp::Read, 1000, 192), Nanos(0));
    // The middle of the sectors that the running read-ahead holds.
    disk.forget_sectors(1064, 1128);
    now = disk.serve(&request(BlockOp::Read, 1000, 64), now);
    now = disk.serve(&request(BlockOp::Read, 1128, 64), now);
    assert_eq!(disk.totals().buffer_hits, 2, "before it and after it");
    now = disk.serve(&request(BlockOp::Read, 1064, 64), now);
    assert_eq!(disk.totals().buffer_hits, 2);
    // A part of the sectors that an earlier read left in the buffer.
    now = disk.serve(&request(BlockOp::Read, 9_000_000, 64), now);
    disk.forget_sectors(1064, 1100);
    now = disk.serve(&request(BlockOp::Read, 1100, 28), now);
    assert_eq!(disk.totals().buffer_hits, 3);
    disk.serve(&request(BlockOp::Read, 1064, 64), now);
    assert_eq!(disk.totals().buffer_hits, 3);
}

#[test]
fn sequential_writes_lose_turns_without_a_cache() {
    let rate = sequential(&mut disk("hdd-7200", &[]), BlockOp::Write, 0, 1024, 2000, 0);
    assert_within(rate, 192.0, 4.0); // the cache accepts the first 16 MiB of 1 GiB at once
    let rate = sequential(&mut disk("hdd-7200", &[("write_cache", 0.0)]), BlockOp::Write, 0, 1024, 400, 0);
    let one_turn_each = 0.524_288 / (8.333 + 0.524_288 / 0.1924) * 1e3;
    assert_within(rate, one_turn_each, 8.0);
}

#[test]
fn write_cache_sorts_and_flush_waits_for_all() {
    let total = disk("hdd-7200", &[]).geometry.sectors();
    let cost = |write_cache: f64| {
        let mut disk = disk("hdd-7200", &[("write_cache", write_cache)]);
        let mut rng = Rng::for_purpose(Seed(3), "places");
        let mut now = Nanos(0);
        for _ in 0..500 {
            now = disk.serve(&request(BlockOp::Write, rng.below(total / 8) * 8, 8), now);
        }
        let acknowledged = now;
        (acknowledged, disk.serve(&request(BlockOp::Flush, 0, 0), now), disk.totals())
    };
    let ((cached, cached_all, totals), (through, through_all, _)) = (cost(16.0), cost(0.0));
    assert!(cached.0 * 20 < through.0, "{cached:?} {through:?}");
    assert!(cached_all.0 * 3 < through_all.0 * 2, "one sweep is shorter than 500 ways: {cached_all:?} {through_all:?}");
    assert_within(totals.times.write_back.as_secs_f64(), cached_all.since(cached).as_secs_f64(), 1.0);
}

#[test]
fn cached_writes_reach_the_platters_when_idle() {
    let mut disk = disk("hdd-7200", &[]);
    let done = disk.serve(&request(BlockOp::Write, 123_456, 64), Nanos(0));
    let later = Nanos(done.0 + 1_000_000_000);
    assert_eq!(disk.serve(&request(BlockOp::Flush, 0, 0), later), Nanos(later.0 + 50_000));
}

#[test]
fn requests_after_the_end_are_served_and_counted() {
    let mut disk = disk("hdd-7200", &[]);
    let total = disk.geometry.sectors();
    let mut now = Nanos(0);
    for op in [BlockOp::Read, BlockOp::Write, BlockOp::Discard] {
        now = disk.serve(&request(op, total - 4, 8), now);
        now = disk.serve(&request(op, u64::MAX / 2, 8), now);
    }
    assert_eq!(disk.totals().beyond_end, 6);
    disk.serve(&BlockRequest { sectors: u32::MAX, ..request(BlockOp::Read, 0, 0) }, now);
}

proptest! {
    #[test]
    fn request_parts_add_up_and_time_rises(
        steps in prop::collection::vec((0u8..8, 0u64..40_000, 0u64..3000, 0u64..3_000_000), 1..60),
        write_cache in prop::sample::select(vec![0.0, 1.0]),
        read_ahead in prop::sample::select(vec![0.0, 256.0]),
    ) {
        let mut disk = disk("hdd-10k", &[("write_cache", write_cache), ("read_ahead", read_ahead), ("buffer", 1.0)]);
        let mut now = Nanos(0);
        for (op, sector, sectors, pause) in steps {
            let op = match op { 0 => BlockOp::Flush, 1 => BlockOp::Discard, 2..5 => BlockOp::Write, _ => BlockOp::Read };
            let before = disk.totals().times.sum();
            let arrival = Nanos(now.0 + pause);
            let done = disk.serve(&request(op, sector, sectors), arrival);
            prop_assert!(done >= arrival);
            prop_assert_eq!(disk.totals().times.sum().since(before), done.since(arrival));
            prop_assert!(disk.dirty.sectors() <= disk.write_cache_sectors);
            now = done;
        }
    }

    #[test]
    fn sector_has_one_place_and_the_course_rises(sector in 0u64..143_359_000, step in 1u64..1000) {
        let disk = disk("hdd-10k", &[]);
        let next = (sector + step).min(disk.geometry.sectors() - 1);
        prop_assert!(disk.geometry.course(next) > disk.geometry.course(sector) || next <= sector);
        prop_assert!(disk.geometry.course_end(sector + 1) > disk.geometry.course(sector));
        prop_assert!(disk.geometry.course_end(sector + 1) <= disk.geometry.course(sector + 1));
        let course = disk.geometry.course_end(next.max(sector + 1));
        prop_assert_eq!(disk.geometry.sector_at(sector, sector + 5000, course), next.max(sector + 1));
    }
}
