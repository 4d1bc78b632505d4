//! A record of the volume table: 512 bytes, 8 in a block.

use super::{
    Damage, Decoded,
    bytes::{put, u32_at, u64_at},
    inode::{INODE, Inode},
    pointer::{MAX_GROUP, VVBN_END},
    superblock::MAX_VOLUMES,
};

/// Bytes of a record.
pub(crate) const VOLUME: usize = 512;
/// Records in a block.
pub(crate) const PER_BLOCK: u64 = (super::BLOCK / VOLUME) as u64;
/// The longest name, in bytes.
pub(crate) const MAX_NAME: usize = 128;
const MAGIC: u32 = 0x6c6f_7647;
const NAME_AT: usize = 64;
const INODES_AT: usize = 192;
const HELD_AT: usize = 448;
const RECLAIM_AT: usize = 456;
const ORIGIN_AT: usize = 464;
const SHARED_AT: usize = 472;
const ORIGIN_BLOCKS_AT: usize = 488;
const DELETED_AT: usize = 504;
const PACKING_AT: usize = 508;

/// How the volume reduces the size of file contents that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packing {
    /// Blocks that are compressed together; 0 disables compression.
    pub group_blocks: u8,
    /// Whether partial blocks share a block (compaction).
    pub compaction: bool,
    /// Whether compression or compaction was ever enabled, so that packed blocks may exist.
    pub was_on: bool,
}

/// The origin of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The volume that the clone was made from, as a place in the volume table.
    pub volume: u32,
    /// The snapshot that the clone started as, as a place in the snapshot table. It cannot be
    /// deleted before the clone.
    pub snapshot: u32,
    /// VVBNs below this are in the container of the origin. The clone never allocates one of them.
    pub blocks: u64,
    /// VVBNs of the origin that neither the clone nor a snapshot of it uses.
    pub gone: u64,
}

/// The aggregate's record of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeRecord {
    pub name: Vec<u8>,
    /// VVBNs are below this.
    pub blocks: u64,
    /// Inode numbers are below this.
    pub inodes: u64,
    /// VVBNs in use.
    pub used: u64,
    /// Inodes in use.
    pub inodes_used: u64,
    /// Inodes made so far: the generation of the next one.
    pub births: u64,
    /// The seed for hashes of names.
    pub hash_seed: u64,
    /// VVBNs that only snapshots use.
    pub held: u64,
    /// Blocks of the summary map, counted from the first, that the engine has still to scan for
    /// VVBNs of a deleted snapshot.
    pub reclaim: u64,
    /// VVBNs with a count in file 6: those that are shared, and those that were and have one
    /// pointer left.
    pub shared: u64,
    /// Pointers to these beyond the first of each. Without sharing, this number of blocks more
    /// would be in use.
    pub saved: u64,
    /// `None` unless the volume is a clone.
    pub origin: Option<Origin>,
    /// Whether the volume was deleted. Its blocks are freed in steps; the first `reclaim - 1` times
    /// 32,768 VVBNs of its container map are still to be freed.
    pub deleted: bool,
    /// How contents of future writes are reduced.
    pub packing: Packing,
    /// The file that holds the inodes of all other files of the volume.
    pub inode_file: Inode,
}

impl VolumeRecord {
    /// The first VVBN that the volume may allocate. Lower ones belong to the origin of a clone.
    pub fn first_own(&self) -> u64 {
        self.origin.map_or(0, |origin| origin.blocks)
    }

    /// VVBNs that may be allocated.
    pub fn free(&self) -> u64 {
        let gone = self.origin.map_or(0, |origin| origin.gone);
        self.blocks.saturating_sub(self.used.saturating_add(self.held).saturating_add(gone))
    }

    pub fn encode(&self, out: &mut [u8]) {
        put(out, 0, &MAGIC.to_le_bytes());
        put(out, 4, &(self.name.len() as u32).to_le_bytes());
        let words = [self.blocks, self.inodes, self.used, self.inodes_used, self.births, self.hash_seed];
        for (index, word) in words.into_iter().enumerate() {
            put(out, 8 + 8 * index, &word.to_le_bytes());
        }
        put(out, HELD_AT, &self.held.to_le_bytes());
        put(out, RECLAIM_AT, &self.reclaim.to_le_bytes());
        out[NAME_AT..INODES_AT].fill(0);
        put(out, NAME_AT, &self.name);
        self.inode_file.encode(&mut out[INODES_AT..INODES_AT + INODE]);
        put(out, SHARED_AT, &self.shared.to_le_bytes());
        put(out, SHARED_AT + 8, &self.saved.to_le_bytes());
        let origin = self.origin.map(|origin| (origin.volume + 1, origin.snapshot, origin.blocks, origin.gone));
        let (volume, snapshot, blocks, gone) = origin.unwrap_or_default();
        put(out, ORIGIN_AT, &volume.to_le_bytes());
        put(out, ORIGIN_AT + 4, &snapshot.to_le_bytes());
        put(out, ORIGIN_BLOCKS_AT, &blocks.to_le_bytes());
        put(out, ORIGIN_BLOCKS_AT + 8, &gone.to_le_bytes());
        put(out, DELETED_AT, &u32::from(self.deleted).to_le_bytes());
        let Packing { group_blocks, compaction, was_on } = self.packing;
        put(out, PACKING_AT, &[group_blocks, compaction.into(), was_on.into(), 0]);
    }

