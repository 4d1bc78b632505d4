//! Dumps against texts that are kept.

use std::{fs, path::PathBuf, sync::Arc};

use bytes::Bytes;
use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes as Size;

use super::*;
use crate::{
    Batch, Message,
    disk::{Extent, Extents, Geometry, KeyOrder, MapPlace, NodeId, NodeMap, Place, Shape, write_superblock},
    log::{Log, LogStart},
};

const UUID: [u8; 16] = *b"evergreen golden";

/// A device with two superblocks, a map and a log, made of their codecs alone.
fn example() -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Size(4 << 20)));
    let geometry = Geometry::plan(4 << 20, 4096, Some(256 << 10)).unwrap();
    let mut map = NodeMap::new();
    for node in 1..=4_u32 {
        let pieces: Vec<Extent> = (0..node).map(|piece| Extent { first: 20 * node + 2 * piece, count: 1 }).collect();
        let extents = Extents::new(&pieces).unwrap();
        map.insert(
            NodeId(u64::from(node)),
            Place { extents, bytes: 4096 * node - 7, header_sum: u64::from(node) << 40 },
        );
    }
    let start = LogStart::first(&UUID, 7);
    let mut superblock = Superblock {
        uuid: UUID,
        geometry,
        shape: Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath },
        generation: 6,
        map: MapPlace::default(),
        root: NodeId(4),
        next_node: 5,
        live_bytes: 1234,
        replay: start,
    };
    let area = Area::new(device.clone(), geometry);
    for generation in [6, 7] {
        let bytes = map.encode(generation);
        let extent = Extent { first: generation as u32, count: 1 };
        superblock.map = MapPlace { extents: vec![extent], bytes: bytes.len() as u64, sum: NodeMap::sum(&bytes) };
        superblock.generation = generation;
        area.write(&[extent], bytes).unwrap();
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

/// The text of a dump must be that of a file in `golden/`.
fn expect(name: &str, shown: &Dump) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    let got = shown.to_string();
    assert!(got == wanted, "{} is not what is shown now:\n{got}", path.display());
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

#[test]
fn tables_end_where_they_are_told_to() {
    let shown = dump(&example(), &DumpWhat::Map, 2).unwrap();
    let table = shown.table.unwrap();
    assert_eq!((table.rows.len(), table.more), (2, 2));
    assert_eq!(dump(&example(), &DumpWhat::Log, 1).unwrap().parts.len(), 1);
}

/// Every byte that means something is changed by turn: the dump of its structure is not the same, or tells that it is damaged.
#[test]
fn damage_is_shown_with_what_is_left() {
    let geometry = Geometry::plan(4 << 20, 4096, Some(256 << 10)).unwrap();
    let cases = [
        (1 << 20, 8, DumpWhat::Superblocks, "superblock: checksum is"),
        (geometry.unit_at(7), 30, DumpWhat::Map, "node map: checksum is"),
        (geometry.log_at, 70, DumpWhat::Log, "log: frame is damaged (batch 1)"),
    ];
    for (at, byte, what, told) in cases {
        let device = example();
        device.write_at(at + byte, &[0xaa]).unwrap();
        let shown = shown(&device, what);
        assert!(!shown.is_sound() && shown.to_string().contains(told), "{shown}");
    }
    let device = example();
    device.write_at(100, &[1]).unwrap();
    device.write_at((1 << 20) + 100, &[1]).unwrap();
    assert!(!dump(&device, &DumpWhat::Superblocks, 9).unwrap().is_sound());
    assert!(dump(&device, &DumpWhat::Map, 9).is_err(), "no superblock says where it is");
}
