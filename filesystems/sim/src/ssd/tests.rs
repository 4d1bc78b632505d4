//! The SSD against arithmetic and against the analytic write amplification.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use senesce_core::Rng;
use senesce_device::{compute_greedy_write_amplification, find_preset};

use super::*;

/// 4 channels of 2 dies, pages of 4 blocks, 64 pages per erase: 64 MiB for each die.
fn small(spare_per_mille: u32) -> SsdSpec {
    SsdSpec {
        channels: 4,
        dies_per_channel: 2,
        pages_per_erase: 64,
        block_erase: Nanos(3_800_000),
        spare_per_mille,
        ..SsdSpec::from_device(&find_preset("sata-ssd").unwrap(), 1 << 17, 4).unwrap()
    }
}

fn drive(spec: &SsdSpec) -> Ssd {
    Ssd::new(spec, SsdFill::Erased).unwrap()
}

#[track_caller]
fn assert_within(got: f64, want: f64, percent: f64) {
    assert!((got / want - 1.0).abs() * 100.0 <= percent, "{got} is not within {percent}% of {want}");
}

#[test]
fn constants_come_from_the_described_device() {
    let spec = SsdSpec::from_device(&find_preset("sata-ssd").unwrap(), 1 << 28, 4).unwrap();
    assert_eq!((spec.dies(), spec.pages_per_erase, spec.spare_per_mille), (128, 256, 100));
    assert_eq!((spec.page_read, spec.page_program, spec.command), (Nanos(75_000), Nanos(750_000), Nanos(10_000)));
    // Scaled down, a die still has 32 erase blocks.
    assert_eq!(SsdSpec::from_device(&find_preset("sata-ssd").unwrap(), 1 << 18, 4).unwrap().pages_per_erase, 16);
    assert!(SsdSpec::from_device(&find_preset("hdd-10k").unwrap(), 1 << 28, 4).is_err());
    assert!(SsdSpec::from_device(&find_preset("nvme").unwrap(), 1000, 4).is_err());
}

#[test]
fn random_writes_have_the_computed_amplification() {
    for (spare_per_mille, rounds) in [(100, 4), (150, 3), (300, 3)] {
        // The formula assumes many erase blocks of many pages: here 512 of 256 on each of two dies.
        let shape = SsdSpec { blocks: 1 << 18, channels: 2, dies_per_channel: 1, ..small(spare_per_mille) };
        let spec = SsdSpec { cache_pages: 8, ..shape };
        let mut ssd = Ssd::new(&spec, SsdFill::Random { rounds, seed: Seed(1) }).unwrap();
        let mut rng = Rng::for_purpose(Seed(2), "writes");
        let mut now = Nanos(0);
        for _ in 0..spec.blocks {
            now = ssd.serve(BlockOp::Write, rng.below(spec.blocks), 1, now);
        }
        let got = ssd.counts().write_amplification().unwrap();
        assert_within(got, compute_greedy_write_amplification(f64::from(spare_per_mille) / 1000.0), 5.0);
        // Programs are whole pages, and the time is that of dies that are never idle.
        let counts = ssd.counts();
        assert_within(counts.page_programs as f64 * 4.0, (counts.written + counts.moved) as f64, 0.5);
        let utilisation = ssd.die_utilisation(&SsdCounts::default(), now);
        assert!((0.8..=1.02).contains(&utilisation), "{utilisation}");
    }
}

#[test]
fn sequential_writes_are_not_amplified() {
    let spec = small(100);
    let mut ssd = Ssd::new(&spec, SsdFill::Sequential).unwrap();
    let mut now = Nanos(0);
    for start in (0..2 * spec.blocks).step_by(64) {
        now = ssd.serve(BlockOp::Write, start % spec.blocks, 64, now);
    }
    assert_eq!(ssd.counts().write_amplification(), Some(1.0));
    // Of 8 dies, each needs 49 us of the channel and 750 us for 16 KiB, and 3.8 ms per erase for
    // each 64 pages.
    let rate = (2 * spec.blocks * BLOCK) as f64 / now.0 as f64 * 1e3;
    assert_within(rate, 8.0 * 16_384.0 / (49.2 + 750.0 + 3800.0 / 64.0), 3.0);
}

#[test]
fn discarded_blocks_are_spare() {
    let spec = small(100);
    let mut ssd = Ssd::new(&spec, SsdFill::Sequential).unwrap();
    let half = spec.blocks / 2;
    let mut now = ssd.serve(BlockOp::Discard, half, half as u32, Nanos(0));
    let mut rng = Rng::for_purpose(Seed(3), "writes");
    let mut before = ssd.counts();
    for _ in 0..6 {
        before = ssd.counts();
        for _ in 0..half {
            now = ssd.serve(BlockOp::Write, rng.below(half), 1, now);
        }
    }
    // Half of the device in use at 10% spare means 120% spare for that half.
    let got = ssd.counts().since(&before).write_amplification().unwrap();
    assert_within(got, compute_greedy_write_amplification(1.2), 5.0);
    // Discarded blocks are not on flash: a read costs only command and link.
    let done = ssd.serve(BlockOp::Read, half + 5, 1, Nanos(now.0 + 1_000_000_000));
    assert_eq!(done, Nanos(now.0 + 1_000_000_000 + 10_000 + 7_447));
}

