//! Damages each block in use alone, in each way, and checks opening, reading, the check and the
//! repair.

use std::{collections::BTreeMap, fmt, sync::Arc};

use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_fsapi::conformance::{Tree, collect_tree, find_difference};

use super::{
    RepairReport, repair,
    test_support::{Bench, TINY, example_with, expect_repaired, shared, tree},
};
use crate::{
    EvergreenFs, Limits, MakeOptions, check,
    disk::{BLOCK, Copies, Extent, MIRRORS_AT, NodeId, SLOTS_AT},
    log::Replay,
    node::Body,
};

/// The structure that a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Structure {
    Slot,
    SlotCopy,
    Log,
    Map,
    MapCopy,
    Inner,
    InnerCopy,
    LeafHeader,
    LeafParts,
}

impl Structure {
    /// The number of blocks that share the ways of damage: each block gets one of every `sampled`
    /// ways.
    fn sampled(self) -> usize {
        match self {
            Self::Slot | Self::SlotCopy | Self::Log | Self::Map | Self::MapCopy => 1,
            Self::Inner | Self::InnerCopy => 3,
            Self::LeafHeader | Self::LeafParts => 6,
        }
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Slot => "superblock",
            Self::SlotCopy => "superblock, second copy",
            Self::Log => "log",
            Self::Map => "map of nodes",
            Self::MapCopy => "map of nodes, second copy",
            Self::Inner => "inner node",
            Self::InnerCopy => "inner node, second copy",
            Self::LeafHeader => "leaf, with its header",
            Self::LeafParts => "leaf, the rest",
        })
    }
}

/// A block in use, and the number of its used bytes.
struct Used {
    structure: Structure,
    at: u64,
    bytes: usize,
    /// The node that it belongs to.
    node: Option<NodeId>,
}

/// The kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    FirstBit,
    MiddleBit,
    LastBit,
    Zeros,
    Garbage,
    /// The earlier contents, as after a lost write.
    Old,
    /// An unreadable block.
    Unreadable,
}

const KINDS: [Kind; 7] =
    [Kind::FirstBit, Kind::MiddleBit, Kind::LastBit, Kind::Zeros, Kind::Garbage, Kind::Old, Kind::Unreadable];

pub(super) const DOUBLE: MakeOptions = MakeOptions { copies: Copies::Two, ..TINY };

/// All blocks in use.
fn used(bench: &Bench) -> Vec<Used> {
    let (superblock, geometry) = (&bench.superblock, &bench.superblock.geometry);
    let mut all = Vec::new();
    let mut take = |structure, at: u64, bytes: u64, node| {
        for from in (0..bytes).step_by(BLOCK) {
            let bytes = (bytes - from).min(BLOCK as u64) as usize;
            all.push(Used { structure, at: at + from, bytes, node });
        }
    };
    SLOTS_AT.into_iter().for_each(|at| take(Structure::Slot, at, BLOCK as u64, None));
    MIRRORS_AT.into_iter().for_each(|at| take(Structure::SlotCopy, at, BLOCK as u64, None));
    let mut replay = Replay::new(bench.device.clone(), geometry, superblock.uuid, superblock.replay);
    assert!(replay.by_ref().all(|batch| batch.is_ok()) && replay.bytes() > 0);
    for position in (superblock.replay.position..superblock.replay.position + replay.bytes()).step_by(BLOCK) {
        take(Structure::Log, geometry.log_at + position % geometry.log_bytes, BLOCK as u64, None);
    }
    for (structure, extents) in
        [(Structure::Map, &superblock.map.extents), (Structure::MapCopy, &superblock.map.second)]
    {
        assert_eq!(extents.len(), 1);
        take(structure, geometry.unit_at(extents[0].first), superblock.map.bytes, None);
    }
    for (id, place) in bench.map.iter() {
        let (header_bytes, node) = bench.node(id);
        for (number, copy) in place.copies().enumerate() {
            assert_eq!(copy.extents.len(), 1);
            let (at, bytes) = (geometry.unit_at(copy.extents[0].first), u64::from(copy.bytes));
            match (&node.body, number) {
                (Body::Inner(_), 0) => take(Structure::Inner, at, bytes, Some(id)),
                (Body::Inner(_), _) => take(Structure::InnerCopy, at, bytes, Some(id)),
                (Body::Leaf(_), _) => {
                    let header = (header_bytes as u64).next_multiple_of(BLOCK as u64).min(bytes);
                    take(Structure::LeafHeader, at, header, Some(id));
                    take(Structure::LeafParts, at + header, bytes - header, Some(id));
                }
            }
        }
    }
    all
}

