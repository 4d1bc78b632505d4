//! Traces computed by hand, and properties of every trace.

use proptest::prelude::*;
use senesce_core::{Nanos, Rng, Seed};

use super::*;

fn request(op: BlockOp, sector: u64, sectors: u32) -> BlockRequest {
    BlockRequest { issued: Nanos(0), op, sector, sectors }
}

fn reads(places: &[(u64, u32)]) -> AccessFigures {
    compute_trace_figures(places.iter().map(|&(sector, sectors)| request(BlockOp::Read, sector, sectors))).reads
}

#[test]
fn a_trace_has_hand_computed_figures() {
    // 16 sectors at 100, 8 directly after, 1 far ahead, 24 at the start.
    let figures = reads(&[(100, 16), (116, 8), (1000, 1), (0, 24)]);
    assert_eq!((figures.requests, figures.bytes, figures.blocks), (4, 49 * 512, 2 + 1 + 1 + 3));
    assert_eq!(figures.discontinuities, 2);
    assert_eq!(figures.dynamic_layout_score, Some(1.0 - 2.0 / 7.0));
    assert_eq!(figures.seek_sectors, (1000 - 124) + 1001);
    assert_eq!(figures.blocks_per_request, Some(7.0 / 4.0));
    // Chains of 24, 1 and 24 sectors.
    assert_eq!((figures.chains, figures.chain_blocks), (3, 3 + 1 + 3));
    assert_eq!(figures.blocks_per_chain, Some(7.0 / 3.0));
    // 876 sectors are 110 blocks, 1001 are 126.
    let seeks: Vec<_> = figures.seeks.iter().filter(|b| b.forward + b.backward > 0).copied().collect();
    let bucket = |at_least_blocks, forward, backward| DistanceBucket { at_least_blocks, forward, backward };
    assert_eq!(seeks, [bucket(0, 1, 0), bucket(64, 1, 1)]);
    let size = |at_least_bytes, requests, bytes| RequestSizeBucket { at_least_bytes, requests, bytes };
    let sizes: Vec<_> = figures.request_sizes.iter().filter(|b| b.requests > 0).copied().collect();
    assert_eq!(sizes, [size(512, 1, 512), size(4096, 1, 4096), size(8192, 2, 8192 + 12288)]);
}

#[test]
fn one_request_is_perfect_and_none_has_no_score() {
    assert_eq!(reads(&[(77, 8)]).dynamic_layout_score, Some(1.0));
    assert_eq!(reads(&[]), AccessFigures::default());
    assert_eq!(reads(&[(77, 0)]), AccessFigures::default());
}

#[test]
fn a_backward_trace_scores_near_zero() {
    // Every request but the first is a discontinuity: 1 - 99/100.
    let backwards: Vec<_> = (0..100).rev().map(|n| (n * 8, 8)).collect();
    assert_eq!(reads(&backwards).dynamic_layout_score, Some(1.0 - 99.0 / 100.0));
}

#[test]
fn reads_and_writes_are_scored_apart_and_together() {
    let figures = compute_trace_figures([
        request(BlockOp::Read, 0, 8),
        request(BlockOp::Write, 500, 16),
        request(BlockOp::Flush, 0, 0),
        request(BlockOp::Read, 8, 8),
        request(BlockOp::Discard, 9000, 64),
        request(BlockOp::Write, 516, 16),
    ]);
    assert_eq!((figures.reads.discontinuities, figures.writes.discontinuities), (0, 0));
    assert_eq!(figures.both.discontinuities, 3, "0 to 500, back to 8, on to 516");
    assert_eq!(figures.writes.blocks_per_request, Some(2.0));
    assert_eq!(figures.writes.blocks_per_chain, Some(4.0));
    assert_eq!((figures.flushes, figures.discards, figures.discarded_bytes), (1, 1, 64 * 512));
}

#[test]
fn positions_beyond_any_device_do_not_overflow() {
    let figures = reads(&[(u64::MAX, u32::MAX), (0, u32::MAX), (u64::MAX, 1)]);
    assert_eq!(figures.discontinuities, 2);
    assert_eq!(figures.seek_sectors, u64::MAX);
}

proptest! {
    #[test]
    fn figures_equal_those_of_every_pair(places in prop::collection::vec((0u64..400, 1u32..40), 1..60)) {
        let figures = reads(&places);
        let jumps: Vec<u64> = places.windows(2).map(|p| p[1].0.abs_diff(p[0].0 + u64::from(p[0].1))).collect();
        let discontinuities = jumps.iter().filter(|&&jump| jump > 0).count() as u64;
        let blocks: u64 = places.iter().map(|p| u64::from(p.1.div_ceil(8))).sum();
        prop_assert_eq!((figures.discontinuities, figures.blocks), (discontinuities, blocks));
        prop_assert_eq!(figures.seek_sectors, jumps.iter().sum::<u64>());
        prop_assert_eq!(figures.seeks.iter().map(|b| b.forward + b.backward).sum::<u64>(), jumps.len() as u64);
        let score = figures.dynamic_layout_score.unwrap();
        prop_assert!(score > 0.0 && score <= 1.0, "{}", score);
        prop_assert_eq!(score, 1.0 - discontinuities as f64 / blocks as f64);
    }

    #[test]
    fn the_order_changes_only_seeks(places in prop::collection::vec((0u64..400, 1u32..40), 1..60), seed: u64) {
        let mut shuffled = places.clone();
        Rng::for_purpose(Seed(seed), "order").shuffle(&mut shuffled);
        let (a, b) = (reads(&places), reads(&shuffled));
        prop_assert_eq!((a.requests, a.bytes, a.blocks), (b.requests, b.bytes, b.blocks));
        prop_assert_eq!(a.request_sizes, b.request_sizes);
        prop_assert_eq!(a.blocks_per_request, b.blocks_per_request);
    }

    #[test]
    fn splitting_a_stream_keeps_score_and_chains(
        chains in prop::collection::vec(prop::collection::vec(1u32..5, 1..6), 1..12),
    ) {
        // Each chain is far after the previous one. It is one request, or several adjacent ones.
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        for (n, parts) in chains.iter().enumerate() {
            let start = n as u64 * 1000;
            whole.push((start, parts.iter().sum::<u32>() * 8));
            let mut at = start;
            for part in parts {
                cut.push((at, part * 8));
                at += u64::from(part * 8);
            }
        }
        let (whole, cut) = (reads(&whole), reads(&cut));
        prop_assert_eq!(whole.dynamic_layout_score, cut.dynamic_layout_score);
        prop_assert_eq!((whole.chains, whole.blocks_per_chain), (chains.len() as u64, cut.blocks_per_chain));
        prop_assert_eq!(whole.blocks_per_request, whole.blocks_per_chain);
        prop_assert!(cut.blocks_per_request.unwrap() <= cut.blocks_per_chain.unwrap());
    }
}
