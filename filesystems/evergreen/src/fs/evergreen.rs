//! The file system in a store: making it, opening it, and steps that its calls share.

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use senesce_fsapi::{FsError, FsResult, Ino, Timestamp};

use super::{
    inode_record::{Body, Inode},
    inode_table::{Node, Object, Reading, Table, Writing},
    key_sweep::Tending,
    name_record::Entry,
};
use crate::{
    Batch, Error, KeyValue, Result,
    disk::KeyOrder,
    keys::{self, Home, Key},
};

/// The first byte of the layout record: the version.
pub(crate) const VERSION: u8 = 1;

/// The default number of inodes in memory, about 30 MiB.
const INODES_KEPT: usize = 1 << 16;

/// The options of a new file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsOptions {
    /// The key order.
    pub keys: KeyOrder,
}

/// A file system over any store.
pub struct EvergreenFs<S> {
    pub(super) store: S,
    pub(super) layout: KeyOrder,
    pub(super) table: Table,
    /// Locked by renames.
    pub(super) renames: Mutex<()>,
    pub(super) tending: Tending,
    numbers: Mutex<Numbers>,
}

/// The next inode number, and the first that is not reserved.
struct Numbers {
    next: u64,
    taken: u64,
}

impl<S: KeyValue> EvergreenFs<S> {
    /// Makes a file system in an empty store; the root belongs to user and group 0. Durable after
    /// the next sync.
    ///
    /// Errors: `Invalid` if the store is not empty; those of the store.
    pub fn format(store: S, options: FsOptions) -> Result<Self> {
        let mut first = None;
        store.scan(&[], &[u8::MAX], &mut |key, _| {
            first = Some(key.to_vec());
            ControlFlow::Break(())
        })?;
        if let Some(key) = first {
            return Err(Error::Invalid { what: format!("the store holds the key {}", key.escape_ascii()) });
        }
        let root = Inode::directory(0o755, Ino::ROOT, Timestamp::default());
        let home = Home::root();
        let mut batch = Batch::new();
        let layout = match options.keys {
            KeyOrder::BirthPath => 0,
            KeyOrder::InodeNumber => 1,
        };
        batch.put(keys::layout_key(), vec![VERSION, layout]);
        batch.put(keys::next_ino_key(), (Ino::ROOT.0 + 1).to_le_bytes().to_vec());
        batch.put(home.inode_key(), root.encode());
        batch.put(keys::home_of_key(Ino::ROOT.0), home.bytes().to_vec());
        batch.claim.bytes = root.claim(Ino::ROOT, &home) + SYSTEM_BYTES;
        store.apply(batch)?;
        Self::open(store)
    }

    /// Opens a file system, and removes inodes without a name.
    ///
    /// Errors: `Invalid` if the store has no file system, or one of another version; `Damaged`;
    /// those of the store. Cost: a few reads, and one batch for each inode without a name.
    pub fn open(store: S) -> Result<Self> {
        let record = store.get(&keys::layout_key())?;
        let layout = match record.as_deref() {
            Some([VERSION, 0]) => KeyOrder::BirthPath,
            Some([VERSION, 1]) => KeyOrder::InodeNumber,
            None => return Err(Error::Invalid { what: "the store has no file system".to_owned() }),
            Some(other) => {
                let what = format!("the file system has the layout {other:?}; this program has version {VERSION}");
                return Err(Error::Invalid { what });
            }
        };
        let next = store.get(&keys::next_ino_key())?;
        let next = next.ok_or_else(|| "it is not a number".to_owned()).and_then(|next| keys::next_ino_of(&next));
        let next = next.map_err(|problem| damaged("the next inode's number", problem))?;
        let fs = Self {
            store,
            layout,
            table: Table::new(INODES_KEPT),
            renames: Mutex::new(()),
            tending: Tending::default(),
            numbers: Mutex::new(Numbers { next, taken: next }),
        };
        fs.remove_orphans()?;
        Ok(fs)
    }

    /// Sets the number of inodes in memory, in addition to the held ones.
    pub fn keeping_inodes(self, inodes: usize) -> Self {
        Self { table: Table::new(inodes), ..self }
    }

    /// The store of the file system.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns the store.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The key order.
    pub fn key_order(&self) -> KeyOrder {
        self.layout
    }

