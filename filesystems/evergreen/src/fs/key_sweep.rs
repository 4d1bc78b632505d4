//! Sweeps of keys: give objects the keys of their current paths.
//!
//! A rename changes one name, so a renamed directory and all objects below it keep the keys of
//! their birth. Then the order of keys differs from that of paths, and reads in the order of paths
//! seek. A sweep visits all names in the order of paths. If the home of an object differs from the
//! one that its name implies, it moves all its records there, with the name's record, in **one
//! batch**. After a loss of power each object is in one place or the other. Nothing visible to a
//! caller changes: numbers, contents, attributes and cookies stay.
//!
//! A directory is moved before its contents; meanwhile its names record the homes of the objects.
//! An object larger than a batch stays, because it costs only one more request for at least
//! [`MOVED_BYTES`]. So do objects without space for a move. A file with several names is moved if
//! no name implies its home, together with the records of all its names.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use senesce_fsapi::{FileKind, FsError, FsResult, Ino};

use super::{
    evergreen::{EvergreenFs, damaged},
    inode_table::{Object, Writing},
    name_record::Entry,
    names::{Target, entry_bytes, unordered_bytes},
    rename::Likely,
};
use crate::{
    Batch, CHANGE_BYTES, KeyValue,
    disk::KeyOrder,
    keys::{Home, Key, home_of_key},
};

/// The most bytes of an object that is moved; it must also fit a batch.
pub const MOVED_BYTES: u64 = 8 << 20;
/// The approximate limit of names that one step reads.
const NAMES_A_STEP: u64 = 4096;
/// The names that are read at once.
const NAMES_AT_ONCE: usize = 64;
/// The most names of files with several names that a sweep remembers. Further such files stay.
const MOST_LINKS: usize = 1 << 16;

/// A sweep waits for a pause in renames, for at most this number of calls of [`EvergreenFs::tend`].
const MOST_WAITS: u32 = 60;

/// Names with their directories.
type Names = Vec<(Ino, Vec<u8>)>;

/// The counts of a sweep of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySweepCounts {
    /// Names read.
    pub names: u64,
    /// Objects that received the keys of their current paths.
    pub moved: u64,
    /// The bytes that these claim.
    pub moved_bytes: u64,
    /// Objects that stay because they are too large for one batch.
    pub too_large: u64,
    /// Objects that stay because there is no space to move them.
    pub without_space: u64,
    /// Skipped objects, and names of directories, that cannot be read.
    pub unreadable: u64,
}

/// A sweep of keys in progress. If it is dropped, moved objects stay moved.
#[derive(Debug, Default)]
pub struct KeySweep {
    /// Directories from the root on, each with the last name read.
    stack: Vec<(Ino, Vec<u8>)>,
    /// For files with several names: the names that do not imply their homes, numbered in the order
    /// of arrival.
    links: HashMap<Ino, HashMap<(Ino, Vec<u8>), usize>>,
    links_kept: usize,
    counts: KeySweepCounts,
    /// A description of the first unreadable object.
    unreadable: Option<String>,
}

impl KeySweep {
    /// The counts so far.
    pub fn counts(&self) -> KeySweepCounts {
        self.counts
    }

    /// A description of the first unreadable object.
    pub fn first_unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Counts an unreadable object. Errors: all other errors.
    fn skip(&mut self, error: FsError, what: impl FnOnce() -> String) -> FsResult<()> {
        if !matches!(error, FsError::Corrupt { .. } | FsError::Io { .. }) {
            return Err(error);
        }
        self.counts.unreadable += 1;
        self.unreadable.get_or_insert_with(|| format!("{}: {}", what(), with_sources(&error)));
        Ok(())
    }

    /// Whether all names were read.
    pub fn is_done(&self) -> bool {
        self.stack.is_empty()
    }

    /// Remembers a name of a file with `links` names. Returns all names if none implies the file's
    /// home.
    fn note_link(&mut self, ino: Ino, links: u32, name: (Ino, Vec<u8>)) -> Option<Names> {
        if self.links_kept >= MOST_LINKS {
            return None;
        }
        let names = self.links.entry(ino).or_default();
        let number = names.len();
        if names.insert(name, number).is_some() {
            return None;
        }
        self.links_kept += 1;
        if names.len() < links as usize {
            return None;
        }
        self.links_kept -= names.len();
        let mut names: Vec<_> = self.links.remove(&ino)?.into_iter().collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        Some(names.into_iter().map(|(name, _)| name).collect())
    }
}

/// The renames that left objects with old keys, and the sweep that follows them.
#[derive(Debug, Default)]
pub struct Tending {
    /// Such renames since the file system was opened.
    renames: AtomicU64,
    state: Mutex<TendingState>,
}

