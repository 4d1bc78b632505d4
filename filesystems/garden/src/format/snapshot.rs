//! A record of the snapshot table: 512 bytes, 8 in a block.
//!
//! A snapshot is the tree of a volume at one consistency point; the record holds its root. The
//! summary map of the volume keeps the blocks of the tree in place.

use senesce_fsapi::Timestamp;

use super::{
    Damage, Decoded,
    bytes::{put, u32_at, u64_at},
    inode::{INODE, Inode},
    volume::{MAX_NAME, VolumeRecord},
};

/// Bytes of a record.
pub(crate) const SNAPSHOT: usize = 512;
/// Records in a block.
pub(crate) const PER_BLOCK: u64 = (super::BLOCK / SNAPSHOT) as u64;
/// Snapshots of an aggregate, at most.
pub(crate) const MAX_SNAPSHOTS: u32 = 1 << 16;
const MAGIC: u32 = 0x7061_6e53;
const NAME_AT: usize = 128;
const INODES_AT: usize = 256;
const STRUCTURE: &str = "snapshot record";

/// The aggregate's record of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotRecord {
    /// The place of its volume in the volume table.
    pub volume: u32,
    pub name: Vec<u8>,
    /// The time of the snapshot, as the caller passed it.
    pub created: Timestamp,
    /// The consistency point of the tree.
    pub cp: u64,
    /// VVBNs of the tree.
    pub used: u64,
    /// Inodes in use in the tree.
    pub inodes_used: u64,
    /// Inodes that the volume had made before the snapshot.
    pub births: u64,
    /// The seed for hashes of names.
    pub hash_seed: u64,
    /// VVBNs of the tree that have a count in file 6.
    pub shared: u64,
    /// Pointers to shared VVBNs beyond the first of each.
    pub saved: u64,
    /// The file that holds the inodes of all other files of the tree.
    pub inode_file: Inode,
}

impl SnapshotRecord {
    pub fn encode(&self, out: &mut [u8]) {
        out[..SNAPSHOT].fill(0);
        put(out, 0, &MAGIC.to_le_bytes());
        put(out, 4, &self.volume.to_le_bytes());
        put(out, 8, &(self.name.len() as u32).to_le_bytes());
        put(out, 16, &self.created.seconds.to_le_bytes());
        put(out, 24, &self.created.nanoseconds.to_le_bytes());
        let words = [self.cp, self.used, self.inodes_used, self.births, self.hash_seed, self.shared, self.saved];
        for (index, word) in words.into_iter().enumerate() {
            put(out, 32 + 8 * index, &word.to_le_bytes());
        }
        put(out, NAME_AT, &self.name);
        self.inode_file.encode(&mut out[INODES_AT..INODES_AT + INODE]);
    }

    /// `None` if this place has no snapshot.
    pub fn decode(bytes: &[u8]) -> Decoded<Option<Self>> {
        if bytes[..SNAPSHOT].iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if u32_at(bytes, 0) != MAGIC {
            let found = format!("{:#010x}", u32_at(bytes, 0));
            return Err(Damage::new(STRUCTURE, "magic", found, format!("{MAGIC:#010x}")));
        }
        let len = u32_at(bytes, 8) as usize;
        if len == 0 || len > MAX_NAME {
            return Err(Damage::new(STRUCTURE, "name length", len, format!("1 to {MAX_NAME}")));
        }
        let Some(inode_file) = Inode::decode(&bytes[INODES_AT..INODES_AT + INODE])? else {
            return Err(Damage::new(STRUCTURE, "inode file", "none", "an inode"));
        };
        let word = |index: usize| u64_at(bytes, 32 + 8 * index);
        Ok(Some(Self {
            volume: u32_at(bytes, 4),
            name: bytes[NAME_AT..NAME_AT + len].to_vec(),
            created: Timestamp { seconds: u64_at(bytes, 16) as i64, nanoseconds: u32_at(bytes, 24) },
            cp: word(0),
            used: word(1),
            inodes_used: word(2),
            births: word(3),
            hash_seed: word(4),
            shared: word(5),
            saved: word(6),
            inode_file,
        }))
    }

    /// A record of the volume as it was, for readers of the snapshot's tree.
    pub fn as_volume(&self, now: &VolumeRecord) -> VolumeRecord {
        VolumeRecord {
            name: self.name.clone(),
            blocks: now.blocks,
            inodes: now.inodes,
            used: self.used,
            inodes_used: self.inodes_used,
            births: self.births,
            hash_seed: self.hash_seed,
            shared: self.shared,
            saved: self.saved,
            held: 0,
            reclaim: 0,
            origin: now.origin,
            deleted: false,
            packing: now.packing,
            inode_file: self.inode_file.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use senesce_fsapi::FileKind;

    use super::*;

    #[test]
    fn golden() {
        let record = SnapshotRecord {
            volume: 3,
            name: b"monday".to_vec(),
            created: Timestamp { seconds: -5, nanoseconds: 6 },
            cp: 77,
            used: 300,
            inodes_used: 20,
            births: 21,
            hash_seed: 11,
            shared: 0,
            saved: 0,
            inode_file: Inode::new(FileKind::File),
        };
        let mut bytes = [0xee; SNAPSHOT];
        record.encode(&mut bytes);
        assert_eq!(SnapshotRecord::decode(&bytes).unwrap(), Some(record));
        assert_eq!(crc32c::crc32c(&bytes), 3337440970);
        bytes[8] = 0;
        assert_eq!(SnapshotRecord::decode(&bytes).unwrap_err().field, "name length");
        bytes[0] = 0;
        assert_eq!(SnapshotRecord::decode(&bytes).unwrap_err().field, "magic");
        assert_eq!(SnapshotRecord::decode(&[0; SNAPSHOT]).unwrap(), None);
    }
}
