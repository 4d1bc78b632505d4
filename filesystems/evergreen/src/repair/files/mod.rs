//! Corrects the files after a part of the tree was lost. Afterwards the check has no findings.
//!
//! The repair reads all entries once, decides all changes, and writes them as batches, in this
//! order. It deletes invalid entries. A home without an inode receives one, or is removed. It
//! removes names that lead nowhere, and adds a name in `lost+found` to inodes without one. Then it
//! corrects the counts in each inode, and the claim.

mod gather;
mod names;
mod objects;
mod report;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use senesce_fsapi::Ino;

use crate::fs::{
    evergreen::{SYSTEM_BYTES, VERSION, orphan_bytes},
    inode_record::Inode,
    names::{entry_bytes, unordered_bytes},
};
use crate::{
    Batch, CHANGE_BYTES, Change, KeyValue, Loss, Message, Result,
    disk::KeyOrder,
    keys::{self, Home, Key},
};
use gather::Gathered;

/// The corrections and the losses.
#[derive(Clone, Debug, Default)]
pub struct RepairedFiles {
    /// The corrections, as text.
    pub corrections: Vec<String>,
    /// The files with losses.
    pub lost: Vec<LostFile>,
}

/// A file, directory or other object with a loss.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostFile {
    /// Its path; without a name the path at birth.
    pub path: Vec<u8>,
    /// The loss, as text.
    pub what: String,
}

impl fmt::Display for LostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}: {}", self.path.escape_ascii(), self.what)
    }
}

impl fmt::Debug for LostFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The most bytes of a batch; [`KeyValue::max_batch_bytes`] is at least this.
const MOST_BATCH_BYTES: usize = 12 << 10;

/// Corrects the files of a store that is not in use. `order`: the key order, if it is not recorded.
/// `lost`: key ranges with losses. Durable after a checkpoint.
///
/// Errors: those of the store. Cost: reads all entries; memory for each inode and name.
pub(crate) fn repair_files(store: &impl KeyValue, order: KeyOrder, lost: &[Loss]) -> Result<RepairedFiles> {
    let mut repair = FileRepair {
        store,
        files: Gathered::read(store, order)?,
        waiting: Batch::new(),
        bytes: 0,
        done: RepairedFiles::default(),
        later: Vec::new(),
    };
    repair.delete_nonsense()?;
    repair.complete_objects()?;
    repair.connect()?;
    repair.count()?;
    repair.system()?;
    repair.claim()?;
    repair.tell_lost(lost);
    for (home, what) in std::mem::take(&mut repair.later) {
        let path = repair.path_of(&home);
        repair.lose(path, what);
    }
    repair.done.lost.sort();
    repair.done.lost.dedup();
    Ok(repair.done)
}

/// The state of the repair of files.
struct FileRepair<'a, S> {
    store: &'a S,
    files: Gathered,
    waiting: Batch,
    bytes: usize,
    done: RepairedFiles,
    /// Losses by home: the paths are known once all names are connected.
    later: Vec<(Home, String)>,
}

