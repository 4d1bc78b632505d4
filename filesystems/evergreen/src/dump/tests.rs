//! Compares dumps with golden files.

use std::{fs, path::PathBuf, sync::Arc};

use bytes::Bytes;
use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_core::Bytes as Size;

use super::*;
use crate::{
    Batch, Evergreen, KeyValue, Limits, MakeOptions, Message,
    disk::{
        Copies, Extent, Extents, FORMAT_VERSION, Geometry, KeyOrder, MapPlace, NodeId, NodeMap, Place, Shape,
        write_superblock,
    },
    log::{Log, LogStart},
};

const UUID: [u8; 16] = *b"evergreen golden";

/// A device with two superblocks, a map and a log, written by the codecs alone.
fn example() -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Size(4 << 20)));
    let geometry = Geometry::plan(4 << 20, 4096, Some(256 << 10)).unwrap();
    let mut map = NodeMap::new();
    for node in 1..=4_u32 {
        let pieces: Vec<Extent> = (0..node).map(|piece| Extent { first: 20 * node + 2 * piece, count: 1 }).collect();
        let extents = Extents::new(&pieces).unwrap();
        let apart = [Extent { first: 400 + 8 * node, count: node }];
        let second = Extents::new(&apart[..usize::from(node > 2)]).unwrap();
        map.insert(
            NodeId(u64::from(node)),
            Place { extents, second, bytes: 4096 * node - 7, header_sum: u64::from(node) << 40 },
        );
    }
    let start = LogStart::first(&UUID, 7);
    let mut superblock = Superblock {
        version: FORMAT_VERSION,
        uuid: UUID,
        geometry,
        shape: Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath },
        copies: Copies::Two,
        generation: 6,
        map: MapPlace::default(),
        root: NodeId(4),
        next_node: 5,
        live_bytes: 1234,
        replay: start,
    };
    let area = Area::new(device.clone(), geometry);
    for generation in [6, 7] {
        let bytes = map.encode(Some(&UUID), generation);
        let [extent, second] = [generation as u32, 500 + generation as u32].map(|first| Extent { first, count: 1 });
        superblock.map = MapPlace {
            extents: vec![extent],
            second: vec![second],
            bytes: bytes.len() as u64,
            sum: NodeMap::sum(&bytes),
            node_sum: Some(map.node_sum()),
        };
        superblock.generation = generation;
        area.write(&[extent], bytes.clone()).unwrap();
        area.write(&[second], bytes).unwrap();
        write_superblock(&*device, &superblock).unwrap();
    }
    let log = Log::new(device.clone(), &geometry, &UUID, start);
    let mut batch = Batch::new();
    batch.put(&b"m\x01name"[..], &b"value"[..]);
    batch.delete(&b"gone"[..]);
    batch.send(&b"d\x01\x07"[..], Message::patch(100, Bytes::from_static(b"patch")).after(&Message::cut(9)));
    batch.delete_range(&b"a"[..], &b"b"[..]);
    batch.claim.bytes = 11;
    log.append(&batch).unwrap();
    log.sync().unwrap();
    let mut many = Batch::new();
    (0..10u8).for_each(|key| many.delete(vec![b'k', key]));
    many.claim.bytes = -20;
    many.claim.is_removal = true;
    log.append(&many).unwrap();
    log.append(&batch).unwrap();
    log.sync().unwrap();
    device
}

/// Compares the text of a dump with a file in `golden/`.
fn expect(name: &str, shown: &Dump) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    let got = shown.to_string();
    assert!(got == wanted, "the dump differs from {}:\n{got}", path.display());
}

fn shown(device: &Arc<dyn BlockDevice>, what: DumpWhat) -> Dump {
    dump(device, &what, 100).unwrap()
}

#[test]
fn golden() {
    let device = example();
    for (name, what) in [
        ("superblocks.txt", DumpWhat::Superblocks),
        ("map.txt", DumpWhat::Map),
        ("space.txt", DumpWhat::Space),
        ("log.txt", DumpWhat::Log),
    ] {
        let shown = shown(&device, what);
        assert!(shown.is_sound());
        expect(name, &shown);
    }
}

/// A tree of two levels with waiting messages and a range.
fn grown() -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Size(4 << 20)));
    let shape = Shape { node_bytes: 1024, basement_bytes: 512, fanout: 4, key_order: KeyOrder::BirthPath };
    let options = MakeOptions { uuid: UUID, shape, unit_bytes: 4096, log_bytes: Some(256 << 10), copies: Copies::Two };
    Evergreen::make(device.clone(), &options).unwrap();
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    for number in 0..30u32 {
        let mut batch = Batch::new();
        batch.put(format!("key {number:02}"), vec![1; 90]);
        store.apply(batch).unwrap();
    }
    let mut batch = Batch::new();
    batch.delete_range(&b"key 01"[..], &b"key 03"[..]);
    batch.send(&b"key 04"[..], Message::cut(5));
    batch.delete(&b"key 29"[..]);
    store.apply(batch).unwrap();
    store.checkpoint().unwrap();
    device
}

