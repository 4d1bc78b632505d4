//! Labels: what a drive or log device is part of. On a drive, slot 0; on the log device, its first block.

use std::fmt;

use super::{
    BLOCK, Block, Damage, Decoded, VERSION,
    bytes::{array, put, u16_at, u32_at, u64_at},
};

const DRIVE_MAGIC: &[u8; 8] = b"SNSCdriv";
const LOG_MAGIC: &[u8; 8] = b"SNSClog\0";
const GROUPS_AT: usize = 64;
const GROUP_BYTES: usize = 16;
/// RAID groups of an aggregate.
pub(crate) const MAX_GROUPS: usize = 64;

/// What the drives of a RAID group are, as whoever makes an aggregate says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// Disks: dear where they are, cheap what follows.
    #[default]
    Hdd = 1,
    /// Flash.
    Ssd = 2,
}

impl Medium {
    /// Both of them.
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

/// A RAID group: drives of equal size and medium, as many blocks deep as it has stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Drives that hold data.
    pub data_drives: u16,
    /// Whether one more drive holds their parity; else the group is unprotected.
    pub parity: bool,
    /// What its drives are.
    pub medium: Medium,
    /// Stripes of an allocation area; the last one may have fewer.
    pub area_stripes: u32,
    /// Blocks of each drive.
    pub stripes: u64,
}

impl Group {
    /// Its drives, with that of parity.
    pub fn drives(&self) -> usize {
        usize::from(self.data_drives) + usize::from(self.parity)
    }

    /// Its blocks, without parity.
    pub fn blocks(&self) -> u64 {
        u64::from(self.data_drives) * self.stripes
    }
}

/// What a drive is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DriveLabel {
    pub uuid: [u8; 16],
    /// Its place among all drives, those of parity last in their group.
    pub drive: u32,
    pub tetris_stripes: u32,
    pub groups: Vec<Group>,
}

impl DriveLabel {
    pub fn encode(&self) -> Box<Block> {
        let mut out = super::zero_block();
        put(&mut out[..], 0, DRIVE_MAGIC);
        put(&mut out[..], 8, &VERSION.to_le_bytes());
        put(&mut out[..], 12, &self.drive.to_le_bytes());
        put(&mut out[..], 16, &self.uuid);
        put(&mut out[..], 36, &self.tetris_stripes.to_le_bytes());
        put(&mut out[..], 40, &(self.groups.len() as u32).to_le_bytes());
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

    pub fn decode(block: &Block) -> Decoded<Self> {
        check_head("drive label", block, DRIVE_MAGIC)?;
        let count = u32_at(block, 40) as usize;
        if count == 0 || count > MAX_GROUPS {
            return Err(Damage::new("drive label", "groups", count, "1 to 64"));
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
            uuid: array(block, 16),
            drive: u32_at(block, 12),
            tetris_stripes: u32_at(block, 36),
            groups: (0..count).map(group).collect::<Decoded<_>>()?,
        })
    }
}

/// What a log device is part of, and the size of each of its halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLabel {
    pub uuid: [u8; 16],
    pub half_bytes: u64,
}

impl LogLabel {
    pub fn encode(&self) -> Box<Block> {
        let mut out = super::zero_block();
        put(&mut out[..], 0, LOG_MAGIC);
        put(&mut out[..], 8, &VERSION.to_le_bytes());
        put(&mut out[..], 16, &self.uuid);
        put(&mut out[..], 32, &self.half_bytes.to_le_bytes());
        let sum = crc32c::crc32c(&out[..BLOCK - 4]);
        put(&mut out[..], BLOCK - 4, &sum.to_le_bytes());
        out
    }

    pub fn decode(block: &Block) -> Decoded<Self> {
        check_head("log label", block, LOG_MAGIC)?;
        let (found, sum) = (u32_at(block, BLOCK - 4), crc32c::crc32c(&block[..BLOCK - 4]));
        if found != sum {
            return Err(Damage::new("log label", "checksum", format!("{found:#010x}"), format!("{sum:#010x}")));
        }
        Ok(Self { uuid: array(block, 16), half_bytes: u64_at(block, 32) })
    }
}

fn check_head(structure: &'static str, block: &Block, magic: &[u8; 8]) -> Decoded<()> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if block[..8] != magic[..] {
        return Err(Damage::new(structure, "magic", text(&block[..8]), text(magic)));
    }
    if u32_at(block, 8) != VERSION {
        return Err(Damage::new(structure, "version", u32_at(block, 8), VERSION));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_and_look_as_they_always_did() {
        let groups = vec![
            Group { data_drives: 4, parity: true, medium: Medium::Ssd, area_stripes: 64, stripes: 256 },
            Group { data_drives: 1, parity: false, medium: Medium::Hdd, area_stripes: 0x0506, stripes: 0x0102_0304 },
        ];
        let label = DriveLabel { uuid: [7; 16], drive: 3, tetris_stripes: 16, groups };
        let mut block = label.encode();
        assert_eq!(DriveLabel::decode(&block).unwrap(), label);
        assert_eq!(crc32c::crc32c(&block[..]), 2353707355);
        block[67] = 0;
        assert_eq!(DriveLabel::decode(&block).unwrap_err().field, "medium");
        let log = LogLabel { uuid: [8; 16], half_bytes: 1 << 20 };
        let mut block = log.encode();
        assert_eq!(LogLabel::decode(&block).unwrap(), log);
        assert_eq!(crc32c::crc32c(&block[..]), 1214729159);
        block[40] = 1;
        assert_eq!(LogLabel::decode(&block).unwrap_err().field, "checksum");
        block[8] = 9;
        assert_eq!(LogLabel::decode(&block).unwrap_err().field, "version");
        assert_eq!(DriveLabel::decode(&block).unwrap_err().field, "magic");
    }
}
