//! Makes and opens a store: the newest superblock, the map of nodes, then the batches of the log
//! after it.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock},
};

use senesce_block::BlockDevice;

use super::{
    Core, Durable, Evergreen, Limits, State, background::WorkSignal, io_counts::Counters, read_nodes::Pool,
    second_copies::CopyWatch,
};
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

/// The options of a new store.
#[derive(Clone, Copy, Debug)]
pub struct MakeOptions {
    /// The UUID of the store, drawn at random.
    pub uuid: [u8; 16],
    /// The shape of the tree.
    pub shape: Shape,
    /// The bytes of a unit of space: a power of two, at least 4096.
    pub unit_bytes: u32,
    /// The bytes of the log; `None` for the default of [`Geometry::plan`].
    pub log_bytes: Option<u64>,
    /// The number of copies of inner nodes and of the map of nodes.
    pub copies: Copies,
}

impl MakeOptions {
    /// Options for a device of `device_bytes`: nodes of 4 MiB from 1 GiB on, else about 1/256 of
    /// the device, because some nodes must stay free. Smaller nodes age more, because each node
    /// that is written apart from its neighbours costs a seek.
    pub fn suited(uuid: [u8; 16], device_bytes: u64) -> Self {
        let most = u64::from(Shape::default().node_bytes);
        Self::with_nodes(uuid, 1 << (device_bytes / 256).clamp(64 << 10, most).ilog2())
    }

    /// Options for nodes of `node_bytes`. A basement is 1/32 of a node, from 4 to 128 KiB. A unit
    /// is at most 1/64 of a node, from 4 to 64 KiB, because large units waste space in small nodes.
    pub fn with_nodes(uuid: [u8; 16], node_bytes: u32) -> Self {
        let usual = Shape::default();
        let basement_bytes = (node_bytes / 32).clamp(4096, usual.basement_bytes).min(node_bytes);
        let unit_bytes = 1 << (node_bytes / 64).clamp(4096, 64 << 10).ilog2();
        Self { shape: Shape { node_bytes, basement_bytes, ..usual }, unit_bytes, ..Self::new(uuid) }
    }

    /// The default options: nodes of 4 MiB, units of 64 KiB.
    pub fn new(uuid: [u8; 16]) -> Self {
        let (shape, copies) = (Shape::default(), Copies::default());
        Self { uuid, shape, unit_bytes: 64 << 10, log_bytes: None, copies }
    }
}

/// A superblock that could not be read when a store was opened. A loss of power cut its write, or
/// it is damaged. The log shows no loss of data, and opening has rewritten the superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableSuperblock {
    place: &'static str,
    damage: Damage,
    taken: u64,
}

impl fmt::Display for UnreadableSuperblock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, damage, taken } = self;
        write!(f, "{place} could not be read, superblock {taken} and the log after it were used: {damage}")
    }
}

/// The amount of log that is applied at a time.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Enough changes for a full node for each child of a node. So nodes change less often than
    /// with single batches.
    ByGroup,
    /// One batch.
    ByBatch,
}

impl Step {
    /// The bytes of changes that the tree receives at a time; at most the cache limit.
    fn most_bytes(self, shape: &Shape, limits: &Limits) -> usize {
        match self {
            ByGroup => (shape.node_bytes as usize).saturating_mul(shape.fanout as usize).min(limits.cache_bytes),
            ByBatch => 0,
        }
    }
}

impl Evergreen {
    /// Makes an empty store on a device. **All data on the device is lost.** Durable when it
    /// returns.
    ///
    /// Errors: `Invalid` for impossible options or a device that is too small; `Device`. Cost:
    /// reads the area of the log, to erase frames of an earlier store with the same UUID.
    pub fn make(device: Arc<dyn BlockDevice>, options: &MakeOptions) -> Result<()> {
        let geometry = Geometry::plan(device.size().0, options.unit_bytes, options.log_bytes)?;
        options.shape.validate().map_err(|damage| Error::Invalid { what: damage.to_string() })?;
        clear_slots(&device)?;
        // Frames of an earlier store with the same UUID would be replayed, or reported as damage of
        // the log.
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

    /// Opens the store on a device. The result has a prefix of all batches, with at least the
    /// [synced](crate::KeyValue::sync) ones. Cost: reads the map of nodes and the log after the
    /// last checkpoint, applies the log, and makes a checkpoint.
    ///
    /// Errors: `Device`; `WrongDevice`; `Damaged`.
    pub fn open(device: Arc<dyn BlockDevice>, limits: Limits) -> Result<Self> {
        Self::open_keeping(device, limits, &[])
    }

    /// Like [`open`](Self::open), but never writes to the units of `kept`.
    pub(crate) fn open_keeping(device: Arc<dyn BlockDevice>, limits: Limits, kept: &[Extent]) -> Result<Self> {
        // If batches are applied one by one, they make the same nodes dirty as before the restart;
        // there was space for these.
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
            // A damaged claim must not exceed the limit of a superblock.
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
        // The log may continue there only after a superblock with that start is durable.
        let (start, _) = core.checkpoint(&mut durable, || end, 0)?;
        core.rewrite_slot(&slots, &superblock);
        let log = Log::new(device, &geometry, &uuid, start);
        let log = if version > OLDEST_VERSION { log } else { log.without_parity() };
        let torn = slots.torn().map(|(place, damage)| UnreadableSuperblock {
            place,
            damage: damage.clone(),
            taken: superblock.generation,
        });
        Ok(Self { core, log, turn: Mutex::new(durable), signal: WorkSignal::default(), torn })
    }
}

/// Applies the gathered batches and flushes. A node that cannot be read must not block the others:
/// it is skipped once it is found. Returns the number of skipped nodes.
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

/// Adds the damage of the superblock, which may name a later start, to damage of the log.
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

    /// Rewrites the superblock that opening used, if a copy of a slot is damaged. It runs after the
    /// checkpoint that made a newer superblock durable in the other slot. So both copies of both
    /// slots are whole.
    fn rewrite_slot(&self, slots: &Slots, superblock: &Superblock) {
        for (place, damage) in &slots.bad_copies {
            self.watch.note_bad(None, &format!("{}, {place}: {damage}", self.area.device().name()));
        }
        if slots.bad_copies.is_empty() || superblock.version == OLDEST_VERSION {
            return;
        }
        let device = self.area.device();
        // An error is no loss: the other copy and the newer superblock exist, and a later
        // checkpoint rewrites the slot.
        if write_superblock(device, superblock).and_then(|()| Ok(device.flush()?)).is_err() {
            self.counters.note_passed_over(1);
        }
    }
}
