//! The inodes in memory: each is read once, has one copy, and a lock.
//!
//! Order of locks: a directory before its contents; two files in the order of their numbers; files
//! last. Renames lock siblings, and exclude each other. So there are no deadlocks.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use senesce_fsapi::{FsError, FsResult, Ino};

use super::{inode_record::Inode, labels::Labels};
use crate::{Error, KeyValue, keys::Home, keys::home_of_key};

/// An inode in memory.
pub struct Node {
    pub ino: Ino,
    /// The number of holds. It changes under the lock.
    pub held: AtomicU64,
    is_used: AtomicBool,
    state: RwLock<State>,
}

enum State {
    /// Not read yet; with its home, if a listing has it.
    Unknown(Option<Home>),
    There(Box<Object>),
    Gone,
}

/// The state of an inode, as in its record.
pub struct Object {
    pub home: Home,
    pub inode: Inode,
    /// The labels of a directory.
    pub labels: Labels,
}

impl Object {
    pub fn new(home: Home, inode: Inode) -> Self {
        Self { home, inode, labels: Labels::default() }
    }
}

/// An existing inode, locked for reading.
pub struct Reading<'a>(RwLockReadGuard<'a, State>);

/// An existing inode, locked for a change.
pub struct Writing<'a>(RwLockWriteGuard<'a, State>);

impl Deref for Reading<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        match &*self.0 {
            State::There(object) => object,
            State::Unknown(_) | State::Gone => unreachable!("a guard has a loaded inode"),
        }
    }
}

impl Deref for Writing<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        match &*self.0 {
            State::There(object) => object,
            State::Unknown(_) | State::Gone => unreachable!("a guard has a loaded inode"),
        }
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut Object {
        match &mut *self.0 {
            State::There(object) => object,
            State::Unknown(_) | State::Gone => unreachable!("a guard has a loaded inode"),
        }
    }
}

impl Writing<'_> {
    /// Marks the inode as removed.
    pub fn set_gone(mut self) {
        *self.0 = State::Gone;
    }
}

impl Node {
    fn new(ino: Ino, state: State) -> Arc<Self> {
        Arc::new(Self { ino, held: AtomicU64::new(0), is_used: AtomicBool::new(true), state: RwLock::new(state) })
    }

    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    /// Locks it for reading. Errors: `NotFound`; those of the store.
    pub fn read(&self, store: &impl KeyValue) -> FsResult<Reading<'_>> {
        loop {
            let guard = self.state.read().unwrap_or_else(PoisonError::into_inner);
            match *guard {
                State::There(_) => return Ok(Reading(guard)),
                State::Gone => return Err(FsError::NotFound),
                State::Unknown(_) => drop(guard),
            }
            self.write(store)?;
        }
    }

    /// Locks it for a change. Errors: `NotFound`; those of the store.
    pub fn write(&self, store: &impl KeyValue) -> FsResult<Writing<'_>> {
        self.write_at(store, None)
    }

    /// Loads the inode, if it is not loaded. A known home saves a read.
    pub fn load(&self, store: &impl KeyValue, home: impl FnOnce() -> Home) -> FsResult<()> {
        let is_unknown = matches!(*self.state.read().unwrap_or_else(PoisonError::into_inner), State::Unknown(_));
        if !is_unknown { Ok(()) } else { self.write_at(store, Some(home())).map(|_| ()) }
    }

    fn write_at(&self, store: &impl KeyValue, home: Option<Home>) -> FsResult<Writing<'_>> {
        let mut guard = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *guard {
            State::There(_) => {}
            State::Gone => return Err(FsError::NotFound),
            State::Unknown(told) => {
                let home = home.or_else(|| told.clone());
                *guard = State::There(Box::new(load(store, self.ino, home)?));
            }
        }
        Ok(Writing(guard))
    }
}

fn load(store: &impl KeyValue, ino: Ino, home: Option<Home>) -> FsResult<Object> {
    let damaged = |what| Error::Damaged { place: format!("inode {}", ino.0), what };
    let home = match home {
        Some(home) => home,
        None => {
            let bytes = store.get(&home_of_key(ino.0))?.ok_or(FsError::NotFound)?;
            Home::from_bytes(&bytes).map_err(damaged)?
        }
    };
    let record = store.get(&home.inode_key())?.ok_or_else(|| damaged("it has a home, but no record".to_owned()))?;
    Ok(Object::new(home, Inode::decode(&record).map_err(damaged)?))
}

/// All inodes in memory.
pub struct Table {
    nodes: Mutex<Nodes>,
    kept: usize,
}

struct Nodes {
    by_ino: HashMap<Ino, Arc<Node>>,
    sweep_at: usize,
}

impl Table {
    /// An empty table. `kept`: the number of inodes to keep; more stay only while they are held or
    /// in use.
    pub fn new(kept: usize) -> Self {
        Self { nodes: Mutex::new(Nodes { by_ino: HashMap::new(), sweep_at: kept }), kept }
    }

    /// An inode that may exist.
    pub fn get(&self, ino: Ino) -> Arc<Node> {
        self.get_or(ino, || Node::new(ino, State::Unknown(None)))
    }

    /// Notes the home of an inode that is likely to be used next by its number. It stays valid
    /// while the node exists, because a move loads the inode first.
    pub fn tell(&self, ino: Ino, home: impl FnOnce() -> Home) {
        self.get_or(ino, || Node::new(ino, State::Unknown(Some(home()))));
    }

    /// Adds an inode that was just created.
    pub fn insert(&self, ino: Ino, object: Object) {
        self.get_or(ino, || Node::new(ino, State::There(Box::new(object))));
    }

    fn get_or(&self, ino: Ino, make: impl FnOnce() -> Arc<Node>) -> Arc<Node> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.by_ino.len() >= nodes.sweep_at {
            // Nodes in use have other references: one that only the table has is unused.
            nodes.by_ino.retain(|_, node| {
                Arc::strong_count(node) > 1 || node.is_held() || node.is_used.swap(false, Ordering::Relaxed)
            });
            nodes.sweep_at = self.kept.max(nodes.by_ino.len() + self.kept / 4 + 1);
        }
        let node = nodes.by_ino.entry(ino).or_insert_with(make).clone();
        node.is_used.store(true, Ordering::Relaxed);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_and_used_inodes_stay() {
        let table = Table::new(100);
        let had = table.get(Ino(1));
        table.get(Ino(2)).held.store(1, Ordering::Relaxed);
        for ino in 3..10_000 {
            table.get(Ino(ino));
        }
        let same = table.get(Ino(1));
        assert!(Arc::ptr_eq(&had, &same));
        assert!(table.get(Ino(2)).is_held());
        assert!(table.nodes.lock().unwrap().by_ino.len() < 300);
    }
}