/// The device with a damaged block. `None`: the block would not change.
fn damaged(device: &MemoryDevice, before: &MemoryDevice, used: &Used, kind: Kind) -> Option<Arc<dyn BlockDevice>> {
    let copy = shared(device);
    let mut block = [0; BLOCK];
    copy.read_at(used.at, &mut block).unwrap();
    let whole = block;
    match kind {
        Kind::FirstBit => block[0] ^= 1,
        Kind::MiddleBit => block[used.bytes / 2] ^= 0x10,
        Kind::LastBit => block[used.bytes - 1] ^= 0x80,
        Kind::Zeros => block = [0; BLOCK],
        Kind::Garbage => block = [0x5a; BLOCK],
        Kind::Old => before.read_at(used.at, &mut block).unwrap(),
        Kind::Unreadable => {
            let faulty = FaultDevice::new(copy);
            faulty.inject(&format!("fail read at {}+{BLOCK}", used.at)).unwrap();
            return Some(Arc::new(faulty));
        }
    }
    copy.write_at(used.at, &block).unwrap();
    (block != whole).then_some(copy)
}

/// The outcomes of the damage of a structure.
#[derive(Debug, Default)]
struct Outcome {
    /// Cases in which the evergreen could not be opened and read.
    unreadable: u64,
    /// Cases in which files were lost after the repair.
    losses: u64,
}

/// The number of paths that differ.
fn differences(want: &Tree, got: &Tree) -> usize {
    let is_same = |path: &&Vec<u8>| {
        want.get(*path)
            .zip(got.get(*path))
            .is_some_and(|(want, got)| want.content == got.content && want.xattrs == got.xattrs)
    };
    want.keys().filter(|path| !is_same(path)).count()
}

#[test]
fn no_damaged_block_outside_leaves_loses_a_file() {
    let (device, moments, before) = example_with(&DOUBLE, 3);
    let want = moments.last().unwrap();
    let bench = Bench::new(&device);
    let mut outcomes: BTreeMap<Structure, Outcome> = BTreeMap::new();
    for (number, used) in used(&bench).into_iter().enumerate() {
        for (kind_number, kind) in KINDS.into_iter().enumerate() {
            // Nodes have many blocks, so each gets only some of the ways.
            if !(number + kind_number).is_multiple_of(used.structure.sampled()) {
                continue;
            }
            let Some(damaged) = damaged(&device, &before, &used, kind) else { continue };
            let case = format!("{} at {}, {kind:?}", used.structure, used.at);
            let outcome = outcomes.entry(used.structure).or_default();
            let report = check(&damaged);
            let is_found = report.as_ref().map_or(true, |report| {
                !report.is_clean() || !report.copies.torn.is_empty() || report.torn_superblock.is_some()
            });
            let is_leaf = matches!(used.structure, Structure::LeafHeader | Structure::LeafParts);
            if kind == Kind::Unreadable {
                // Only read it: a device with an unreadable block is no target for a repair.
                let read = EvergreenFs::open_on(damaged, Limits::default()).and_then(|fs| Ok(collect_tree(&fs)?));
                outcome.unreadable += u64::from(read.is_err());
                match read {
                    Ok(got) => assert_eq!(find_difference(want, &got), None, "{case}"),
                    Err(error) => assert!(is_leaf, "{case}: {error}"),
                }
                continue;
            }
            assert!(is_found, "{case}");
            let opened: Arc<dyn BlockDevice> = copy_of(&damaged);
            let read = EvergreenFs::open_on(opened.clone(), Limits::default()).and_then(|fs| Ok(collect_tree(&fs)?));
            outcome.unreadable += u64::from(read.is_err());
            match read {
                Ok(got) => assert_eq!(find_difference(want, &got), None, "{case}"),
                Err(error) => assert!(is_leaf, "{case}: {error}"),
            }
            let lost = repaired(&bench, &damaged, &moments, &used, &case, is_leaf);
            outcome.losses += u64::from(lost > 0);
        }
    }
    assert_eq!(
        outcomes.len(),
        8 + usize::from(outcomes.contains_key(&Structure::LeafParts)),
        "blocks of all structures were damaged"
    );
    for (structure, outcome) in &outcomes {
        let is_leaf = matches!(structure, Structure::LeafHeader | Structure::LeafParts);
        assert!(is_leaf == (outcome.losses + outcome.unreadable > 0), "{structure}: {outcome:?}");
    }
}

