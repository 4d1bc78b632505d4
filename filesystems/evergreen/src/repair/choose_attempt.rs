//! The attempts of a repair, and the choice of the one that loses least.

use std::{cell::OnceCell, sync::Arc};

use senesce_block::BlockDevice;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    RepairNote,
    deferred_device::Staged,
    log::{self, LogState},
    nodes::Nodes,
    protected_units::kept_units,
    rebuild::{Rebuilt, rebuild},
    scan::{Found, scan},
    start_superblocks,
};
use crate::{
    Error, MakeOptions, Result,
    disk::{
        Area, Copies, Extent, Extents, FORMAT_VERSION, Geometry, MAX_MAP_PIECES, MAX_PIECES, MAX_SECOND_MAP_PIECES,
        MapPlace, NodeId, NodeMap, OLDEST_VERSION, Place, Space, Superblock, node_sum, write_superblock,
    },
    log::{LogStart, clear_blocks, erase_frames, unreadable_blocks},
};

/// A rebuilt tree, and the structures that lead to it.
pub(super) struct Attempt {
    /// The superblock of the attempt, with the places of all structures.
    pub superblock: Superblock,
    pub rebuilt: Rebuilt,
    pub notes: Vec<RepairNote>,
    /// The readable part of the log, from the start in the superblock.
    log: LogState,
    space: Space,
    /// The generation of the superblock to write.
    generation: u64,
    /// The cost in addition to the losses.
    doubt: usize,
    /// The units that are not written before the repaired state is durable: a repeated repair
    /// starts from them.
    kept: Vec<Extent>,
}

/// The end of the newest superblock and its log.
#[derive(Clone, Copy)]
struct Reach {
    generation: u64,
    /// The number of the next batch.
    next: u64,
}

/// The costs of losses without file names: changes since an older superblock, and a map that may be
/// incomplete.
const ROLLED_BACK: usize = 1000;
const NOT_PROVEN: usize = 2000;

/// The most generations after the newest superblock that interrupted repairs leave.
const MOST_AHEAD: u64 = 1000;

/// The number of generations that are tried without a superblock.
const TRIED: usize = 4;

/// Returns the attempt that loses least, and the newest of equal ones. `why`: the findings.
///
/// Errors: `Damaged` if no attempt is possible.
pub(super) fn best(device: &Arc<dyn BlockDevice>, why: &[String]) -> Result<Attempt> {
    let found = OnceCell::new();
    let none = Found::default();
    let bases = start_superblocks::of_slots(&**device);
    let known = bases.first().map(|base| base.superblock.identity().copied());
    let scanned = || found.get_or_init(|| scan(&**device, known));
    let is_any_certain = bases.iter().any(|base| base.is_certain);
    let believed = bases.iter().filter(|base| base.is_certain || !is_any_certain);
    let newest = believed.map(|base| base.superblock.generation).max();
    let (mut best, mut reach): (Option<Attempt>, Option<Reach>) = (None, None);
    for base in &bases {
        let area = Area::new(device.clone(), base.superblock.geometry);
        let log = log::read(device, &base.superblock)?;
        let reach = *reach.get_or_insert(Reach { generation: base.superblock.generation, next: log.next });
        let mut notes: Vec<RepairNote> = why.iter().map(RepairNote::note).collect();
        notes.push(RepairNote::note(format!("used {}", base.name)));
        let mut bad = Vec::new();
        let attempt = match NodeMap::load_noting(&area, &base.superblock, true, &mut bad) {
            Ok(map) => {
                notes.extend(bad.iter().map(|error| RepairNote::note(format!("{error}: the other copy was used"))));
                complete(&mut Nodes::by_map(&area, &map, &none), &base.superblock, true, log, notes)
            }
            Err(error) => {
                notes.push(RepairNote::note(format!("{error}: the map was rebuilt from the headers of nodes")));
                by_headers(&area, scanned(), &base.superblock, log, notes)
            }
        };
        choose(&mut best, attempt.map(|attempt| attempt.behind(reach)));
        if base.is_certain && best.as_ref().is_some_and(|best| best.cost() == 0) {
            break;
        }
    }
    if best.as_ref().is_none_or(|best| best.cost() > 0 && !is_any_certain) {
        let known = bases.first().map(|base| &base.superblock);
        for generation in generations(scanned(), newest.filter(|_| is_any_certain)) {
            let Some(superblock) = made_up(device, scanned(), known, generation) else { continue };
            let area = Area::new(device.clone(), superblock.geometry);
            let mut nodes = Nodes::by_headers(&area, scanned(), &superblock, true);
            let mut notes: Vec<RepairNote> = why.iter().map(RepairNote::note).collect();
            notes.push(RepairNote::note(format!("used the nodes of the time of superblock {generation}")));
            notes.push(RepairNote::loss("the batches of the log are lost: its start is unknown"));
            let log = LogState { batches: 0, damage: Some((String::new(), 0)), next: 0, end: 0 };
            choose(&mut best, complete(&mut nodes, &superblock, false, log, notes));
        }
    }
    best.ok_or_else(|| {
        let what = format!("nothing is left to repair from: {}", why.join("; "));
        Error::Damaged { place: device.name().to_owned(), what }
    })
    .map(|mut best| {
        // A much later generation is not of this file system: the contents of a file may look like
        // a node.
        let last = newest.unwrap_or(0).max(best.superblock.generation) + MOST_AHEAD;
        let seen = found.get().into_iter().flat_map(|found| &found.nodes).map(|node| node.generation);
        best.generation = seen.filter(|seen| *seen <= last).max().unwrap_or(0).max(last - MOST_AHEAD) + 2;
        // The slot must not be that of the newest superblock.
        best.generation += u64::from(best.generation % 2 == newest.unwrap_or(0) % 2);
        best.kept = kept_units(device, &best.superblock, &best.rebuilt.sources, &bases, &found);
        best
    })
}