#[derive(Debug, Default)]
struct TendingState {
    /// The number of renames at the start of the last sweep.
    swept: u64,
    /// The first unreadable object of the sweeps, until a caller takes it.
    news: Option<String>,
    /// The number of renames at the last call, and the calls that waited for a pause.
    seen: u64,
    waited: u32,
    sweep: Option<KeySweep>,
}

impl Tending {
    /// Notes a rename that left an object with old keys.
    pub fn note_rename(&self) {
        self.renames.fetch_add(1, Ordering::Relaxed);
    }
}

impl TendingState {
    /// Whether a sweep should start: there were renames since the last start, and none since the
    /// last call. After too many waits it starts anyway.
    fn is_due(&mut self, renames: u64) -> bool {
        let is_quiet = renames == self.seen;
        self.seen = renames;
        if renames == self.swept {
            return false;
        }
        self.waited = if is_quiet { MOST_WAITS } else { self.waited + 1 };
        if self.waited < MOST_WAITS {
            return false;
        }
        (self.swept, self.waited) = (renames, 0);
        true
    }
}

/// The outcome for an object.
enum Rehomed {
    Moved(u64),
    TooLarge,
    WithoutSpace,
}

impl<S: KeyValue> EvergreenFs<S> {
    /// Continues the sweep that follows renames, by `most` bytes, if one is due. It is due after
    /// renames of directories, or of files that a rename does not move, once a call finds no new
    /// ones. A server calls this about every second;
    /// [`sync_all`](senesce_fsapi::FileSystem::sync_all) calls it, too. Returns the counts of the
    /// sweep, if one is in progress.
    ///
    /// Skips and counts unreadable objects; see [`take_sweep_news`](Self::take_sweep_news).
    ///
    /// Errors: those of the store except reads; an error stops the sweep.
    pub fn tend(&self, most: u64) -> FsResult<Option<KeySweepCounts>> {
        // Another thread runs the sweep.
        let Ok(mut state) = self.tending.state.try_lock() else { return Ok(None) };
        let renames = self.tending.renames.load(Ordering::Relaxed);
        if state.sweep.is_none() && state.is_due(renames) {
            state.sweep = Some(self.begin_key_sweep());
        }
        let Some(mut sweep) = state.sweep.take() else { return Ok(None) };
        let done = self.key_sweep_step(&mut sweep, most);
        let counts = sweep.counts();
        if let Some(first) = sweep.unreadable.take() {
            state.news = Some(first);
        }
        // After an error the next rename starts another sweep.
        if matches!(done, Ok(false)) {
            state.sweep = Some(sweep);
        }
        done.map(|_| Some(counts))
    }

    /// Takes the description of the first unreadable object that [`tend`](Self::tend) skipped since
    /// the last call.
    pub fn take_sweep_news(&self) -> Option<String> {
        self.tending.state.lock().unwrap_or_else(PoisonError::into_inner).news.take()
    }

    /// Whether [`tend`](Self::tend) has work, or will have once renames pause.
    pub fn needs_tending(&self) -> bool {
        let state = self.tending.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sweep.is_some() || self.tending.renames.load(Ordering::Relaxed) != state.swept
    }

    /// Starts a sweep of keys at the root.
    pub fn begin_key_sweep(&self) -> KeySweep {
        // Keys by inode number never change.
        let stack = if self.layout == KeyOrder::BirthPath { vec![(Ino::ROOT, Vec::new())] } else { Vec::new() };
        KeySweep { stack, ..KeySweep::default() }
    }

    /// Continues a sweep until about `most` bytes are moved, or some thousand names are read. Other
    /// threads may use the file system meanwhile. Moves are durable after the next sync. Returns
    /// whether the sweep is done.
    ///
    /// Skips and counts unreadable objects.
    ///
    /// Errors: those of the store except reads; the sweep may be continued. Cost: at most one
    /// object more than `most` bytes.
    pub fn key_sweep_step(&self, sweep: &mut KeySweep, most: u64) -> FsResult<bool> {
        let last_name = sweep.counts.names + NAMES_A_STEP;
        let last_byte = sweep.counts.moved_bytes.saturating_add(most);
        while sweep.counts.names < last_name && sweep.counts.moved_bytes < last_byte {
            let Some((directory, after)) = sweep.stack.last().cloned() else { break };
            match self.sweep_names(sweep, directory, after, last_byte) {
                Ok(()) => {}
                // The directory was removed meanwhile.
                Err(FsError::NotFound) => drop(sweep.stack.pop()),
                Err(error) => {
                    sweep.skip(error, || format!("names of inode {}", directory.0))?;
                    sweep.stack.pop();
                }
            }
        }
        Ok(sweep.is_done())
    }

