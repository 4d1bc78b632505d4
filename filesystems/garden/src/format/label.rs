//! Labels: the membership of a drive or of a copy of the log.
//!
//! A drive has its labels in slots 0 and 2, a copy of the log in its first and last block.

use std::fmt;

use super::{
    BLOCK, Block, Damage, Decoded, OLD_VERSION, VERSION,
    bytes::{array, put, u16_at, u32_at, u64_at},
};

const DRIVE_MAGIC: &[u8; 8] = b"SNSCdriv";
const LOG_MAGIC: &[u8; 8] = b"SNSClog\0";
const HALF_AT: usize = 48;
const GROUPS_AT: usize = 64;
const GROUP_BYTES: usize = 16;
/// The offset in a label of the log.
const GENERATION_AT: usize = BLOCK - 16;
/// Copies of the log, at most.
pub(crate) const MAX_COPIES: usize = 2;
/// RAID groups of an aggregate, at most.
pub(crate) const MAX_GROUPS: usize = 64;
/// The smallest half of a log, in bytes: the largest operation fits into it twice.
pub(crate) const MIN_HALF_BYTES: u64 = 192 << 10;
/// The largest half of a log, in bytes: both halves are read into memory whole.
const MAX_HALF_BYTES: u64 = 1 << 36;

/// The medium of the drives of a RAID group, as given when the aggregate was made. It is not
/// measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// Disks: a request is expensive, the bytes that follow are cheap.
    #[default]
    Hdd = 1,
    /// Flash.
    Ssd = 2,
}

impl Medium {
    /// Both media.
    pub const ALL: [Self; 2] = [Self::Hdd, Self::Ssd];

    fn decode(byte: u8) -> Decoded<Self> {
        let found = Self::ALL.into_iter().find(|medium| *medium as u8 == byte);
        found.ok_or_else(|| Damage::new("drive label", "medium", byte, "1 (hdd) or 2 (ssd)"))
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hdd => "hdd",
            Self::Ssd => "ssd",
        })
    }
}

/// A RAID group: drives of equal size and medium. Each stripe has one block on every drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Drives that hold data.
    pub data_drives: u16,
    /// Whether another drive holds parity. A group without it does not survive the loss of a drive.
    pub parity: bool,
    /// The medium of the drives.
    pub medium: Medium,
    /// Stripes of an allocation area; the last one may have fewer.
    pub area_stripes: u32,
    /// Blocks of each drive.
    pub stripes: u64,
}

impl Group {
    /// Number of drives, including parity.
    pub fn drives(&self) -> usize {
        usize::from(self.data_drives) + usize::from(self.parity)
    }

    /// Blocks of data, without parity.
    pub fn blocks(&self) -> u64 {
        u64::from(self.data_drives) * self.stripes
    }
}

/// The shape of the log, as all labels of an aggregate record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogShape {
    /// Bytes of a half. 0 in version 7, where only the label of the log has it.
    pub half_bytes: u64,
    /// Number of copies.
    pub copies: u8,
    /// Whether all copies are on one device.
    pub is_shared: bool,
}

impl LogShape {
    /// The log of version 7.
    pub const OLD: Self = Self { half_bytes: 0, copies: 1, is_shared: false };

    /// Bytes of a copy: a label, two halves, the label again.
    pub fn copy_bytes(&self) -> u64 {
        2 * (BLOCK as u64 + self.half_bytes)
    }

    fn encode(self, out: &mut Block) {
        put(&mut out[..], HALF_AT, &self.half_bytes.to_le_bytes());
        out[HALF_AT + 8] = self.copies;
        out[HALF_AT + 9] = u8::from(self.is_shared);
    }

    fn decode(structure: &'static str, block: &Block) -> Decoded<Self> {
        let shape =
            Self { half_bytes: u64_at(block, HALF_AT), copies: block[HALF_AT + 8], is_shared: block[HALF_AT + 9] != 0 };
        if !(1..=MAX_COPIES).contains(&shape.copies.into()) {
            return Err(Damage::new(structure, "copies of the log", shape.copies, "1 or 2"));
        }
        if !(MIN_HALF_BYTES..=MAX_HALF_BYTES).contains(&shape.half_bytes)
            || !shape.half_bytes.is_multiple_of(BLOCK as u64)
        {
            let wanted = format!("a multiple of {BLOCK}, {MIN_HALF_BYTES} to {MAX_HALF_BYTES}");
            return Err(Damage::new(structure, "bytes of a half", shape.half_bytes, wanted));
        }
        Ok(shape)
    }
}

/// The fields that all labels of an aggregate share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aggregate {
    /// The version of the format.
    pub version: u32,
    pub uuid: [u8; 16],
    pub tetris_stripes: u32,
    pub groups: Vec<Group>,
    pub log: LogShape,
}

