//! Making a store, and opening it: the newest superblock, the map of nodes, then the batches of the log behind it.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock},
};

use senesce_block::BlockDevice;

use super::{Core, Durable, Evergreen, Limits, State, copies::CopyWatch, figures::Counters, pool::Pool, work::Bell};
use crate::{
    Error, Result,
    disk::{
        Area, Copies, Damage, Extent, FORMAT_VERSION, Geometry, MOST_COUNTED, NodeMap, OLDEST_VERSION, Shape, Slots,
        Space, Superblock, clear_slots, newest_of, read_slots, write_superblock,
    },
    log::{Log, LogStart, Replay, erase_frames},
    node::Gather,
    tree::Tree,
};
use Step::{ByBatch, ByGroup};

/// How a store is made.
#[derive(Clone, Copy, Debug)]
pub struct MakeOptions {
    /// Which store it will be: drawn, so that no two are the same.
    pub uuid: [u8; 16],
    /// The shape of the tree.
    pub shape: Shape,
    /// Bytes of a unit of space: a power of two from 4096 on.
    pub unit_bytes: u32,
    /// Bytes of the log; none: what [`Geometry::plan`] takes.
    pub log_bytes: Option<u64>,
    /// How many copies of inner nodes and of the map of nodes are written.
    pub copies: Copies,
}

impl MakeOptions {
    /// What suits a device of so many bytes: nodes of 4 MiB from 1 GiB on, of a smaller one a 256th or so, for some nodes must always be
    /// free. With smaller ones it ages more: each that is written apart from its neighbours is a seek.
    pub fn suited(uuid: [u8; 16], device_bytes: u64) -> Self {
        let most = u64::from(Shape::default().node_bytes);
        Self::with_nodes(uuid, 1 << (device_bytes / 256).clamp(64 << 10, most).ilog2())
    }

    /// What suits nodes of so many bytes: a 32nd of one for a basement, 4 to 128 KiB, and for a unit a 64th or a little less, 4 to 64 KiB,
    /// for units that are large beside nodes are mostly empty.
    pub fn with_nodes(uuid: [u8; 16], node_bytes: u32) -> Self {
        let usual = Shape::default();
        let basement_bytes = (node_bytes / 32).clamp(4096, usual.basement_bytes).min(node_bytes);
        let unit_bytes = 1 << (node_bytes / 64).clamp(4096, 64 << 10).ilog2();
        Self { shape: Shape { node_bytes, basement_bytes, ..usual }, unit_bytes, ..Self::new(uuid) }
    }

    /// As usual: nodes of 4 MiB, units of 64 KiB.
    pub fn new(uuid: [u8; 16]) -> Self {
        let (shape, copies) = (Shape::default(), Copies::default());
        Self { uuid, shape, unit_bytes: 64 << 10, log_bytes: None, copies }
    }
}

/// A superblock that could not be read when a store was opened: its writing was cut short by a loss of power, or it is damaged. Nothing is
/// missing by that as far as the log can tell; opening has written it anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    place: &'static str,
    damage: Damage,
    taken: u64,
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, damage, taken } = self;
        write!(f, "{place} could not be read, superblock {taken} and the log behind it were taken: {damage}")
    }
}

/// How much of the log is done again at once.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// What gives each child of a node a node's weight: so nodes are written over less often than by batches one by one.
    ByGroup,
    /// One batch.
    ByBatch,
}

impl Step {
    /// How many bytes of changes come to the tree at once; no more than nodes may take in memory.
    fn most_bytes(self, shape: &Shape, limits: &Limits) -> usize {
        match self {
            ByGroup => (shape.node_bytes as usize).saturating_mul(shape.fanout as usize).min(limits.cache_bytes),
            ByBatch => 0,
        }
    }
}

