//! Snapshots, clones and deleted volumes, as users of an aggregate see them.

use senesce_fsapi::Timestamp;

use crate::{
    aggregate::{Commits, Garden},
    error::{Error, Result},
    fs::VolumeFs,
    store::{InodeChange, Store, snapshot_space, volume_of},
};

/// A snapshot of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The name.
    pub name: Vec<u8>,
    /// The time of the snapshot, as its creator passed it.
    pub created: Timestamp,
    /// The consistency point of the tree.
    pub cp: u64,
    /// Blocks of the tree, including those that are shared with others.
    pub blocks: u64,
    /// Inodes in use in the tree, including those of metadata.
    pub inodes: u64,
}

impl Garden {
    /// Makes a snapshot of a volume. It is durable on return. `now` is only recorded.
    ///
    /// Errors: `Invalid` for a name that is taken, empty or longer than 128 bytes; `NoSpace`.
    ///
    /// Cost: two consistency points; reads the map of the blocks in use, and writes the summary
    /// map.
    pub fn create_snapshot(&self, volume: &[u8], name: &[u8], now: Timestamp) -> Result<()> {
        self.change(|commits, store| {
            let space = store.find_volume(volume)?;
            // After the consistency point, the maps in memory describe exactly the durable tree.
            match store.create_snapshot(space, name, now) {
                Err(Error::NoSpace { .. }) if !store.touched && store.reclaim_left() > 0 => {
                    commits.reclaim(store, u64::MAX)?;
                    store.create_snapshot(space, name, now)
                }
                done => done,
            }
        })
    }

    /// The snapshots of a volume, the oldest first.
    ///
    /// Errors: `Invalid` if the volume does not exist.
    pub fn snapshots(&self, volume: &[u8]) -> Result<Vec<SnapshotReport>> {
        let store = self.shared.lock();
        let spaces = store.snapshots_of(store.find_volume(volume)?);
        let report = |space: u32| {
            let record = &store.views.get(&space)?.record;
            Some(SnapshotReport {
                name: record.name.clone(),
                created: record.created,
                cp: record.cp,
                blocks: record.used,
                inodes: record.inodes_used,
            })
        };
        Ok(spaces.into_iter().filter_map(report).collect())
    }

    /// Blocks of a volume that only snapshots use, including deleted snapshots that are not
    /// reclaimed yet.
    ///
    /// Errors: `Invalid` if the volume does not exist.
    pub fn held_blocks(&self, volume: &[u8]) -> Result<u64> {
        let store = self.shared.lock();
        Ok(store.volume(store.find_volume(volume)?)?.record.held)
    }

    /// Returns a snapshot as a read-only file system.
    ///
    /// Errors: `Invalid` if no snapshot has this name.
    pub fn snapshot(&self, volume: &[u8], name: &[u8]) -> Result<VolumeFs> {
        let store = self.shared.lock();
        let space = find_snapshot(&store, volume, name)?;
        Ok(VolumeFs::new(self.shared.clone(), space, store.number_of(space)?))
    }

