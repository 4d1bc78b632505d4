//! Tracks the resources of a live run.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde::{Deserialize, Serialize};

use super::{
    CleanAction, Outcome, Resource,
    private_dir::check_place,
    release::{abort_if_unserved, release},
    resource_journal::{Entry, Journal, State},
};
use crate::{
    Error, Result,
    host::{DiskServer, EngineServer, FileId, Host, ProcessId},
};

/// Number of a resource in its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceId(pub u64);

/// Records every resource in the run's journal before it is acquired, and holds it until its
/// release.
///
/// A clone is cheap. When the last clone is dropped, also in a panic, it releases the held
/// resources in reverse order.
#[derive(Clone)]
pub struct Custodian(Arc<Inner>);

struct Inner {
    host: Arc<dyn Host>,
    dir: PathBuf,
    token: String,
    books: Mutex<Books>,
}

struct Books {
    journal: Journal,
    state: State,
}

/// All custodians of this process, for the handler of a signal that stops it.
static ALL: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl Custodian {
    /// Opens the journal in `dir`, which must exist, and becomes its owner.
    ///
    /// Errors: a live process owns it ([`Error::OwnerAlive`]); an earlier owner left resources
    /// ([`Error::LeftOvers`]: call [`clean`](super::clean) first).
    pub fn open(host: Arc<dyn Host>, dir: &Path) -> Result<Self> {
        Self::open_as(host, dir, false)
    }

    /// As [`open`](Self::open). A *home* is a directory that holds only the journal. It is removed
    /// when the last clone is dropped and nothing is held.
    pub(super) fn open_as(host: Arc<dyn Host>, dir: &Path, home: bool) -> Result<Self> {
        let process = host.this_process()?;
        let (mut journal, mut state) = Journal::open(dir)?;
        if let Some(owner) = state.owner.as_ref().filter(|owner| host.is_alive(owner))
            && (*owner != process || !state.held.is_empty())
        {
            return Err(Error::OwnerAlive { journal: journal.path().to_owned(), pid: owner.pid });
        }
        if !state.held.is_empty() {
            return Err(Error::LeftOvers { journal: journal.path().to_owned(), count: state.held.len() });
        }
        journal.cut_to(state.whole_bytes)?;
        let token = token_of(&process);
        let place = std::fs::canonicalize(dir).map_err(Error::std("look up", dir))?;
        let (version, place) = (super::resource_journal::VERSION, Some(place));
        let owner = Entry::Owner { version, process, token: token.clone(), home, place };
        journal.append(&owner)?;
        state.apply(owner);
        journal.unlock()?;
        let inner = Arc::new(Inner { host, dir: dir.to_owned(), token, books: Mutex::new(Books { journal, state }) });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|weak| weak.strong_count() > 0);
        all.push(Arc::downgrade(&inner));
        Ok(Self(inner))
    }

    /// The host on which the custodian acts.
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.0.host
    }

    /// The run's directory, which holds the journal.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// The mark in the names of everything that this run makes. It names one process of one boot,
    /// so it is unique.
    pub fn token(&self) -> &str {
        &self.0.token
    }

    /// Makes a directory of the run in `dir`. Its name starts with `what`. The release removes it
    /// with its content.
    ///
    /// Errors: `dir` does not exist or is not writable; another user prepared it ([`check_place`]).
    pub fn acquire_tree(&self, dir: &Path, what: &str) -> Result<(ResourceId, PathBuf)> {
        check_place(dir)?;
        let dir = std::fs::canonicalize(dir).map_err(Error::std("look up", dir))?;
        let path = dir.join(format!("{what}.{}", self.token()));
        let (id, _) = self.acquire_file(Resource::Tree { path: path.clone() }, |host| host.create_dir(&path))?;
        Ok((id, path))
    }

    /// Records that `resource` will be acquired, then acquires it with `act`.
    ///
    /// If `act` fails, it must leave nothing. Cost: one fsync.
    pub fn acquire<T>(&self, resource: Resource, act: impl FnOnce(&dyn Host) -> Result<T>) -> Result<(ResourceId, T)> {
        let id = {
            let mut books = self.0.books();
            if books.state.held.iter().any(|held| held.resource.collides_with(&resource)) {
                return Err(Error::NotPossible {
                    operation: "acquire",
                    path: resource.path().to_owned(),
                    why: "this run holds it already",
                });
            }
            let id = ResourceId(books.state.next_id);
            books.write(Entry::Acquire { id, resource: resource.clone() })?;
            id
        };
        match act(&*self.0.host) {
            Ok(value) => Ok((id, value)),
            Err(error) => {
                // A mount or a loop device that failed half-way can be recognized, so try to
                // release it. Other resources are made by one call, which makes all or nothing. The
                // caller receives the first error.
                let is_gone = match &resource {
                    Resource::Mount { .. }
                    | Resource::Loop { .. }
                    | Resource::DiskLoop { .. }
                    | Resource::VirtualDisk { .. }
                    | Resource::Engine { .. } => {
                        self.0.abort_if_unserved(&resource);
                        let outcome = release(&*self.0.host, &resource, None, &self.0.token);
                        !matches!(outcome, Outcome::Failed { .. })
                    }
                    _ => true,
                };
                if is_gone {
                    let _ = self.0.books().write(Entry::Release { id });
                }
                Err(error)
            }
        }
    }

    /// Makes a file or directory and records its identity, so that a later file of that path is not
    /// mistaken for it.
    pub fn acquire_file(
        &self,
        resource: Resource,
        act: impl FnOnce(&dyn Host) -> Result<FileId>,
    ) -> Result<(ResourceId, FileId)> {
        let (id, file) = self.acquire(resource, act)?;
        let written = self.0.books().write(Entry::Confirm { id, file });
        if let Err(error) = written {
            let _ = self.release(id);
            return Err(error);
        }
        Ok((id, file))
    }

    /// Replaces the journal's record of a resource, if a part was unknown before the acquisition.
    pub fn amend(&self, id: ResourceId, resource: Resource) -> Result<()> {
        self.0.books().write(Entry::Amend { id, resource })
    }

    /// Releases one resource. [`Outcome::AlreadyGone`] if it was released before.
    ///
    /// Errors: the journal cannot be written. If the resource cannot be removed, that is an
    /// outcome, and it stays in the journal.
    pub fn release(&self, id: ResourceId) -> Result<Outcome> {
        let held = self.0.books().state.held.iter().find(|held| held.id == id).cloned();
        let Some(held) = held else { return Ok(Outcome::AlreadyGone) };
        // Not under the lock: an unmount may take seconds, and a second signal must be able to read
        // the list.
        self.0.abort_if_unserved(&held.resource);
        let outcome = release(&*self.0.host, &held.resource, held.file, &self.0.token);
        if !matches!(outcome, Outcome::Failed { .. }) {
            self.0.books().write(Entry::Release { id })?;
        }
        Ok(outcome)
    }

    /// Releases everything, in reverse order of acquiring.
    pub fn release_all(&self) -> Vec<CleanAction> {
        self.0.release_all()
    }

    /// Returns the held resources, in the order of acquiring.
    pub fn held(&self) -> Vec<Resource> {
        self.0.books().state.held.iter().map(|held| held.resource.clone()).collect()
    }
}

