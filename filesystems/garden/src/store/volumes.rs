//! Volumes in memory, and the volume table.

use std::{
    collections::{HashMap, HashSet},
    hash::BuildHasherDefault,
};

use senesce_fsapi::{FileKind, Ino};

use super::{AGGREGATE, Dedup, Key, KeyHasher, Store, aggregate, container_of, reference_counts, shape_of, volume};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Damage,
        inode::{INODE, Inode},
        pointer::VVBN_END,
        volume::{MAX_NAME, PER_BLOCK, Packing, VOLUME, VolumeRecord},
    },
};

/// The least size of a volume, in blocks.
pub(crate) const MIN_BLOCKS: u64 = 256;

/// A volume.
#[derive(Debug)]
pub(crate) struct Volume {
    pub record: VolumeRecord,
    /// Distinguishes it from an earlier volume in the same place, while the aggregate is open.
    pub number: u64,
    pub record_dirty: bool,
    /// Dirty blocks of its files.
    pub dirty: u64,
    /// VVBNs of blocks that operations removed. The next consistency point clears them in the maps.
    pub freed: Vec<u64>,
    /// VVBNs that neither a snapshot nor the volume uses any more. The next consistency point
    /// removes them from the container map.
    pub released: Vec<u64>,
    /// The number of its snapshots.
    pub snapshots: u32,
    /// VVBNs that became free in the running consistency point.
    pub pending: HashSet<u64, BuildHasherDefault<KeyHasher>>,
    /// The position of the search for a free VVBN.
    pub cursor: u64,
    /// No lower inode number is free.
    pub ino_hint: u64,
    /// How often each inode is held open.
    pub held: HashMap<u64, u64>,
    /// Inodes without a name, in the order of the file of orphans.
    pub orphans: Vec<u64>,
    /// The current deduplication pass.
    pub dedup: Option<Box<Dedup>>,
    /// The VVBN at which the current recompaction pass continues.
    pub recompacted: u64,
}

impl Volume {
    pub(super) fn new(record: VolumeRecord) -> Self {
        Self {
            record,
            number: 0,
            record_dirty: false,
            dirty: 0,
            freed: Vec::new(),
            released: Vec::new(),
            snapshots: 0,
            pending: HashSet::default(),
            cursor: 0,
            ino_hint: volume::FIRST_USER,
            held: HashMap::new(),
            orphans: Vec::new(),
            dedup: None,
            recompacted: 0,
        }
    }

    /// Whether snapshots may use VVBNs of the volume.
    pub fn has_summary(&self) -> bool {
        self.snapshots > 0 || self.record.reclaim > 0
    }
}

impl Store {
    /// Loads all records of the volume table.
    pub(super) fn load_volumes(&mut self) -> Result<()> {
        for space in 0..self.sb.volumes {
            let (key, at) = record_place(space);
            let found = VolumeRecord::decode(&self.get(key)?[at..at + VOLUME]);
            let record = found.map_err(|damage| Error::damaged(format!("volume {space}"), damage))?;
            let (deleted, record) =
                record.map_or(
                    (None, None),
                    |record| {
                        if record.deleted { (Some(record), None) } else { (None, Some(record)) }
                    },
                );
            self.deleted.extend(deleted.map(|record| (space, record)));
            self.volumes.push(record.map(Volume::new));
        }
        self.spaces().into_iter().try_for_each(|space| self.load_orphans(space))
    }

    /// Loads the numbers of a volume's inodes without a name.
    pub(super) fn load_orphans(&mut self, space: u32) -> Result<()> {
        let size = self.inode(space, volume::ORPHANS)?.size;
        let most = self.volume(space)?.record.inodes.saturating_mul(8);
        if size > most {
            let damage = Damage::new("orphans", "size", size, format!("at most {most}"));
            return Err(Error::damaged(format!("volume {space}"), damage));
        }
        let mut bytes = vec![0; size as usize];
        self.read_file(space, volume::ORPHANS, 0, &mut bytes)?;
        self.volume_mut(space)?.orphans =
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok(())
    }

    /// All volumes.
    pub fn spaces(&self) -> Vec<u32> {
        (0..).zip(&self.volumes).filter(|(_, volume)| volume.is_some()).map(|(space, _)| space).collect()
    }

    /// The volume with a name. Errors: `Invalid` if there is none.
    pub fn find_volume(&self, name: &[u8]) -> Result<u32> {
        let is_it = |space: &u32| self.volume(*space).is_ok_and(|volume| volume.record.name == name);
        let found = self.spaces().into_iter().find(is_it);
        found.ok_or_else(|| Error::invalid(format!("no volume {}", String::from_utf8_lossy(name))))
    }

    /// Writes a volume's record into the table.
    pub(super) fn save_record(&mut self, space: u32) -> Result<()> {
        let (key, at) = record_place(space);
        let record = self.volume(space)?.record.clone();
        record.encode(&mut self.modify(key)?[at..at + VOLUME]);
        self.volume_mut(space)?.record_dirty = false;
        Ok(())
    }

