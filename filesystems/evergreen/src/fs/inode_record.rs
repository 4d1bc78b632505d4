//! The record of an inode, and the claim of an object.

use bytes::Bytes;
use senesce_fsapi::{Attributes, FileKind, FsError, FsResult, Ino, Timestamp};

use super::labels::LABELS;
use crate::{Message, keys::Home};

/// The unit of a file's contents, in bytes.
pub const BLOCK: u64 = 4096;

/// The most blocks of a file: those of the largest device.
const MOST_BLOCKS: u64 = 1 << 40;

/// The bytes of the common part of a record; the rest depends on the kind.
const COMMON_BYTES: usize = 80;

/// An inode. Each field has a fixed offset in the record, so that a change is a message of a few
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    pub kind: FileKind,
    pub permissions: u32,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    /// The pieces of extended attributes, and their bytes without the homes in their keys.
    pub xattr_pieces: u32,
    pub xattr_bytes: u64,
    /// The length in bytes; for a directory the number of names.
    pub size: u64,
    pub accessed: Timestamp,
    pub modified: Timestamp,
    pub changed: Timestamp,
    pub body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    File {
        /// The number of existing blocks, without holes.
        blocks: u64,
        /// The number of blocks that the file may have without new space; 0 or less than `blocks`
        /// if nothing is reserved.
        reserved: u64,
    },
    Directory {
        /// The parent; the root is its own parent.
        parent: Ino,
        /// The last label in the order of names that is in use.
        last_label: u64,
        /// The number of names so far without a place in the order.
        unordered: u64,
    },
    Symlink,
    Special {
        device: u32,
    },
}

const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];

/// The byte of a kind.
pub fn kind_byte(kind: FileKind) -> u8 {
    KINDS.iter().position(|known| *known == kind).map_or(0, |at| at as u8 + 1)
}

/// The kind of a byte.
pub fn kind_of_byte(byte: u8) -> Option<FileKind> {
    KINDS.get(usize::from(byte).checked_sub(1)?).copied()
}

impl Inode {
    /// A new inode of user and group 0, without names, contents and extended attributes.
    pub fn new(kind: FileKind, permissions: u32, body: Body, now: Timestamp) -> Self {
        Self {
            kind,
            permissions,
            links: if kind == FileKind::Directory { 2 } else { 1 },
            uid: 0,
            gid: 0,
            xattr_pieces: 0,
            xattr_bytes: 0,
            size: 0,
            accessed: now,
            modified: now,
            changed: now,
            body,
        }
    }

    /// An empty directory of user and group 0.
    pub fn directory(permissions: u32, parent: Ino, now: Timestamp) -> Self {
        let body = Body::Directory { parent, last_label: 0, unordered: 0 };
        Self::new(FileKind::Directory, permissions, body, now)
    }

