//! The SSD against arithmetic: latencies, rates, the write cache, garbage collection.

use proptest::prelude::*;
use senesce_core::Rng;

use super::*;
use crate::{QueuePolicy, compute_cost, find_preset};

fn spec(preset: &str, changes: &[(&str, f64)]) -> DeviceSpec {
    let mut spec = find_preset(preset).unwrap();
    for (key, value) in changes {
        spec.constants.get_mut(*key).unwrap().value = *value;
    }
    spec.check().unwrap();
    spec
}

fn request(op: BlockOp, sector: u64, sectors: u64) -> BlockRequest {
    BlockRequest { issued: Nanos(0), op, sector, sectors: sectors as u32 }
}

fn depth(depth: u32) -> QueuePolicy {
    QueuePolicy::BackToBack { depth: depth.try_into().unwrap() }
}

#[track_caller]
fn assert_within(got: f64, want: f64, percent: f64) {
    assert!((got / want - 1.0).abs() * 100.0 <= percent, "{got} is not within {percent}% of {want}");
}

fn random_reads(count: u64, total: u64) -> Vec<BlockRequest> {
    let mut rng = Rng::for_purpose(Seed(1), "places");
    (0..count).map(|_| request(BlockOp::Read, rng.below(total / 8) * 8, 8)).collect()
}

#[test]
fn small_read_is_the_sum_of_its_parts() {
    let mut drive = Ssd::new(&spec("sata-ssd", &[]), FlashState::NotModelled).unwrap();
    // 10 us command, 75 us array, 4 KiB over the channel (12.3 us) and the link (7.447 us).
    let done = drive.serve(&request(BlockOp::Read, 0, 8), Nanos(0));
    assert_eq!(done, Nanos(10_000 + 75_000 + 12_300 + 7_447));
    // The other half of the page is in the plane's register.
    let half = drive.serve(&request(BlockOp::Read, 8, 8), done);
    assert_eq!(half.since(done), Nanos(10_000 + 12_300 + 7_447));
    assert_eq!(drive.totals().buffer_hits, 1);
}

#[test]
fn random_reads_have_the_rates_of_the_datasheet() {
    for (preset, reads_at, rates) in
        [("sata-ssd", [1, 32], [9_547.0, 98_000.0]), ("nvme", [1, 128], [11_500.0, 370_000.0])]
    {
        let spec = spec(preset, &[]);
        let requests = random_reads(20_000, spec.capacity_bytes() / SECTOR_BYTES);
        for (reads, rate) in reads_at.into_iter().zip(rates) {
            let cost = compute_cost(&mut *spec.build().unwrap(), &requests, depth(reads));
            assert_within(requests.len() as f64 / cost.seconds, rate, 5.0);
        }
    }
}

#[test]
fn sequential_rates_are_those_of_the_narrowest_part() {
    // 128 planes program 128 * 8 KiB in 750 us: 1,398 MB/s.
    for (preset, read, write) in [("sata-ssd", 550.0, 550.0), ("nvme", 3400.0, 1398.0)] {
        for (op, rate) in [(BlockOp::Read, read), (BlockOp::Write, write)] {
            let requests: Vec<BlockRequest> = (0..4000).map(|index| request(op, index * 1024, 1024)).collect();
            let cost = compute_cost(&mut *spec(preset, &[]).build().unwrap(), &requests, depth(4));
            assert_within((cost.read_bytes + cost.written_bytes) as f64 / cost.seconds / 1e6, rate, 5.0);
        }
    }
}

#[test]
fn flush_and_uncached_writes_wait_for_programs() {
    let mut drive = Ssd::new(&spec("sata-ssd", &[]), FlashState::NotModelled).unwrap();
    let written = drive.serve(&request(BlockOp::Write, 0, 16), Nanos(0));
    assert_eq!(written, Nanos(10_000 + 14_895));
    let flushed = drive.serve(&request(BlockOp::Flush, 0, 0), written);
    assert_eq!(flushed, Nanos(written.0 + 24_601 + 750_000));
    let mut drive = Ssd::new(&spec("sata-ssd", &[("write_cache", 0.0)]), FlashState::NotModelled).unwrap();
    assert_eq!(drive.serve(&request(BlockOp::Write, 0, 16), Nanos(0)), flushed);
}

#[test]
fn consecutive_halves_of_a_page_are_one_program() {
    let mut drive = Ssd::new(&spec("sata-ssd", &[]), FlashState::Erased).unwrap();
    let mut now = Nanos(0);
    for sector in (0..1600).step_by(8) {
        now = drive.serve(&request(BlockOp::Write, sector, 8), now);
    }
    assert_eq!(drive.totals().host_pages, 100);
}

