//! Where a checkpoint lays nodes: a parent of leaves, then its leaves, in the order in which they are read.
//!
//! What is dirty of such a family and stands side by side lies side by side, if there is a free extent for it. If it saves seeks enough, the
//! family's other leaves are moved there too, as they are: then all of it is read with one seek.

use std::{collections::HashMap, sync::Arc};

use super::{Core, checkpoint::Frozen, pool::Pool};
use crate::{
    Result,
    disk::{Extent, Extents, NodeId, Place},
    node::{Encoded, Node, renew},
    tree::View,
};

/// A node that is to be written.
#[derive(Clone)]
pub(super) enum Member<'a> {
    Dirty(NodeId, &'a Arc<Node>),
    /// As it lies there.
    Clean(NodeId, Place),
}

/// What is placed so far, and nothing names yet.
pub(super) type Placed = Vec<(NodeId, Place)>;

impl Core {
    /// Writes all frozen nodes, and some that are beside them: `most` bytes of these at most. Returns their places, and how many bytes these
    /// were. If one cannot be written, the places of all are free again.
    pub(super) fn write_nodes(&self, frozen: &Frozen, most: u64) -> Result<(Placed, u64)> {
        let mut placed = Placed::with_capacity(frozen.nodes.len());
        let (groups, moved) = self.groups(frozen, most);
        for group in groups {
            if let Err(error) = self.write_group(&group, frozen.generation, &mut placed) {
                let mut state = self.lock();
                for (_, place) in placed {
                    state.space.give_back(&place.extents);
                }
                return Err(error);
            }
        }
        Ok((placed, moved))
    }

    /// The nodes that are to lie behind each other. Inner nodes above those of leaves are alone. What is moved has space promised: batches
    /// that come until it is taken do not count on it.
    pub(super) fn groups<'a>(&self, frozen: &'a Frozen, most: u64) -> (Vec<Vec<Member<'a>>>, u64) {
        let mut leaves: HashMap<NodeId, &Arc<Node>> = HashMap::new();
        leaves.extend(frozen.nodes.iter().filter(|(_, node)| node.height() == 0).map(|(id, node)| (*id, node)));
        let (mut groups, mut moved) = (Vec::new(), 0);
        let mut state = self.lock();
        for (id, parent) in frozen.nodes.iter().filter(|(_, node)| node.height() == 1) {
            let view = self.shared.lock();
            let child = |id: NodeId| match leaves.remove(&id) {
                Some(leaf) => Some(Member::Dirty(id, leaf)),
                None => view.cache.map().get(id).map(|place| Member::Clean(id, place.clone())),
            };
            let mut family = vec![Member::Dirty(*id, parent)];
            family.extend(parent.inner().children().iter().map(|child| child.id).filter_map(child));
            drop(view);
            let units = |is_dirty: bool| -> u64 {
                let those = family.iter().filter(|member| member.is_dirty() == is_dirty);
                those.map(|member| u64::from(self.most_units(member))).sum()
            };
            let saved = seeks(&family).saturating_sub(1) as u64;
            let most_moved = saved * u64::from(self.area.geometry().units_for(self.shape.node_bytes.into()));
            let more = moved + units(false) * u64::from(self.area.geometry().unit_bytes);
            if more > most || most_moved < units(false) || !self.has_spare(&state, more) {
                groups.extend(dirty_runs(&family).map(<[_]>::to_vec));
            } else {
                moved = more;
                groups.push(family);
            }
        }
        // In the order of keys: whose parent is not dirty.
        let rest = frozen.nodes.iter().filter(|(id, node)| node.height() > 1 || leaves.contains_key(id));
        groups.extend(rest.map(|(id, node)| vec![Member::Dirty(*id, node)]));
        state.promised = moved;
        (groups, moved)
    }

    /// Writes nodes behind each other if there is a free extent for all, else the halves of them.
    fn write_group(&self, group: &[Member<'_>], generation: u64, placed: &mut Placed) -> Result<()> {
        let run = {
            let mut state = self.lock();
            let units = group.iter().map(|member| self.most_units(member)).sum();
            // What is not dirty has its space in the run, or stays where it is.
            let clean = group.iter().filter(|member| !member.is_dirty());
            let clean: u32 = clean.map(|member| self.most_units(member)).sum();
            state.promised -= u64::from(clean) * u64::from(self.area.geometry().unit_bytes);
            let near = near(&self.shared.lock(), &group[0], placed);
            state.space.take_run(units, near)
        };
        let Some(mut run) = run else {
            if let [member] = group {
                return self.write_member(member, generation, None, placed);
            }
            if group.iter().any(|member| !member.is_dirty()) {
                return dirty_runs(group).try_for_each(|run| self.write_group(run, generation, placed));
            }
            let (left, right) = group.split_at(group.len() / 2);
            self.write_group(left, generation, placed)?;
            return self.write_group(right, generation, placed);
        };
        let mut result = Ok(());
        for member in group {
            result = self.write_member(member, generation, Some(&mut run), placed);
            if result.is_err() {
                break;
            }
        }
        self.lock().space.give_back(&[run]);
        result
    }

    /// Writes a node where its group lies, or anywhere.
    fn write_member(
        &self,
        member: &Member<'_>,
        generation: u64,
        run: Option<&mut Extent>,
        placed: &mut Placed,
    ) -> Result<()> {
        let (id, bytes, header_sum) = match member {
            Member::Dirty(id, node) => {
                let Encoded { bytes, header_sum } = node.encode(*id, generation);
                (*id, bytes, header_sum)
            }
            Member::Clean(id, place) => {
                // What cannot be read stays where it is, for whoever asks for it.
                let Ok(bytes) = self.area.read(&place.extents, 0, place.bytes as usize) else {
                    self.counters.note_passed_over(1);
                    return Ok(());
                };
                let mut bytes = Vec::from(bytes);
                let Some(sum) = renew(&mut bytes, place.header_sum, generation) else { return Ok(()) };
                (*id, bytes, sum)
            }
        };
        let (len, units) = (bytes.len(), self.area.geometry().units_for(bytes.len() as u64));
        let extents = {
            let mut state = self.lock();
            let extents = match run {
                Some(run) => {
                    let first = Extent { first: run.first, count: units };
                    *run = Extent { first: run.first + units, count: run.count - units };
                    Extents::new(&[first])
                }
                None => {
                    let near = near(&self.shared.lock(), member, placed);
                    state.space.take(units, near)
                }
            };
            let Some(extents) = extents else { return Err(self.no_extents(&state, len as u64)) };
            if let Member::Dirty(_, node) = member {
                state.unplaced -= self.area.geometry().room_for(node.most_bytes() as u64);
            }
            extents
        };
        placed.push((id, Place { extents: extents.clone(), bytes: len as u32, header_sum }));
        self.area.write(&extents, bytes)?;
        self.counters.note_write(member.is_leaf(), len);
        Ok(())
    }

    /// The units that a node takes at most.
    fn most_units(&self, member: &Member<'_>) -> u32 {
        let bytes = match member {
            Member::Dirty(_, node) => self.area.geometry().room_for(node.most_bytes() as u64),
            Member::Clean(_, place) => u64::from(place.bytes),
        };
        self.area.geometry().units_for(bytes)
    }
}

