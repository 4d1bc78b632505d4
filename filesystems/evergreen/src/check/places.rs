//! Checks that all places are inside the area and do not overlap.

use super::CheckReport;
use crate::disk::{Damage, Extent, NodeMap, Superblock};

/// Checks the extents of all nodes and of the map, and counts the free space.
pub(super) fn check(map: &NodeMap, superblock: &Superblock, report: &mut CheckReport) {
    let geometry = &superblock.geometry;
    let of_map = superblock.map.all().map(|extent| (extent, "the map of nodes".to_owned()));
    let of_nodes = map.iter().flat_map(|(node, place)| {
        let whose = move |extent: Extent| (extent, format!("node {node}"));
        place.all().map(whose).collect::<Vec<_>>()
    });
    let mut extents: Vec<(Extent, String)> = of_map.chain(of_nodes).collect();
    extents.sort();
    let (mut end, mut free, mut free_extents) = (0_u32, 0_u64, 0);
    let mut last = String::new();
    let mut count_free = |from: u32, to: u32| {
        free += u64::from(to.saturating_sub(from));
        free_extents += u64::from(to > from);
    };
    for (extent, whose) in extents {
        if extent.first < end {
            let damage = Damage::new("node map", "extent", extent, format!("units that are not in {last}"));
            report.find(format!("{whose}, superblock {}", superblock.generation), damage);
        }
        count_free(end, extent.first);
        if extent.end() > end {
            (end, last) = (extent.end(), whose);
        }
    }
    count_free(end, geometry.units);
    let unit = u64::from(geometry.unit_bytes);
    report.free_bytes = free * unit;
    report.used_bytes = geometry.data_bytes() - report.free_bytes;
    report.free_extents = free_extents;
    let node_sum = map.node_sum();
    if let Some(sum) = superblock.map.node_sum.filter(|sum| *sum != node_sum) {
        let damage = Damage::new("superblock", "node sum", format!("{sum:#018x}"), format!("{node_sum:#018x}"));
        report.find(format!("superblock {}", superblock.generation), damage);
    }
    if let Some((node, _)) = map.iter().find(|(node, _)| node.0 >= superblock.next_node) {
        let damage = Damage::new("superblock", "next node", superblock.next_node, format!("more than {node}"));
        report.find(format!("superblock {}", superblock.generation), damage);
    }
}