    /// Encodes the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(COMMON_BYTES + 24);
        out.extend_from_slice(&[kind_byte(self.kind), 0]);
        out.extend_from_slice(&(self.permissions as u16).to_le_bytes());
        for number in [self.links, self.uid, self.gid, self.xattr_pieces] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.xattr_bytes, self.size] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for time in [self.modified, self.changed, self.accessed] {
            out.extend_from_slice(&time.seconds.to_le_bytes());
            out.extend_from_slice(&time.nanoseconds.to_le_bytes());
        }
        out.resize(COMMON_BYTES, 0);
        let (numbers, device) = match self.body {
            Body::File { blocks, reserved } => (vec![blocks, reserved], None),
            Body::Directory { parent, last_label, unordered } => (vec![parent.0, last_label, unordered], None),
            Body::Symlink => (Vec::new(), None),
            Body::Special { device } => (Vec::new(), Some(device)),
        };
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        out.extend(device.iter().flat_map(|device| device.to_le_bytes()));
        out
    }

    /// Decodes a record. Errors: a text with the rule that is violated.
    pub fn decode(record: &[u8]) -> Result<Self, String> {
        let mut at = Reader(record);
        let [kind, zero] = at.take()?;
        let kind = kind_of_byte(kind).ok_or(format!("an inode of kind {kind}"))?;
        if zero != 0 {
            return Err(format!("an inode of layout {zero}"));
        }
        let mut inode = Self {
            kind,
            permissions: u32::from(u16::from_le_bytes(at.take()?)),
            links: at.u32()?,
            uid: at.u32()?,
            gid: at.u32()?,
            xattr_pieces: at.u32()?,
            xattr_bytes: at.u64()?,
            size: at.u64()?,
            accessed: Timestamp::default(),
            modified: at.time()?,
            changed: at.time()?,
            body: Body::Symlink,
        };
        inode.accessed = at.time()?;
        let _: [u8; COMMON_BYTES - 72] = at.take()?;
        inode.body = match kind {
            FileKind::File => Body::File { blocks: at.u64()?, reserved: at.u64()? },
            FileKind::Directory => {
                Body::Directory { parent: Ino(at.u64()?), last_label: at.u64()?, unordered: at.u64()? }
            }
            FileKind::Symlink => Body::Symlink,
            _ => Body::Special { device: at.u32()? },
        };
        if let Body::File { blocks, reserved } = inode.body
            && blocks.max(reserved) > MOST_BLOCKS
        {
            return Err(format!("an inode of {blocks} blocks, and {reserved} reserved; at most {MOST_BLOCKS}"));
        }
        if let Body::Directory { unordered, .. } = inode.body
            && unordered > LABELS
        {
            return Err(format!("a directory that had {unordered} names without a label; at most {LABELS}"));
        }
        if inode.xattr_bytes > MOST_BLOCKS || (kind == FileKind::Symlink && inode.size > BLOCK) {
            return Err(format!(
                "an inode with attributes of {} bytes, and a size of {}",
                inode.xattr_bytes, inode.size
            ));
        }
        if !at.0.is_empty() || inode.encode() != record {
            return Err(format!("an invalid inode record of {} bytes", record.len()));
        }
        Ok(inode)
    }

    /// The message that changes this inode's record to that of `new`: the bytes from the first to
    /// the last difference.
    pub fn message_to(&self, new: &Self) -> Option<Message> {
        let (old, new) = (self.encode(), new.encode());
        let first = old.iter().zip(&new).position(|(old, new)| old != new)?;
        let last = old.iter().zip(&new).rposition(|(old, new)| old != new)?;
        Some(Message::patch(first as u32, Bytes::copy_from_slice(&new[first..=last])))
    }

    pub fn stat(&self, ino: Ino) -> Attributes {
        let (allocated, device) = match self.body {
            Body::File { blocks, reserved } => (blocks.max(reserved) * BLOCK, 0),
            Body::Special { device } => (0, device),
            Body::Directory { .. } | Body::Symlink => (0, 0),
        };
        Attributes {
            ino,
            generation: 0, // numbers are never reused
            kind: self.kind,
            permissions: self.permissions,
            links: self.links,
            uid: self.uid,
            gid: self.gid,
            size: self.size,
            allocated,
            device,
            accessed: self.accessed,
            modified: self.modified,
            changed: self.changed,
        }
    }

    /// The bytes of keys and values that the object claims, without names.
    ///
    /// It follows from the record alone, so that a removal needs no reads. A block counts up to its
    /// own end or that of the file, its key as for a large number. A reserved block counts as an
    /// existing one.
    pub fn claim(&self, ino: Ino, home: &Home) -> i64 {
        let home = home.byte_count() as u64;
        let record = 2 + home + self.encode().len() as u64;
        let home_of = crate::keys::home_of_key(ino.0).len() as u64 + home;
        let xattrs = self.xattr_bytes + u64::from(self.xattr_pieces) * (1 + home);
        let content = match self.body {
            Body::File { blocks, reserved } if reserved > blocks => reserved * (BLOCK + block_key_bytes(home)),
            Body::File { blocks, .. } => (blocks * BLOCK).min(self.size) + blocks * block_key_bytes(home),
            Body::Symlink => 3 + home + self.size,
            Body::Directory { .. } | Body::Special { .. } => 0,
        };
        (record + home_of + xattrs + content) as i64
    }

    /// The existing and the reserved blocks. Errors: those for an object that is no file.
    pub fn file(&self) -> FsResult<(u64, u64)> {
        match self.body {
            Body::File { blocks, reserved } => Ok((blocks, reserved)),
            Body::Directory { .. } => Err(FsError::IsDirectory),
            Body::Symlink | Body::Special { .. } => Err(FsError::Invalid { what: "not a regular file" }),
        }
    }

    /// The number of blocks of a file without holes; `None` if it has holes.
    pub fn dense_blocks(&self) -> Option<u64> {
        let all = self.size.div_ceil(BLOCK);
        matches!(self.body, Body::File { blocks, .. } if blocks == all).then_some(all)
    }

    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Errors: `NotDirectory`.
    pub fn check_directory(&self) -> FsResult<()> {
        if self.is_directory() { Ok(()) } else { Err(FsError::NotDirectory) }
    }

    /// The directory `..`. Errors: `NotDirectory`.
    pub fn parent(&self) -> FsResult<Ino> {
        match self.body {
            Body::Directory { parent, .. } => Ok(parent),
            _ => Err(FsError::NotDirectory),
        }
    }
}

