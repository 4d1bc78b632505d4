//! Properties of the parts of a loss that hold for every tree.

use proptest::prelude::*;
use senesce_core::{Extent, RelPath};
use senesce_device::find_preset;
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::{ExtentFlags, RawExtent},
};

use super::*;
use crate::{
    cost::LayoutCosts,
    drives::Modelled,
    metadata::MetadataReader,
    told::{ToldBlocks, ToldEntry},
};

const BLOCK: u64 = 4096;
const VOLUME_BLOCKS: u64 = 1 << 18;

/// A file of a generated tree.
#[derive(Clone, Debug)]
struct Shape {
    /// The blocks of each piece, and whether they are written.
    pieces: Vec<(u64, bool)>,
    /// Blocks of the hole after each piece of the file.
    hole: u64,
    /// The block of its inode.
    inode_block: u64,
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let pieces = prop::collection::vec((1u64..80, prop::bool::weighted(0.8)), 1..5);
    let shape = (pieces, prop_oneof![3 => Just(0u64), 1 => 1u64..20], VOLUME_BLOCKS..VOLUME_BLOCKS + 4000)
        .prop_map(|(pieces, hole, inode_block)| Shape { pieces, hole, inode_block });
    prop::collection::vec(shape, 2..60)
}

/// A tree of one directory. `place` returns the first block of a piece. Its arguments are the
/// number of the file, the number of the piece, and the block after the previous piece.
fn tree(shapes: &[Shape], place: impl Fn(usize, usize, u64) -> u64) -> Vec<ToldEntry> {
    let told = |path: RelPath, kind, inode, size_bytes, extents, block: u64| ToldEntry {
        entry: Surveyed {
            path,
            kind,
            inode,
            links: 1,
            is_executable: false,
            size_bytes,
            allocated_bytes: if kind == EntryKind::Directory { BLOCK } else { size_bytes },
            modified_unix_seconds: 0,
            born_unix_seconds: None,
            extents,
        },
        metadata: vec![block * BLOCK],
        packed_bytes: 256,
    };
    let mut entries = vec![told(RelPath::root(), EntryKind::Directory, 2, BLOCK, Vec::new(), VOLUME_BLOCKS)];
    for (number, shape) in shapes.iter().enumerate() {
        let (mut logical, mut end, mut extents) = (0, 0, Vec::new());
        for (piece, &(blocks, is_written)) in shape.pieces.iter().enumerate() {
            let start = place(number, piece, end);
            let extent = Extent { logical: logical * BLOCK, physical: start * BLOCK, length: blocks * BLOCK };
            let flags = if is_written { ExtentFlags::default() } else { ExtentFlags::UNWRITTEN };
            extents.push(RawExtent { extent, flags });
            logical += blocks + shape.hole;
            end = start + blocks;
        }
        let path = RelPath::new(format!("{number:03}").as_bytes()).unwrap();
        entries.push(told(path, EntryKind::File, 10 + number as u64, logical * BLOCK, extents, shape.inode_block));
    }
    entries
}

/// The costs of reading the tree on a disk and on an SSD, with and without its metadata. The fresh
/// copy is shuffled.
fn costs(entries: &[ToldEntry]) -> Vec<DeviceCosts> {
    costs_on(entries, 2 * VOLUME_BLOCKS * BLOCK, true)
}

