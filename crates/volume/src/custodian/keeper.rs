//! The registry of a living run.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde::{Deserialize, Serialize};

use super::{
    CleanAction, Outcome, Resource,
    journal::{Entry, Journal, State},
    private_dir::check_place,
    release::{abort_if_unserved, release},
};
use crate::{
    Error, Result,
    host::{DiskServer, EngineServer, FileId, Host, ProcessId},
};

/// Number of a resource in its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceId(pub u64);

/// Keeps everything a run acquires: in a journal before it is acquired, until it is released.
///
/// Cheap to clone; when the last clone goes, also in a panic, what is still held is released in reverse order.
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

/// All custodians of this process, for the signal that ends it.
static ALL: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl Custodian {
    /// Opens the journal in `dir`, which must exist, and becomes its owner.
    ///
    /// Errors: a living process owns it ([`Error::OwnerAlive`]); an earlier one left resources behind
    /// ([`Error::LeftOvers`]: call [`clean`](super::clean) first).
    pub fn open(host: Arc<dyn Host>, dir: &Path) -> Result<Self> {
        Self::open_as(host, dir, false)
    }

    /// The same; a *home* is a directory that is the journal's alone, and goes when the last clone goes and nothing is held.
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
        let (version, place) = (super::journal::VERSION, Some(place));
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

    /// The host on which it acts.
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.0.host
    }

    /// The run's directory, which holds the journal.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// The mark in the names of everything this run makes: its process, start and boot, so unique.
    pub fn token(&self) -> &str {
        &self.0.token
    }

    /// Makes a directory of the run's own in `dir`, which goes with all in it; its name begins with `what`.
    ///
    /// Errors: `dir` does not exist or is not writable; another user prepared it ([`check_place`]).
    pub fn acquire_tree(&self, dir: &Path, what: &str) -> Result<(ResourceId, PathBuf)> {
        check_place(dir)?;
        let dir = std::fs::canonicalize(dir).map_err(Error::std("look up", dir))?;
        let path = dir.join(format!("{what}.{}", self.token()));
        let (id, _) = self.acquire_file(Resource::Tree { path: path.clone() }, |host| host.create_dir(&path))?;
        Ok((id, path))
    }

    /// Writes down that `resource` will be acquired, then acquires it.
    ///
    /// `act` must leave nothing behind when it fails. Cost: one fsync.
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
                // A mount or a loop device that failed half-way can be recognised, so look; what `act` makes with
                // one call is there whole or not at all. The first error is the one to tell.
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

    /// Makes a file or directory and writes down its identity, so that no later one in its place is taken for it.
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

    /// Writes down what is known of a resource only since it was acquired: it is `resource` from now on.
    pub fn amend(&self, id: ResourceId, resource: Resource) -> Result<()> {
        self.0.books().write(Entry::Amend { id, resource })
    }

    /// Gives back one resource; what was released before is [`Outcome::AlreadyGone`].
    ///
    /// Errors: the journal cannot be written. That the resource itself could not be removed is an outcome; it then
    /// stays in the journal.
    pub fn release(&self, id: ResourceId) -> Result<Outcome> {
        let held = self.0.books().state.held.iter().find(|held| held.id == id).cloned();
        let Some(held) = held else { return Ok(Outcome::AlreadyGone) };
        // Not under the lock: unmounting may take seconds, and a second signal must be able to look.
        self.0.abort_if_unserved(&held.resource);
        let outcome = release(&*self.0.host, &held.resource, held.file, &self.0.token);
        if !matches!(outcome, Outcome::Failed { .. }) {
            self.0.books().write(Entry::Release { id })?;
        }
        Ok(outcome)
    }

    /// Gives back everything, in reverse order of acquiring.
    pub fn release_all(&self) -> Vec<CleanAction> {
        self.0.release_all()
    }

    /// What is held now, in the order of acquiring.
    pub fn held(&self) -> Vec<Resource> {
        self.0.books().state.held.iter().map(|held| held.resource.clone()).collect()
    }
}

impl Inner {
    fn books(&self) -> MutexGuard<'_, Books> {
        // A panic elsewhere must not keep us from cleaning; the books change in one step after the disk has them.
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

    /// Releases everything; a home of which nothing is left goes, too.
    fn end(&self) -> Vec<CleanAction> {
        let actions = self.release_all();
        let books = self.books();
        if books.state.home && books.state.held.is_empty() {
            remove_home(&self.dir);
        }
        actions
    }
}

/// What goes into every name that a process makes. The boot tells machines apart that share a directory.
pub(super) fn token_of(process: &ProcessId) -> String {
    let boot: String = process.boot_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{:x}-{:x}-{boot}", process.pid, process.start_ticks)
}

/// Removes a home and its journal, and nothing else in it. Errors are ignored: an empty home that remains does no harm.
pub(super) fn remove_home(dir: &Path) {
    let _ = std::fs::remove_file(dir.join(super::JOURNAL_FILE_NAME)).and_then(|()| std::fs::remove_dir(dir));
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What fails here stays in the journal, and `clean` tells of it.
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

/// Releases what all custodians of this process hold: for the last moment before an exit.
pub(crate) fn release_everything() -> Vec<CleanAction> {
    let all: Vec<_> = ALL.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    all.iter().flat_map(|inner| inner.end()).collect()
}

/// Resources that go with a value, in reverse order of acquiring.
#[derive(Debug)]
pub(crate) struct Lease {
    custodian: Custodian,
    ids: Vec<ResourceId>,
    /// Let go of after everything is released: dropped before, it would cut off what is still on its disk.
    server: Option<SharedServer>,
    /// The same of an engine: dropped before, it would end below its mount.
    engine: Option<SharedEngine>,
}

/// The server of a volume's disk, for the volume to ask and for its lease to end.
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

/// The server of a volume's engine while it is mounted, for the volume to end and start, and for its lease to reap.
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

    /// Gives back everything now; the first failure is the error, but all are tried.
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
        // What fails stays in the journal; the custodian tries again, and then `clean`.
        let _ = self.release();
    }
}
