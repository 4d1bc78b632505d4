//! Layouts computed by hand, and against a model that checks every block.

use proptest::prelude::*;
use senesce_core::Extent;

use super::*;
use crate::map::ExtentFlags;

const BLOCK: u64 = 4096;

/// Extents from (first block on the device, blocks), consecutive in the file.
fn file(pieces: &[(u64, u64)]) -> Vec<RawExtent> {
    let mut logical = 0;
    let mut extents = Vec::new();
    for &(physical, blocks) in pieces {
        extents.push(raw(logical, physical, blocks, 0));
        logical += blocks;
    }
    extents
}

fn raw(logical: u64, physical: u64, blocks: u64, flags: u32) -> RawExtent {
    let extent = Extent { logical: logical * BLOCK, physical: physical * BLOCK, length: blocks * BLOCK };
    RawExtent { extent, flags: ExtentFlags(flags) }
}

#[test]
fn a_file_in_three_extents_scores_three_fifths() {
    // 10 11 12 | 20 | 13 14: of five blocks with a predecessor, three follow it.
    let layout = compute_file_layout(&file(&[(10, 3), (20, 1), (13, 2)]), BLOCK);
    assert_eq!((layout.blocks, layout.extents, layout.following()), (6, 3, 3));
    assert_eq!(layout.layout_score(), Some(3.0 / 5.0));
}

#[test]
fn adjacent_extents_merge_across_holes() {
    let layout = compute_file_layout(&[raw(0, 10, 2, 0), raw(2, 12, 2, 0x800), raw(9, 14, 1, 0)], BLOCK);
    assert_eq!((layout.blocks, layout.extents, layout.unwritten_blocks), (5, 1, 2));
    assert_eq!(layout.layout_score(), Some(1.0));
}

#[test]
fn one_block_has_no_score() {
    assert_eq!(compute_file_layout(&file(&[(10, 1)]), BLOCK).layout_score(), None);
    assert_eq!(compute_file_layout(&[], BLOCK).layout_score(), None);
}

#[test]
fn extents_without_blocks_are_counted_separately() {
    let mut scorer = LayoutScorer::new(Space::BtrfsLogical, BLOCK);
    let inline = RawExtent { extent: Extent { logical: 0, physical: 0, length: 100 }, flags: ExtentFlags(0x301) };
    scorer.add_file(100, &[inline]);
    scorer.add_file(1 << 20, &[raw(0, 50, 32, 0x8), raw(32, 7, 32, 0x9)]);
    scorer.add_file(8192, &[raw(0, 0, 2, 0x7)]);
    scorer.add_file(0, &[]);
    let figures = scorer.finish();
    assert_eq!((figures.files, figures.blocks, figures.extents), (0, 0, 0));
    assert_eq!((figures.layout_score, figures.extents_per_file, figures.adjacent_files_share), (None, None, None));
    assert_eq!((figures.inline_files, figures.inline_bytes, figures.empty_files), (1, 100, 1));
    assert_eq!((figures.encoded_extents, figures.encoded_bytes), (2, 64 * BLOCK));
    assert_eq!(figures.unplaced_bytes, 2 * BLOCK);
    assert!(figures.by_size.is_empty() && figures.interfile_distances.is_empty());
}

#[test]
fn the_aggregate_score_is_weighted_by_blocks() {
    let mut scorer = LayoutScorer::new(Space::Device, BLOCK);
    scorer.add_file(4096, &file(&[(100, 1)])); // no score
    scorer.add_file(8192, &file(&[(101, 1), (200, 1)])); // 0 of 1; adjacent to the one before
    scorer.add_file(36864, &file(&[(204, 9)])); // 8 of 8; 3 blocks ahead
    scorer.add_file(40960, &file(&[(50, 10)])); // 9 of 9; 163 blocks back
    let figures = scorer.finish();
    assert_eq!((figures.files, figures.fragmented_files, figures.extents, figures.blocks), (4, 1, 5, 22));
    assert_eq!(figures.extents_per_file, Some(1.25));
    assert_eq!(figures.layout_score, Some(17.0 / 18.0));
    assert_eq!(figures.adjacent_files_share, Some(1.0 / 3.0));
    let bucket = |at_least_blocks, forward, backward| DistanceBucket { at_least_blocks, forward, backward };
    let distances: Vec<_> =
        figures.interfile_distances.iter().filter(|b| b.forward + b.backward > 0).copied().collect();
    assert_eq!(distances, [bucket(0, 1, 0), bucket(2, 1, 0), bucket(128, 0, 1)]);
    let classes: Vec<_> = figures.by_size.iter().map(|c| (c.at_least_bytes, c.files, c.layout_score)).collect();
    assert_eq!(classes, [(4096, 1, None), (8192, 1, Some(0.0)), (32768, 2, Some(1.0))]);
}

