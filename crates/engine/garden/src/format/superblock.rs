//! The superblock: the one block from which all is reached. Two slots on every drive, written in turn.

use super::{
    Block, Damage, Decoded, VERSION,
    bytes::{array, put, u32_at, u64_at},
    inode::{INODE, Inode},
};

const MAGIC: &[u8; 8] = b"SNSCsupr";
const ROOT_AT: usize = 128;
/// How many volumes there can be.
pub(crate) const MAX_VOLUMES: u32 = 4096;
const MISSING_AT: usize = 512;
/// Drives that can be missing: one of each group.
const MAX_MISSING: usize = super::label::MAX_GROUPS;

/// A consistency point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub uuid: [u8; 16],
    /// The number of the consistency point; the highest valid one is the aggregate.
    pub cp: u64,
    /// The last record of the log that it includes.
    pub applied: u64,
    /// Blocks that are free.
    pub free: u64,
    /// Places in the volume table, in use or not.
    pub volumes: u32,
    /// The file that holds the inodes of all other files of the aggregate.
    pub root: Inode,
    /// Drives that were not there: what they hold is too old to be believed.
    pub missing: Vec<u32>,
}

impl Superblock {
    pub fn encode(&self) -> Box<Block> {
        let mut out = super::zero_block();
        put(&mut out[..], 0, MAGIC);
        put(&mut out[..], 8, &VERSION.to_le_bytes());
        put(&mut out[..], 12, &self.volumes.to_le_bytes());
        put(&mut out[..], 16, &self.uuid);
        put(&mut out[..], 32, &self.cp.to_le_bytes());
        put(&mut out[..], 40, &self.applied.to_le_bytes());
        put(&mut out[..], 48, &self.free.to_le_bytes());
        self.root.encode(&mut out[ROOT_AT..ROOT_AT + INODE]);
        put(&mut out[..], MISSING_AT, &(self.missing.len() as u32).to_le_bytes());
        for (index, drive) in self.missing.iter().enumerate() {
            put(&mut out[..], MISSING_AT + 4 + 4 * index, &drive.to_le_bytes());
        }
        out
    }

    pub fn decode(block: &Block) -> Decoded<Self> {
        let damage = |field, found: String, expected: String| Err(Damage::new("superblock", field, found, expected));
        if block[..8] != MAGIC[..] {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            return damage("magic", text(&block[..8]), text(MAGIC));
        }
        if u32_at(block, 8) != VERSION {
            return damage("version", u32_at(block, 8).to_string(), VERSION.to_string());
        }
        let Some(root) = Inode::decode(&block[ROOT_AT..ROOT_AT + INODE])? else {
            return damage("root inode", "none".to_owned(), "an inode".to_owned());
        };
        let volumes = u32_at(block, 12);
        if volumes > MAX_VOLUMES {
            return damage("volumes", volumes.to_string(), format!("at most {MAX_VOLUMES}"));
        }
        let missing = u32_at(block, MISSING_AT) as usize;
        if missing > MAX_MISSING {
            return damage("missing drives", missing.to_string(), format!("at most {MAX_MISSING}"));
        }
        Ok(Self {
            uuid: array(block, 16),
            cp: u64_at(block, 32),
            applied: u64_at(block, 40),
            free: u64_at(block, 48),
            volumes,
            root,
            missing: (0..missing).map(|index| u32_at(block, MISSING_AT + 4 + 4 * index)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use senesce_fsapi::FileKind;

    use super::*;

    #[test]
    fn golden() {
        let root = Inode { size: 4096, height: 1, ..Inode::new(FileKind::File) };
        let block = Superblock { uuid: [9; 16], cp: 5, applied: 77, free: 1000, volumes: 3, root, missing: vec![2] };
        let bytes = block.encode();
        assert_eq!(Superblock::decode(&bytes).unwrap(), block);
        assert_eq!(crc32c::crc32c(&bytes[..]), 4093892545);
        assert_eq!(Superblock::decode(&super::super::zero_block()).unwrap_err().field, "magic");
    }
}
