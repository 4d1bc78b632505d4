//! The record of a name.

use senesce_fsapi::{FileKind, Ino};

use super::inode_record::{kind_byte, kind_of_byte};
use crate::keys::{Home, put_number, take_number};

/// The target of a name, and its place in its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub ino: Ino,
    pub kind: FileKind,
    /// The label, after which a listing of the directory continues: see [`super::labels`].
    pub label: u64,
    /// Labels above this one and below the own one are free.
    pub floor: u64,
    /// The inode's home, unless it is the home of a birth under this name.
    pub home: Option<Home>,
}

/// The offset of the floor in the record.
pub const FLOOR_AT: u32 = 9;

impl Entry {
    /// Encodes the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![kind_byte(self.kind)];
        out.extend_from_slice(&self.label.to_le_bytes());
        out.extend_from_slice(&self.floor.to_le_bytes());
        put_number(&mut out, self.ino.0);
        out.extend(self.home.iter().flat_map(|home| home.bytes()));
        out
    }

    /// Decodes a record. Errors: a text with the rule that is violated.
    pub fn decode(record: &[u8]) -> Result<Self, String> {
        let (kind, rest) = record.split_first().ok_or("an empty record of a name")?;
        let kind = kind_of_byte(*kind).ok_or(format!("a name of kind {kind}"))?;
        let (label, rest) = rest.split_first_chunk().ok_or("a name without a label")?;
        let (floor, rest) = rest.split_first_chunk().ok_or("a name without a floor")?;
        let (ino, rest) = take_number(rest).ok_or("a name without an inode")?;
        let home = if rest.is_empty() { None } else { Some(Home::from_bytes(rest)?) };
        Ok(Self { ino: Ino(ino), kind, label: u64::from_le_bytes(*label), floor: u64::from_le_bytes(*floor), home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::KeyOrder;

    #[test]
    fn records_of_names_round_trip() {
        for home in [None, Some(Home::root().child(KeyOrder::BirthPath, b"name", 1000))] {
            let entry = Entry { ino: Ino(1000), kind: FileKind::Symlink, label: 1 << 60, floor: 77, home };
            let record = entry.encode();
            assert_eq!(Entry::decode(&record), Ok(entry));
            assert_eq!(record[FLOOR_AT as usize..][..8], 77u64.to_le_bytes());
            assert!((0..20).all(|bytes| Entry::decode(&record[..bytes]).is_err()));
        }
    }
}