impl<S: KeyValue> FileRepair<'_, S> {
    fn tell(&mut self, what: String) {
        self.done.corrections.push(what);
    }

    fn lose(&mut self, path: Vec<u8>, what: impl Into<String>) {
        self.done.lost.push(LostFile { path, what: what.into() });
    }

    /// Notes a loss of the object of a home, for its final path.
    fn lose_at(&mut self, home: &Home, what: impl Into<String>) {
        self.later.push((home.clone(), what.into()));
    }

    /// Adds a change to the waiting batch.
    fn change(&mut self, change: Change) -> Result<()> {
        let bytes = match &change {
            Change::One { key, message } => key.len() + message.payload_bytes() + CHANGE_BYTES,
            Change::DeleteRange { from, to } => from.len() + to.len() + CHANGE_BYTES,
        };
        if self.bytes + bytes > MOST_BATCH_BYTES {
            self.flush()?;
        }
        self.bytes += bytes;
        match change {
            Change::One { key, message } => self.waiting.send(key, message),
            Change::DeleteRange { from, to } => self.waiting.delete_range(from, to),
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        let mut batch = std::mem::take(&mut self.waiting);
        batch.claim.is_removal = true;
        self.store.apply(batch)
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        self.change(Change::One { key: key.into(), message: Message::put(value.into()) })
    }

    fn delete(&mut self, key: Vec<u8>) -> Result<()> {
        self.change(Change::One { key: key.into(), message: Message::Delete })
    }

    fn delete_range(&mut self, range: std::ops::Range<Vec<u8>>) -> Result<()> {
        self.change(Change::DeleteRange { from: range.start.into(), to: range.end.into() })
    }

    /// Deletes all entries of a home.
    fn remove_object(&mut self, home: &Home) -> Result<()> {
        self.files.objects.remove(home);
        self.delete_range(home.metadata())?;
        self.delete_range(home.blocks_from(0))
    }

    /// Deletes invalid entries.
    fn delete_nonsense(&mut self) -> Result<()> {
        for (key, problem) in std::mem::take(&mut self.files.nonsense) {
            self.tell(format!("deleted: {}: {problem}", key.escape_ascii()));
            self.lose_nonsense(&key);
            self.delete(key)?;
        }
        Ok(())
    }

    fn lose_nonsense(&mut self, key: &[u8]) {
        let entry = || format!("an invalid entry: {}", key.escape_ascii());
        match (Key::decode(key), Key::home(key)) {
            // Their contents follow from other entries.
            (Ok(Key::Layout | Key::NextIno), _) => {}
            (Ok(Key::HomeOf(ino)), _) if self.files.objects.keys().any(|home| home.ino() == ino) => {}
            (Ok(Key::HomeOf(ino)), _) => self.lose(format!("#{ino}").into_bytes(), "its home is unknown"),
            (Ok(Key::Name(home, name)), _) => {
                self.lose_at(&home, format!("the name {}: its inode is unknown", name.escape_ascii()));
            }
            (_, Some(home)) => self.lose_at(&home, entry()),
            (_, None) => self.lose(Vec::new(), entry()),
        }
    }

    /// Replaces the record of an inode.
    fn put_inode(&mut self, home: &Home, inode: Inode) -> Result<()> {
        self.put(home.inode_key(), inode.encode())?;
        self.files.object(home).inode = Some(inode);
        Ok(())
    }

    fn new_ino(&mut self) -> Ino {
        let ino = self.files.first_free_ino();
        self.files.next_ino = Some(ino + 1);
        Ino(ino)
    }

    /// Corrects the records of the file system itself.
    fn system(&mut self) -> Result<()> {
        let (free, order) = (self.files.first_free_ino(), self.files.order);
        if !self.files.is_order_known {
            self.tell(format!("the key order is assumed to be {order}"));
            self.put(keys::layout_key(), vec![VERSION, u8::from(order == KeyOrder::InodeNumber)])?;
        }
        if self.files.stored_next_ino.is_none_or(|stored| stored < free) {
            self.tell(format!("inodes below {free} may be in use"));
            self.put(keys::next_ino_key(), free.to_le_bytes().to_vec())?;
        }
        self.flush()
    }

    /// Corrects the claim.
    fn claim(&mut self) -> Result<()> {
        let mut claimed = SYSTEM_BYTES;
        for (home, object) in &self.files.objects {
            let Some(inode) = object.inode else { continue };
            claimed += inode.claim(Ino(home.ino()), home);
            claimed += object.names.iter().map(|(name, entry)| entry_bytes(home, name, entry)).sum::<i64>();
            claimed += object.unordered.iter().map(|(at, name)| unordered_bytes(home, *at, name)).sum::<i64>();
        }
        claimed += self.files.orphans.iter().map(|ino| orphan_bytes(Ino(*ino))).sum::<i64>();
        let live = self.store.live().bytes as i64;
        if claimed != live {
            self.tell(format!("{live} bytes were claimed; the entries need {claimed}"));
            let mut batch = Batch::new();
            batch.claim.bytes = claimed - live;
            batch.claim.is_removal = true;
            // A change without an effect, because a batch of none has no log record.
            let value = self.store.get(&keys::layout_key())?.unwrap_or_else(|| Bytes::from(vec![VERSION, 0]));
            batch.put(keys::layout_key(), value);
            self.store.apply(batch)?;
        }
        Ok(())
    }
}
