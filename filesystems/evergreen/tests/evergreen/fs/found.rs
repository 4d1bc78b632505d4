//! The check finds every missing entry and every wrong field.

use bytes::Bytes;
use senesce_evergreen::{Batch, EvergreenFs, FsOptions, KeyValue, Message, ModelStore, check_files};
use senesce_fsapi::{Caller, FileSystem, FsError, Ino, NewNode, RenameMode, SetXattrMode};

use super::rig::large;

/// A file system with one object of each kind.
fn sample() -> ModelStore {
    let fs = EvergreenFs::format(large(), FsOptions::default()).unwrap();
    let caller = Caller::default();
    let directory = fs.make_node(&caller, Ino::ROOT, b"directory", &NewNode::directory(0o755)).unwrap().ino;
    let file = fs.make_node(&caller, directory, b"file", &NewNode::file(0o644)).unwrap().ino;
    fs.write(&caller, file, 0, &[5; 9000]).unwrap();
    fs.set_xattr(&caller, file, b"user.a", &[1; 5000], SetXattrMode::Any).unwrap();
    fs.link(&caller, file, Ino::ROOT, b"second").unwrap();
    fs.symlink(&caller, directory, b"link", b"target").unwrap();
    fs.rename(&caller, (Ino::ROOT, b"directory"), (Ino::ROOT, b"renamed"), RenameMode::Replace).unwrap();
    let orphan = fs.make_node(&caller, Ino::ROOT, b"orphan", &NewNode::file(0o644)).unwrap().ino;
    fs.open(orphan).unwrap();
    fs.unlink(&caller, Ino::ROOT, b"orphan").unwrap();
    fs.into_store()
}

fn copy(of: &ModelStore) -> ModelStore {
    let (store, mut batch) = (large(), Batch::new());
    of.entries().into_iter().for_each(|(key, value)| batch.put(key, value));
    batch.claim.bytes = of.live().bytes as i64;
    store.apply(batch).unwrap();
    store
}

fn with(store: &ModelStore, key: &[u8], message: Message) -> Vec<String> {
    let (store, mut batch) = (copy(store), Batch::new());
    batch.send(Bytes::copy_from_slice(key), message);
    store.apply(batch).unwrap();
    check_files(&store).unwrap()
}

#[test]
fn every_missing_entry_is_found() {
    let store = sample();
    assert_eq!(check_files(&store).unwrap(), [""; 0]);
    let entries = store.entries();
    assert_eq!(entries.len(), 23);
    for (key, _) in &entries {
        if key[..] == *b"s\0" {
            continue; // without the layout record a store is not opened
        }
        assert!(!with(&store, key, Message::Delete).is_empty(), "{}", key.escape_ascii());
    }
}

#[test]
fn missing_block_of_dense_file_is_an_error() {
    let store = sample();
    let blocks: Vec<_> = store.entries().into_iter().filter(|(key, _)| key.starts_with(b"d")).collect();
    assert_eq!(blocks.len(), 3);
    for (key, _) in blocks {
        let (damaged, mut batch) = (copy(&store), Batch::new());
        batch.delete(key);
        damaged.apply(batch).unwrap();
        let fs = EvergreenFs::open(damaged).unwrap();
        let file = fs.lookup(Ino::ROOT, b"second").unwrap().ino;
        let mut found = 0;
        for (offset, len) in [(0, 9000), (0, 4096), (4096, 4096), (8192, 808), (5000, 10)] {
            match fs.read(file, offset, &mut vec![0; len]) {
                Ok(read) => assert_eq!(read, len),
                Err(error) => {
                    assert!(matches!(error, FsError::Corrupt { .. }), "{error}");
                    found += 1;
                }
            }
        }
        assert!(found >= 2, "all reads with the block fail: {found} did");
        let caller = Caller::default();
        let copy = fs.make_node(&caller, Ino::ROOT, b"copy", &NewNode::file(0o600)).unwrap().ino;
        let copied = fs.clone_range(&caller, (file, 0), (copy, 0), 9000);
        assert!(matches!(copied, Err(FsError::Corrupt { .. })), "a copy would hide the loss: {copied:?}");
    }
}