/// Rebuilds the tree of a superblock without its map. If the checksum does not prove that the found
/// nodes are those of the map, nodes that may be outdated are not used.
fn by_headers(
    area: &Area,
    found: &Found,
    superblock: &Superblock,
    log: LogState,
    notes: Vec<RepairNote>,
) -> Option<Attempt> {
    let generation = superblock.generation;
    let rebuilt = |is_strict| {
        rebuild(&mut Nodes::by_headers(area, found, superblock, is_strict), Some(superblock.root), superblock.next_node)
    };
    let is_same = |rebuilt: &Rebuilt| {
        if let Some(sum) = superblock.map.node_sum {
            return node_sum(rebuilt.whole.iter().map(|(id, (sum, bytes))| (*id, *sum, *bytes))) == sum;
        }
        // In version 1 only the map itself has a checksum.
        let mut map = NodeMap::new();
        for (id, place) in &rebuilt.places {
            map.insert(*id, place.clone());
        }
        NodeMap::sum(&map.encode(None, generation)) == superblock.map.sum
    };
    let is_proven = |rebuilt: &Rebuilt| rebuilt.lost.is_empty() && is_same(rebuilt);
    let first = rebuilt(false);
    if is_proven(&first) {
        return finished(first, superblock, log, notes);
    }
    let mut attempt = finished(rebuilt(true), superblock, log, notes)?;
    let not_proven = "the rebuilt map differs from the lost one: other data may be lost or outdated, too";
    attempt.notes.push(RepairNote::loss(not_proven));
    attempt.doubt += NOT_PROVEN;
    Some(attempt)
}

fn choose(best: &mut Option<Attempt>, new: Option<Attempt>) {
    let Some(new) = new else { return };
    if best.as_ref().is_none_or(|best| new.cost() < best.cost()) {
        *best = Some(new);
    }
}

/// The generations of the found nodes, the newest first.
fn generations(found: &Found, least: Option<u64>) -> Vec<u64> {
    let mut all: Vec<u64> = found.nodes.iter().map(|node| node.generation).collect();
    all.sort_unstable();
    all.dedup();
    let can_be = |generation: &u64| least.is_none_or(|least| (least..=least + MOST_AHEAD).contains(generation));
    all.into_iter().rev().filter(can_be).take(TRIED).collect()
}

