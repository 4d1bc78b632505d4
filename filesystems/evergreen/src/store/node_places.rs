//! Places of nodes: a checkpoint writes those of a [group](super::node_groups) to adjacent places,
//! in the order in which they are read.

use std::collections::HashSet;

use super::{
    Core,
    checkpoint::Frozen,
    node_groups::{Group, Member},
    read_nodes::Pool,
};
use crate::{
    Result,
    disk::{Extent, Extents, Fit, NodeId, Place},
    node::{Encoded, renew},
    tree::View,
};

/// The destination of a node.
pub(super) enum To<'a> {
    /// The first units of the group's extent, which shrinks.
    Run(&'a mut Extent),
    /// The units allocated for it.
    Taken(Extents),
    Anywhere,
}

/// The nodes placed so far; no superblock names them yet.
pub(super) type Placed = Vec<(NodeId, Place)>;

impl Core {
    /// Writes all frozen nodes and the gathered leaves, and moves at most `most` bytes of other
    /// clean nodes. Returns their places and the moved bytes. If one write fails, all these places
    /// are free again.
    pub(super) fn write_nodes(&self, frozen: &Frozen, most: u64) -> Result<(Placed, u64)> {
        let mut placed = Placed::with_capacity(frozen.nodes.len());
        let (groups, moved) = self.groups(frozen, most);
        let written = groups.iter().try_for_each(|group| self.write_group(group, frozen.generation, &mut placed));
        let written = written.and_then(|()| self.rewrite_bad_copies(frozen, &mut placed));
        match written.and_then(|()| self.make_gap(frozen, most - most.min(moved), &mut placed)) {
            Ok(more) => {
                debug_assert!(
                    placed.iter().map(|(id, _)| id).collect::<HashSet<_>>().len() == placed.len(),
                    "each once"
                );
                Ok((placed, moved + more))
            }
            Err(error) => {
                let mut state = self.lock();
                for (_, place) in placed {
                    state.space.give_back_all(place.all());
                }
                Err(error)
            }
        }
    }

    /// Writes the nodes adjacently if a free extent holds all of them, else each half on its own.
    fn write_group(&self, group: &Group<'_>, generation: u64, placed: &mut Placed) -> Result<()> {
        let run = {
            let mut state = self.lock();
            let units = group.members.iter().map(|member| self.most_units(member)).sum();
            // The space of clean nodes is in the run, or they stay where they are.
            state.promised -= self.clean_bytes(&group.members);
            let (near, fit) = match group.is_swept {
                true => (state.swept_to, Fit::Largest),
                false => (near(&self.shared.lock(), &group.members[0], placed), Fit::Smallest),
            };
            state.space.take_run(units, near, fit)
        };
        let Some(mut run) = run else {
            let (left, right) = match &group.members[..] {
                members if members.iter().any(|member| !member.is_dirty()) => {
                    return group.dirty_runs().try_for_each(|run| self.write_group(&run, generation, placed));
                }
                [member] => return self.write_member(member, generation, To::Anywhere, placed),
                members => members.split_at(members.len() / 2),
            };
            self.write_group(&group.part(left), generation, placed)?;
            return self.write_group(&group.part(right), generation, placed);
        };
        let written = group
            .members
            .iter()
            .try_for_each(|member| self.write_member(member, generation, To::Run(&mut run), placed));
        let mut state = self.lock();
        if group.is_swept {
            state.swept_to = run.first;
        }
        state.space.give_back(&[run]);
        written
    }

    /// Writes a node to the place of its group, or anywhere.
    pub(super) fn write_member(
        &self,
        member: &Member<'_>,
        generation: u64,
        to: To<'_>,
        placed: &mut Placed,
    ) -> Result<()> {
        let (id, bytes, header_sum) = match member {
            Member::Dirty(id, node) => {
                let Encoded { bytes, header_sum } = node.encode(self.identity(), *id, generation);
                (*id, bytes, header_sum)
            }
            Member::Clean { id, place, .. } => {
                // A node without a readable copy stays where it is; a caller that reads it receives
                // the error.
                let Some(mut bytes) = self.whole_bytes(*id, place) else {
                    self.counters.note_passed_over(1);
                    return Ok(());
                };
                self.counters.note_read(member.is_leaf(), bytes.len());
                let Some(sum) = renew(&mut bytes, place.header_sum, generation) else {
                    self.counters.note_passed_over(1);
                    return Ok(());
                };
                (*id, bytes, sum)
            }
        };
        let (len, units) = (bytes.len(), self.area.geometry().units_for(bytes.len() as u64));
        let extents = {
            let mut state = self.lock();
            let extents = match to {
                To::Taken(extents) => Some(extents),
                To::Run(run) => {
                    let first = Extent { first: run.first, count: units };
                    *run = Extent { first: run.first + units, count: run.count - units };
                    Extents::new(&[first])
                }
                To::Anywhere => {
                    let near = near(&self.shared.lock(), member, placed);
                    state.space.take(units, near)
                }
            };
            let Some(extents) = extents else { return Err(self.no_extents(&state, len as u64)) };
            if let Member::Dirty(_, node) = member {
                let room = self.area.geometry().room_for(node.most_bytes() as u64);
                state.unplaced -= self.watch.of_node(member.is_leaf()).count() * room;
            }
            extents
        };
        let second = self.take_second(id, member.copies(self.watch.copies()), &extents);
        placed.push((id, Place { extents, second, bytes: len as u32, header_sum }));
        self.write_copies(placed.len() - 1, bytes, placed)?;
        self.counters.note_write(member.is_leaf(), len);
        Ok(())
    }

    /// The most units that one copy of a node takes.
    pub(super) fn most_units(&self, member: &Member<'_>) -> u32 {
        let bytes = match member {
            Member::Dirty(_, node) => self.area.geometry().room_for(node.most_bytes() as u64),
            Member::Clean { place, .. } => u64::from(place.bytes),
        };
        self.area.geometry().units_for(bytes)
    }
}

/// The preferred place of a node: after its left neighbour, else after the node that was placed
/// before it.
fn near(view: &View<Pool>, member: &Member<'_>, placed: &Placed) -> u32 {
    let last = placed.last().map(|(_, place)| place);
    let map = view.cache.map();
    let left = match member {
        Member::Dirty(_, node) => view.left_of(node.height(), &node.lower),
        Member::Clean { .. } => None,
    };
    let place = match left {
        Some(left) if placed.last().is_none_or(|(id, _)| *id != left) => map.get(left).or(last),
        _ => last,
    };
    place.and_then(|place| place.extents.last()).map_or(0, |extent| extent.end())
}
