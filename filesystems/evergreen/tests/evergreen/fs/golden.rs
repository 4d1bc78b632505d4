//! Keys and records of version 1, as in docs/reference/evergreen-format.md. They must stay
//! readable.

use senesce_evergreen::{Batch, EvergreenFs, FsOptions, KeyValue, ModelStore, check_files};
use senesce_fsapi::{
    Caller, FileKind, FileSystem, Ino, NewNode, RenameMode, SetXattrMode, Timestamp, conformance::resolve,
};

use super::rig::large;

/// Each line has a key, a space, and a value in hexadecimal; the first line has the claim.
const GOLDEN: &str = include_str!("golden-1.txt");

/// A file system with a record of each kind, with numbers that show the byte order.
fn sample() -> ModelStore {
    let fs = EvergreenFs::format(large(), FsOptions::default()).unwrap();
    let now = |seconds| Caller { uid: 0x0102, gid: 0x0304, now: Timestamp { seconds, nanoseconds: 0x0506 } };
    let directory =
        fs.make_node(&now(1), Ino::ROOT, b"directory of a long name", &NewNode::directory(0o2755)).unwrap().ino;
    let file = fs.make_node(&now(2), directory, b"\x01\x04file", &NewNode::file(0o640)).unwrap().ino;
    fs.write(&now(3), file, 0, b"first").unwrap();
    fs.write(&now(-3), file, 8192, b"behind\x20a\x20hole").unwrap();
    fs.set_xattr(&now(4), file, b"user.name", b"value", SetXattrMode::Any).unwrap();
    fs.link(&now(5), file, Ino::ROOT, b"second").unwrap();
    fs.symlink(&now(6), directory, b"link", b"target").unwrap();
    let device = NewNode { kind: FileKind::CharDevice, permissions: 0o600, device: 0x0708 };
    fs.make_node(&now(7), directory, b"device", &device).unwrap();
    fs.rename(&now(8), (Ino::ROOT, b"directory of a long name"), (Ino::ROOT, b"renamed"), RenameMode::Replace).unwrap();
    let orphan = fs.make_node(&now(9), Ino::ROOT, b"orphan", &NewNode::file(0o644)).unwrap().ino;
    fs.open(orphan).unwrap();
    fs.unlink(&now(10), Ino::ROOT, b"orphan").unwrap();
    fs.into_store()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn written_records_equal_the_golden_ones() {
    let store = sample();
    let mut text = format!("{}\n", store.live().bytes);
    for (key, value) in store.entries() {
        text.push_str(&format!("{} {}\n", hex(&key), hex(&value)));
    }
    assert!(text == GOLDEN, "the keys or records differ:\n{text}");
}

#[test]
fn golden_records_are_read() {
    let (store, mut batch) = (large(), Batch::new());
    let (live, entries) = GOLDEN.split_once('\n').unwrap();
    for (key, value) in entries.lines().map(|line| line.split_once(' ').unwrap()) {
        batch.put(bytes(key), bytes(value));
    }
    batch.claim.bytes = live.parse().unwrap();
    store.apply(batch).unwrap();
    assert_eq!(check_files(&store).unwrap(), [""; 0]);
    let fs = EvergreenFs::open(store).unwrap();
    assert_eq!(check_files(fs.store()).unwrap(), [""; 0]);
    let found = |path: &[u8]| fs.attributes(resolve(&fs, path).unwrap()).unwrap();
    let file = found(b"renamed/\x01\x04file");
    assert_eq!((file.size, file.links, file.permissions, file.uid, file.gid), (8205, 2, 0o640, 0x0102, 0x0304));
    assert_eq!(file.modified, Timestamp { seconds: -3, nanoseconds: 0x0506 });
    let mut content = [9; 16];
    fs.read(file.ino, 8189, &mut content).unwrap();
    assert_eq!((&content, found(b"second")), (b"\0\0\0behind\x20a\x20hole", file));
    assert_eq!(fs.get_xattr(file.ino, b"user.name").unwrap(), b"value");
    assert_eq!(fs.read_link(found(b"renamed/link").ino).unwrap(), b"target");
    assert_eq!(found(b"renamed/device").device, 0x0708);
}