impl Aggregate {
    fn encode(&self, magic: &[u8; 8]) -> Box<Block> {
        let mut out = super::zero_block();
        put(&mut out[..], 0, magic);
        put(&mut out[..], 8, &self.version.to_le_bytes());
        put(&mut out[..], 16, &self.uuid);
        put(&mut out[..], 36, &self.tetris_stripes.to_le_bytes());
        put(&mut out[..], 40, &(self.groups.len() as u32).to_le_bytes());
        if self.version > OLD_VERSION {
            self.log.encode(&mut out);
        }
        for (index, group) in self.groups.iter().enumerate() {
            let at = GROUPS_AT + index * GROUP_BYTES;
            put(&mut out[..], at, &group.data_drives.to_le_bytes());
            out[at + 2] = u8::from(group.parity);
            out[at + 3] = group.medium as u8;
            put(&mut out[..], at + 4, &group.area_stripes.to_le_bytes());
            put(&mut out[..], at + 8, &group.stripes.to_le_bytes());
        }
        out
    }

    fn decode(structure: &'static str, block: &Block, magic: &[u8; 8]) -> Decoded<Self> {
        let version = check_head(structure, block, magic)?;
        let count = u32_at(block, 40) as usize;
        if count == 0 || count > MAX_GROUPS {
            return Err(Damage::new(structure, "groups", count, "1 to 64"));
        }
        let group = |index| {
            let at = GROUPS_AT + index * GROUP_BYTES;
            Ok(Group {
                data_drives: u16_at(block, at),
                parity: block[at + 2] != 0,
                medium: Medium::decode(block[at + 3])?,
                area_stripes: u32_at(block, at + 4),
                stripes: u64_at(block, at + 8),
            })
        };
        Ok(Self {
            version,
            uuid: array(block, 16),
            tetris_stripes: u32_at(block, 36),
            groups: (0..count).map(group).collect::<Decoded<_>>()?,
            log: if version == OLD_VERSION { LogShape::OLD } else { LogShape::decode(structure, block)? },
        })
    }
}

/// The label of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DriveLabel {
    pub aggregate: Aggregate,
    /// The number among all drives. The parity drive is the last one of its group.
    pub drive: u32,
}

impl DriveLabel {
    pub fn encode(&self) -> Box<Block> {
        let mut out = self.aggregate.encode(DRIVE_MAGIC);
        put(&mut out[..], 12, &self.drive.to_le_bytes());
        out
    }

    pub fn decode(block: &Block) -> Decoded<Self> {
        Ok(Self { aggregate: Aggregate::decode("drive label", block, DRIVE_MAGIC)?, drive: u32_at(block, 12) })
    }
}

/// The label of a copy of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLabel {
    pub aggregate: Aggregate,
    /// The number of the copy.
    pub copy: u32,
    /// The number of the superblock that was durable before the copy was filled; 0 if the copy was
    /// made with the aggregate. No other device of the same copy has this generation.
    pub generation: u64,
}

impl LogLabel {
    /// Offset of the second label of a copy, according to the first one. The checksum of the first
    /// label need not match.
    pub fn other(first: &Block) -> Option<u64> {
        let half_bytes = u64_at(first, HALF_AT);
        let is_log = first[..8] == LOG_MAGIC[..] && half_bytes <= MAX_HALF_BYTES;
        is_log.then(|| LogShape { half_bytes, ..LogShape::OLD }.copy_bytes() - BLOCK as u64)
    }

    pub fn encode(&self) -> Box<Block> {
        let mut out = self.aggregate.encode(LOG_MAGIC);
        put(&mut out[..], 12, &self.copy.to_le_bytes());
        put(&mut out[..], GENERATION_AT, &self.generation.to_le_bytes());
        let sum = crc32c::crc32c(&out[..BLOCK - 4]);
        put(&mut out[..], BLOCK - 4, &sum.to_le_bytes());
        out
    }

    pub fn decode(block: &Block) -> Decoded<Self> {
        if check_head("log label", block, LOG_MAGIC)? == OLD_VERSION {
            return Err(Damage::new("log label", "version", OLD_VERSION, VERSION));
        }
        check_log_sum(block)?;
        let aggregate = Aggregate::decode("log label", block, LOG_MAGIC)?;
        let copy = u32_at(block, 12);
        if copy >= aggregate.log.copies.into() {
            return Err(Damage::new("log label", "copy", copy, format!("less than {}", aggregate.log.copies)));
        }
        Ok(Self { aggregate, copy, generation: u64_at(block, GENERATION_AT) })
    }
}

/// The label of a log of version 7, which has only this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldLogLabel {
    pub uuid: [u8; 16],
    pub half_bytes: u64,
}