impl Evergreen {
    /// Makes an empty store on a device. **What lies there is lost.** Durable when it returns.
    ///
    /// Errors: `Invalid` for options that cannot be or a device that is too small; `Device`. Cost: reads the place of the log, for what an
    /// earlier one of the same identity left there.
    pub fn make(device: Arc<dyn BlockDevice>, options: &MakeOptions) -> Result<()> {
        let geometry = Geometry::plan(device.size().0, options.unit_bytes, options.log_bytes)?;
        options.shape.validate().map_err(|damage| Error::Invalid { what: damage.to_string() })?;
        clear_slots(&device)?;
        // Of an earlier one with the same identity: its frames would be believed, or held to be a log that is damaged.
        erase_frames(&device, &geometry, &options.uuid, 0)?;
        let (area, counters) = (Area::new(device, geometry), Counters::default());
        let watch = CopyWatch::new(options.copies);
        let pool = Arc::new(Pool::new(area.clone(), counters.clone(), watch.clone()));
        let tree = Tree::new(pool, NodeMap::new(), &options.shape);
        let state = State::new(Space::new(geometry.units), 0);
        let start = LogStart::first(&options.uuid, 1);
        let mut durable = Durable { generation: 0, replay: start, map: Default::default() };
        let (uuid, shape, limits) = (options.uuid, options.shape, Limits::default());
        let core = Core::new(area, (FORMAT_VERSION, uuid), shape, limits, (tree, state), (counters, watch));
        core.checkpoint(&mut durable, || start, 0).map(drop)
    }

    /// Opens what lies on a device: with all batches up to one of them, at or behind the last that was
    /// [synced](crate::KeyValue::sync). Cost: reads the map of nodes, and the log behind the last checkpoint, which is done again;
    /// then a checkpoint.
    ///
    /// Errors: `Device`; `WrongDevice`; `Damaged`.
    pub fn open(device: Arc<dyn BlockDevice>, limits: Limits) -> Result<Self> {
        Self::open_keeping(device, limits, &[])
    }

    /// The same, and nothing is ever written to units of `kept`.
    pub(crate) fn open_keeping(device: Arc<dyn BlockDevice>, limits: Limits, kept: &[Extent]) -> Result<Self> {
        // Done batch by batch as they came, they make dirty what was dirty then, for which there was room.
        Self::open_by(device.clone(), limits, ByGroup, kept).or_else(|error| match error {
            Error::NoSpace { .. } => Self::open_by(device, limits, ByBatch, kept),
            error => Err(error),
        })
    }

    pub(super) fn open_by(device: Arc<dyn BlockDevice>, limits: Limits, step: Step, kept: &[Extent]) -> Result<Self> {
        let mut slots = read_slots(&device)?;
        let superblock = newest_of(&device, &mut slots)?;
        let (geometry, shape, uuid) = (superblock.geometry, superblock.shape, superblock.uuid);
        let (area, counters) = (Area::new(device.clone(), geometry), Counters::default());
        let (watch, mut bad) = (CopyWatch::new(superblock.copies), Vec::new());
        let map = NodeMap::load_noting(&area, &superblock, false, &mut bad)?;
        Core::note_bad_maps(&watch, &bad);
        let damaged =
            |damage| Error::damaged(format!("{}, superblock {}", device.name(), superblock.generation), &damage);
        if let Some((last, _)) = map.iter().last().filter(|(last, _)| last.0 >= superblock.next_node) {
            let expected = format!("more than {last}");
            return Err(damaged(Damage::new("superblock", "next node", superblock.next_node, expected)));
        }
        let used = map.iter().flat_map(|(_, place)| place.all()).chain(superblock.map.all());
        let mut space = Space::complement(geometry.units, used.collect::<Vec<_>>()).map_err(damaged)?;
        space.keep(kept.to_vec());
        let pool = Arc::new(Pool::new(area.clone(), counters.clone(), watch.clone()));
        let next = crate::disk::NodeId(superblock.next_node);
        let mut tree = Tree::open(pool, map, &shape, superblock.root, next)?;
        let mut live = superblock.live_bytes;
        counters.note_passed_over(slots.repeated);
        let mut replay = Replay::new(device.clone(), &geometry, uuid, superblock.replay)
            .beside_torn(slots.torn().is_some())
            .of_version(superblock.version);
        let most = step.most_bytes(&shape, &limits);
        let mut group = Gather::default();
        for batch in &mut replay {
            let (_, batch) = batch.map_err(|error| beside(&slots, error))?;
            // No more than a superblock may say, should all that be wrong.
            live = live.saturating_add_signed(batch.claim.bytes).min(MOST_COUNTED);
            group.add(batch);
            if group.weight() >= most {
                counters.note_passed_over(receive(&mut tree, &mut group, &limits)?);
            }
        }
        counters.note_passed_over(receive(&mut tree, &mut group, &limits)? + replay.repeated());
        replay.restored().iter().for_each(|restored| watch.note_restored(None, restored));
        replay.skipped().into_iter().for_each(|skipped| watch.note_restored(None, &skipped));
        let state = State::new(space, live);
        let version = superblock.version;
        let core = Core::new(area, (version, uuid), shape, limits, (tree, state), (counters, watch));
        let mut durable = Durable::from(&superblock);
        let end = replay.end(superblock.generation + 1);
        // Only behind a superblock that names it, the log may go on there.
        let (start, _) = core.checkpoint(&mut durable, || end, 0)?;
        core.rewrite_slot(&slots, &superblock);
        let log = Log::new(device, &geometry, &uuid, start);
        let log = if version > OLDEST_VERSION { log } else { log.without_parity() };
        let torn =
            slots.torn().map(|(place, damage)| Torn { place, damage: damage.clone(), taken: superblock.generation });
        Ok(Self { core, log, turn: Mutex::new(durable), bell: Bell::default(), torn })
    }
}