    /// Sweeps some names of a directory, up to the first that names a directory, which is next.
    fn sweep_names(&self, sweep: &mut KeySweep, directory: Ino, after: Vec<u8>, last_byte: u64) -> FsResult<()> {
        let node = self.table.get(directory);
        let parent = self.writing(&node)?;
        let mut range = parent.home.names();
        if !after.is_empty() {
            range.start = parent.home.name_key(&[&after[..], &[0]].concat());
        }
        let mut names: Vec<(Vec<u8>, Entry)> = Vec::new();
        self.scan(range, &mut |key, value| {
            let Key::Name(home, name) = key else { return Ok(ControlFlow::Continue(())) };
            let entry = Self::decode_entry(&home, &name, &value)?;
            let is_last = entry.kind == FileKind::Directory || names.len() + 1 == NAMES_AT_ONCE;
            names.push((name, entry));
            Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if names.is_empty() {
            sweep.stack.pop();
            return Ok(());
        }
        let (mut below, mut linked) = (None, None);
        for (name, entry) in names {
            sweep.counts.names += 1;
            // Also if the object cannot be read: the next step continues after it.
            if let Some(frame) = sweep.stack.last_mut() {
                frame.1.clone_from(&name);
            }
            if entry.home.is_some() {
                linked = match self.sweep_name(sweep, (directory, &parent), &name, &entry) {
                    // The object was removed meanwhile.
                    Err(FsError::NotFound) => None,
                    Err(error) => sweep.skip(error, || format!("inode {}", entry.ino.0)).map(|()| None)?,
                    linked => linked?,
                };
            }
            if entry.kind == FileKind::Directory {
                below = Some(entry.ino);
            }
            if linked.is_some() || sweep.counts.moved_bytes >= last_byte {
                break;
            }
        }
        sweep.stack.extend(below.map(|ino| (ino, Vec::new())));
        drop(parent);
        if let Some((ino, names)) = linked {
            match self.rehome_linked(ino, &names) {
                Ok(done) => sweep.note(done),
                Err(error) => sweep.skip(error, || format!("inode {}", ino.0))?,
            }
        }
        Ok(())
    }

    /// Moves the object of a name that does not imply its home. For a file with several names,
    /// returns all of them.
    fn sweep_name(
        &self,
        sweep: &mut KeySweep,
        (directory, parent): (Ino, &Object),
        name: &[u8],
        entry: &Entry,
    ) -> FsResult<Option<(Ino, Names)>> {
        let node = self.node_of(&parent.home, name, entry)?;
        let mut object = self.writing(&node)?;
        if !object.inode.is_directory() && object.inode.links > 1 {
            let names = sweep.note_link(entry.ino, object.inode.links, (directory, name.to_vec()));
            return Ok(names.map(|names| (entry.ino, names)));
        }
        let done = self.rehome(&[(parent, name, entry)], &mut object, entry.ino)?;
        sweep.note(Some(done));
        Ok(None)
    }

    /// Moves a file with several names, if it still has them.
    fn rehome_linked(&self, ino: Ino, names: &[(Ino, Vec<u8>)]) -> FsResult<Option<Rehomed>> {
        // As in a rename: no other thread locks two sibling directories, and no directory changes
        // its parent.
        let _alone = self.lock_renames();
        let mut directories: Vec<(usize, Ino)> = Vec::new();
        let mut known = HashSet::new();
        for (directory, _) in names {
            if known.insert(*directory) {
                let above = match self.ancestors(*directory) {
                    Err(FsError::NotFound) => return Ok(None),
                    above => above?,
                };
                directories.push((above.len(), *directory));
            }
        }
        // A directory before those below it.
        directories.sort_unstable();
        let nodes: Vec<_> = directories.iter().map(|(_, directory)| self.table.get(*directory)).collect();
        let mut parents: HashMap<Ino, Writing<'_>> = HashMap::new();
        for node in &nodes {
            match self.writing(node) {
                Ok(parent) => drop(parents.insert(node.ino, parent)),
                Err(FsError::NotFound) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let mut found: Vec<(&Object, &[u8], Entry)> = Vec::new();
        for (directory, name) in names {
            let Some(parent) = parents.get(directory) else { return Ok(None) };
            match self.find(parent, name)? {
                Some(entry) if entry.ino == ino && entry.home.is_some() => found.push((parent, name, entry)),
                _ => return Ok(None),
            }
        }
        let Some((parent, name, entry)) = found.first() else { return Ok(None) };
        let node = self.node_of(&parent.home, name, entry)?;
        let mut object = self.writing(&node)?;
        if object.inode.links as usize != found.len() {
            return Ok(None);
        }
        let names: Vec<_> = found.iter().map(|(parent, name, entry)| (*parent, *name, entry)).collect();
        self.rehome(&names, &mut object, ino).map(Some)
    }

    /// Moves an object to the home that the first of its names implies, and records it in all
    /// names, in one batch.
    fn rehome(&self, names: &[(&Object, &[u8], &Entry)], object: &mut Writing<'_>, ino: Ino) -> FsResult<Rehomed> {
        let (parent, name, _) = names[0];
        let born = parent.home.child(self.layout, name, ino.0);
        if born == object.home {
            return Ok(Rehomed::Moved(0));
        }
        let claimed = object.inode.claim(ino, &object.home);
        let mut batch = Batch::new();
        batch.claim.bytes = object.inode.claim(ino, &born) - claimed;
        let names_bytes: i64 = names
            .iter()
            .map(|(parent, name, entry)| entry_bytes(&parent.home, name, entry) + CHANGE_BYTES as i64)
            .sum();
        let left = self.most_moved().saturating_sub(names_bytes.unsigned_abs());
        let bytes = if object.inode.is_directory() {
            self.move_directory(&mut batch, object, &born, left)?
        } else if claimed.unsigned_abs() <= left && self.fits_a_batch(&object.inode, &born) {
            self.move_content(&mut batch, object, &born, Likely::OnDevice)?;
            batch.put(born.inode_key(), object.inode.encode());
            Some(claimed.unsigned_abs())
        } else {
            None
        };
        let Some(bytes) = bytes else { return Ok(Rehomed::TooLarge) };
        batch.put(home_of_key(ino.0), born.bytes().to_vec());
        let target = Target { ino, kind: object.inode.kind, home: &born };
        for (parent, name, entry) in names {
            self.replace(&mut batch, parent, name, entry, entry.floor, &target);
        }
        match self.store.apply(batch) {
            Ok(()) => {}
            Err(crate::Error::NoSpace { .. }) => return Ok(Rehomed::WithoutSpace),
            Err(error) => return Err(error.into()),
        }
        object.home = born;
        Ok(Rehomed::Moved(bytes))
    }

    /// The most bytes of an object to move: those of a batch, without the other records.
    fn most_moved(&self) -> u64 {
        (self.batch_values(0) as u64).saturating_mul(crate::MAX_VALUE_BYTES as u64).min(MOVED_BYTES)
    }

    /// Moves all records of a directory to another home. The objects of its names stay, and the
    /// names record their homes. Returns the bytes in the batch, or `None` if they exceed `most`.
    fn move_directory(&self, batch: &mut Batch, object: &Object, to: &Home, most: u64) -> FsResult<Option<u64>> {
        let home = &object.home;
        let own = home.metadata();
        batch.delete_range(own.start.clone(), own.end.clone());
        let (mut bytes, mut claimed) = (0, 0);
        self.scan(own, &mut |key, value| {
            let (key, value) = match key {
                Key::Inode(_) => (to.inode_key(), value),
                Key::Xattr(_, name, piece) => (to.xattr_key(&name, piece), value),
                Key::Unordered(_, number) => {
                    claimed += unordered_bytes(to, number, &value) - unordered_bytes(home, number, &value);
                    (to.unordered_key(number), value)
                }
                Key::Name(_, name) => {
                    let old = Self::decode_entry(home, &name, &value)?;
                    let child = self.home_of(home, &name, &old);
                    let new = Entry { home: self.told_home(to, &name, old.ino, &child), ..old.clone() };
                    claimed += entry_bytes(to, &name, &new) - entry_bytes(home, &name, &old);
                    (to.name_key(&name), new.encode().into())
                }
                other => return Err(damaged(format!("{home:?}"), format!("a directory has {other:?}")).into()),
            };
            bytes += (key.len() + value.len() + CHANGE_BYTES) as u64;
            batch.put(key, value);
            Ok(if bytes > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        batch.claim.bytes += claimed;
        Ok((bytes <= most).then_some(bytes))
    }
}

/// The text of an error with its causes.
fn with_sources(error: &FsError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

impl KeySweep {
    fn note(&mut self, done: Option<Rehomed>) {
        match done {
            Some(Rehomed::Moved(bytes)) => {
                self.counts.moved += u64::from(bytes > 0);
                self.counts.moved_bytes += bytes;
            }
            Some(Rehomed::TooLarge) => self.counts.too_large += 1,
            Some(Rehomed::WithoutSpace) => self.counts.without_space += 1,
            None => {}
        }
    }
}