fn copy_of(device: &Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let mut bytes = vec![0; device.size().0 as usize];
    device.read_at(0, &mut bytes).unwrap();
    let copy = MemoryDevice::new(device.name(), device.size());
    copy.write_at(0, &bytes).unwrap();
    Arc::new(copy)
}

/// Repairs the device. Returns the number of files that differ then: none, or those of the leaf.
fn repaired(
    bench: &Bench,
    damaged: &Arc<dyn BlockDevice>,
    moments: &[Tree],
    used: &Used,
    case: &str,
    is_leaf: bool,
) -> usize {
    let want = moments.last().unwrap();
    // Parity restores a log block, and a copy a slot; then there may be nothing to repair.
    let report: RepairReport = match check(damaged) {
        Ok(report) if report.is_clean() => {
            let report = repair(damaged, false).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(check(damaged).unwrap().is_clean(), "{case}");
            report
        }
        _ => expect_repaired(damaged, moments, case),
    };
    assert!(is_leaf || !report.has_lost(), "{case}: {report:#?}");
    if let Some(id) = used.node.filter(|_| is_leaf) {
        let leaf = bench.node(id).1;
        let is_inside = |loss: &super::Loss| {
            loss.from >= leaf.lower
                && leaf.upper.as_ref().is_none_or(|upper| loss.to.as_ref().is_some_and(|to| to <= upper))
        };
        assert!(report.lost.iter().all(is_inside), "{case}: {:?}", report.lost);
    }
    let lost = differences(want, &tree(damaged));
    assert!(is_leaf || lost == 0, "{case}: {lost} files differ");
    lost
}

#[test]
fn copies_are_in_different_halves_of_the_area() {
    let (device, ..) = example_with(&DOUBLE, 0);
    let bench = Bench::new(&device);
    let half = bench.superblock.geometry.units / 2;
    let are_apart = |(first, second): &(Extent, Extent)| {
        let [first, second] = if first.first < second.first { [first, second] } else { [second, first] };
        first.end() <= half && second.first >= half
    };
    let map = &bench.superblock.map;
    let of_nodes = bench.map.iter().filter_map(|(_, place)| Some((place.extents[0], *place.second.first()?)));
    let pairs: Vec<_> = of_nodes.chain([(map.extents[0], map.second[0])]).collect();
    assert!(pairs.len() > 5, "{pairs:?}");
    assert!(pairs.iter().all(are_apart), "{pairs:?}");
    // One copy was requested.
    let (device, ..) = example_with(&TINY, 0);
    let report = check(&shared(&device)).unwrap();
    assert!(report.is_clean() && report.copies.single == 0, "{report:?}");
    assert!(Bench::new(&device).map.iter().all(|(_, place)| place.second.is_empty()));
}
