//! An inode: 256 bytes, 160 of which are pointers or the contents of a tiny file.

use senesce_fsapi::{FileKind, Timestamp};

use super::{
    Damage, Decoded,
    bytes::{array, put, u16_at, u32_at, u64_at},
};

/// Bytes of an inode.
pub(crate) const INODE: usize = 256;
/// Bytes of pointers or contents in an inode.
pub(crate) const AREA: usize = 160;
/// Inodes in a block.
pub(crate) const PER_BLOCK: u64 = (super::BLOCK / INODE) as u64;
const HEADER: usize = INODE - AREA;
/// The size of a container of 2^40 blocks, in bytes.
const MAX_SIZE: u64 = 1 << 52;
const MAX_HEIGHT: u64 = 8;
const FLAG_INLINE: u8 = 1;

/// A file of a volume or of the aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub kind: FileKind,
    pub permissions: u16,
    pub uid: u32,
    pub gid: u32,
    pub links: u32,
    pub size: u64,
    /// Blocks of contents; blocks of pointers do not count.
    pub blocks: u64,
    pub accessed: Timestamp,
    pub modified: Timestamp,
    pub changed: Timestamp,
    pub generation: u32,
    /// Whether the area holds the contents.
    pub inline: bool,
    /// Levels of pointer blocks between the inode and the contents.
    pub height: u8,
    pub device: u32,
    /// The file that holds the extended attributes, 0 if there is none.
    pub xattrs: u64,
    /// Of a directory: its parent directory. Of a file of attributes: the inode that it belongs to.
    pub parent: u64,
    pub area: [u8; AREA],
}

impl Inode {
    /// A new inode without contents or names.
    pub fn new(kind: FileKind) -> Self {
        Self {
            kind,
            permissions: 0,
            uid: 0,
            gid: 0,
            links: 0,
            size: 0,
            blocks: 0,
            accessed: Timestamp::default(),
            modified: Timestamp::default(),
            changed: Timestamp::default(),
            generation: 0,
            inline: false,
            height: 0,
            device: 0,
            xattrs: 0,
            parent: 0,
            area: [0; AREA],
        }
    }

    /// Encodes the inode into 256 bytes.
    pub fn encode(&self, out: &mut [u8]) {
        out[0] = kind_number(self.kind);
        out[1] = if self.inline { FLAG_INLINE } else { 0 };
        put(out, 2, &self.permissions.to_le_bytes());
        put(out, 4, &self.uid.to_le_bytes());
        put(out, 8, &self.gid.to_le_bytes());
        put(out, 12, &self.links.to_le_bytes());
        put(out, 16, &self.size.to_le_bytes());
        put(out, 24, &self.blocks.to_le_bytes());
        for (index, time) in [self.accessed, self.modified, self.changed].into_iter().enumerate() {
            put(out, 32 + 8 * index, &time.seconds.to_le_bytes());
            put(out, 56 + 4 * index, &time.nanoseconds.to_le_bytes());
        }
        put(out, 68, &self.generation.to_le_bytes());
        out[72..76].copy_from_slice(&[self.height, 0, 0, 0]);
        put(out, 76, &self.device.to_le_bytes());
        put(out, 80, &self.xattrs.to_le_bytes());
        put(out, 88, &self.parent.to_le_bytes());
        put(out, HEADER, &self.area);
    }

    /// Checks 256 bytes and returns the kind of the inode; `None` if all bytes are zeros.
    fn check(bytes: &[u8]) -> Decoded<Option<FileKind>> {
        let damage = |field, found: u64, expected| Err(Damage::new("inode", field, found, expected));
        if bytes[0] == 0 {
            return match bytes[..INODE].iter().position(|&byte| byte != 0) {
                None => Ok(None),
                Some(at) => damage("kind", 0, format!("1 to 7, for byte {at} is in use")),
            };
        }
        let Some(kind) = number_kind(bytes[0]) else { return damage("kind", bytes[0].into(), "1 to 7".to_owned()) };
        if bytes[1] & !FLAG_INLINE != 0 {
            return damage("flags", bytes[1].into(), "0 or 1".to_owned());
        }
        let (size, height) = (u64_at(bytes, 16), bytes[72]);
        // The limits keep computations with these fields from overflowing.
        for (field, found, most) in
            [("size", size, MAX_SIZE), ("blocks", u64_at(bytes, 24), MAX_SIZE), ("height", height.into(), MAX_HEIGHT)]
        {
            if found > most {
                return damage(field, found, format!("at most {most}"));
            }
        }
        if bytes[1] & FLAG_INLINE != 0 && size > AREA as u64 {
            return damage("size", size, format!("at most {AREA}, for it is inline"));
        }
        Ok(Some(kind))
    }

