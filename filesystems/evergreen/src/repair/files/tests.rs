//! Deletions of files are reported, unless the data still exists.

use std::sync::Arc;

use senesce_fsapi::{Caller, FileKind, FileSystem, NewNode, Timestamp};

use super::*;
use crate::fs::name_record::Entry;
use crate::{EvergreenFs, FsOptions, ModelStore, fs::check_files};

const CALLER: Caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } };

/// A store with `/directory/file`, and the homes of both.
struct Bench {
    store: Arc<ModelStore>,
    directory: Home,
    file: Home,
}

impl Bench {
    fn new() -> Self {
        let store = Arc::new(ModelStore::new(u64::MAX, 0));
        let fs = EvergreenFs::format(store.clone(), FsOptions::default()).unwrap();
        let directory = fs.make_node(&CALLER, Ino::ROOT, b"directory", &NewNode::directory(0o755)).unwrap().ino;
        let file = fs.make_node(&CALLER, directory, b"file", &NewNode::file(0o644)).unwrap().ino;
        fs.write(&CALLER, file, 0, &[7; 9000]).unwrap();
        drop(fs);
        let files = Gathered::read(&store, KeyOrder::BirthPath).unwrap();
        let home = |ino: Ino| files.home_of[&ino.0].clone();
        Self { directory: home(directory), file: home(file), store }
    }

    fn put(&self, key: Vec<u8>, value: Vec<u8>) {
        let mut batch = Batch::new();
        batch.put(key, value);
        self.store.apply(batch).unwrap();
    }

    fn take(&self, key: Vec<u8>) {
        let mut batch = Batch::new();
        batch.delete(key);
        self.store.apply(batch).unwrap();
    }

    fn fs(&self) -> EvergreenFs<Arc<ModelStore>> {
        EvergreenFs::open(self.store.clone()).unwrap()
    }

    /// Copies the file to another home; returns that.
    fn copy_file(&self) -> Home {
        let second = Home::root().child(KeyOrder::BirthPath, b"before", self.file.ino());
        let mut entries = Vec::new();
        for range in [self.file.metadata(), self.file.blocks_from(0)] {
            let take = &mut |key: &[u8], value: Bytes| {
                entries.push((key.to_vec(), value));
                std::ops::ControlFlow::Continue(())
            };
            self.store.scan(&range.start, &range.end, take).unwrap();
        }
        assert_eq!(entries.len(), 4, "an inode and three blocks");
        for (key, value) in entries {
            self.put([&key[..1], second.bytes(), &key[1 + self.file.byte_count()..]].concat(), value.into());
        }
        second
    }
}

#[test]
fn deletions_are_reported() {
    type Damage = fn(&Bench);
    let nothing = vec![0xff];
    assert!(Entry::decode(&nothing).is_err() && Inode::decode(&nothing).is_err());
    let cases: &[(&str, Damage, &[&str])] = &[
        (
            "blocks of a directory",
            |bench| bench.put(bench.directory.block_key(0), vec![1; 100]),
            &["/directory: 1 blocks of another kind of inode: deleted"],
        ),
        (
            "names and a target of a file",
            |bench| {
                let entry = Entry { ino: Ino::ROOT, kind: FileKind::Directory, label: 2, floor: 1, home: None };
                bench.put(bench.file.name_key(b"name"), entry.encode());
                bench.put(bench.file.unordered_key(3), b"name".to_vec());
                bench.put(bench.file.target_key(), b"target".to_vec());
            },
            &["/directory/file: 1 names, 1 places of names, 1 targets of another kind of inode: deleted"],
        ),
        (
            "a name with an invalid record",
            |bench| bench.put(bench.directory.name_key(b"file"), vec![0xff]),
            &[
                "/directory: the name file: its inode is unknown",
                "/directory: 1 names are missing",
                "the name: it is lost+found",
            ],
        ),
        (
            "an inode with an invalid record",
            |bench| bench.put(bench.file.inode_key(), vec![0xff]),
            &["/directory/file: an invalid entry", "/directory/file: owner, permissions, times"],
        ),
        ("an unknown key", |bench| bench.put(b"x".to_vec(), vec![1]), &["/: an invalid entry: x"]),
        ("the next number, which follows from other entries", |bench| bench.put(keys::next_ino_key(), vec![1]), &[]),
        ("a home, which the inode has", |bench| bench.put(keys::home_of_key(bench.file.ino()), vec![0xff]), &[]),
        ("a copy of a file", |bench| drop(bench.copy_file()), &[]),
        (
            "a second copy of a file with other contents",
            |bench| bench.put(bench.copy_file().block_key(1), vec![8; 4096]),
            &["/directory/file: other contents at before: deleted"],
        ),
        (
            "a second copy of a file with an attribute",
            |bench| bench.put(bench.copy_file().xattr_key(b"user.note", 0), vec![1, 0, 0, 0, 5]),
            &["/directory/file: other contents at before: deleted"],
        ),
        (
            "a symbolic link without its target",
            |bench| {
                let link = bench.fs().symlink(&CALLER, Ino::ROOT, b"link", b"to somewhere").unwrap();
                let files = Gathered::read(&bench.store, KeyOrder::BirthPath).unwrap();
                bench.take(files.home_of[&link.ino.0].target_key());
            },
            &["/link: symbolic link 1026: its target is lost", "/link: the name: inode 1026 is lost"],
        ),
        (
            "a file named lost+found, and a used name in lost+found.1",
            |bench| {
                let fs = bench.fs();
                fs.make_node(&CALLER, Ino::ROOT, b"lost+found", &NewNode::file(0o644)).unwrap();
                let found = fs.make_node(&CALLER, Ino::ROOT, b"lost+found.1", &NewNode::directory(0o755)).unwrap().ino;
                let name = format!("#{}", bench.file.ino());
                fs.make_node(&CALLER, found, name.as_bytes(), &NewNode::file(0o644)).unwrap();
                bench.take(bench.directory.name_key(b"file"));
            },
            &["the name: it is lost+found.1/#3.1 now", "/directory: 1 names are missing"],
        ),
        (
            "a root that is no directory",
            |bench| {
                let file = bench.store.get(&bench.file.inode_key()).unwrap().unwrap();
                bench.put(Home::root().inode_key(), file.into());
            },
            &["/: the object in its place, which was no directory", "/directory: the name: it is lost+found"],
        ),
    ];
    for (name, damage, lost) in cases {
        let bench = Bench::new();
        damage(&bench);
        let repaired = repair_files(&bench.store, KeyOrder::BirthPath, &[]).unwrap();
        assert_eq!(check_files(&bench.store).unwrap(), Vec::<String>::new(), "{name}");
        for line in *lost {
            assert!(repaired.lost.iter().any(|lost| lost.to_string().contains(line)), "{name}: {:#?}", repaired.lost);
        }
        assert!(!lost.is_empty() || repaired.lost.is_empty(), "{name}: {:#?}", repaired.lost);
        let links = repaired.lost.iter().filter(|lost| lost.to_string().contains("1026")).count();
        assert!(links <= 2, "{name}: a loss and its name are reported once: {:#?}", repaired.lost);
    }
}