    /// Deletes a snapshot. The deletion is durable on return. Blocks that only it used are freed in
    /// steps: by later consistency points, by [`reclaim_step`](Self::reclaim_step), or at the
    /// latest when space is short.
    ///
    /// Errors: `Invalid` if no snapshot has this name, or if it has a clone.
    ///
    /// Cost: one or two consistency points.
    pub fn delete_snapshot(&self, volume: &[u8], name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = find_snapshot(store, volume, name)?;
            store.delete_snapshot(space)
        })
    }

    /// Makes a volume from a snapshot. It is durable on return. Nothing is copied: both share
    /// blocks until one of them changes, and the snapshot cannot be deleted before the clone. The
    /// clone may write as many blocks as its origin has.
    ///
    /// Errors: `Invalid` if the snapshot does not exist, for a name that is taken, empty or longer
    /// than 128 bytes, and if there are too many volumes; `NoSpace`.
    ///
    /// Cost: two consistency points; reads the maps of blocks in use.
    pub fn clone_volume(&self, volume: &[u8], snapshot: &[u8], name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = find_snapshot(store, volume, snapshot)?;
            let clone = store.create_clone(space, name)?;
            // Inodes that programs held open when the snapshot was made have no holder now.
            let reaped = store.reap_orphans(clone);
            store.touched = true;
            reaped
        })
    }

    /// The origin of a clone: its volume and snapshot. `None` for other volumes.
    ///
    /// Errors: `Invalid` if the volume does not exist.
    pub fn origin(&self, volume: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let store = self.shared.lock();
        let Some(origin) = store.volume(store.find_volume(volume)?)?.record.origin else { return Ok(None) };
        let name = |space: u32| Ok::<_, Error>(store.volume(space)?.record.name.clone());
        Ok(Some((name(origin.volume)?, name(snapshot_space(origin.snapshot, origin.volume))?)))
    }

    /// Deletes a volume. The deletion is durable on return. Its blocks are freed in steps, like
    /// those of a deleted snapshot.
    ///
    /// Errors: `Invalid` if the volume does not exist or has snapshots; `Busy` if files of it are
    /// held open; `NoSpace`.
    ///
    /// Cost: one or two consistency points.
    pub fn delete_volume(&self, name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = store.find_volume(name)?;
            store.delete_volume(space)
        })
    }

    /// The differences between a snapshot and a later one, or the current volume: inodes in the
    /// order of their numbers.
    ///
    /// Errors: `Invalid` if a snapshot does not exist.
    ///
    /// Cost: a consistency point if anything changed; reads the blocks above differences, and
    /// nothing below equal pointers.
    pub fn diff(&self, volume: &[u8], from: &[u8], to: Option<&[u8]>) -> Result<Vec<InodeChange>> {
        let mut commits = self.shared.lock_commits();
        let store = &mut *self.shared.lock();
        store.check_running()?;
        let from = find_snapshot(store, volume, from)?;
        let to = match to {
            Some(name) => find_snapshot(store, volume, name)?,
            None => store.find_volume(volume)?,
        };
        commits.checkpoint(store)?;
        let changes = store.diff(from, to);
        store.shrink_cache();
        changes
    }

    /// Reverts a volume to one of its snapshots, which stays. Durable on return. Later changes are
    /// lost unless another snapshot has them. Their blocks are freed like those of a deleted
    /// snapshot.
    ///
    /// Errors: `Invalid` if no snapshot has this name; `Busy` if files of the volume are held open;
    /// `NoSpace`.
    ///
    /// Cost: that of [`create_snapshot`](Self::create_snapshot).
    pub fn restore_snapshot(&self, volume: &[u8], name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = find_snapshot(store, volume, name)?;
            store.restore_snapshot(space)?;
            // Inodes that programs held open when the snapshot was made have no holder now.
            let reaped = store.reap_orphans(volume_of(space));
            store.touched = true;
            reaped
        })
    }

    /// Frees blocks of deleted snapshots and volumes by scanning up to `blocks` blocks of summary
    /// maps. Each covers 32,768 blocks of a volume; a deleted volume counts one for each 32,768
    /// blocks, and one more. The result is durable on return. Returns the number of blocks that
    /// remain to be scanned.
    ///
    /// Errors: no progress because a map cannot be read or space is short.
    ///
    /// Cost: reads that block of the map of each snapshot of the volume.
    pub fn reclaim_step(&self, blocks: u64) -> Result<u64> {
        let mut commits = self.shared.lock_commits();
        let store = &mut *self.shared.lock();
        store.check_running()?;
        commits.reclaim(store, blocks)
    }

    /// Runs a change that has no record in the log. Earlier changes are durable before, this one on
    /// return. A failure in the middle stops the engine.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Commits, &mut Store) -> Result<T>) -> Result<T> {
        let mut commits = self.shared.lock_commits();
        let store = &mut *self.shared.lock();
        store.check_running()?;
        commits.checkpoint(store)?;
        store.touched = false;
        store.log.note_other_changes();
        let done = change(&mut commits, store);
        match &done {
            Err(error) if store.touched => store.stop(error),
            Err(_) => {}
            Ok(_) => {
                store.log.note_other_changes();
                commits.checkpoint(store)?;
            }
        }
        done
    }
}

impl Commits {
    /// Scans up to `blocks` blocks of summary maps, with consistency points whenever space is
    /// short. Returns the number of blocks that remain. Those of unreadable volumes remain.
    pub fn reclaim(&mut self, store: &mut Store, blocks: u64) -> Result<u64> {
        let first = store.reclaim_left();
        let mut blocks = blocks.min(first);
        loop {
            let before = store.reclaim_left();
            let unread = store.reclaim_step(blocks).inspect_err(|error| store.stop(error))?;
            let left = store.reclaim_left();
            blocks = blocks.saturating_sub(before.saturating_sub(left));
            if blocks > 0 && left > 0 && !store.is_waiting() {
                store.touched = false;
                return match unread {
                    Some(_) if left < first => Ok(left),
                    unread => Err(unread.unwrap_or(Error::NoSpace { wanted: 1, free: 0 })),
                };
            }
            self.checkpoint(store)?;
            store.touched = false;
            if blocks == 0 || store.reclaim_left() == 0 {
                return Ok(store.reclaim_left());
            }
        }
    }
}

fn find_snapshot(store: &Store, volume: &[u8], name: &[u8]) -> Result<u32> {
    let found = store.find_snapshot(store.find_volume(volume)?, name);
    let (volume, name) = (String::from_utf8_lossy(volume), String::from_utf8_lossy(name));
    found.ok_or_else(|| Error::invalid(format!("volume {volume} has no snapshot {name}")))
}
