//! The inodes that the kernel knows, with the number of replies that named each: they are held open
//! until the kernel forgets them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use senesce_fsapi::{FileSystem, FsResult, Ino, Timestamp};

/// The number of shards, so that threads rarely wait for each other.
const SHARDS: usize = 16;

/// Counts the replies to the kernel that named each inode.
#[derive(Debug, Default)]
pub(crate) struct Holds([Mutex<HashMap<Ino, u64>>; SHARDS]);

impl Holds {
    fn shard(&self, ino: Ino) -> MutexGuard<'_, HashMap<Ino, u64>> {
        let shard = (ino.0 % SHARDS as u64) as usize;
        self.0[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reply that will name an inode. Errors: the inode was removed.
    pub(crate) fn hold(&self, fs: &dyn FileSystem, ino: Ino) -> FsResult<()> {
        let mut shard = self.shard(ino);
        match shard.get_mut(&ino) {
            Some(times) => *times += 1,
            None => {
                // Under the lock, because another thread may forget the inode at the same time.
                fs.open(ino)?;
                shard.insert(ino, 1);
            }
        }
        Ok(())
    }

    /// Subtracts the replies that the kernel forgets.
    pub(crate) fn forget(&self, fs: &dyn FileSystem, ino: Ino, times: u64, now: Timestamp) -> FsResult<()> {
        let mut shard = self.shard(ino);
        let Some(known) = shard.get_mut(&ino) else { return Ok(()) };
        *known = known.saturating_sub(times);
        if *known == 0 {
            shard.remove(&ino);
            fs.release(ino, now)?;
        }
        Ok(())
    }

    /// Releases every inode after the connection closed. Errors: the first one; the other inodes
    /// are released nevertheless.
    pub(crate) fn forget_all(&self, fs: &dyn FileSystem, now: Timestamp) -> FsResult<()> {
        let mut done = Ok(());
        for shard in &self.0 {
            let known = std::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            let mut known: Vec<Ino> = known.into_keys().collect();
            known.sort_unstable();
            for ino in known {
                done = done.and(fs.release(ino, now));
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::Bytes;
    use senesce_fsapi::{Caller, ModelFs, NewNode};

    use super::*;

    #[test]
    fn inodes_live_until_all_replies_are_forgotten() {
        let fs = ModelFs::new(Bytes(1 << 20));
        let (caller, holds) = (Caller::default(), Holds::default());
        let ino = fs.make_node(&caller, Ino::ROOT, b"f", &NewNode::file(0o600)).unwrap().ino;
        holds.hold(&fs, ino).unwrap();
        holds.hold(&fs, ino).unwrap();
        holds.hold(&fs, Ino::ROOT).unwrap();
        fs.unlink(&caller, Ino::ROOT, b"f").unwrap();
        holds.forget(&fs, ino, 1, caller.now).unwrap();
        assert!(fs.attributes(ino).is_ok());
        holds.forget(&fs, ino, 1, caller.now).unwrap();
        assert!(fs.attributes(ino).is_err());
        assert!(holds.hold(&fs, ino).is_err(), "the inode was removed");
        holds.forget(&fs, ino, 7, caller.now).unwrap();
        holds.forget_all(&fs, caller.now).unwrap();
        assert!(fs.release(Ino::ROOT, caller.now).is_err(), "the root is not held");
    }

    #[test]
    fn failed_release_keeps_no_other_inode_held() {
        let fs = ModelFs::new(Bytes(1 << 20));
        let (caller, holds) = (Caller::default(), Holds::default());
        let make = |name: &[u8]| fs.make_node(&caller, Ino::ROOT, name, &NewNode::file(0o600)).unwrap().ino;
        let all: Vec<Ino> = [b"a", b"b", b"c"].iter().map(|name| make(*name)).collect();
        for ino in &all {
            holds.hold(&fs, *ino).unwrap();
            fs.unlink(&caller, Ino::ROOT, [b"a", b"b", b"c"][all.iter().position(|one| one == ino).unwrap()]).unwrap();
        }
        // Released without the table, so its second release fails.
        fs.release(all[0], caller.now).unwrap();
        assert!(holds.forget_all(&fs, caller.now).is_err());
        assert!(all.iter().all(|ino| fs.attributes(*ino).is_err()), "all inodes are removed");
    }
}