    fn remove_orphans(&self) -> Result<()> {
        let mut found = Vec::new();
        let range = keys::orphans();
        self.store.scan(&range.start, &range.end, &mut |key, _| {
            found.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        for key in found {
            let Ok(Key::Orphan(ino)) = Key::decode(&key) else {
                return Err(damaged("inodes without a name", format!("the key {}", key.escape_ascii())));
            };
            let node = self.table.get(Ino(ino));
            let object = node.write(&self.store)?;
            self.remove_orphan(&node, object)?;
        }
        Ok(())
    }

    /// Removes an inode that has no name and is not held.
    pub(super) fn remove_orphan(&self, node: &Node, object: Writing<'_>) -> FsResult<()> {
        let mut batch = Batch::new();
        batch.claim.is_removal = true;
        self.remove_object(&mut batch, node.ino, &object);
        batch.delete(keys::orphan_key(node.ino.0));
        batch.claim.bytes -= orphan_bytes(node.ino);
        self.store.apply(batch)?;
        object.set_gone();
        Ok(())
    }

    /// Deletes the keys of an object and its claim. The homes of its children follow its own keys,
    /// and stay.
    pub(super) fn remove_object(&self, batch: &mut Batch, ino: Ino, object: &Object) {
        let own = object.home.metadata();
        batch.delete_range(own.start, own.end);
        if matches!(object.inode.body, Body::File { blocks: 1.., .. }) {
            let blocks = object.home.blocks_from(0);
            batch.delete_range(blocks.start, blocks.end);
        }
        batch.delete(keys::home_of_key(ino.0));
        batch.claim.bytes -= object.inode.claim(ino, &object.home);
    }

    /// Returns a number that no inode ever had. Errors: `NoSpace` if none is left.
    pub(super) fn new_ino(&self) -> FsResult<Ino> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers.next > keys::MOST_INO {
            return Err(FsError::NoSpace);
        }
        if numbers.next == numbers.taken {
            // Written before the first use: of two concurrent creations the second one may be
            // durable alone.
            let taken = numbers.taken + keys::INOS_AT_ONCE;
            let mut batch = Batch::new();
            batch.put(keys::next_ino_key(), taken.to_le_bytes().to_vec());
            self.store.apply(batch)?;
            numbers.taken = taken;
        }
        numbers.next += 1;
        Ok(Ino(numbers.next - 1))
    }

    /// Adds the change of an inode's record to a batch, and claims the difference.
    pub(super) fn change_inode(&self, batch: &mut Batch, ino: Ino, object: &Object, new: &Inode) {
        if let Some(message) = object.inode.message_to(new) {
            batch.send(object.home.inode_key(), message);
        }
        batch.claim.bytes += new.claim(ino, &object.home) - object.inode.claim(ino, &object.home);
    }

    pub(super) fn reading<'a>(&self, node: &'a Node) -> FsResult<Reading<'a>> {
        node.read(&self.store)
    }

    pub(super) fn writing<'a>(&self, node: &'a Node) -> FsResult<Writing<'a>> {
        node.write(&self.store)
    }

    /// The inode of a name in a locked directory.
    pub(super) fn node_of(&self, directory: &Home, name: &[u8], entry: &Entry) -> FsResult<Arc<Node>> {
        let node = self.table.get(entry.ino);
        node.load(&self.store, || self.home_of(directory, name, entry))?;
        Ok(node)
    }

    /// The home of a name's inode.
    pub(super) fn home_of(&self, directory: &Home, name: &[u8], entry: &Entry) -> Home {
        entry.home.clone().unwrap_or_else(|| directory.child(self.layout, name, entry.ino.0))
    }

    /// The home in a name's record: `None` if the name implies it.
    pub(super) fn told_home(&self, directory: &Home, name: &[u8], ino: Ino, home: &Home) -> Option<Home> {
        (*home != directory.child(self.layout, name, ino.0)).then(|| home.clone())
    }

    /// Excludes all other renames.
    pub(super) fn lock_renames(&self) -> MutexGuard<'_, ()> {
        self.renames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the values of a range with their decoded keys to `sink`, until it breaks.
    pub(super) fn scan(
        &self,
        range: std::ops::Range<Vec<u8>>,
        sink: &mut dyn FnMut(Key, Bytes) -> FsResult<ControlFlow<()>>,
    ) -> FsResult<()> {
        let mut done = Ok(());
        self.store.scan(&range.start, &range.end, &mut |key, value| {
            let given = Key::decode(key).map_err(|what| damaged("a key", what).into());
            match given.and_then(|key| sink(key, value)) {
                Ok(flow) => flow,
                Err(error) => {
                    done = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        done
    }
}

/// The claim of the system's own records.
pub const SYSTEM_BYTES: i64 = 2 + 2 + 2 + 8;

/// The claim of the record of an inode without a name.
pub fn orphan_bytes(ino: Ino) -> i64 {
    keys::orphan_key(ino.0).len() as i64 + 1
}

pub fn damaged(place: impl Into<String>, what: String) -> Error {
    Error::Damaged { place: place.into(), what }
}