    /// The first free place in the table. Errors: `Invalid` if none is free.
    pub(super) fn free_place(&self) -> Result<u32> {
        let is_free = |space: &u32| {
            self.volumes.get(*space as usize).is_none_or(Option::is_none) && !self.deleted.contains_key(space)
        };
        let none = || Error::invalid(format!("{} volumes are the most there can be", aggregate::MAX_VOLUMES));
        (0..aggregate::MAX_VOLUMES).find(is_free).ok_or_else(none)
    }

    /// Puts a volume into a free place, if space suffices for `blocks` blocks and for the reserve
    /// for maps with the new volume. Otherwise operations that free blocks could fail.
    pub(super) fn put_volume(&mut self, space: u32, mut volume: Volume, blocks: u64) -> Result<()> {
        // A consistency point follows before another volume can have this place.
        volume.number = self.sb.cp;
        let places = self.volumes.len();
        if space as usize == places {
            self.volumes.push(None);
        }
        self.volumes[space as usize] = Some(volume);
        if let Err(error) = self.reserve(None, blocks, false) {
            self.volumes[space as usize] = None;
            self.volumes.truncate(places);
            return Err(error);
        }
        self.sb.volumes = self.volumes.len() as u32;
        // From here on a failure cannot be reverted.
        self.touched = true;
        Ok(())
    }

    /// Sets how contents are packed from now on. Durable with the next consistency point.
    ///
    /// Errors: `NoSpace` for the reserve for the map of chunks.
    pub fn set_packing(&mut self, space: u32, group_blocks: u8, compaction: bool) -> Result<()> {
        let before = self.volume(space)?.record.packing;
        let was_on = before.was_on || group_blocks > 0 || compaction;
        self.volume_mut(space)?.record.packing = Packing { group_blocks, compaction, was_on };
        if let Err(error) = self.reserve(None, 16, false) {
            self.volume_mut(space)?.record.packing = before;
            return Err(error);
        }
        self.save_record(space)
    }

    /// Makes an empty volume with a root directory. Durable with the next consistency point.
    ///
    /// Errors: a name that is taken, empty or too long; a size out of bounds; no free place in the
    /// table; `NoSpace`.
    pub fn create_volume(&mut self, name: &[u8], blocks: u64, inodes: u64, hash_seed: u64) -> Result<u32> {
        check_name("volume", name)?;
        if self.find_volume(name).is_ok() {
            return Err(Error::invalid(format!("a volume {} exists", String::from_utf8_lossy(name))));
        }
        if !(MIN_BLOCKS..VVBN_END).contains(&blocks) || !(64..1 << 40).contains(&inodes) {
            return Err(Error::invalid(format!(
                "a volume of {blocks} blocks and {inodes} inodes; {MIN_BLOCKS} to 2^40 blocks, 64 to 2^40 inodes"
            )));
        }
        let space = self.free_place()?;
        let inode_file = fixed_file(space, inodes * INODE as u64);
        let record = VolumeRecord {
            name: name.to_vec(),
            blocks,
            inodes,
            used: 0,
            inodes_used: 0,
            births: 0,
            hash_seed,
            held: 0,
            reclaim: 0,
            shared: 0,
            saved: 0,
            origin: None,
            deleted: false,
            packing: Packing::default(),
            inode_file,
        };
        self.put_volume(space, Volume::new(record), 64)?;
        self.put_inode(AGGREGATE, container_of(space), &fixed_file(AGGREGATE, blocks * BLOCK as u64))?;
        for (file, bytes) in [
            (volume::ACTIVE_MAP, blocks.div_ceil(8)),
            (volume::INODE_MAP, inodes.div_ceil(8)),
            (volume::ORPHANS, 0),
            (volume::SUMMARY_MAP, blocks.div_ceil(8)),
            (volume::REFERENCES, blocks * reference_counts::COUNT),
        ] {
            self.put_inode(space, file, &fixed_file(space, bytes))?;
        }
        use volume::{ACTIVE_MAP, INODE_MAP, ORPHANS, REFERENCES, SUMMARY_MAP};
        for file in [Ino::ROOT.0, ACTIVE_MAP, INODE_MAP, ORPHANS, SUMMARY_MAP, REFERENCES] {
            self.set_inode_used(space, file, true)?;
        }
        let root = Inode { permissions: 0o755, links: 2, parent: volume::ROOT, ..Inode::new(FileKind::Directory) };
        self.put_inode(space, volume::ROOT, &root)?;
        self.save_record(space)?;
        self.volume_mut(space)?.record_dirty = true;
        Ok(space)
    }
}

/// Errors: `Invalid` for an empty or too long name; `what` is the kind of the named thing.
pub(super) fn check_name(what: &str, name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(Error::invalid(format!(
            "the name of a {what} has {} bytes; 1 to {MAX_NAME} are possible",
            name.len()
        )));
    }
    Ok(())
}

/// A file whose tree has its final height from the start.
pub(super) fn fixed_file(space: u32, bytes: u64) -> Inode {
    let height = shape_of(space).height(bytes.div_ceil(BLOCK as u64));
    Inode { links: 1, size: bytes, height, ..Inode::new(FileKind::File) }
}

pub(super) fn record_place(space: u32) -> (Key, usize) {
    let (block, within) = (u64::from(space) / PER_BLOCK, u64::from(space) % PER_BLOCK);
    (Key::new(AGGREGATE, aggregate::VOLUMES, 0, block), within as usize * VOLUME)
}