impl OldLogLabel {
    pub fn encode(&self) -> Box<Block> {
        let mut out = super::zero_block();
        put(&mut out[..], 0, LOG_MAGIC);
        put(&mut out[..], 8, &OLD_VERSION.to_le_bytes());
        put(&mut out[..], 16, &self.uuid);
        put(&mut out[..], 32, &self.half_bytes.to_le_bytes());
        let sum = crc32c::crc32c(&out[..BLOCK - 4]);
        put(&mut out[..], BLOCK - 4, &sum.to_le_bytes());
        out
    }

    pub fn decode(block: &Block) -> Decoded<Self> {
        let version = check_head("log label", block, LOG_MAGIC)?;
        if version != OLD_VERSION {
            return Err(Damage::new("log label", "version", version, OLD_VERSION));
        }
        check_log_sum(block)?;
        let half_bytes = u64_at(block, 32);
        if half_bytes < MIN_HALF_BYTES || !half_bytes.is_multiple_of(BLOCK as u64) {
            let wanted = format!("a multiple of {BLOCK}, {MIN_HALF_BYTES} at least");
            return Err(Damage::new("log label", "bytes of a half", half_bytes, wanted));
        }
        Ok(Self { uuid: array(block, 16), half_bytes })
    }
}

fn check_log_sum(block: &Block) -> Decoded<()> {
    let (found, sum) = (u32_at(block, BLOCK - 4), crc32c::crc32c(&block[..BLOCK - 4]));
    if found != sum {
        return Err(Damage::new("log label", "checksum", format!("{found:#010x}"), format!("{sum:#010x}")));
    }
    Ok(())
}

/// Checks the magic and returns the version.
fn check_head(structure: &'static str, block: &Block, magic: &[u8; 8]) -> Decoded<u32> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if block[..8] != magic[..] {
        return Err(Damage::new(structure, "magic", text(&block[..8]), text(magic)));
    }
    let version = u32_at(block, 8);
    if !(OLD_VERSION..=VERSION).contains(&version) {
        return Err(Damage::new(structure, "version", version, format!("{OLD_VERSION} or {VERSION}")));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aggregate(version: u32) -> Aggregate {
        let groups = vec![
            Group { data_drives: 4, parity: true, medium: Medium::Ssd, area_stripes: 64, stripes: 256 },
            Group { data_drives: 1, parity: false, medium: Medium::Hdd, area_stripes: 0x0506, stripes: 0x0102_0304 },
        ];
        let log = match version {
            OLD_VERSION => LogShape::OLD,
            _ => LogShape { half_bytes: 1 << 20, copies: 2, is_shared: true },
        };
        Aggregate { version, uuid: [7; 16], tetris_stripes: 16, groups, log }
    }

    #[test]
    fn labels_are_decoded_and_keep_their_bytes() {
        for (version, sum) in [(OLD_VERSION, 2353707355), (VERSION, 2708303935)] {
            let label = DriveLabel { aggregate: aggregate(version), drive: 3 };
            let mut block = label.encode();
            assert_eq!(DriveLabel::decode(&block).unwrap(), label);
            assert_eq!(crc32c::crc32c(&block[..]), sum);
            block[67] = 0;
            assert_eq!(DriveLabel::decode(&block).unwrap_err().field, "medium");
        }
        let log = OldLogLabel { uuid: [8; 16], half_bytes: 1 << 20 };
        let mut block = log.encode();
        assert_eq!(OldLogLabel::decode(&block).unwrap(), log);
        assert_eq!(crc32c::crc32c(&block[..BLOCK - 4]), 1087721946);
        block[40] = 1;
        assert_eq!(OldLogLabel::decode(&block).unwrap_err().field, "checksum");
        block[8] = 9;
        assert_eq!(OldLogLabel::decode(&block).unwrap_err().field, "version");
        assert_eq!(DriveLabel::decode(&block).unwrap_err().field, "magic");
        let log = LogLabel { aggregate: aggregate(VERSION), copy: 1, generation: 5 };
        let block = log.encode();
        assert_eq!(LogLabel::decode(&block).unwrap(), log);
        assert_eq!(crc32c::crc32c(&block[..BLOCK - 4]), 3597960375);
    }

    #[test]
    fn forged_log_shapes_are_refused() {
        let bad = [(48, 1, "bytes of a half"), (55, 0x80, "bytes of a half"), (56, 3, "copies of the log")];
        for (at, value, field) in bad {
            let mut block = DriveLabel { aggregate: aggregate(VERSION), drive: 3 }.encode();
            block[at] = value;
            assert_eq!(DriveLabel::decode(&block).unwrap_err().field, field);
        }
        let bytes = LogLabel { aggregate: aggregate(VERSION), copy: 2, generation: 0 }.encode();
        assert_eq!(LogLabel::decode(&bytes).unwrap_err().field, "copy");
    }
}
