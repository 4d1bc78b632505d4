//! A record of the volume table: 512 bytes, 8 in a block.

use super::{
    Damage, Decoded,
    bytes::{put, u32_at, u64_at},
    inode::{INODE, Inode},
    pointer::VVBN_END,
};

/// Bytes of a record.
pub(crate) const VOLUME: usize = 512;
/// Records in a block.
pub(crate) const PER_BLOCK: u64 = (super::BLOCK / VOLUME) as u64;
/// The longest name.
pub(crate) const MAX_NAME: usize = 128;
const MAGIC: u32 = 0x6c6f_7647;
const NAME_AT: usize = 64;
const INODES_AT: usize = 192;

/// A volume, as the aggregate knows it.
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
    /// Inodes made so far: the next one's generation.
    pub births: u64,
    /// Seeds the hashes of names.
    pub hash_seed: u64,
    /// The file that holds the inodes of all other files of the volume.
    pub inode_file: Inode,
}

impl VolumeRecord {
    pub fn encode(&self, out: &mut [u8]) {
        put(out, 0, &MAGIC.to_le_bytes());
        put(out, 4, &(self.name.len() as u32).to_le_bytes());
        let words = [self.blocks, self.inodes, self.used, self.inodes_used, self.births, self.hash_seed];
        for (index, word) in words.into_iter().enumerate() {
            put(out, 8 + 8 * index, &word.to_le_bytes());
        }
        out[NAME_AT..INODES_AT].fill(0);
        put(out, NAME_AT, &self.name);
        self.inode_file.encode(&mut out[INODES_AT..INODES_AT + INODE]);
    }

    /// `None` if there is no volume in this place.
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
        ] {
            if found > most {
                return Err(Damage::new("volume record", field, found, format!("at most {most}")));
            }
        }
        Ok(Some(Self {
            name: bytes[NAME_AT..NAME_AT + len].to_vec(),
            blocks: word(0),
            inodes: word(1),
            used: word(2),
            inodes_used: word(3),
            births: word(4),
            hash_seed: word(5),
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
            inode_file: Inode::new(FileKind::File),
        };
        let mut bytes = [0; VOLUME];
        assert_eq!(VolumeRecord::decode(&bytes).unwrap(), None);
        record.encode(&mut bytes);
        assert_eq!(VolumeRecord::decode(&bytes).unwrap(), Some(record));
        assert_eq!(crc32c::crc32c(&bytes), 3503427894);
        bytes[4] = 129;
        assert_eq!(VolumeRecord::decode(&bytes).unwrap_err().field, "name length");
        bytes[0] = 0;
        assert_eq!(VolumeRecord::decode(&bytes).unwrap_err().field, "magic");
    }
}