#[test]
fn golden_nodes() {
    let device = grown();
    let tree = shown(&device, DumpWhat::Tree);
    expect("tree.txt", &tree);
    let rows = tree.table.unwrap().rows;
    let number = |row: &[DumpValue]| match row[1] {
        DumpValue::Number(id) => id,
        _ => unreachable!("a number"),
    };
    let leaf = rows.iter().find(|row| row[0] == DumpValue::Number(0)).unwrap();
    expect("inner.txt", &shown(&device, DumpWhat::Node { id: number(&rows[0]) }));
    expect("leaf.txt", &shown(&device, DumpWhat::Node { id: number(leaf) }));
    let refusal = dump(&device, &DumpWhat::Node { id: 99 }, 9).unwrap_err().to_string();
    assert!(refusal.starts_with("there is no node 99; the root is"), "{refusal}");
}

#[test]
fn an_empty_frame_shows_its_purpose() {
    let device = grown();
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    for number in 0..4 {
        let mut batch = Batch::new();
        batch.put(format!("run {number}"), vec![1; 2000]);
        store.apply(batch).unwrap();
    }
    assert!(store.figures().unlogged_bytes > 2000, "the last batches are not logged");
    // The checkpoint makes these batches durable, and writes a frame that proves it.
    store.sync().unwrap();
    let log = shown(&device, DumpWhat::Log);
    assert_eq!(log.parts.len(), 1, "{log}");
    let text = log.to_string();
    assert!(text.contains("none: records that all before position") && log.parts[0].table.is_none(), "{text}");
}

#[test]
fn tables_end_at_the_limit() {
    let shown = dump(&example(), &DumpWhat::Map, 2).unwrap();
    let table = shown.table.unwrap();
    assert_eq!((table.rows.len(), table.more), (2, 2));
    assert_eq!(dump(&example(), &DumpWhat::Log, 1).unwrap().parts.len(), 1);
}

/// Changes bytes of each structure in turn: its dump must report the damage.
#[test]
fn damage_is_shown_with_what_is_left() {
    let geometry = Geometry::plan(4 << 20, 4096, Some(256 << 10)).unwrap();
    let cases = [
        (1 << 20, 8, DumpWhat::Superblocks, "superblock: checksum is"),
        (geometry.unit_at(7), 30, DumpWhat::Map, "node map: checksum is"),
        (geometry.log_at, 70, DumpWhat::Log, "the block is damaged and was restored by the parity"),
    ];
    for (at, byte, what, told) in cases {
        let device = example();
        device.write_at(at + byte, &[0xaa]).unwrap();
        let shown = shown(&device, what);
        assert!(!shown.is_sound() && shown.to_string().contains(told), "{shown}");
    }
    let device = example();
    for slot in [0, 1 << 20, 768 << 10, 256 << 10] {
        device.write_at(slot + 100, &[1]).unwrap();
    }
    assert!(!dump(&device, &DumpWhat::Superblocks, 9).unwrap().is_sound());
    assert!(dump(&device, &DumpWhat::Map, 9).is_err(), "no superblock says where it is");
}

#[test]
fn unreadable_superblock_leaves_the_other_in_the_dump() {
    let device = example();
    for (at, other) in [(0, "superblock at 1048576, the newest"), (1 << 20, "superblock at 0, the newest")] {
        let faulty = Arc::new(FaultDevice::new(device.clone()));
        faulty.inject(&format!("fail read at {at}+4096")).unwrap();
        let faulty: Arc<dyn BlockDevice> = faulty;
        let shown = dump(&faulty, &DumpWhat::Superblocks, 9).unwrap();
        let [failed, whole] = if at == 0 { [0, 1] } else { [1, 0] }.map(|number| &shown.parts[number]);
        assert!(failed.wrong[0].starts_with("the device cannot read it: ") && failed.fields.len() == 1, "{failed}");
        assert!(whole.title == other && whole.is_sound() && whole.fields.len() > 10, "{whole}");
    }
    let faulty = Arc::new(FaultDevice::new(device));
    faulty.inject("fail read 1..").unwrap();
    assert!(dump(&(faulty as Arc<dyn BlockDevice>), &DumpWhat::Superblocks, 9).is_err());
}