impl Inner {
    fn books(&self) -> MutexGuard<'_, Books> {
        // A panic elsewhere must not prevent the cleanup. The state changes in one step, after the
        // write.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release_all(&self) -> Vec<CleanAction> {
        let all = self.books().state.held.clone();
        let mut actions = Vec::new();
        for held in all.iter().rev() {
            abort_if_unserved(&*self.host, &held.resource, &all, &self.token);
            let mut outcome = release(&*self.host, &held.resource, held.file, &self.token);
            if !matches!(outcome, Outcome::Failed { .. })
                && let Err(error) = self.books().write(Entry::Release { id: held.id })
            {
                outcome = Outcome::Failed { why: error.to_string() };
            }
            actions.push(CleanAction { resource: held.resource.clone(), outcome });
        }
        actions
    }

    fn abort_if_unserved(&self, resource: &Resource) {
        let held = self.books().state.held.clone();
        abort_if_unserved(&*self.host, resource, &held, &self.token);
    }

    /// Releases everything. Removes a home that holds nothing.
    fn end(&self) -> Vec<CleanAction> {
        let actions = self.release_all();
        let books = self.books();
        if books.state.home && books.state.held.is_empty() {
            remove_home(&self.dir);
        }
        actions
    }
}

/// The mark in every name that a process makes. The boot distinguishes machines that share a
/// directory.
pub(super) fn token_of(process: &ProcessId) -> String {
    let boot: String = process.boot_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{:x}-{:x}-{boot}", process.pid, process.start_ticks)
}