/// The claim of a future block, with the key of a file some directories deep. So all reported free
/// space can be written.
pub const FREE_BLOCK: u64 = BLOCK + block_key_bytes(64);

/// The claim of a block's key.
const fn block_key_bytes(home: u64) -> u64 {
    home + 6
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("an inode's record that is too short")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Result<Timestamp, String> {
        Ok(Timestamp { seconds: i64::from_le_bytes(self.take()?), nanoseconds: self.u32()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_messages_produce_them() {
        let time = |seconds| Timestamp { seconds, nanoseconds: 999_999_999 };
        let file = Inode {
            kind: FileKind::File,
            permissions: 0o7777,
            links: 3,
            uid: u32::MAX,
            gid: 5,
            xattr_pieces: 6,
            xattr_bytes: 1 << 40,
            size: u64::MAX,
            accessed: time(-7),
            modified: time(i64::MAX),
            changed: time(i64::MIN),
            body: Body::File { blocks: 8, reserved: 9 },
        };
        let bodies = [
            (FileKind::Directory, Body::Directory { parent: Ino(4), last_label: 5, unordered: 6 }),
            (FileKind::Symlink, Body::Symlink),
            (FileKind::BlockDevice, Body::Special { device: 0x105 }),
            (FileKind::File, file.body),
        ];
        for (kind, body) in bodies {
            let size = if kind == FileKind::Symlink { BLOCK } else { file.size };
            let inode = Inode { kind, size, body, ..file };
            let record = inode.encode();
            assert_eq!(Inode::decode(&record), Ok(inode));
            assert!(Inode::decode(&record[1..]).is_err());
            let too_many = Body::File { blocks: MOST_BLOCKS + 1, reserved: 0 };
            let large = Inode { size: u64::MAX, body: if kind == FileKind::File { too_many } else { body }, ..inode };
            let is_refused = Inode::decode(&large.encode()).is_err();
            assert_eq!(is_refused, matches!(kind, FileKind::File | FileKind::Symlink));
            assert!(Inode::decode(&[&record[..], &[0]].concat()).is_err());
            let written = Inode { size: 5, modified: time(6), changed: time(6), ..inode };
            let message = inode.message_to(&written).unwrap();
            assert!(message.payload_bytes() <= 32, "size and two times are adjacent: {message:?}");
            assert_eq!(message.apply(Some(&Bytes::from(record))), Some(Bytes::from(written.encode())));
            assert_eq!(inode.message_to(&inode), None);
        }
    }
}
