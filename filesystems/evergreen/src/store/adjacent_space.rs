//! Gaps: free space in one piece, for leaves that are to be adjacent. If the free space is in small
//! pieces, a checkpoint selects the part of the area with the least data. It moves that data to
//! smaller pieces elsewhere; the part is free once the checkpoint is durable.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    Core,
    checkpoint::Frozen,
    node_groups::Member,
    node_places::{Placed, To},
};
use crate::{
    Result,
    disk::{Extent, Extents, Fit, NodeId},
    node::Node,
};

/// The size of a gap in nodes, unless less than twice that is free.
const NODES: u64 = 16;

/// The number of gap sizes that are tried, each half of the one before.
const SIZES: usize = 4;
/// The most pieces of a moved node.
const PIECES: usize = 8;

/// A part of the area, and the nodes in it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Window {
    extent: Extent,
    nodes: Vec<NodeId>,
}

/// Units in use and their node; `None` if they must stay.
type Used = (Extent, Option<NodeId>);

/// The ancestors of nodes. A move also writes the ancestors that the checkpoint does not write. So
/// no node is newer than its parent, and a repair detects old copies.
#[derive(Default)]
struct Above {
    parents: HashMap<NodeId, NodeId>,
    /// Nodes that the checkpoint has written so far, frozen or not.
    written: HashSet<NodeId>,
}

impl Core {
    /// Moves nodes of at most `most` bytes out of a part of the area, if the last gathering needed
    /// a larger free extent. Returns the moved bytes. Unreadable nodes stay.
    ///
    /// Errors: those of writes. Cost: sorts the map of nodes.
    pub(super) fn make_gap(&self, frozen: &Frozen, most: u64, placed: &mut Placed) -> Result<u64> {
        let unit = u64::from(self.area.geometry().unit_bytes);
        let statistics = {
            let mut state = self.lock();
            let is_wanted = std::mem::take(&mut state.is_gap_wanted);
            if !is_wanted || most < unit {
                return Ok(0);
            }
            state.space.statistics()
        };
        let wanted = (NODES * u64::from(self.shape.node_bytes) / unit).min(statistics.free / 2);
        let sizes: Vec<u64> =
            (0..SIZES).map(|size| wanted >> size).take_while(|size| *size > statistics.largest).collect();
        if sizes.is_empty() {
            return Ok(0);
        }
        // No other thread changes the map or allocates space meanwhile.
        let above = self.above(frozen, placed);
        let used = self.used(frozen, placed, &above);
        let mut windows = sizes.into_iter().filter_map(|size| emptiest(&used, size as u32, self.area.geometry().units));
        let moves = windows.find_map(|window| self.take_elsewhere(&window, &above, most)).unwrap_or_default();
        let (mut moved, mut moves) = (0, moves.into_iter());
        for (member, extents) in moves.by_ref() {
            moved += extents.units() * unit;
            let before = placed.len();
            let written = self.write_member(&member, frozen.generation, To::Taken(extents.clone()), placed);
            if placed.len() == before {
                self.lock().space.give_back(&extents);
            }
            if let Err(error) = written {
                let mut state = self.lock();
                moves.for_each(|(_, extents)| state.space.give_back(&extents));
                return Err(error);
            }
        }
        Ok(moved)
    }

    /// The units in use once the checkpoint is durable, in the order of the area.
    fn used(&self, frozen: &Frozen, placed: &Placed, above: &Above) -> Vec<Used> {
        let freed: HashSet<NodeId> = frozen.freed.iter().copied().collect();
        let is_leaving = |id: &NodeId| above.written.contains(id) || freed.contains(id);
        let mut used: Vec<Used> = Vec::new();
        for (_, place) in placed {
            used.extend(place.all().map(|extent| (extent, None)));
        }
        let view = self.shared.lock();
        for (id, place) in view.cache.map().iter().filter(|(id, _)| !is_leaving(id)) {
            let whose = above.parents.contains_key(&id).then_some(id);
            used.extend(place.all().map(|extent| (extent, whose)));
        }
        drop(view);
        used.sort_unstable();
        used
    }

    /// The parents of nodes below the frozen ones, as far as the cache has them as they will be on
    /// the device.
    fn above(&self, frozen: &Frozen, placed: &Placed) -> Above {
        let mut above = Above { written: placed.iter().map(|(id, _)| *id).collect(), ..Above::default() };
        let view = self.shared.lock();
        let mut stack: Vec<(NodeId, Arc<Node>)> =
            frozen.nodes.iter().filter(|(_, node)| node.height() > 0).cloned().collect();
        while let Some((id, node)) = stack.pop() {
            for child in node.inner().children() {
                above.parents.insert(child.id, id);
                // Frozen nodes are not clean before the checkpoint is durable.
                if node.height() > 1 {
                    stack.extend(view.cache.clean(child.id).map(|below| (child.id, below.clone())));
                }
            }
        }
        above
    }