/// What was gathered comes into the tree, and what is too much goes down. A node that cannot be read must not keep all others away: once it
/// was found, it is passed over. Returns how often that was so.
fn receive(tree: &mut Tree<Pool>, group: &mut Gather, limits: &Limits) -> Result<u64> {
    const MOST: u64 = 64;
    tree.shared().lock().ingest_all(group);
    let mut passed_over = 0;
    loop {
        let unreadable = tree.unreadable().clone();
        match tree.settle() {
            Err(_) if *tree.unreadable() != unreadable && passed_over < MOST => passed_over += 1,
            done => {
                done?;
                break;
            }
        }
    }
    tree.shared().lock().trim(limits.cache_bytes);
    Ok(passed_over)
}

/// Damage of the log, with that of the superblock that may have named a later start.
fn beside(slots: &Slots, error: Error) -> Error {
    match (error, slots.torn()) {
        (Error::Damaged { place, what }, Some((torn, damage))) => Error::Damaged {
            place,
            what: format!("{what}; and the {torn} cannot be read, which may be the newer one: {damage}"),
        },
        (error, _) => error,
    }
}

impl Core {
    fn new(
        area: Area,
        (version, uuid): (u32, [u8; 16]),
        shape: Shape,
        limits: Limits,
        (tree, state): (Tree<Pool>, State),
        (counters, watch): (Counters, CopyWatch),
    ) -> Self {
        let shared = tree.shared().clone();
        let (tree, state, failed) = (Mutex::new(tree), Mutex::new(state), OnceLock::new());
        Self { area, version, uuid, shape, limits, shared, tree, state, failed, counters, watch }
    }

    /// Writes the superblock that opening took again if a copy of a slot was bad, behind the checkpoint that made a newer one durable in the
    /// other slot: so both copies of both slots are whole.
    fn rewrite_slot(&self, slots: &Slots, superblock: &Superblock) {
        for (place, damage) in &slots.bad_copies {
            self.watch.note_bad(None, &format!("{}, {place}: {damage}", self.area.device().name()));
        }
        if slots.bad_copies.is_empty() || superblock.version == OLDEST_VERSION {
            return;
        }
        let device = self.area.device();
        // The other copy and the newer superblock are there in any case; a later checkpoint writes this slot again.
        if write_superblock(device, superblock).and_then(|()| Ok(device.flush()?)).is_err() {
            self.counters.note_passed_over(1);
        }
    }
}