/// A drive of 4 planes and 1 GiB, for garbage collection.
fn small(spare: f64) -> DeviceSpec {
    let changes = [
        ("capacity", 1.073_741_824),
        ("channels", 2.0),
        ("chips", 1.0),
        ("dies", 2.0),
        ("planes", 1.0),
        ("pages_per_block", 128.0),
        ("spare", spare),
    ];
    spec("sata-ssd", &changes)
}

fn random_writes(spec: &DeviceSpec, count: u64) -> Vec<BlockRequest> {
    let pages = spec.capacity_bytes() / 8192;
    let mut rng = Rng::for_purpose(Seed(4), "writes");
    (0..count).map(|_| request(BlockOp::Write, rng.below(pages) * 16, 16)).collect()
}

#[test]
fn used_drive_amplifies_random_writes_and_is_slower() {
    let spec = small(0.3);
    let requests = random_writes(&spec, 200_000);
    let used = FlashState::Used { rounds: 5, seed: Seed(1) };
    let ideal = compute_cost(&mut *spec.build().unwrap(), &requests, QueuePolicy::default());
    let cost = compute_cost(&mut *spec.build_with_flash(used).unwrap(), &requests, QueuePolicy::default());
    let amplification = cost.totals.write_amplification().unwrap();
    assert_within(amplification, compute_greedy_write_amplification(0.3), 3.0);
    assert_eq!(ideal.totals.write_amplification(), Some(1.0));
    // The time of each plane: programs, moves with their reads, erases.
    let moves = amplification - 1.0;
    let page_us = 750.0 + moves * 825.0 + amplification / 128.0 * 3800.0;
    assert!(cost.seconds / ideal.seconds > page_us / 750.0 * 0.95, "{} {}", cost.seconds, ideal.seconds);
    assert!(cost.collection_seconds > 0.3 * cost.seconds, "{cost:?}");
}

#[test]
fn discards_give_spare_and_cheap_reads() {
    let spec = small(0.1);
    let half = spec.capacity_bytes() / SECTOR_BYTES / 2;
    let used = FlashState::Used { rounds: 3, seed: Seed(1) };
    let amplification = |discard: bool| {
        let mut drive = spec.build_with_flash(used).unwrap();
        if discard {
            drive.serve(&request(BlockOp::Discard, half, half), Nanos(0));
        }
        // In the first half of the device only.
        let mut requests = random_writes(&spec, 600_000);
        requests.iter_mut().for_each(|request| request.sector = request.sector / 2 / 16 * 16);
        compute_cost(&mut *drive, &requests[..400_000], QueuePolicy::default());
        compute_cost(&mut *drive, &requests[400_000..], QueuePolicy::default()).totals.write_amplification().unwrap()
    };
    let (without, with) = (amplification(false), amplification(true));
    // The written half has 10% of the whole as spare without the discard, and 60% of the whole with
    // it.
    assert_within(with, compute_greedy_write_amplification(1.2), 4.0);
    assert!(without > 1.5 * with, "{without} {with}");
    let mut drive = Ssd::new(&spec, FlashState::Erased).unwrap();
    assert_eq!(drive.serve(&request(BlockOp::Read, 0, 8), Nanos(0)), Nanos(10_000 + 7_447));
}

proptest! {
    #[test]
    fn parts_of_each_request_add_up(
        steps in prop::collection::vec((0u8..8, 0u64..524_288, 0u64..600, 0u64..400_000), 1..80),
        write_cache in prop::sample::select(vec![0.0, 0.05]),
        erased: bool,
    ) {
        let mut spec = small(0.1);
        spec.constants.get_mut("write_cache").unwrap().value = write_cache;
        let state = if erased { FlashState::Erased } else { FlashState::NotModelled };
        let mut drive = Ssd::new(&spec, state).unwrap();
        let mut now = Nanos(0);
        for (op, sector, sectors, pause) in steps {
            let op = match op { 0 => BlockOp::Flush, 1 => BlockOp::Discard, 2..5 => BlockOp::Write, _ => BlockOp::Read };
            let before = drive.totals().times.sum();
            let arrival = Nanos(now.0 + pause);
            let done = drive.serve(&request(op, sector, sectors), arrival);
            prop_assert!(done >= arrival);
            prop_assert_eq!(drive.totals().times.sum().since(before), done.since(arrival));
            now = done;
        }
    }
}
