//! Second copies: which nodes have them, those that were found bad, and writing them again.
//!
//! Inner nodes and the map of nodes have two copies with the same bytes, far apart. What cannot be read from the first is read from the
//! second; that is counted, and the next checkpoint writes the node again, both copies, to other places: the bytes stay the same, so nothing
//! above it changes. A copy for which no space is left is missing until a later checkpoint has space for it.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::{Core, Evergreen, checkpoint::Frozen, place::Placed};
use crate::{
    Error, Result,
    disk::{Copies, Extents, MAX_PIECES, NodeId, Place},
    node::is_whole,
};

/// What became of second copies since a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFigures {
    /// Bytes of second copies that were written, of inner nodes and of maps.
    pub write_bytes: u64,
    /// Readings that one copy did not give, and the other one did.
    pub fallbacks: u64,
    /// Nodes that were written again because one of their copies was bad.
    pub rewritten: u64,
    /// Second copies that were not written, because there was no space for them.
    pub missing: u64,
}

/// Reports a bad copy as soon as a read finds it.
type Reporter = Box<dyn Fn(&str) + Send + Sync>;

/// Counts of copies, and the nodes of which one must be written again.
#[derive(Clone)]
pub(super) struct CopyWatch {
    copies: Copies,
    shared: Arc<Watched>,
}

#[derive(Default)]
struct Watched {
    write_bytes: AtomicU64,
    fallbacks: AtomicU64,
    rewritten: AtomicU64,
    missing: AtomicU64,
    found: Mutex<Found>,
    reporter: OnceLock<Reporter>,
}

#[derive(Debug, Default)]
struct Found {
    /// Nodes of which a copy is bad.
    bad: BTreeSet<NodeId>,
    /// Nodes whose second copy is missing.
    missing: BTreeSet<NodeId>,
    /// Those of both that a checkpoint writes now: until it is durable, they may have to be written again.
    written: [BTreeSet<NodeId>; 2],
    /// The first copy that was bad, until a caller has asked for it.
    news: Option<String>,
    has_news: bool,
}

impl CopyWatch {
    pub(super) fn new(copies: Copies) -> Self {
        Self { copies, shared: Arc::default() }
    }

    /// How many copies are written of what has copies.
    pub(super) fn copies(&self) -> Copies {
        self.copies
    }

    /// The same of a node.
    pub(super) fn of_node(&self, is_leaf: bool) -> Copies {
        if is_leaf { Copies::One } else { self.copies }
    }

    /// A copy is bad, of this node if it is one's, and the other copy was read.
    pub(super) fn note_bad(&self, id: Option<NodeId>, why: &dyn fmt::Display) {
        self.note_restored(id, &format!("{why}: the other copy was read, and the next checkpoint writes both again"));
    }

    /// Something is damaged, and was read nevertheless.
    pub(super) fn note_restored(&self, id: Option<NodeId>, why: &dyn fmt::Display) {
        self.shared.fallbacks.fetch_add(1, Relaxed);
        let mut found = self.lock();
        found.bad.extend(id);
        if std::mem::replace(&mut found.has_news, true) {
            return;
        }
        match self.shared.reporter.get() {
            Some(report) => {
                drop(found);
                report(&why.to_string());
            }
            None => found.news = Some(why.to_string()),
        }
    }