fn costs_on(entries: &[ToldEntry], volume_bytes: u64, is_shuffled: bool) -> Vec<DeviceCosts> {
    let devices = [find_preset("hdd-7200").unwrap().clone(), find_preset("sata-ssd").unwrap().clone()];
    let readers = [MetadataReader::of(Box::new(ToldBlocks::of(entries)), None), MetadataReader::told("a test")];
    let read = |metadata: MetadataReader| {
        let modelled = Modelled::one(&devices);
        let mut adder = Adder::new(Space::Device, modelled, 128, (volume_bytes, 4), None, metadata).unwrap();
        entries.iter().for_each(|told| adder.add(told.entry.clone()));
        assert_eq!(adder.contradictory, 0);
        let (meters, _) = adder.read_fresh_copy(is_shuffled, 10).unwrap();
        meters.iter().map(|meter| device_costs(meter, adder.has_metadata())).collect::<Vec<_>>()
    };
    readers.into_iter().flat_map(read).collect()
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// A place for each piece that does not depend on the places of the others.
fn scattered(number: usize, piece: usize) -> u64 {
    (number as u64 * 7919 + piece as u64 * 104_729) * 400 % (VOLUME_BLOCKS - 400)
}

/// An upper bound of one request on the disk without its transfer: a full stroke, a rotation and
/// overhead.
const LONGEST_ACCESS_SECONDS: f64 = 0.030;

/// The page of an inspection infers the cause from the share of metadata in the difference.
#[test]
fn best_order_is_slower_than_a_fresh_copy_by_metadata_or_by_place() {
    const FILES: u64 = 200;
    const FAR: u64 = 400_000_000_000 / BLOCK;
    let costs = |first: u64, inode_block: &dyn Fn(u64) -> u64| {
        let shape = |number| Shape { pieces: vec![(64, true)], hole: 0, inode_block: inode_block(number) };
        let shapes: Vec<Shape> = (0..FILES).map(shape).collect();
        let entries = tree(&shapes, |number, _, _| first + 64 * number as u64);
        costs_on(&entries, 500_000_000_000, false)
    };
    let excess = |cost: &LayoutCosts<f64>| cost.best_order - cost.fresh_copy;
    let parts = |disk: &DeviceCosts| (excess(&disk.seconds), disk.metadata_seconds.as_ref().map_or(0.0, excess));
    // Inodes are everywhere, and contents are adjacent from the start of the disk.
    let scattered = costs(0, &|number| number * 7_919 * 400 % (FAR / 100));
    let (all, metadata) = parts(&scattered[0]);
    assert!(all > 0.5 && metadata > all / 4.0, "{all} s, metadata {metadata} s");
    assert!(parts(&scattered[2]).0 < 0.01, "without metadata, the best order is as fast: {:?}", scattered[2].seconds);
    // Everything is adjacent, but far inside the disk, where a track has fewer sectors.
    let far = costs(FAR, &|number| FAR - 100 + number / 16);
    let (all, metadata) = parts(&far[0]);
    assert!(all > 0.1 && metadata < all / 4.0, "{all} s, metadata {metadata} s");
    assert!(parts(&far[2]).0 > 0.1, "{:?}", far[2].seconds);
}

#[test]
fn joining_a_file_does_not_buffer_others() {
    // One file of 32 MiB in two pieces. 400 small files are where its second piece would be if it
    // were joined.
    let large = Shape { pieces: vec![(16, true), (8192 - 16, true)], hole: 0, inode_block: VOLUME_BLOCKS };
    let small = Shape { pieces: vec![(1, true)], ..large.clone() };
    let shapes: Vec<Shape> = std::iter::once(large).chain(std::iter::repeat_n(small, 400)).collect();
    let entries = tree(&shapes, |number, piece, _| match (number, piece) {
        (0, 0) => 1000,
        (0, _) => VOLUME_BLOCKS / 2,
        _ => 1016 + number as u64 * 7919 % 8000,
    });
    for cost in costs(&entries) {
        let loss = cost.loss_seconds;
        // Joining saves the seek to the second piece, and changes the seeks to the first small
        // neighbours.
        assert!(loss.within_files.abs() <= 4.0 * LONGEST_ACCESS_SECONDS, "{} {loss:?}", cost.device);
    }
}

proptest! {
    #[test]
    fn parts_sum_to_the_loss(shapes in shapes(), pieces_apart in 0usize..4) {
        // Every fourth file at most is in pieces. All pieces are far from each other.
        let place = |number: usize, piece: usize, end: u64| match piece {
            0 => scattered(number, 0),
            _ if number % 4 < pieces_apart => scattered(number, piece),
            _ => end,
        };
        for cost in costs(&tree(&shapes, place)) {
            let loss = cost.loss_seconds;
            prop_assert!(is_near(loss.total, cost.seconds.as_it_lies - cost.seconds.fresh_copy));
            let sum = loss.within_files + loss.between_files + loss.metadata.unwrap_or(0.0);
            prop_assert!(is_near(sum, loss.total), "{sum} and {loss:?}");
            // A cut costs at most a few seeks: its own, and those to the next neighbours, also if
            // other files are in the way.
            let cuts: usize = shapes.iter().enumerate().map(|(number, shape)| match number % 4 < pieces_apart {
                true => shape.pieces.len() - 1,
                false => 0,
            }).sum();
            let most = cuts as f64 * 5.0 * LONGEST_ACCESS_SECONDS;
            prop_assert!(loss.within_files.abs() <= most, "{loss:?} for {cuts} cuts");
            if let (Some(within), Some(between)) = (cost.intrafile_share, cost.interfile_share) {
                let shares = within + between + cost.metadata_share.unwrap_or(0.0);
                prop_assert!((shares - 1.0).abs() < 1e-9, "{shares}");
                prop_assert_eq!(cost.metadata_share.is_some(), cost.metadata_seconds.is_some());
            }
        }
    }

    #[test]
    fn files_in_one_piece_lose_nothing_within(shapes in shapes()) {
        // These files have reserved blocks and holes, which are no cuts.
        let place = |number: usize, piece: usize, end: u64| if piece == 0 { scattered(number, 0) } else { end };
        for cost in costs(&tree(&shapes, place)) {
            let loss = cost.loss_seconds;
            prop_assert_eq!(loss.within_files, 0.0);
            if loss.metadata.is_none() {
                prop_assert_eq!(loss.between_files, loss.total);
            }
        }
    }

    #[test]
    fn ordered_files_in_pieces_lose_only_within(shapes in shapes()) {
        // Each file starts where the previous one would end in one piece. The listing has the order
        // of the copy.
        let mut starts = vec![0u64];
        for shape in &shapes {
            let blocks: u64 = shape.pieces.iter().map(|(blocks, _)| blocks).sum();
            starts.push(starts[starts.len() - 1] + blocks);
        }
        let whole = costs(&tree(&shapes, |number, piece, end| if piece == 0 { starts[number] } else { end }));
        let cut = costs(&tree(&shapes, |number, piece, _| match piece {
            0 => starts[number],
            _ => VOLUME_BLOCKS / 2 + scattered(number, piece) / 4,
        }));
        // Only without metadata. Metadata is read between two files, and in the cut tree the drive
        // forgets the sectors that it read ahead after the first one.
        let pairs = whole.iter().zip(&cut).filter(|(whole, _)| whole.metadata_seconds.is_none());
        for (whole, cut) in pairs {
            // The time that joining saves is the whole difference between the two trees.
            prop_assert!(is_near(cut.loss_seconds.total - whole.loss_seconds.total, cut.loss_seconds.within_files));
            prop_assert!(is_near(cut.loss_seconds.between_files, whole.loss_seconds.between_files));
        }
    }
}
