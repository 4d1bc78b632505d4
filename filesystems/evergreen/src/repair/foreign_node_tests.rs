//! Nodes of an earlier file system on the same device: a repair must not use them.

use senesce_block::BlockDevice;

use super::{
    Lost, repair,
    test_support::{Bench, TINY, example_with},
};
use crate::{
    disk::{Extent, NodeId},
    node::{Body, Leaf, Node},
};

/// Writes an empty leaf with the bounds of another one to units that are free.
fn plant(bench: &Bench, like: NodeId, identity: Option<&[u8; 16]>, id: NodeId, generation: u64) {
    let geometry = bench.superblock.geometry;
    let Node { lower, upper, .. } = bench.node(like).1;
    let leaf = Node { lower, upper, body: Body::Leaf(Leaf::default()) };
    let used = |unit: u32| {
        let is_in = |extent: &Extent| extent.first <= unit && unit < extent.end();
        bench.map.iter().any(|(_, place)| place.all().any(|extent| is_in(&extent)))
            || bench.superblock.map.all().any(|extent| is_in(&extent))
    };
    let unit = (0..geometry.units).rev().find(|unit| !used(*unit)).unwrap();
    let mut bytes = leaf.encode(identity, id, generation).bytes;
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    bench.device.write_at(geometry.unit_at(unit), &bytes).unwrap();
}

#[test]
fn node_of_another_format_version_is_refused() {
    let (device, ..) = example_with(&TINY, 0);
    let leaf = Bench::new(&device).nodes(0)[4];
    let bench = Bench::new(&device);
    bench.spoil_older();
    bench.spoil_map();
    plant(&bench, leaf, None, leaf, bench.generation(leaf));
    bench.spoil_header(leaf);
    let report = repair(&bench.device, false).unwrap();
    assert_eq!(report.lost.iter().map(|lost| lost.what).collect::<Vec<_>>(), [Lost::Values], "{report:#?}");
}

#[test]
fn unallocated_node_number_is_refused() {
    let (device, ..) = example_with(&TINY, 0);
    let mut replaced = 0;
    for above in Bench::new(&device).nodes(1) {
        let bench = Bench::new(&device);
        let Body::Inner(inner) = bench.node(above).1.body else { unreachable!("a node of height 1") };
        let leaf = inner.children()[0].id;
        let (next, generation) = (bench.superblock.next_node, bench.superblock.generation);
        if bench.generation(leaf) == generation {
            continue;
        }
        bench.spoil_older();
        bench.spoil_map();
        // Of several nodes with the same bounds, the newest is used.
        plant(&bench, leaf, Some(&bench.superblock.uuid), NodeId(next + 5), generation);
        bench.spoil_header(above);
        let report = repair(&bench.device, false).unwrap();
        assert!(report.lost.iter().all(|lost| lost.what == Lost::Changes), "{report:#?}");
        replaced += u64::from(!report.lost.is_empty());
        assert!(Bench::of(bench.device).map.get(NodeId(next + 5)).is_none(), "leaf {leaf} below {above}");
    }
    assert!(replaced > 3, "{replaced} nodes were replaced by what is below them");
}

#[test]
fn absurd_numbers_in_headers_stop_no_repair() {
    let (device, ..) = example_with(&TINY, 0);
    let leaf = Bench::new(&device).nodes(0)[4];
    for (id, generation) in [(leaf.0, u64::MAX), (u64::MAX - 1, 1), (leaf.0, 1 << 60), (1 << 60, 1 << 60)] {
        for is_known in [true, false] {
            let bench = Bench::new(&device);
            bench.spoil_older();
            bench.spoil_map();
            plant(&bench, leaf, Some(&bench.superblock.uuid), NodeId(id), generation);
            bench.spoil_header(leaf);
            if !is_known {
                bench.overwrite_slot(0, 0, 4096);
                bench.overwrite_slot(1, 0, 4096);
            }
            let report = repair(&bench.device, false).unwrap_or_else(|error| panic!("{id}, {generation}: {error}"));
            assert!(report.is_done && report.check.is_clean(), "{id}, {generation}: {report:#?}");
            let last = Bench::of(bench.device).superblock;
            assert!(!is_known || last.generation.max(last.next_node) < 10_000, "{id}, {generation}: {last:?}");
        }
    }
}
