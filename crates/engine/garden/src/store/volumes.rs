//! Volumes in memory, and the volume table.

use std::collections::{HashMap, HashSet};

use senesce_fsapi::{FileKind, Ino};

use super::{AGGREGATE, Key, Store, aggregate, container_of, shape_of, volume};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Damage,
        inode::{INODE, Inode},
        pointer::VVBN_END,
        volume::{MAX_NAME, PER_BLOCK, VOLUME, VolumeRecord},
    },
};

/// The least size of a volume, in blocks.
pub(crate) const MIN_BLOCKS: u64 = 256;

/// A volume.
#[derive(Debug)]
pub(crate) struct Volume {
    pub record: VolumeRecord,
    pub record_dirty: bool,
    /// Dirty blocks of its files.
    pub dirty: u64,
    /// VVBNs of blocks that operations freed; the next consistency point takes them out of the maps.
    pub freed: Vec<u64>,
    /// VVBNs that became free in the running consistency point.
    pub pending: HashSet<u64>,
    /// Where the search for a free VVBN goes on.
    pub cursor: u64,
    /// No inode below this is free.
    pub ino_hint: u64,
    /// How often inodes are held open.
    pub held: HashMap<u64, u64>,
    /// Inodes without a name, in the order of the file of orphans.
    pub orphans: Vec<u64>,
}

impl Volume {
    fn new(record: VolumeRecord) -> Self {
        Self {
            record,
            record_dirty: false,
            dirty: 0,
            freed: Vec::new(),
            pending: HashSet::new(),
            cursor: 0,
            ino_hint: volume::FIRST_USER,
            held: HashMap::new(),
            orphans: Vec::new(),
        }
    }
}

impl Store {
    /// Reads all records of the volume table.
    pub(super) fn load_volumes(&mut self) -> Result<()> {
        for space in 0..self.sb.volumes {
            let (key, at) = record_place(space);
            let found = VolumeRecord::decode(&self.get(key)?[at..at + VOLUME]);
            let record = found.map_err(|damage| Error::damaged(format!("volume {space}"), damage))?;
            self.volumes.push(record.map(Volume::new));
        }
        for space in self.spaces() {
            let size = self.inode(space, volume::ORPHANS)?.size;
            let most = self.volume(space)?.record.inodes.saturating_mul(8);
            if size > most {
                let damage = Damage::new("orphans", "size", size, format!("at most {most}"));
                return Err(Error::damaged(format!("volume {space}"), damage));
            }
            let mut bytes = vec![0; size as usize];
            self.read_file(space, volume::ORPHANS, 0, &mut bytes)?;
            let orphans = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            self.volume_mut(space)?.orphans = orphans;
        }
        Ok(())
    }

    /// All volumes.
    pub fn spaces(&self) -> Vec<u32> {
        (0..).zip(&self.volumes).filter(|(_, volume)| volume.is_some()).map(|(space, _)| space).collect()
    }

    pub fn find_volume(&self, name: &[u8]) -> Option<u32> {
        let found = |space: &u32| self.volume(*space).is_ok_and(|volume| volume.record.name == name);
        self.spaces().into_iter().find(found)
    }

    /// Writes a volume's record into the table.
    pub(super) fn save_record(&mut self, space: u32) -> Result<()> {
        let (key, at) = record_place(space);
        let record = self.volume(space)?.record.clone();
        record.encode(&mut self.modify(key)?[at..at + VOLUME]);
        self.volume_mut(space)?.record_dirty = false;
        Ok(())
    }

    /// Makes an empty volume with a root directory; durable with the next consistency point.
    ///
    /// Errors: a name that is taken, empty or too long, a size out of bounds, no place in the table.
    pub fn create_volume(&mut self, name: &[u8], blocks: u64, inodes: u64, hash_seed: u64) -> Result<u32> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::invalid(format!("a volume's name of {} bytes; 1 to {MAX_NAME}", name.len())));
        }
        if self.find_volume(name).is_some() {
            return Err(Error::invalid(format!("a volume {} exists", String::from_utf8_lossy(name))));
        }
        if !(MIN_BLOCKS..VVBN_END).contains(&blocks) || !(64..1 << 40).contains(&inodes) {
            return Err(Error::invalid(format!(
                "a volume of {blocks} blocks and {inodes} inodes; {MIN_BLOCKS} to 2^40 blocks, 64 to 2^40 inodes"
            )));
        }
        let space = self.volumes.iter().position(Option::is_none).unwrap_or(self.volumes.len()) as u32;
        if space >= aggregate::MAX_VOLUMES {
            return Err(Error::invalid(format!("{space} volumes are the most there can be")));
        }
        self.reserve(None, 64, false)?;
        let inode_file = fixed_file(space, inodes * INODE as u64);
        let record = VolumeRecord {
            name: name.to_vec(),
            blocks,
            inodes,
            used: 0,
            inodes_used: 0,
            births: 0,
            hash_seed,
            inode_file,
        };
        if space as usize == self.volumes.len() {
            self.volumes.push(None);
        }
        self.volumes[space as usize] = Some(Volume::new(record));
        self.sb.volumes = self.volumes.len() as u32;
        self.put_inode(AGGREGATE, container_of(space), &fixed_file(AGGREGATE, blocks * BLOCK as u64))?;
        for (file, bytes) in
            [(volume::ACTIVE_MAP, blocks.div_ceil(8)), (volume::INODE_MAP, inodes.div_ceil(8)), (volume::ORPHANS, 0)]
        {
            self.put_inode(space, file, &fixed_file(space, bytes))?;
        }
        for file in [Ino::ROOT.0, volume::ACTIVE_MAP, volume::INODE_MAP, volume::ORPHANS] {
            self.set_inode_used(space, file, true)?;
        }
        let root = Inode { permissions: 0o755, links: 2, parent: volume::ROOT, ..Inode::new(FileKind::Directory) };
        self.put_inode(space, volume::ROOT, &root)?;
        self.save_record(space)?;
        self.volume_mut(space)?.record_dirty = true;
        Ok(space)
    }
}

/// A file whose tree is as high from the beginning as its size wants it.
pub(super) fn fixed_file(space: u32, bytes: u64) -> Inode {
    let height = shape_of(space).height(bytes.div_ceil(BLOCK as u64));
    Inode { links: 1, size: bytes, height, ..Inode::new(FileKind::File) }
}

fn record_place(space: u32) -> (Key, usize) {
    let (block, within) = (u64::from(space) / PER_BLOCK, u64::from(space) % PER_BLOCK);
    (Key::new(AGGREGATE, aggregate::VOLUMES, 0, block), within as usize * VOLUME)
}