    /// `None` if this place has no volume.
    pub fn decode(bytes: &[u8]) -> Decoded<Option<Self>> {
        if bytes[..VOLUME].iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if u32_at(bytes, 0) != MAGIC {
            let found = format!("{:#010x}", u32_at(bytes, 0));
            return Err(Damage::new("volume record", "magic", found, format!("{MAGIC:#010x}")));
        }
        let len = u32_at(bytes, 4) as usize;
        if len == 0 || len > MAX_NAME {
            return Err(Damage::new("volume record", "name length", len, "1 to 128"));
        }
        let Some(inode_file) = Inode::decode(&bytes[INODES_AT..INODES_AT + INODE])? else {
            return Err(Damage::new("volume record", "inode file", "none", "an inode"));
        };
        let word = |index: usize| u64_at(bytes, 8 + 8 * index);
        for (field, found, most) in [
            ("VVBNs", word(0), VVBN_END),
            ("inodes", word(1), VVBN_END),
            ("VVBNs in use", word(2), word(0)),
            ("inodes in use", word(3), word(1)),
            ("VVBNs held", u64_at(bytes, HELD_AT), word(0) - word(2).min(word(0))),
            ("summary blocks to reclaim", u64_at(bytes, RECLAIM_AT), word(0)),
            ("VVBNs that are shared", u64_at(bytes, SHARED_AT), word(0)),
            ("VVBNs of the origin", u64_at(bytes, ORIGIN_BLOCKS_AT), word(0)),
            ("VVBNs of the origin that are gone", u64_at(bytes, ORIGIN_BLOCKS_AT + 8), u64_at(bytes, ORIGIN_BLOCKS_AT)),
            ("origin", u32_at(bytes, ORIGIN_AT).into(), MAX_VOLUMES.into()),
            ("deleted", u32_at(bytes, DELETED_AT).into(), 1),
            ("blocks of a compression group", bytes[PACKING_AT].into(), MAX_GROUP.into()),
            ("compaction", bytes[PACKING_AT + 1].into(), 1),
            ("packed once", bytes[PACKING_AT + 2].into(), 1),
        ] {
            if found > most {
                return Err(Damage::new("volume record", field, found, format!("at most {most}")));
            }
        }
        let origin = u32_at(bytes, ORIGIN_AT).checked_sub(1).map(|volume| Origin {
            volume,
            snapshot: u32_at(bytes, ORIGIN_AT + 4),
            blocks: u64_at(bytes, ORIGIN_BLOCKS_AT),
            gone: u64_at(bytes, ORIGIN_BLOCKS_AT + 8),
        });
        Ok(Some(Self {
            name: bytes[NAME_AT..NAME_AT + len].to_vec(),
            blocks: word(0),
            inodes: word(1),
            used: word(2),
            inodes_used: word(3),
            births: word(4),
            hash_seed: word(5),
            held: u64_at(bytes, HELD_AT),
            reclaim: u64_at(bytes, RECLAIM_AT),
            shared: u64_at(bytes, SHARED_AT),
            saved: u64_at(bytes, SHARED_AT + 8),
            origin,
            deleted: u32_at(bytes, DELETED_AT) == 1,
            packing: Packing {
                group_blocks: bytes[PACKING_AT],
                compaction: bytes[PACKING_AT + 1] == 1,
                was_on: bytes[PACKING_AT + 2] == 1,
            },
            inode_file,
        }))
    }
}

#[cfg(test)]
mod tests {
    use senesce_fsapi::FileKind;

    use super::*;

    #[test]
    fn golden() {
        let record = VolumeRecord {
            name: b"home".to_vec(),
            blocks: 1 << 20,
            inodes: 1 << 16,
            used: 3,
            inodes_used: 2,
            births: 9,
            hash_seed: 11,
            held: 5,
            reclaim: 1,
            shared: 2,
            saved: 70_000,
            origin: None,
            deleted: false,
            packing: Packing::default(),
            inode_file: Inode::new(FileKind::File),
        };
        let mut bytes = [0; VOLUME];
        assert_eq!(VolumeRecord::decode(&bytes).unwrap(), None);
        record.encode(&mut bytes);
        assert_eq!(VolumeRecord::decode(&bytes).unwrap().as_ref(), Some(&record));
        assert_eq!(crc32c::crc32c(&bytes), 2308364186);
        let origin = Some(Origin { volume: 0, snapshot: 7, blocks: 1 << 19, gone: 12 });
        let packing = Packing { group_blocks: 8, compaction: true, was_on: true };
        let clone = VolumeRecord { origin, deleted: true, packing, ..record };
        clone.encode(&mut bytes);
        assert_eq!(VolumeRecord::decode(&bytes).unwrap(), Some(clone));
        assert_eq!(crc32c::crc32c(&bytes), 485052308);
        bytes[4] = 129;
        assert_eq!(VolumeRecord::decode(&bytes).unwrap_err().field, "name length");
        bytes[0] = 0;
        assert_eq!(VolumeRecord::decode(&bytes).unwrap_err().field, "magic");
    }
}
