//! The superblock: the root of everything in the aggregate. Every drive has two slots for it,
//! written in turn.

use super::{
    Block, Damage, Decoded, OLD_VERSION, VERSION,
    bytes::{array, put, u32_at, u64_at},
    inode::{INODE, Inode},
    label::MAX_COPIES,
};

const MAGIC: &[u8; 8] = b"SNSCsupr";
const ROOT_AT: usize = 128;
/// Volumes of an aggregate, at most.
pub(crate) const MAX_VOLUMES: u32 = 4096;
const PREVIOUS_AT: usize = 56;
const POINT_AT: usize = 64;
const NEXT_OBJECT_AT: usize = 72;
const COLD_AT: usize = 80;
const WITHOUT_LOGS_AT: usize = 88;
const CLOSED_AT: usize = 92;
const GENERATIONS_AT: usize = 96;
const MISSING_AT: usize = 512;
const FILLING_AT: usize = 1024;
const FILLING_BYTES: usize = 16;
/// Drives that can be missing or be filled, at most: one of each group.
const MAX_MISSING: usize = super::label::MAX_GROUPS;

/// The state of the copies of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogState {
    /// A bit for each copy that does not hold all acknowledged operations.
    pub without: u32,
    /// For each copy, the generation in the label of the device that holds it.
    pub generations: [u64; MAX_COPIES],
}

/// A consistency point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The version of the format.
    pub version: u32,
    pub uuid: [u8; 16],
    /// The number of the superblock. The valid superblock with the highest number is the state of
    /// the aggregate.
    pub cp: u64,
    /// The consistency point that wrote what the superblock names. It is earlier than `cp` if only
    /// drives or copies of the log have changed since.
    pub point: u64,
    /// The number of the previous superblock. A drive that has neither is too old to be used.
    pub previous: u64,
    /// The last record of the log that the superblock includes.
    pub applied: u64,
    /// Free blocks.
    pub free: u64,
    /// The number of the first object that an opening puts. Lower numbers may have been used, and
    /// no number is used twice.
    pub next_object: u64,
    /// Blocks in objects.
    pub cold: u64,
    /// Places in the volume table, in use or not.
    pub volumes: u32,
    /// The file that holds the inodes of all other files of the aggregate.
    pub root: Inode,
    /// Missing drives: their contents are too old to be used.
    pub missing: Vec<u32>,
    /// Drives that are being filled, and the number of stripes that each one holds already.
    pub filling: Vec<(u32, u64)>,
    /// Which copies of the log hold all acknowledged operations.
    pub logs: LogState,
    /// Whether the log holds nothing beyond this superblock. Before the log gets a record, a
    /// superblock clears this.
    pub closed: bool,
}

impl Superblock {
    pub fn encode(&self) -> Box<Block> {
        let mut out = super::zero_block();
        put(&mut out[..], 0, MAGIC);
        put(&mut out[..], 8, &self.version.to_le_bytes());
        put(&mut out[..], 12, &self.volumes.to_le_bytes());
        put(&mut out[..], 16, &self.uuid);
        put(&mut out[..], 32, &self.cp.to_le_bytes());
        put(&mut out[..], 40, &self.applied.to_le_bytes());
        put(&mut out[..], 48, &self.free.to_le_bytes());
        put(&mut out[..], POINT_AT, &self.point.to_le_bytes());
        put(&mut out[..], PREVIOUS_AT, &self.previous.to_le_bytes());
        put(&mut out[..], NEXT_OBJECT_AT, &self.next_object.to_le_bytes());
        put(&mut out[..], COLD_AT, &self.cold.to_le_bytes());
        if self.version > OLD_VERSION {
            put(&mut out[..], WITHOUT_LOGS_AT, &self.logs.without.to_le_bytes());
            out[CLOSED_AT] = u8::from(self.closed);
            for (copy, generation) in self.logs.generations.iter().enumerate() {
                put(&mut out[..], GENERATIONS_AT + 8 * copy, &generation.to_le_bytes());
            }
        }
        self.root.encode(&mut out[ROOT_AT..ROOT_AT + INODE]);
        put(&mut out[..], MISSING_AT, &(self.missing.len() as u32).to_le_bytes());
        for (index, drive) in self.missing.iter().enumerate() {
            put(&mut out[..], MISSING_AT + 4 + 4 * index, &drive.to_le_bytes());
        }
        put(&mut out[..], FILLING_AT, &(self.filling.len() as u32).to_le_bytes());
        for (index, (drive, done)) in self.filling.iter().enumerate() {
            let at = FILLING_AT + FILLING_BYTES * (index + 1);
            put(&mut out[..], at, &drive.to_le_bytes());
            put(&mut out[..], at + 8, &done.to_le_bytes());
        }
        out
    }

    pub fn decode(block: &Block) -> Decoded<Self> {
        let damage = |field, found: String, expected: String| Err(Damage::new("superblock", field, found, expected));
        if block[..8] != MAGIC[..] {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            return damage("magic", text(&block[..8]), text(MAGIC));
        }
        let version = u32_at(block, 8);
        if !(OLD_VERSION..=VERSION).contains(&version) {
            return damage("version", version.to_string(), format!("{OLD_VERSION} or {VERSION}"));
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
        let filling = u32_at(block, FILLING_AT) as usize;
        if filling > MAX_MISSING {
            return damage("drives being filled", filling.to_string(), format!("at most {MAX_MISSING}"));
        }
        let filled = |index| {
            let at = FILLING_AT + FILLING_BYTES * (index + 1);
            (u32_at(block, at), u64_at(block, at + 8))
        };
        let is_old = version == OLD_VERSION;
        let logs = LogState {
            without: u32_at(block, WITHOUT_LOGS_AT),
            generations: [0, 1].map(|copy| u64_at(block, GENERATIONS_AT + 8 * copy)),
        };
        Ok(Self {
            version,
            uuid: array(block, 16),
            cp: u64_at(block, 32),
            point: u64_at(block, POINT_AT),
            previous: u64_at(block, PREVIOUS_AT),
            applied: u64_at(block, 40),
            free: u64_at(block, 48),
            next_object: u64_at(block, NEXT_OBJECT_AT),
            cold: u64_at(block, COLD_AT),
            volumes,
            root,
            missing: (0..missing).map(|index| u32_at(block, MISSING_AT + 4 + 4 * index)).collect(),
            filling: (0..filling).map(filled).collect(),
            logs: if is_old { LogState::default() } else { logs },
            closed: !is_old && block[CLOSED_AT] == 1,
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
        let block = Superblock {
            version: OLD_VERSION,
            uuid: [9; 16],
            cp: 5,
            point: 5,
            previous: 4,
            applied: 77,
            free: 1000,
            next_object: 5,
            cold: 300,
            volumes: 3,
            root,
            missing: vec![2],
            filling: vec![(7, 300)],
            logs: LogState::default(),
            closed: false,
        };
        let bytes = block.encode();
        assert_eq!(Superblock::decode(&bytes).unwrap(), block);
        assert_eq!(crc32c::crc32c(&bytes[..]), 11972760);
        let logs = LogState { without: 2, generations: [0, 5] };
        let block = Superblock { version: VERSION, logs, closed: true, ..block };
        let bytes = block.encode();
        assert_eq!(Superblock::decode(&bytes).unwrap(), block);
        assert_eq!(crc32c::crc32c(&bytes[..]), 2230762331);
        assert_eq!(Superblock::decode(&super::super::zero_block()).unwrap_err().field, "magic");
    }
}
