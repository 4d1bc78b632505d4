//! A disk in memory that can lose its power. Data that was not durable is then lost or, as on real
//! disks, partly there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use senesce_core::{Rng, Seed};

use crate::disk::Disk;

/// A disk in memory. Clones share it.
///
/// After [`cut_power_after`](Self::cut_power_after) operations every operation fails.
/// [`restart`](Self::restart) then returns the disk as found after the power cut. Bytes of a file
/// are durable from `write_durably` on, names from `sync_dir` on. The seed decides what else
/// survives, so that tests cover the loss of everything, of a part, and of nothing.
#[derive(Clone, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Contents by number: the written bytes, and the number of durable ones.
    contents: Vec<(Vec<u8>, usize)>,
    /// Names as programs see them.
    names: BTreeMap<PathBuf, usize>,
    /// Names that certainly survive a power cut.
    durable_names: BTreeMap<PathBuf, usize>,
    directories: BTreeSet<PathBuf>,
    operations: u64,
    operations_allowed: Option<u64>,
}

impl SimulatedDisk {
    /// Changes (not reads) so far.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Allows `count` more changes; every later one fails.
    pub fn cut_power_after(&self, count: u64) {
        let mut state = self.lock();
        state.operations_allowed = Some(state.operations + count);
    }

    /// The disk as found after the power cut. `seed` decides which non-durable data survives;
    /// without a seed, all of it is lost.
    pub fn restart(&self, seed: Option<Seed>) -> Self {
        let state = self.lock();
        let mut rng = seed.map(|seed| Rng::for_purpose(seed, "power cut"));
        let mut survives = || rng.as_mut().is_some_and(|rng| rng.below(2) == 1);
        let mut names = BTreeMap::new();
        for path in state.names.keys().chain(state.durable_names.keys()).collect::<BTreeSet<_>>() {
            let (new, old) = (state.names.get(path), state.durable_names.get(path));
            let found = if new == old || !survives() { old } else { new };
            if let Some(found) = found {
                names.insert(path.clone(), *found);
            }
        }
        let mut contents = state.contents.clone();
        for (bytes, durable) in &mut contents {
            if !survives() {
                bytes.truncate(*durable);
            } else if *durable < bytes.len() && survives() {
                // Torn in the middle.
                bytes.truncate((*durable + bytes.len()) / 2);
            }
            *durable = bytes.len();
        }
        let durable_names = names.clone();
        let directories = state.directories.clone();
        let state = State { contents, names, durable_names, directories, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no operation panics while it holds the lock")
    }

    fn change<T>(&self, apply: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.lock();
        if state.operations_allowed.is_some_and(|allowed| state.operations >= allowed) {
            return Err(io::Error::other("the power is cut"));
        }
        state.operations += 1;
        apply(&mut state)
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for SimulatedDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.change(|state| {
            state.directories.extend(path.ancestors().map(Path::to_path_buf));
            Ok(())
        })
    }
    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // Two changes: the power can fail between the write and the sync.
        let number = self.change(|state| {
            if !path.parent().is_some_and(|dir| state.directories.contains(dir)) {
                return Err(missing());
            }
            let number = state.contents.len();
            state.contents.push((bytes.to_vec(), 0));
            state.names.insert(path.to_path_buf(), number);
            Ok(number)
        })?;
        self.change(|state| {
            state.contents[number].1 = bytes.len();
            Ok(())
        })
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|state| {
            let number = state.names.remove(from).ok_or_else(missing)?;
            state.names.insert(to.to_path_buf(), number);
            Ok(())
        })
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.change(|state| {
            state.durable_names.retain(|name, _| name.parent() != Some(path));
            let synced: Vec<_> = state.names.iter().filter(|(name, _)| name.parent() == Some(path)).collect();
            let synced: Vec<_> = synced.into_iter().map(|(name, number)| (name.clone(), *number)).collect();
            state.durable_names.extend(synced);
            Ok(())
        })
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.change(|state| {
            let number = match state.names.get(path) {
                Some(number) => *number,
                None => {
                    state.contents.push((Vec::new(), 0));
                    state.names.insert(path.to_path_buf(), state.contents.len() - 1);
                    state.contents.len() - 1
                }
            };
            state.contents[number].0.extend_from_slice(bytes);
            Ok(())
        })
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(|state| state.names.remove(path).map(drop).ok_or_else(missing))
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.lock();
        let names = state.names.keys().filter(|name| name.parent() == Some(path));
        Ok(names.filter_map(|name| Some(name.file_name()?.to_str()?.to_owned())).collect())
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.lock();
        state.names.get(path).map(|number| state.contents[*number].0.clone()).ok_or_else(missing)
    }
}
