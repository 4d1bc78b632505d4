//! Putting right what must hold of the files, when a part of the tree is lost. What the check finds is gone then.
//!
//! All entries are read once; what is to be changed is decided on that, and written as batches. In this order: entries that are none
//! are deleted; what lies under a home without an inode gets one, or goes; names that lead nowhere go, and inodes to which no name leads
//! get one in `lost+found`; then what each inode says of what it has, and what all claim.

mod gather;
mod names;
mod objects;
mod report;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use senesce_fsapi::Ino;

use super::{
    evergreen::{SYSTEM_BYTES, VERSION, orphan_bytes},
    inode::Inode,
    names::{entry_bytes, unordered_bytes},
};
use crate::{
    Batch, CHANGE_BYTES, Change, KeyValue, Loss, Message, Result,
    disk::KeyOrder,
    keys::{self, Home, Key},
};
use gather::Gathered;

/// What was put right, and what is lost.
#[derive(Clone, Debug, Default)]
pub struct Mended {
    /// What was changed, in words.
    pub mended: Vec<String>,
    /// Files that are not what they were.
    pub lost: Vec<LostFile>,
}

/// A file, directory, ... that is not what it was.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostFile {
    /// Its path; if no name leads to it, the one under which it was made.
    pub path: Vec<u8>,
    /// What of it, in words.
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

/// Batches are not made larger, by what [`KeyValue::max_batch_bytes`] allows at least.
const MOST_BATCH_BYTES: usize = 12 << 10;

/// Puts right what lies in a store that nobody uses. `order`: of its keys, if that is not recorded. `lost`: ranges of keys of which
/// something was lost. Not durable before a checkpoint.
///
/// Errors: those of the store. Cost: reads all; memory for each inode and name.
pub(crate) fn mend_files(store: &impl KeyValue, order: KeyOrder, lost: &[Loss]) -> Result<Mended> {
    let mut mend = Mend {
        store,
        files: Gathered::read(store, order)?,
        waiting: Batch::new(),
        bytes: 0,
        done: Mended::default(),
        later: Vec::new(),
    };
    mend.delete_nonsense()?;
    mend.complete_objects()?;
    mend.connect()?;
    mend.count()?;
    mend.system()?;
    mend.claim()?;
    mend.tell_lost(lost);
    for (home, what) in std::mem::take(&mut mend.later) {
        let path = mend.path_of(&home);
        mend.lose(path, what);
    }
    mend.done.lost.sort();
    mend.done.lost.dedup();
    Ok(mend.done)
}

/// Files that are put right.
struct Mend<'a, S> {
    store: &'a S,
    files: Gathered,
    waiting: Batch,
    bytes: usize,
    done: Mended,
    /// Homes of what is lost, and what of it: the paths are known when all names are.
    later: Vec<(Home, String)>,
}

impl<S: KeyValue> Mend<'_, S> {
    fn tell(&mut self, what: String) {
        self.done.mended.push(what);
    }

    fn lose(&mut self, path: Vec<u8>, what: impl Into<String>) {
        self.done.lost.push(LostFile { path, what: what.into() });
    }

    /// The same of what lies under a home, by the path that it has in the end.
    fn lose_at(&mut self, home: &Home, what: impl Into<String>) {
        self.later.push((home.clone(), what.into()));
    }

    /// Adds a change to what waits.
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

    /// Takes away all that lies under a home.
    fn remove_object(&mut self, home: &Home) -> Result<()> {
        self.files.objects.remove(home);
        self.delete_range(home.metadata())?;
        self.delete_range(home.blocks_from(0))
    }

    /// Entries that nothing can be made of.
    fn delete_nonsense(&mut self) -> Result<()> {
        for (key, problem) in std::mem::take(&mut self.files.nonsense) {
            self.tell(format!("deleted: {}: {problem}", key.escape_ascii()));
            self.lose_nonsense(&key);
            self.delete(key)?;
        }
        Ok(())
    }

    fn lose_nonsense(&mut self, key: &[u8]) {
        let entry = || format!("an entry of which nothing can be made: {}", key.escape_ascii());
        match (Key::decode(key), Key::home(key)) {
            // What they said follows from what is there.
            (Ok(Key::Layout | Key::NextIno), _) => {}
            (Ok(Key::HomeOf(ino)), _) if self.files.objects.keys().any(|home| home.ino() == ino) => {}
            (Ok(Key::HomeOf(ino)), _) => self.lose(format!("#{ino}").into_bytes(), "where it lies is not known"),
            (Ok(Key::Name(home, name)), _) => {
                self.lose_at(&home, format!("the name {}: what it led to", name.escape_ascii()));
            }
            (_, Some(home)) => self.lose_at(&home, entry()),
            (_, None) => self.lose(Vec::new(), entry()),
        }
    }

    /// An inode's record is another one from now on.
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

    /// The records of the file system itself.
    fn system(&mut self) -> Result<()> {
        let (free, order) = (self.files.first_free_ino(), self.files.order);
        if !self.files.is_order_known {
            self.tell(format!("the keys are taken to be by {order}"));
            self.put(keys::layout_key(), vec![VERSION, u8::from(order == KeyOrder::InodeNumber)])?;
        }
        if self.files.stored_next_ino.is_none_or(|stored| stored < free) {
            self.tell(format!("inodes below {free} may be in use"));
            self.put(keys::next_ino_key(), free.to_le_bytes().to_vec())?;
        }
        self.flush()
    }

    /// All that is there is claimed.
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
            self.tell(format!("{live} bytes were claimed and {claimed} are there"));
            let mut batch = Batch::new();
            batch.claim.bytes = claimed - live;
            batch.claim.is_removal = true;
            // Something to do, which changes nothing: a batch of nothing has no record.
            let value = self.store.get(&keys::layout_key())?.unwrap_or_else(|| Bytes::from(vec![VERSION, 0]));
            batch.put(keys::layout_key(), value);
            self.store.apply(batch)?;
        }
        Ok(())
    }
}
