//! Snapshots as users of an aggregate have them: made, listed, read, deleted.

use senesce_fsapi::Timestamp;

use crate::{
    engine::{Commits, Garden},
    error::{Error, Result},
    fs::VolumeFs,
    store::{InodeChange, Store, snapshot_space, volume_of},
};

/// A snapshot of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Its name.
    pub name: Vec<u8>,
    /// When it was made, as whoever made it said.
    pub created: Timestamp,
    /// The consistency point whose tree it is.
    pub cp: u64,
    /// Blocks of its tree, also those that others use.
    pub blocks: u64,
    /// Inodes in use in it, with those of metadata.
    pub inodes: u64,
}

impl Garden {
    /// Keeps a volume as it is, under a name; durable when it returns. `now` is only kept.
    ///
    /// Errors: `Invalid` for a name that is taken, empty or longer than 128 bytes; `NoSpace`. Cost: two consistency points;
    /// reads the map of the blocks in use, and writes that of those that snapshots use.
    pub fn create_snapshot(&self, volume: &[u8], name: &[u8], now: Timestamp) -> Result<()> {
        self.change(|commits, store| {
            let space = store.find_volume(volume)?;
            // Of what is durable, the maps in memory describe exactly the tree.
            match store.create_snapshot(space, name, now) {
                Err(Error::NoSpace { .. }) if !store.touched && store.reclaim_left() > 0 => {
                    commits.reclaim(store, u64::MAX)?;
                    store.create_snapshot(space, name, now)
                }
                done => done,
            }
        })
    }

    /// The snapshots of a volume, the oldest first. Errors: `Invalid` if there is no such volume.
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

    /// Blocks of a volume that it does not use itself: its snapshots hold them, or deleted ones did and they are not reclaimed
    /// yet. Errors: `Invalid` if there is no such volume.
    pub fn held_blocks(&self, volume: &[u8]) -> Result<u64> {
        let store = self.shared.lock();
        Ok(store.volume(store.find_volume(volume)?)?.record.held)
    }

    /// A snapshot as a file system that takes no changes. Errors: `Invalid` if there is none of this name.
    pub fn snapshot(&self, volume: &[u8], name: &[u8]) -> Result<VolumeFs> {
        let store = self.shared.lock();
        let space = find_snapshot(&store, volume, name)?;
        Ok(VolumeFs::new(self.shared.clone(), space, store.number_of(space)?))
    }

    /// Deletes a snapshot; durable when it returns. What only it used becomes free bit by bit, with the consistency points
    /// that come, at once by [`reclaim_step`](Self::reclaim_step), and at the latest when space is short.
    ///
    /// Errors: `Invalid` if there is none of this name. Cost: one consistency point or two.
    pub fn delete_snapshot(&self, volume: &[u8], name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = find_snapshot(store, volume, name)?;
            store.delete_snapshot(space)
        })
    }

    /// Makes a volume of a snapshot; durable when it returns. Nothing is copied: both share blocks until they change them, and the
    /// snapshot cannot be deleted before the new volume is. It may write as many blocks as the volume that it comes from.
    ///
    /// Errors: `Invalid` if there is no such snapshot, for a name that is taken, empty or longer than 128 bytes, and if there are too
    /// many volumes; `NoSpace`. Cost: two consistency points; reads the maps of blocks in use.
    pub fn clone_volume(&self, volume: &[u8], snapshot: &[u8], name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = find_snapshot(store, volume, snapshot)?;
            let clone = store.create_clone(space, name)?;
            // What was held when the snapshot was made is nobody's now.
            let reaped = store.reap_orphans(clone);
            store.touched = true;
            reaped
        })
    }

    /// The volume and the snapshot that a volume is a clone of; `None` if it is none. Errors: `Invalid` if there is no such
    /// volume.
    pub fn origin(&self, volume: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let store = self.shared.lock();
        let Some(origin) = store.volume(store.find_volume(volume)?)?.record.origin else { return Ok(None) };
        let name = |space: u32| Ok::<_, Error>(store.volume(space)?.record.name.clone());
        Ok(Some((name(origin.volume)?, name(snapshot_space(origin.snapshot, origin.volume))?)))
    }

    /// Deletes a volume; durable when it returns. What it used becomes free bit by bit, as what a deleted snapshot used.
    ///
    /// Errors: `Invalid` if there is none of this name, or if it has snapshots; `Busy` if files of it are held open;
    /// `NoSpace`. Cost: one consistency point or two.
    pub fn delete_volume(&self, name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = store.find_volume(name)?;
            store.delete_volume(space)
        })
    }

    /// What differs between a snapshot and a later one, or the volume as it is: inodes in the order of their numbers.
    ///
    /// Errors: `Invalid` if there is no snapshot of a name. Cost: for the volume a consistency point; reads the blocks above
    /// what differs, and nothing of what is the same.
    pub fn diff(&self, volume: &[u8], from: &[u8], to: Option<&[u8]>) -> Result<Vec<InodeChange>> {
        let mut commits = self.shared.lock_commits();
        let store = &mut *self.shared.lock();
        store.check_running()?;
        let from = find_snapshot(store, volume, from)?;
        let to = match to {
            Some(name) => find_snapshot(store, volume, name)?,
            None => store.find_volume(volume)?,
        };
        commits.make_point(store)?;
        let changes = store.diff(from, to);
        store.shrink_cache();
        changes
    }

    /// Makes a volume what one of its snapshots is; durable when it returns. The snapshot stays. What the volume was since then is gone,
    /// unless another snapshot has it, and becomes free as when a snapshot is deleted.
    ///
    /// Errors: `Invalid` if there is none of this name; `Busy` if files of the volume are held open; `NoSpace`. Cost: as
    /// [`create_snapshot`](Self::create_snapshot).
    pub fn restore_snapshot(&self, volume: &[u8], name: &[u8]) -> Result<()> {
        self.change(|_, store| {
            let space = find_snapshot(store, volume, name)?;
            store.restore_snapshot(space)?;
            // What was held when the snapshot was made is nobody's now.
            let reaped = store.reap_orphans(volume_of(space));
            store.touched = true;
            reaped
        })
    }

    /// Makes free what deleted snapshots and volumes used, as far as so many blocks of the maps of snapshots tell (each tells it of
    /// 32,768 blocks of a volume; a deleted volume counts as many, and one); durable when it returns. Says how many blocks are left to look at.
    ///
    /// Errors: nothing could be done because a map cannot be read, or for want of space. Cost: reads that block of the map of each snapshot of the volume.
    pub fn reclaim_step(&self, blocks: u64) -> Result<u64> {
        let mut commits = self.shared.lock_commits();
        let store = &mut *self.shared.lock();
        store.check_running()?;
        commits.reclaim(store, blocks)
    }

    /// Does a change that the log does not know: all before it is durable, and it is when this returns. A failure in the
    /// middle stops the engine.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Commits, &mut Store) -> Result<T>) -> Result<T> {
        let mut commits = self.shared.lock_commits();
        let store = &mut *self.shared.lock();
        store.check_running()?;
        commits.make_point(store)?;
        store.touched = false;
        store.log.note_other_changes();
        let done = change(&mut commits, store);
        match &done {
            Err(error) if store.touched => store.stop(error),
            Err(_) => {}
            Ok(_) => {
                store.log.note_other_changes();
                commits.make_point(store)?;
            }
        }
        done
    }
}

impl Commits {
    /// Goes through at most `blocks` blocks of summary maps, and makes consistency points as often as space wants it.
    /// Says how many blocks are left; those of volumes that cannot be read are.
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
            self.make_point(store)?;
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