    /// Decodes only the height of the tree and the area; `None` if the 256 bytes hold no inode.
    /// Errors are those of [`decode`](Self::decode).
    pub fn tree(bytes: &[u8]) -> Decoded<Option<(u8, &[u8; AREA])>> {
        let area = || bytes[HEADER..].first_chunk().unwrap_or_else(|| unreachable!("it has {INODE} bytes"));
        Ok(Self::check(bytes)?.map(|_| (bytes[72], area())))
    }

    /// Decodes 256 bytes; `None` if they hold no inode.
    pub fn decode(bytes: &[u8]) -> Decoded<Option<Self>> {
        let Some(kind) = Self::check(bytes)? else { return Ok(None) };
        let time = |index: usize| Timestamp {
            seconds: u64_at(bytes, 32 + 8 * index) as i64,
            nanoseconds: u32_at(bytes, 56 + 4 * index),
        };
        Ok(Some(Self {
            kind,
            permissions: u16_at(bytes, 2),
            uid: u32_at(bytes, 4),
            gid: u32_at(bytes, 8),
            links: u32_at(bytes, 12),
            size: u64_at(bytes, 16),
            blocks: u64_at(bytes, 24),
            accessed: time(0),
            modified: time(1),
            changed: time(2),
            generation: u32_at(bytes, 68),
            inline: bytes[1] & FLAG_INLINE != 0,
            height: bytes[72],
            device: u32_at(bytes, 76),
            xattrs: u64_at(bytes, 80),
            parent: u64_at(bytes, 88),
            area: array(bytes, HEADER),
        }))
    }
}

pub(crate) fn kind_number(kind: FileKind) -> u8 {
    match kind {
        FileKind::File => 1,
        FileKind::Directory => 2,
        FileKind::Symlink => 3,
        FileKind::Fifo => 4,
        FileKind::Socket => 5,
        FileKind::CharDevice => 6,
        FileKind::BlockDevice => 7,
    }
}

pub(crate) fn number_kind(number: u8) -> Option<FileKind> {
    Some(match number {
        1 => FileKind::File,
        2 => FileKind::Directory,
        3 => FileKind::Symlink,
        4 => FileKind::Fifo,
        5 => FileKind::Socket,
        6 => FileKind::CharDevice,
        7 => FileKind::BlockDevice,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Inode {
        let time = |seconds| Timestamp { seconds, nanoseconds: 999_999_999 };
        Inode {
            permissions: 0o4755,
            uid: 1000,
            gid: 100,
            links: 3,
            size: 12_345,
            blocks: 4,
            accessed: time(-1),
            modified: time(1 << 40),
            changed: time(7),
            generation: 9,
            height: 2,
            device: 0x0801,
            xattrs: 77,
            parent: 5,
            area: [0xcd; AREA],
            ..Inode::new(FileKind::File)
        }
    }

    #[test]
    fn golden() {
        let mut bytes = [0xee; INODE];
        example().encode(&mut bytes);
        assert_eq!(Inode::decode(&bytes).unwrap().unwrap(), example());
        let header: String = bytes[..HEADER].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(header, GOLDEN);
    }
    const GOLDEN: &str = "0100ed09e8030000640000000300000039300000000000000400000000000000ffffffffffffffff00000000000100000700000000000000ffc99a3bffc99a3bffc99a3b0900000002000000010800004d000000000000000500000000000000";

    #[test]
    fn forged_inodes_are_refused() {
        let mut bytes = [0; INODE];
        assert_eq!(Inode::decode(&bytes).unwrap(), None);
        bytes[200] = 1;
        assert_eq!(Inode::decode(&bytes).unwrap_err().field, "kind");
        bytes[0] = 8;
        assert_eq!(Inode::decode(&bytes).unwrap_err().field, "kind");
        Inode { inline: true, ..example() }.encode(&mut bytes);
        assert_eq!(Inode::decode(&bytes).unwrap_err().field, "size");
    }
}