    /// Allocates an extent outside a window for each of its nodes. Returns `None` if one finds no
    /// place, or if they exceed `most` bytes.
    fn take_elsewhere(&self, window: &Window, above: &Above, most: u64) -> Option<Vec<(Member<'static>, Extents)>> {
        let mut state = self.lock();
        let free: Vec<Extent> = state.space.free_extents().filter_map(|free| overlap(free, window.extent)).collect();
        free.iter().for_each(|extent| state.space.take_exactly(*extent));
        let (mut moves, mut units, mut second_bytes) = (Vec::new(), 0, 0);
        let mut all: BTreeSet<NodeId> = window.nodes.iter().copied().collect();
        let mut inner = BTreeSet::new();
        for id in &window.nodes {
            let way = std::iter::successors(above.parents.get(id), |id| above.parents.get(id));
            inner.extend(way.take_while(|id| !above.written.contains(id)).copied());
        }
        all.extend(&inner);
        for (id, is_leaf) in all.iter().map(|id| (id, !inner.contains(id))) {
            let place = self.shared.lock().cache.map().get(*id).cloned();
            let Some(place) = place else { continue };
            let count = self.area.geometry().units_for(place.bytes.into());
            units += u64::from(count);
            let bytes = units * u64::from(self.area.geometry().unit_bytes);
            let run = state.space.take_run(count, window.extent.end(), Fit::Smallest).map(|run| vec![run]);
            let extents = run.or_else(|| state.space.take_pieces(count, window.extent.end(), PIECES));
            let extents = extents.as_deref().and_then(Extents::new);
            let is_done = extents.is_some() && bytes <= most;
            // The second copy gets its place when it is written.
            second_bytes += if place.second.is_empty() { 0 } else { self.area.geometry().room_for(place.bytes.into()) };
            moves.extend(extents.map(|extents| (Member::Clean { id: *id, place, is_leaf }, extents)));
            if !is_done || !self.has_spare(&state, second_bytes) {
                moves.drain(..).for_each(|(_, extents)| state.space.give_back(&extents));
                break;
            }
        }
        state.space.give_back(&free);
        (!moves.is_empty()).then_some(moves)
    }
}

/// The window of `wanted` units with the least units in use, among those that start at the end of
/// an extent.
fn emptiest(used: &[Used], wanted: u32, units: u32) -> Option<Window> {
    // For each extent: the units in use and the pieces that must stay, before it.
    let mut before = vec![(0, 0)];
    for (extent, id) in used {
        let (in_use, staying) = before[before.len() - 1];
        before.push((in_use + u64::from(extent.count), staying + usize::from(id.is_none())));
    }
    let within = |first: u32| {
        let from = used.partition_point(|(extent, _)| extent.end() <= first);
        from..used.partition_point(|(extent, _)| extent.first < first + wanted)
    };
    let starts = std::iter::once(0).chain(used.iter().map(|(extent, _)| extent.end()));
    let windows = starts.filter(|first| wanted > 0 && *first <= units.saturating_sub(wanted));
    let windows =
        windows.map(|first| (within(first), first)).filter(|(range, _)| before[range.end].1 == before[range.start].1);
    let (range, first) = windows.min_by_key(|(range, first)| (before[range.end].0 - before[range.start].0, *first))?;
    let mut nodes: Vec<NodeId> = used[range].iter().filter_map(|(_, id)| *id).collect();
    nodes.sort_unstable();
    nodes.dedup();
    Some(Window { extent: Extent { first, count: wanted }, nodes })
}

/// The intersection of two extents.
fn overlap(a: Extent, b: Extent) -> Option<Extent> {
    let (first, end) = (a.first.max(b.first), a.end().min(b.end()));
    (first < end).then(|| Extent { first, count: end - first })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(pieces: &[(u32, u32, Option<u64>)]) -> Vec<Used> {
        pieces.iter().map(|&(first, count, id)| (Extent { first, count }, id.map(NodeId))).collect()
    }

    #[test]
    fn window_with_the_least_data_is_found() {
        let used = used(&[(0, 4, Some(1)), (6, 2, Some(2)), (10, 1, Some(3)), (14, 6, None), (22, 1, Some(2))]);
        let window = |wanted, units| emptiest(&used, wanted, units).map(|window| (window.extent.first, window.nodes));
        assert_eq!(window(4, 40), Some((23, vec![])), "the window is free");
        assert_eq!(window(4, 26), Some((8, vec![NodeId(3)])));
        assert_eq!(window(8, 26), Some((4, vec![NodeId(2), NodeId(3)])), "newly written nodes stay");
        assert_eq!(window(20, 26), None);
        assert_eq!(window(0, 26), None);
    }
}
