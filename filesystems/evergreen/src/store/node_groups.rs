//! The groups of nodes that a checkpoint writes to adjacent places:
//! - Gathered leaves, after those gathered before, dirty or not.
//! - Other dirty leaves that are neighbours.
//! - The parents of leaves. They are small and often written, so they are kept apart from leaves.
//!   Small clean ones are written with them, so that one read loads all children of a node.
//!
//! Higher nodes are groups of their own.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{Core, State, checkpoint::Frozen};
use crate::{
    disk::{Copies, NodeId, Place},
    node::Node,
};

/// The most units of a clean parent of leaves that is written with its neighbours.
const SMALL_UNITS: u32 = 2;

/// A node to write.
#[derive(Clone)]
pub(super) enum Member<'a> {
    Dirty(NodeId, &'a Arc<Node>),
    /// A clean node, copied from its place.
    Clean {
        id: NodeId,
        place: Place,
        is_leaf: bool,
    },
}

/// Nodes to write to adjacent places; at least one.
pub(super) struct Group<'a> {
    pub(super) members: Vec<Member<'a>>,
    /// Whether the members were gathered: they follow those gathered before.
    pub(super) is_swept: bool,
}

impl Core {
    /// Groups all frozen nodes. Also returns the bytes of clean parents in the groups, at most
    /// `most`. The space for clean nodes is reserved until it is allocated, so that concurrent
    /// batches do not use it.
    pub(super) fn groups<'a>(&self, frozen: &'a Frozen, most: u64) -> (Vec<Group<'a>>, u64) {
        let mut nodes: HashMap<NodeId, &Arc<Node>> = frozen.nodes.iter().map(|(id, node)| (*id, node)).collect();
        let mut state = self.lock();
        let mut groups = self.gathered(&mut state, &mut nodes, &frozen.freed);
        let is_left = |(id, node): &&(NodeId, Arc<Node>)| node.height() == 0 && nodes.contains_key(id);
        let leaves: Vec<(NodeId, &Arc<Node>)> =
            frozen.nodes.iter().filter(is_left).map(|(id, node)| (*id, node)).collect();
        let beside = leaves.chunk_by(|(_, a), (_, b)| a.upper.as_ref() == Some(&b.lower));
        groups.extend(beside.map(|run| Group::dirty(run.iter().copied())));
        let moved = self.parents(frozen, &mut state, &mut nodes, most, &mut groups);
        let rest = frozen.nodes.iter().filter(|(id, node)| node.height() > 0 && nodes.contains_key(id));
        groups.extend(rest.map(|(id, node)| Group::dirty([(*id, node)])));
        (groups, moved)
    }

    /// The gathered leaves, each once, without freed ones. If too little space is free, only the
    /// dirty ones.
    fn gathered<'a>(
        &self,
        state: &mut State,
        nodes: &mut HashMap<NodeId, &'a Arc<Node>>,
        freed: &[NodeId],
    ) -> Vec<Group<'a>> {
        let (mut groups, mut seen) = (Vec::new(), freed.iter().copied().collect::<HashSet<NodeId>>());
        for run in std::mem::take(&mut state.gathered) {
            let group = {
                let view = self.shared.lock();
                let member = |id: NodeId| match nodes.remove(&id) {
                    _ if !seen.insert(id) => None,
                    Some(leaf) => Some(Member::Dirty(id, leaf)),
                    None => {
                        let place = view.cache.map().get(id)?.clone();
                        Some(Member::Clean { id, place, is_leaf: true })
                    }
                };
                Group { members: run.into_iter().filter_map(member).collect(), is_swept: true }
            };
            let clean = self.clean_bytes(&group.members);
            if self.has_spare(state, clean) {
                state.promised += clean;
                groups.push(group);
            } else {
                groups.extend(group.dirty_runs());
            }
        }
        groups.retain(|group| !group.members.is_empty());
        groups
    }

    /// Groups the dirty parents of leaves with small clean neighbours.
    fn parents<'a>(
        &self,
        frozen: &'a Frozen,
        state: &mut State,
        nodes: &mut HashMap<NodeId, &'a Arc<Node>>,
        most: u64,
        groups: &mut Vec<Group<'a>>,
    ) -> u64 {
        let mut moved = 0;
        // All ancestors of a dirty node are dirty.
        for (_, above) in frozen.nodes.iter().filter(|(_, node)| node.height() == 2) {
            let family = above.inner().children().iter().map(|child| child.id);
            if !family.clone().any(|id| nodes.contains_key(&id)) {
                continue;
            }
            let mut members = Vec::new();
            for id in family {
                if let Some(node) = nodes.remove(&id) {
                    members.push(Member::Dirty(id, node));
                    continue;
                }
                let Some(place) = self.shared.lock().cache.map().get(id).cloned() else { continue };
                let member = Member::Clean { id, place, is_leaf: false };
                let bytes = self.clean_bytes(std::slice::from_ref(&member));
                let is_small = self.most_units(&member) <= SMALL_UNITS;
                if is_small && moved + bytes <= most && self.has_spare(state, bytes) {
                    moved += bytes;
                    state.promised += bytes;
                    members.push(member);
                }
            }
            groups.push(Group { members, is_swept: false });
        }
        moved
    }

    /// The bytes that clean members take.
    pub(super) fn clean_bytes(&self, members: &[Member<'_>]) -> u64 {
        let clean = members.iter().filter(|member| !member.is_dirty());
        let units =
            |member: &Member<'_>| member.copies(self.watch.copies()).count() * u64::from(self.most_units(member));
        clean.map(units).sum::<u64>() * u64::from(self.area.geometry().unit_bytes)
    }
}

impl<'a> Group<'a> {
    fn dirty(nodes: impl IntoIterator<Item = (NodeId, &'a Arc<Node>)>) -> Self {
        Self { members: nodes.into_iter().map(|(id, node)| Member::Dirty(id, node)).collect(), is_swept: false }
    }

    /// A group of some of its members.
    pub(super) fn part(&self, members: &[Member<'a>]) -> Self {
        Self { members: members.to_vec(), is_swept: self.is_swept }
    }

    /// The dirty members, in groups of neighbours.
    pub(super) fn dirty_runs(&self) -> impl Iterator<Item = Self> {
        let runs = self.members.chunk_by(|a, b| a.is_dirty() == b.is_dirty());
        runs.filter(|run| run[0].is_dirty()).map(|run| self.part(run))
    }
}

impl Member<'_> {
    pub(super) fn is_dirty(&self) -> bool {
        matches!(self, Self::Dirty(..))
    }

    /// The number of copies to write, if inner nodes have `of_inner`. Never less than the node
    /// has.
    pub(super) fn copies(&self, of_inner: Copies) -> Copies {
        match self {
            Self::Clean { place, .. } if !place.second.is_empty() => Copies::Two,
            _ if self.is_leaf() => Copies::One,
            _ => of_inner,
        }
    }

    pub(super) fn is_leaf(&self) -> bool {
        match self {
            Self::Dirty(_, node) => node.height() == 0,
            Self::Clean { is_leaf, .. } => *is_leaf,
        }
    }
}