/// Removes a home and its journal, and nothing else in it. Ignores errors: an empty home does no
/// harm.
pub(super) fn remove_home(dir: &Path) {
    let _ = std::fs::remove_file(dir.join(super::JOURNAL_FILE_NAME)).and_then(|()| std::fs::remove_dir(dir));
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A resource that cannot be released stays in the journal, and `clean` reports it.
        let _ = self.end();
    }
}

impl Books {
    fn write(&mut self, entry: Entry) -> Result<()> {
        self.journal.append(&entry)?;
        self.state.apply(entry);
        Ok(())
    }
}

impl fmt::Debug for Custodian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custodian").field("dir", &self.0.dir).field("held", &self.held()).finish()
    }
}

/// Releases the resources of all custodians of this process, right before an exit.
pub(crate) fn release_everything() -> Vec<CleanAction> {
    let all: Vec<_> = ALL.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    all.iter().flat_map(|inner| inner.end()).collect()
}

/// Resources that are released with a value, in reverse order of acquiring.
#[derive(Debug)]
pub(crate) struct Lease {
    custodian: Custodian,
    ids: Vec<ResourceId>,
    /// Dropped after everything is released. An earlier drop would cut off the loop device on its
    /// disk.
    server: Option<SharedServer>,
    /// Dropped after everything is released. An earlier drop would stop the engine below its mount.
    engine: Option<SharedEngine>,
}

/// The server of a volume's disk. The volume queries it, and the lease stops it.
#[derive(Clone)]
pub(crate) struct SharedServer(Arc<Mutex<Box<dyn DiskServer>>>);

impl SharedServer {
    pub(crate) fn new(server: Box<dyn DiskServer>) -> Self {
        Self(Arc::new(Mutex::new(server)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Box<dyn DiskServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedServer").field(self.lock().footprint()).finish()
    }
}

/// The server of a volume's engine while it is mounted. The volume starts and stops it, and the
/// lease waits for its exit.
#[derive(Clone, Default)]
pub(crate) struct SharedEngine(Arc<Mutex<Option<Box<dyn EngineServer>>>>);

impl SharedEngine {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Box<dyn EngineServer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedEngine").field(&self.lock().as_ref().map(|server| server.process().clone())).finish()
    }
}

impl Lease {
    pub(crate) fn new(custodian: &Custodian) -> Self {
        Self { custodian: custodian.clone(), ids: Vec::new(), server: None, engine: None }
    }

    pub(crate) fn push(&mut self, id: ResourceId) {
        self.ids.push(id);
    }

    /// Keeps the server of the disk until everything is released.
    pub(crate) fn keep(&mut self, server: SharedServer) {
        self.server = Some(server);
    }

    /// Keeps the server of the engine until everything is released.
    pub(crate) fn keep_engine(&mut self, engine: SharedEngine) {
        self.engine = Some(engine);
    }

    /// Releases everything now. Tries all, and returns the first error.
    pub(crate) fn release(&mut self) -> Result<()> {
        let mut first = Ok(());
        while let Some(id) = self.ids.pop() {
            let resource = self.custodian.0.books().state.held.iter().find(|h| h.id == id).map(|h| h.resource.clone());
            let result = match self.custodian.release(id) {
                Ok(Outcome::Failed { why }) => Err(Error::Unverified {
                    operation: "removal",
                    path: resource.map(|resource| resource.path().to_owned()).unwrap_or_default(),
                    detail: why,
                }),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            first = first.and(result);
        }
        first
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A resource that cannot be released stays in the journal. The custodian tries again, then
        // `clean`.
        let _ = self.release();
    }
}
