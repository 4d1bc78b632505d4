//! Making a store, and opening it: the newest superblock, the map of nodes, then the batches of the log behind it.

use std::sync::{Arc, Mutex, OnceLock};

use senesce_block::BlockDevice;

use super::{Core, Durable, Evergreen, Limits, State, figures::Counters, pool::Pool, run::Run, work::Bell};
use crate::{
    Error, Result,
    disk::{Area, Damage, Geometry, NodeMap, Shape, Slots, Space, clear_slots, read_newest, read_slots},
    log::{Log, LogStart, Replay, erase_frames},
    tree::Tree,
};

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
}

impl MakeOptions {
    /// What suits a device of so many bytes: nodes of 4 MiB from 4 GiB on, of a smaller one a thousandth or so, for some nodes must
    /// always be free.
    pub fn suited(uuid: [u8; 16], device_bytes: u64) -> Self {
        let most = u64::from(Shape::default().node_bytes);
        Self::with_nodes(uuid, 1 << (device_bytes / 1024).clamp(64 << 10, most).ilog2())
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
        Self { uuid, shape: Shape::default(), unit_bytes: 64 << 10, log_bytes: None }
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
        let pool = Arc::new(Pool::new(area.clone(), counters.clone()));
        let tree = Tree::new(pool, NodeMap::new(), &options.shape);
        let state = State {
            space: Space::new(geometry.units),
            live: 0,
            unplaced: 0,
            promised: 0,
            run: Run::default(),
            credit: 0,
        };
        let start = LogStart::first(&options.uuid, 1);
        let mut durable = Durable { generation: 0, replay: start, map: Default::default() };
        let (uuid, shape, limits) = (options.uuid, options.shape, Limits::default());
        let core = Core::new(area, uuid, shape, limits, (tree, state), counters);
        core.checkpoint(&mut durable, || start, 0).map(drop)
    }

    /// Opens what lies on a device: with all batches up to one of them, at or behind the last that was
    /// [synced](crate::KeyValue::sync). Cost: reads the map of nodes, and the log behind the last checkpoint, which is done again;
    /// then a checkpoint.
    ///
    /// Errors: `Device`; `WrongDevice`; `Damaged`.
    pub fn open(device: Arc<dyn BlockDevice>, limits: Limits) -> Result<Self> {
        let superblock = read_newest(&device)?;
        let (geometry, shape, uuid) = (superblock.geometry, superblock.shape, superblock.uuid);
        let (area, counters) = (Area::new(device.clone(), geometry), Counters::default());
        let map = NodeMap::load(&area, &superblock)?;
        if let Some((last, _)) = map.iter().last().filter(|(last, _)| last.0 >= superblock.next_node) {
            let place = format!("{}, superblock {}", device.name(), superblock.generation);
            return Err(
                Damage::new("superblock", "next node", superblock.next_node, format!("more than {last}")).at(place)
            );
        }
        let used = map.iter().flat_map(|(_, place)| place.extents.iter()).chain(&superblock.map.extents).copied();
        let space = Space::complement(geometry.units, used.collect::<Vec<_>>())
            .map_err(|damage| damage.at(format!("{}, superblock {}", device.name(), superblock.generation)))?;
        let pool = Arc::new(Pool::new(area.clone(), counters.clone()));
        let next = crate::disk::NodeId(superblock.next_node);
        let mut tree = Tree::open(pool, map, &shape, superblock.root, next)?;
        let mut live = superblock.live_bytes;
        let slots = read_slots(&device)?;
        let mut replay =
            Replay::new(device.clone(), &geometry, uuid, superblock.replay).beside_torn(slots.torn().is_some());
        for batch in &mut replay {
            let (_, batch) = batch.map_err(|error| beside(&slots, error))?;
            // A node that cannot be read must not keep all others away: the second time it is passed over.
            tree.settle().or_else(|_| tree.settle())?;
            live = live.saturating_add_signed(batch.claim.bytes);
            let mut view = tree.shared().lock();
            view.ingest(batch.into());
            view.trim(limits.cache_bytes);
        }
        let state = State { space, live, unplaced: 0, promised: 0, run: Run::default(), credit: 0 };
        let core = Core::new(area, uuid, shape, limits, (tree, state), counters);
        let mut durable = Durable::from(&superblock);
        let end = replay.end(superblock.generation + 1);
        // Only behind a superblock that names it, the log may go on there.
        let (start, _) = core.checkpoint(&mut durable, || end, 0)?;
        let log = Log::new(device, &geometry, &uuid, start);
        Ok(Self { core, log, turn: Mutex::new(durable), bell: Bell::default() })
    }
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
        uuid: [u8; 16],
        shape: Shape,
        limits: Limits,
        (tree, state): (Tree<Pool>, State),
        counters: Counters,
    ) -> Self {
        let shared = tree.shared().clone();
        let (tree, state, failed) = (Mutex::new(tree), Mutex::new(state), OnceLock::new());
        Self { area, uuid, shape, limits, shared, tree, state, failed, counters }
    }
}