/// Makes a superblock for the found nodes, with the facts of a known one.
fn made_up(
    device: &Arc<dyn BlockDevice>,
    found: &Found,
    known: Option<&Superblock>,
    generation: u64,
) -> Option<Superblock> {
    let geometry: Geometry = known.map(|known| known.geometry).or_else(|| found.geometry(device.size().0))?;
    let first = found.nodes.iter().min_by_key(|node| node.at)?;
    let of_nodes = || found.uuid().unwrap_or_else(|| xxh3_128(&first.sum.to_le_bytes()).to_le_bytes());
    let uuid = known.map_or_else(of_nodes, |known| known.uuid);
    // Nodes have the UUID from version 2 on.
    let usual = if found.uuid().is_some() { (FORMAT_VERSION, Copies::Two) } else { (OLDEST_VERSION, Copies::One) };
    let (version, copies) = known.map_or(usual, |known| (known.version, known.copies));
    let shape = known.map_or_else(|| MakeOptions::suited(uuid, device.size().0).shape, |known| known.shape);
    let start = known.map_or(LogStart { position: 0, sequence: 1, chain: 0 }, |known| known.replay);
    let map = MapPlace::default();
    // All found nodes count.
    let (root, next_node) = (NodeId(1), found.nodes.iter().map(|node| node.id.0).max()?.saturating_add(1).max(2));
    Some(Superblock {
        version,
        uuid,
        geometry,
        shape,
        copies,
        generation,
        map,
        root,
        next_node,
        live_bytes: 0,
        replay: start,
    })
}

/// Rebuilds the tree of a superblock. `None`: its nodes overlap.
fn complete(
    nodes: &mut Nodes<'_>,
    superblock: &Superblock,
    is_root_known: bool,
    log: LogState,
    notes: Vec<RepairNote>,
) -> Option<Attempt> {
    let rebuilt = rebuild(nodes, is_root_known.then_some(superblock.root), superblock.next_node);
    finished(rebuilt, superblock, log, notes)
}

fn finished(rebuilt: Rebuilt, superblock: &Superblock, log: LogState, mut notes: Vec<RepairNote>) -> Option<Attempt> {
    let used: Vec<_> = rebuilt.places.values().flat_map(|place| place.all()).collect();
    let space = Space::complement(superblock.geometry.units, used).ok()?;
    notes.extend(rebuilt.rewritten.iter().map(|note| RepairNote::note(note.clone())));
    if let Some((damage, _)) = log.damage.as_ref().filter(|(damage, _)| !damage.is_empty()) {
        notes.push(RepairNote::loss(format!(
            "{damage}: the batches after the first {} of the log are lost",
            log.batches
        )));
    }
    let superblock = superblock.clone();
    Some(Attempt { superblock, rebuilt, notes, log, space, generation: 0, doubt: 0, kept: Vec::new() })
}

impl Attempt {
    fn cost(&self) -> usize {
        self.doubt + 2 * self.rebuilt.lost.len() + usize::from(self.log.damage.is_some())
    }

    /// Compares the attempt with the newest superblock. If it is older, its log must have the
    /// batches of that superblock and its log.
    fn behind(mut self, newest: Reach) -> Self {
        let (own, other) = (self.superblock.generation, newest.generation);
        if own < other && self.log.next < newest.next {
            let batches = newest.next - self.log.next;
            self.notes.push(RepairNote::loss(format!(
                "the last {batches} batches of superblock {other} and its log are lost: superblock {own} and its log \
                 do not have them"
            )));
            self.doubt += ROLLED_BACK;
        }
        self
    }

    /// Replaces the log by an empty one.
    pub fn forget_log(&mut self, device: &Arc<dyn BlockDevice>) {
        self.superblock.replay = log::anew(device, &self.superblock, self.generation);
        let LogStart { position, sequence, .. } = self.superblock.replay;
        self.log = LogState { batches: 0, damage: None, next: sequence, end: position };
    }

    /// Compares the log with a later read of it. `reached`: the number of its next batch.
    ///
    /// Errors: `Damaged` if that read returned fewer batches than the read for the attempt.
    pub fn expect_log(&self, device: &dyn BlockDevice, reached: u64) -> Result<()> {
        if reached >= self.log.next {
            return Ok(());
        }
        let batches = self.log.next - reached;
        let what = format!(
            "the device returned the last {batches} batches once and not again; nothing was written, try again"
        );
        Err(Error::Damaged { place: format!("{}, log", device.name()), what })
    }