    pub(super) fn note_write(&self, bytes: usize) {
        self.shared.write_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// There is no space for a second copy, of this node if it is one's.
    pub(super) fn note_missing(&self, id: Option<NodeId>) {
        self.shared.missing.fetch_add(1, Relaxed);
        self.lock().missing.extend(id);
    }

    /// An inner node was read that has one copy: a checkpoint writes it again if it should have two.
    pub(super) fn note_single(&self, id: NodeId) {
        if self.copies == Copies::Two {
            self.lock().missing.insert(id);
        }
    }

    /// A checkpoint begins to write them. Returns those with a bad copy, and those with one copy.
    fn begin_writing(&self) -> [BTreeSet<NodeId>; 2] {
        let mut found = self.lock();
        found.written = [std::mem::take(&mut found.bad), std::mem::take(&mut found.missing)];
        found.written.clone()
    }

    /// The checkpoint that wrote them is durable, or it failed.
    pub(super) fn end_writing(&self, is_durable: bool) {
        let mut found = self.lock();
        let [bad, missing] = std::mem::take(&mut found.written);
        if !is_durable {
            found.bad.extend(bad);
            found.missing.extend(missing);
        }
    }

    /// Whether a checkpoint has something to write again.
    pub(super) fn is_any_bad(&self) -> bool {
        !self.lock().bad.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.shared.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evergreen {
    /// What became of second copies since it was opened.
    pub fn copy_figures(&self) -> CopyFigures {
        let counts = &self.core.watch.shared;
        CopyFigures {
            write_bytes: counts.write_bytes.load(Relaxed),
            fallbacks: counts.fallbacks.load(Relaxed),
            rewritten: counts.rewritten.load(Relaxed),
            missing: counts.missing.load(Relaxed),
        }
    }

    /// Reads both copies of all nodes that have two, and writes those again of which one is bad.
    ///
    /// Errors: as [`checkpoint`](Self::checkpoint) has them.
    pub(crate) fn rewrite_all_bad_copies(&self) -> Result<()> {
        let doubled = |(id, place): (NodeId, &Place)| (!place.second.is_empty()).then(|| (id, place.clone()));
        let doubled: Vec<_> = self.core.shared.lock().cache.map().iter().filter_map(doubled).collect();
        for (id, place) in doubled {
            let wrong = place.copies().find_map(|copy| self.core.read_whole(id, &copy).1);
            wrong.into_iter().for_each(|wrong| self.core.watch.note_bad(Some(id), &wrong));
        }
        self.checkpoint()
    }

    /// Calls `report` with the first bad copy, as soon as a read finds it. If a bad copy was found
    /// before and not [taken](Self::take_copy_news), calls `report` at once. Ignores all reporters
    /// but the first.
    pub fn report_copies(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        let news = {
            let mut found = self.core.watch.lock();
            if self.core.watch.shared.reporter.set(Box::new(report)).is_err() {
                return;
            }
            found.news.take()
        };
        if let (Some(news), Some(report)) = (news, self.core.watch.shared.reporter.get()) {
            report(&news);
        }
    }

    /// The first copy that was found bad since it was opened, in words: once.
    pub fn take_copy_news(&self) -> Option<String> {
        self.core.watch.lock().news.take()
    }
}

impl Core {
    /// Takes space for a second copy, far from the first one. Returns none if the node is to have one copy, or if no space is left.
    pub(super) fn take_second(&self, id: NodeId, copies: Copies, first: &Extents) -> Extents {
        if copies == Copies::One {
            return Extents::default();
        }
        let most = MAX_PIECES - first.len().min(MAX_PIECES);
        let room = first.units() * u64::from(self.area.geometry().unit_bytes);
        let taken = {
            let mut state = self.lock();
            let has_room = self.has_room_for_copy(&state, room);
            has_room.then(|| state.space.take_far(first.units() as u32, first, most)).flatten()
        };
        match taken.as_deref().and_then(Extents::new) {
            Some(second) => second,
            None => {
                self.watch.note_missing(Some(id));
                Extents::default()
            }
        }
    }

    /// All bytes of a node, of whichever copy is whole. `None`: neither is. If the first one is not, that is noted.
    pub(super) fn whole_bytes(&self, id: NodeId, place: &Place) -> Option<Vec<u8>> {
        let (bytes, wrong) = self.read_whole(id, place);
        if let (Some(_), Some(wrong)) = (&bytes, wrong) {
            self.watch.note_bad(Some(id), &wrong);
        }
        bytes
    }

    /// The same, and what is wrong with a copy before the one that is whole.
    fn read_whole(&self, id: NodeId, place: &Place) -> (Option<Vec<u8>>, Option<String>) {
        let mut wrong = None;
        for copy in place.copies() {
            match self.counters.read(&self.area, &copy.extents, 0, copy.bytes as usize) {
                Ok(bytes) if is_whole(&bytes, copy.header_sum) => {
                    return (Some(bytes.into()), wrong);
                }
                Ok(_) => wrong = Some(format!("node {id}, units {}: damaged", copy.extents)),
                Err(error) => wrong = Some(format!("node {id}: {error}")),
            }
        }
        (None, wrong)
    }

    /// Writes nodes again, both copies, of which one is bad or missing, if the checkpoint has not written them anyway. What has no space, or
    /// cannot be read from either copy, stays as it is.
    ///
    /// Errors: of writing.
    pub(super) fn rewrite_bad_copies(&self, frozen: &Frozen, placed: &mut Placed) -> Result<()> {
        let [bad, missing] = self.watch.begin_writing();
        let left = self.rewrite_all(&bad, &missing, frozen, placed)?;
        self.watch.lock().missing.extend(left);
        Ok(())
    }

    /// Returns those for which there is no space now.
    fn rewrite_all(
        &self,
        bad: &BTreeSet<NodeId>,
        missing: &BTreeSet<NodeId>,
        frozen: &Frozen,
        placed: &mut Placed,
    ) -> Result<BTreeSet<NodeId>> {
        let gone: HashSet<NodeId> = placed.iter().map(|(id, _)| *id).chain(frozen.freed.iter().copied()).collect();
        let written: HashSet<NodeId> =
            placed.iter().filter(|(_, place)| !place.second.is_empty()).map(|(id, _)| *id).collect();
        let mut left = missing.iter().copied().filter(|id| !written.contains(id)).collect::<BTreeSet<NodeId>>();
        for id in bad.union(missing).filter(|id| !gone.contains(*id)) {
            left.remove(id);
            let Some(place) = self.shared.lock().cache.map().get(*id).cloned() else { continue };
            // Without space for the copies, a node need not be read at every checkpoint.
            if !self.has_spare(&self.lock(), 2 * self.area.geometry().room_for(u64::from(place.bytes))) {
                left.insert(*id);
                continue;
            }
            let (Some(bytes), _) = self.read_whole(*id, &place) else { continue };
            if !self.rewrite(*id, &place, bytes, placed)? {
                left.insert(*id);
            }
        }
        left.retain(|id| !frozen.freed.contains(id));
        Ok(left)
    }

    /// Returns whether there was space for it.
    fn rewrite(&self, id: NodeId, place: &Place, bytes: Vec<u8>, placed: &mut Placed) -> Result<bool> {
        let units = self.area.geometry().units_for(bytes.len() as u64);
        let room = self.area.geometry().room_for(bytes.len() as u64);
        let extents = {
            let mut state = self.lock();
            if !self.has_spare(&state, 2 * room) {
                return Ok(false);
            }
            let near = place.extents.last().map_or(0, |extent| extent.end());
            state.space.take(units, near)
        };
        let Some(extents) = extents else { return Ok(false) };
        let second = self.take_second(id, Copies::Two, &extents);
        placed.push((id, Place { extents, second, ..*place }));
        self.write_copies(placed.len() - 1, bytes, placed)?;
        self.watch.shared.rewritten.fetch_add(1, Relaxed);
        Ok(true)
    }

    /// Writes the bytes of what was placed to all its copies.
    pub(super) fn write_copies(&self, index: usize, bytes: Vec<u8>, placed: &Placed) -> Result<()> {
        let place = &placed[index].1;
        if !place.second.is_empty() {
            self.area.write(&place.second, bytes.clone())?;
            self.watch.note_write(bytes.len());
        }
        self.area.write(&place.extents, bytes)
    }

    /// Says what was wrong with the map although it could be read.
    pub(super) fn note_bad_maps(watch: &CopyWatch, bad: &[Error]) {
        bad.iter().for_each(|error| watch.note_bad(None, error));
    }
}