#[test]
fn entries_without_an_object_are_found() {
    let store = sample();
    for key in [
        &b"x"[..],
        b"m",
        b"m\x01x\0\x09\0",
        b"m\x01\x00\x01",
        b"d\x01\0\0",
        b"d\x01x\0\x09\0\0",
        b"s\x02\x09",
        b"s\x03\x09",
        b"s\x04",
        // Invalid numbers.
        b"d\x01\0\xf7\xff\xff\xff\xff\xff\xff\xff\xff",
        b"s\x02\xf7\xff\xff\xff\xff\xff\xff\xff\xff",
        b"m\x01x\0\xf7\xff\xff\xff\xff\xff\xff\xff\xff\0",
    ] {
        let findings = with(&store, key, Message::put(Bytes::from_static(b"\x01")));
        assert!(!findings.is_empty(), "{}", key.escape_ascii());
    }
}

/// Records with one wrong byte, and the finding of the check.
#[test]
fn every_wrong_field_is_named() {
    let store = sample();
    let key = |ino: u8| {
        let home = store.get(&[b's', 2, ino]).unwrap().unwrap();
        [b"m", &home[..], &[0]].concat()
    };
    let (root, file, link) = (key(1), key(3), key(4));
    let cases: [(&[u8], u32, &str); 14] = [
        (&root, 0, "an inode of kind"),
        (&root, 4, "links and not"),
        (&root, 28, "names and says"),
        (&root, 80, "another parent"),
        (&root, 88 + 7, "has labels up to"),
        (&root, 96 + 7, "names without a label"),
        (&file, 4, "links and not 2"),
        (&file, 16, "attributes of 2 pieces"),
        (&file, 20, "attributes of 2 pieces"),
        (&file, 28 + 1, "has bytes up to 9000"),
        (&file, 80, "has 3 blocks and says"),
        (&file, 88, "are claimed"),
        (&link, 28, "has a target of"),
        (&link, 1, "an inode of layout"),
    ];
    for (key, at, want) in cases {
        let value = store.get(key).unwrap().unwrap()[at as usize];
        let other = if want.starts_with("has bytes") { 0 } else { value ^ 0x21 };
        let findings = with(&store, key, Message::patch(at, Bytes::from(vec![other])));
        assert!(findings.iter().any(|finding| finding.contains(want)), "{at}, {want}: {findings:?}");
    }
    let name = [b"m\x01", &b"\x01second"[..]].concat();
    for (at, want) in
        [(0, "is a "), (1, "label"), (9 + 7, "label"), (17, "is not at home"), (18, "a home that begins with")]
    {
        let value = store.get(&name).unwrap().unwrap()[at];
        let findings = with(&store, &name, Message::patch(at as u32, Bytes::from(vec![value ^ 0x07])));
        assert!(findings.iter().any(|finding| finding.contains(want)), "{at}, {want}: {findings:?}");
    }
}

#[test]
fn symbolic_link_without_target_is_found_once() {
    let store = sample();
    let home = store.get(b"s\x02\x04").unwrap().unwrap();
    let found = with(&store, &[b"m", &home[..], &[0, 0]].concat(), Message::Delete);
    assert_eq!(found, ["inode 4 has no target, and a size of 6"]);
}

#[test]
fn next_inode_number_has_a_limit() {
    let last = (1 << 62) + 1024;
    for (next, is_whole) in [(1000, true), (1 << 62, true), (last, true), (last + 1, false), (u64::MAX, false)] {
        let (store, mut batch) = (copy(&sample()), Batch::new());
        batch.put(&b"s\x01"[..], u64::to_le_bytes(next).to_vec());
        store.apply(batch).unwrap();
        assert_eq!(check_files(&store).unwrap().is_empty(), is_whole, "{next}");
        let fs = match EvergreenFs::open(store) {
            Ok(fs) => fs,
            Err(error) => {
                assert!(!is_whole && error.to_string().contains("none has more than"), "{next}: {error}");
                continue;
            }
        };
        assert!(is_whole, "{next}");
        match fs.make_node(&Caller::default(), Ino::ROOT, b"new", &NewNode::file(0o600)) {
            Ok(made) => assert_eq!(made.ino.0, next),
            Err(error) => assert!(next > 1 << 62 && matches!(error, FsError::NoSpace), "{next}: {error}"),
        }
        assert_eq!(check_files(&fs.into_store()).unwrap(), Vec::<String>::new(), "{next}");
    }
}