impl Member<'_> {
    fn is_dirty(&self) -> bool {
        matches!(self, Self::Dirty(..))
    }

    fn is_leaf(&self) -> bool {
        match self {
            Self::Dirty(_, node) => node.height() == 0,
            Self::Clean(..) => true,
        }
    }
}

/// The members that are dirty, those that stand side by side together.
fn dirty_runs<'a, 'b>(group: &'b [Member<'a>]) -> impl Iterator<Item = &'b [Member<'a>]> {
    group.chunk_by(|a, b| a.is_dirty() == b.is_dirty()).filter(|run| run[0].is_dirty())
}

/// How many seeks it takes to read a family if what is not dirty stays where it is.
fn seeks(family: &[Member<'_>]) -> usize {
    let (mut seeks, mut end) = (0, None);
    for member in family {
        match member {
            Member::Dirty(..) => {
                seeks += usize::from(end != Some(None));
                end = Some(None);
            }
            Member::Clean(_, place) => {
                for extent in place.extents.iter() {
                    seeks += usize::from(end != Some(Some(extent.first)));
                    end = Some(Some(extent.end()));
                }
            }
        }
    }
    seeks
}

/// Where a node should lie: behind its left neighbour, else behind the one that was placed before it.
fn near(view: &View<Pool>, member: &Member<'_>, placed: &Placed) -> u32 {
    let last = placed.last().map(|(_, place)| place);
    let map = view.cache.map();
    let left = match member {
        Member::Dirty(_, node) => view.left_of(node.height(), &node.lower),
        Member::Clean(..) => None,
    };
    let place = match left {
        Some(left) if placed.last().is_none_or(|(id, _)| *id != left) => map.get(left).or(last),
        _ => last,
    };
    place.and_then(|place| place.extents.last()).map_or(0, |extent| extent.end())
}