#[test]
fn reads_add_their_parts_and_runs_use_all_dies() {
    let spec = small(100);
    let mut ssd = Ssd::new(&spec, SsdFill::Sequential).unwrap();
    // 10 us command, 75 us array, 4 KiB over the channel (12.3 us) and the link (7.4 us).
    assert_eq!(ssd.serve(BlockOp::Read, 9, 1, Nanos(0)), Nanos(10_000 + 75_000 + 12_300 + 7_447));
    // 8 pages on 8 dies, two per channel: the second of a channel waits 49 us, and the link moves
    // 128 KiB.
    let start = Nanos(1_000_000);
    let done = ssd.serve(BlockOp::Read, 64, 32, start).since(start);
    assert!(done.0 >= 10_000 + 75_000 + 49_201 + 32 * 7_447 && done.0 < 400_000, "{done:?}");
    assert_eq!(ssd.counts().page_reads, 9);
}

#[test]
fn a_fragmented_run_needs_more_page_reads() {
    let spec = small(300);
    let (mut whole, mut pieces) = (drive(&spec), drive(&spec));
    let mut order: Vec<u64> = (0..4096).collect();
    Rng::for_purpose(Seed(4), "order").shuffle(&mut order);
    let (mut now, mut later) = (Nanos(0), Nanos(0));
    now = whole.serve(BlockOp::Write, 0, 4096, now);
    for block in order {
        later = pieces.serve(BlockOp::Write, block, 1, later);
    }
    let quiet = Nanos(now.max(later).0 + 1_000_000_000);
    let times = [&mut whole, &mut pieces].map(|ssd| {
        let done = ssd.serve(BlockOp::Read, 1024, 64, quiet).since(quiet);
        (ssd.counts().page_reads, done)
    });
    assert_eq!(times[0].0, 16);
    assert!(times[1].0 > 55 && times[1].1 > times[0].1, "{times:?}");
}

#[test]
fn reads_overtake_unstarted_programs() {
    let spec = small(300);
    let mut ssd = Ssd::new(&spec, SsdFill::Sequential).unwrap();
    // 20 pages for one die: blocks 0..4 of every eighth page.
    let mut now = Nanos(0);
    for page in 0..20 {
        now = ssd.serve(BlockOp::Write, page * 32, 4, now);
    }
    // The die has 15 ms of work; a read waits only for the started program.
    let done = ssd.serve(BlockOp::Read, 32 * 100, 1, now).since(now);
    assert!(done.0 < 750_000 + 250_000, "{done:?}");
    // A read from the cache needs no flash.
    let counts = ssd.counts();
    ssd.serve(BlockOp::Read, 19 * 32, 4, now);
    assert_eq!(ssd.counts().page_reads, counts.page_reads);
}

proptest! {
    #[test]
    fn time_advances_and_no_block_is_lost(
        steps in prop::collection::vec((0u8..8, 0u64..1024, 1u32..200, 0u64..3_000_000), 1..150),
        cache_pages in 1u32..40,
    ) {
        let spec = SsdSpec { blocks: 1024, channels: 2, dies_per_channel: 1, pages_per_erase: 4, cache_pages, ..small(100) };
        let mut ssd = drive(&spec);
        let (mut now, mut written, mut mapped) = (Nanos(0), 0, std::collections::BTreeSet::new());
        for (op, block, blocks, pause) in steps {
            let op = [BlockOp::Flush, BlockOp::Discard, BlockOp::Read, BlockOp::Write][usize::from(op / 2)];
            let range = block..block + u64::from(blocks);
            match op {
                BlockOp::Write => { written += u64::from(blocks); mapped.extend(range.map(|block| block % 1024)) }
                BlockOp::Discard => range.for_each(|block| { mapped.remove(&(block % 1024)); }),
                _ => {}
            }
            let done = ssd.serve(op, block, blocks, now);
            prop_assert!(done.0 >= now.0 + spec.command.0);
            now = Nanos(now.0 + pause);
        }
        prop_assert_eq!(ssd.counts().written, written);
        prop_assert!(ssd.cached as usize <= cache_pages as usize);
        for block in 0..1024 {
            let (die, local) = ssd.locate(block);
            prop_assert_eq!(ssd.dies[die].ftl.is_mapped(local), mapped.contains(&block));
        }
        // After an idle time, every page is on flash.
        let quiet = Nanos(now.0 + 1_000_000_000_000);
        for die in 0..2 {
            ssd.dies[die].settle(quiet, quiet, &spec, &mut ssd.channels, &mut ssd.counts);
            ssd.collect_ends(die);
        }
        prop_assert_eq!(ssd.cached, 0);
        let (programmed, all) = (ssd.counts.page_programs * 4, ssd.counts.written + ssd.counts.moved);
        prop_assert!(programmed <= all && all < programmed + 2 * 4, "{} {}", programmed, all);
    }
}