#[test]
fn a_partial_block_run_is_rounded_up_once() {
    let part =
        |logical, physical, length| RawExtent { extent: Extent { logical, physical, length }, flags: ExtentFlags(0) };
    let layout = compute_file_layout(&[part(0, 0, 1024), part(1024, 1024, 1024), part(2048, 9216, 1024)], BLOCK);
    assert_eq!((layout.blocks, layout.extents), (2, 2));
}

proptest! {
    #[test]
    fn scores_equal_those_of_a_block_model(
        files in prop::collection::vec(prop::collection::vec((0u64..40, 1u64..6), 0..6), 0..12),
    ) {
        let mut scorer = LayoutScorer::new(Space::Device, BLOCK);
        let (mut following, mut followable, mut blocks_sum, mut adjacent, mut pairs) = (0u64, 0u64, 0u64, 0u64, 0u64);
        let mut before: Option<u64> = None;
        for pieces in &files {
            let blocks: Vec<u64> = pieces.iter().flat_map(|&(at, n)| at..at + n).collect();
            scorer.add_file(blocks.len() as u64 * BLOCK, &file(pieces));
            blocks_sum += blocks.len() as u64;
            followable += (blocks.len() as u64).saturating_sub(1);
            following += blocks.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() as u64;
            if let (Some(first), Some(last)) = (blocks.first(), blocks.last()) {
                if let Some(before) = before {
                    pairs += 1;
                    adjacent += u64::from(before + 1 == *first);
                }
                before = Some(*last);
            }
        }
        let figures = scorer.finish();
        prop_assert_eq!(figures.blocks, blocks_sum);
        prop_assert_eq!(figures.layout_score, (followable > 0).then(|| following as f64 / followable as f64));
        prop_assert_eq!(figures.adjacent_files_share, (pairs > 0).then(|| adjacent as f64 / pairs as f64));
        prop_assert_eq!(figures.interfile_distances.iter().map(|b| b.forward + b.backward).sum::<u64>(), pairs);
        prop_assert_eq!(figures.by_size.iter().map(|c| c.blocks).sum::<u64>(), blocks_sum);
        prop_assert_eq!(figures.by_size.iter().map(|c| c.extents).sum::<u64>(), figures.extents);
        // The jumps of a reader without directories: within files, and between consecutive files
        // that are not adjacent.
        prop_assert_eq!(figures.loss.intrafile, figures.extents - figures.files);
        prop_assert_eq!(figures.loss.interfile, pairs - adjacent);
        prop_assert_eq!(figures.kinds.plain.bytes, blocks_sum * BLOCK);
        // The identity that follows from the definition of a run.
        prop_assert_eq!(blocks_sum - figures.extents, following);
    }
}

#[test]
fn jumps_are_counted_by_cause() {
    let mut scorer = LayoutScorer::new(Space::Device, BLOCK).with_natural_transfer_size(3 * BLOCK);
    scorer.add_directory(&file(&[(1, 1)]));
    scorer.add_file(12288, &file(&[(2, 3)])); // directly after the directory
    scorer.add_file(8192, &file(&[(5, 1), (9, 1)])); // directly after the previous file, then a jump within
    scorer.add_file(4096, &file(&[(20, 1)])); // a jump between files
    scorer.add_directory(&file(&[(40, 1)])); // and one to metadata
    scorer.add_directory(&[]);
    scorer.add_file(4096, &file(&[(7, 1)])); // and from it
    let figures = scorer.finish();
    let loss = figures.loss;
    assert_eq!((loss.steps, loss.jumps), (6, 4));
    assert_eq!((loss.intrafile, loss.interfile, loss.metadata), (1, 1, Some(2)));
    let short = figures.short_extents.unwrap();
    assert_eq!((short.extents, short.whole_files, short.of_fragmented_files()), (4, 2, 2));
    // 5 follows 4, 20 is 10 after the end of 9, 7 is 14 before the end of 20.
    assert_eq!(figures.interfile_distance_mean_blocks, Some((10.0 + 14.0) / 3.0));
}

#[test]
fn without_directories_metadata_loss_is_unknown() {
    let mut scorer = LayoutScorer::new(Space::Device, BLOCK);
    scorer.add_file(8192, &file(&[(5, 1), (9, 1)]));
    let figures = scorer.finish();
    assert_eq!((figures.loss.jumps, figures.loss.metadata, figures.loss.metadata_share), (1, None, None));
    assert_eq!(figures.short_extents, None);
}