    /// The units that the repair must not overwrite.
    pub fn kept(&self) -> &[Extent] {
        &self.kept
    }

    /// Writes new nodes, a map, and the superblock that names it. Kept nodes stay at their places.
    /// It may be repeated after the device was reset.
    ///
    /// Errors: `NoSpace`.
    pub fn write(&mut self, device: &Arc<Staged>) -> Result<()> {
        let shared: Arc<dyn BlockDevice> = device.clone();
        match self.log.damage.clone() {
            // The frames after the damage are erased: the log ends there.
            Some((damage, position)) if !damage.is_empty() => {
                erase_frames(&shared, &self.superblock.geometry, &self.superblock.uuid, position)?;
            }
            Some(_) => self.forget_log(&shared),
            // Frames of a newer superblock would prove that it was durable.
            None => erase_frames(&shared, &self.superblock.geometry, &self.superblock.uuid, self.log.end)?,
        }
        let geometry = self.superblock.geometry;
        // A block of the log itself is not cleared: its frame has parity, or a later read may
        // return it.
        let (start, ring) = (self.superblock.replay.position, geometry.log_bytes);
        let is_needed = |at: u64| start + (at + ring - start % ring) % ring < self.log.end;
        let mut unused = unreadable_blocks(&shared, &geometry);
        unused.retain(|at| !is_needed(*at));
        clear_blocks(&shared, &geometry, &unused)?;
        let area = Area::new(shared.clone(), geometry);
        let mut space = self.space.clone();
        space.keep(self.kept().to_vec());
        let no_space = |bytes: usize, space: &Space| Error::NoSpace {
            wanted: bytes as u64,
            free: space.statistics().free * u64::from(geometry.unit_bytes),
        };
        let mut map = NodeMap::new();
        for (id, place) in &self.rebuilt.places {
            map.insert(*id, place.clone());
        }
        let Superblock { copies, .. } = &self.superblock;
        let identity = self.superblock.identity();
        for (id, node) in &self.rebuilt.edits {
            let encoded = node.encode(identity, *id, self.generation);
            let (bytes, header_sum) = (encoded.bytes.len(), encoded.header_sum);
            let units = geometry.units_for(bytes as u64);
            let extents = space.take(units, 0).ok_or_else(|| no_space(bytes, &space))?;
            // Without space, a later checkpoint writes the second copy.
            let second = (node.height() > 0 && *copies == Copies::Two)
                .then(|| space.take_far(units, &extents, MAX_PIECES - extents.len()))
                .flatten()
                .and_then(|second| Extents::new(&second))
                .unwrap_or_default();
            if !second.is_empty() {
                area.write(&second, encoded.bytes.clone())?;
            }
            area.write(&extents, encoded.bytes)?;
            map.insert(*id, Place { extents, second, bytes: bytes as u32, header_sum });
        }
        let bytes = map.encode(identity, self.generation);
        let (len, units) = (bytes.len(), geometry.units_for(bytes.len() as u64));
        let extents = space.take_pieces(units, 0, MAX_MAP_PIECES).ok_or_else(|| no_space(len, &space))?;
        let second = match copies {
            Copies::One => None,
            Copies::Two => space.take_far(units, &extents, MAX_SECOND_MAP_PIECES),
        };
        let (second, sum, node_sum) =
            (second.unwrap_or_default(), NodeMap::sum(&bytes), identity.map(|_| map.node_sum()));
        if !second.is_empty() {
            area.write(&second, bytes.clone())?;
        }
        area.write(&extents, bytes)?;
        let place = MapPlace { extents, second, bytes: len as u64, sum, node_sum };
        let superblock = Superblock {
            generation: self.generation,
            map: place,
            root: self.rebuilt.root.unwrap_or(self.superblock.root),
            next_node: self.rebuilt.next,
            ..self.superblock.clone()
        };
        write_superblock(&**device, &superblock)
    }
}
