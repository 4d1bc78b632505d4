//! Second copies: which nodes have them, which are damaged, and their repair.
//!
//! Inner nodes and the map of nodes have two copies with the same bytes, far apart. If the first
//! copy cannot be read, the second one is read. The event is counted, and the next checkpoint
//! writes both copies again at other places. The bytes do not change, so the parent is not written.
//! If there is no space for a second copy, a later checkpoint writes it.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::{Core, Evergreen, checkpoint::Frozen, node_places::Placed};
use crate::{
    Error, Result,
    disk::{Copies, Extents, MAX_PIECES, NodeId, Place},
    node::is_whole,
};

/// Counts of second copies since a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFigures {
    /// Bytes of second copies written, of inner nodes and of maps.
    pub write_bytes: u64,
    /// Reads that one copy failed and the other one served.
    pub fallbacks: u64,
    /// Nodes that were rewritten because a copy was damaged.
    pub rewritten: u64,
    /// Second copies that were not written because there was no space.
    pub missing: u64,
}

/// Reports a bad copy as soon as a read finds it.
type Reporter = Box<dyn Fn(&str) + Send + Sync>;

/// Counts of copies, and the nodes with a copy to repair.
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
    /// Nodes with a damaged copy.
    bad: BTreeSet<NodeId>,
    /// Nodes whose second copy is missing.
    missing: BTreeSet<NodeId>,
    /// The nodes of both sets that a checkpoint writes now. If it fails, they return to the sets.
    written: [BTreeSet<NodeId>; 2],
    /// The description of the first damaged copy, until a caller takes it.
    news: Option<String>,
    has_news: bool,
}

impl CopyWatch {
    pub(super) fn new(copies: Copies) -> Self {
        Self { copies, shared: Arc::default() }
    }

    /// The number of copies of metadata.
    pub(super) fn copies(&self) -> Copies {
        self.copies
    }

    /// The number of copies of a node.
    pub(super) fn of_node(&self, is_leaf: bool) -> Copies {
        if is_leaf { Copies::One } else { self.copies }
    }

    /// Notes a damaged copy, of this node if it belongs to one; the other copy was read.
    pub(super) fn note_bad(&self, id: Option<NodeId>, why: &dyn fmt::Display) {
        self.note_restored(id, &format!("{why}: the other copy was read, and the next checkpoint writes both again"));
    }

    /// Notes damage that did not prevent the read.
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

    /// Notes that there is no space for a second copy, of this node if it belongs to one.
    pub(super) fn note_missing(&self, id: Option<NodeId>) {
        self.shared.missing.fetch_add(1, Relaxed);
        self.lock().missing.extend(id);
    }

    /// Notes that an inner node with one copy was read. A checkpoint adds the second copy, if the
    /// store keeps two.
    pub(super) fn note_single(&self, id: NodeId) {
        if self.copies == Copies::Two {
            self.lock().missing.insert(id);
        }
    }

    /// Starts a checkpoint. Returns the nodes with a damaged copy, and those with one copy.
    fn begin_writing(&self) -> [BTreeSet<NodeId>; 2] {
        let mut found = self.lock();
        found.written = [std::mem::take(&mut found.bad), std::mem::take(&mut found.missing)];
        found.written.clone()
    }

    /// Ends the checkpoint: it is durable, or it failed.
    pub(super) fn end_writing(&self, is_durable: bool) {
        let mut found = self.lock();
        let [bad, missing] = std::mem::take(&mut found.written);
        if !is_durable {
            found.bad.extend(bad);
            found.missing.extend(missing);
        }
    }

    /// Whether a copy must be repaired by the next checkpoint.
    pub(super) fn is_any_bad(&self) -> bool {
        !self.lock().bad.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.shared.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evergreen {
    /// Counts of second copies since the store was opened.
    pub fn copy_figures(&self) -> CopyFigures {
        let counts = &self.core.watch.shared;
        CopyFigures {
            write_bytes: counts.write_bytes.load(Relaxed),
            fallbacks: counts.fallbacks.load(Relaxed),
            rewritten: counts.rewritten.load(Relaxed),
            missing: counts.missing.load(Relaxed),
        }
    }

    /// Reads both copies of all nodes that have two, and rewrites nodes with a damaged copy.
    ///
    /// Errors: as for [`checkpoint`](Self::checkpoint).
    pub(crate) fn rewrite_all_bad_copies(&self) -> Result<()> {
        let doubled = |(id, place): (NodeId, &Place)| (!place.second.is_empty()).then(|| (id, place.clone()));
        let doubled: Vec<_> = self.core.shared.lock().cache.map().iter().filter_map(doubled).collect();
        for (id, place) in doubled {
            let wrong = place.copies().find_map(|copy| self.core.read_whole(id, &copy).1);
            wrong.into_iter().for_each(|wrong| self.core.watch.note_bad(Some(id), &wrong));
        }
        self.checkpoint()
    }

    /// Sets the reporter, which receives the first damaged copy as soon as a read finds it. If one
    /// was found before and not [taken](Self::take_copy_news), it receives that at once. Later
    /// reporters are ignored.
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

    /// Takes the description of the first damaged copy since the store was opened.
    pub fn take_copy_news(&self) -> Option<String> {
        self.core.watch.lock().news.take()
    }
}

impl Core {
    /// Allocates space for a second copy, far from the first one. Returns an empty list if the node
    /// has one copy, or if no space is free.
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

    /// The bytes of a node from any whole copy. `None`: neither is whole. Notes a damaged first
    /// copy.
    pub(super) fn whole_bytes(&self, id: NodeId, place: &Place) -> Option<Vec<u8>> {
        let (bytes, wrong) = self.read_whole(id, place);
        if let (Some(_), Some(wrong)) = (&bytes, wrong) {
            self.watch.note_bad(Some(id), &wrong);
        }
        bytes
    }

    /// Like [`whole_bytes`](Self::whole_bytes); also returns the fault of a copy before the whole
    /// one.
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

    /// Writes both copies of nodes with a damaged or missing copy, unless the checkpoint has
    /// already written them. Nodes stay unchanged if there is no space, or if no copy can be read.
    ///
    /// Errors: those of writes.
    pub(super) fn rewrite_bad_copies(&self, frozen: &Frozen, placed: &mut Placed) -> Result<()> {
        let [bad, missing] = self.watch.begin_writing();
        let left = self.rewrite_all(&bad, &missing, frozen, placed)?;
        self.watch.lock().missing.extend(left);
        Ok(())
    }

    /// Returns the nodes for which there is no space now.
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
            // Without this test, a node without space would be read at every checkpoint.
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

    /// Returns whether there was space.
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

    /// Writes the bytes of a placed node to all its copies.
    pub(super) fn write_copies(&self, index: usize, bytes: Vec<u8>, placed: &Placed) -> Result<()> {
        let place = &placed[index].1;
        if !place.second.is_empty() {
            self.area.write(&place.second, bytes.clone())?;
            self.watch.note_write(bytes.len());
        }
        self.area.write(&place.extents, bytes)
    }

    /// Notes the damaged copies of a map that could be read.
    pub(super) fn note_bad_maps(watch: &CopyWatch, bad: &[Error]) {
        bad.iter().for_each(|error| watch.note_bad(None, error));
    }
}
