//! Inodes: the fields of each, and the 60 bytes of its content area.
//!
//! Source: the kernel's documentation of the format, "Index Nodes" and "Inode Timestamps".

use crate::{
    Problem, Superblock,
    bytes::{u16_at, u32_at, wide},
    checksum::crc32c,
    features::{incompat, ro_compat},
};

/// The offset in an inode of the 60 bytes of extents, addresses or data.
pub(crate) const CONTENT_OFFSET_BYTES: usize = 0x28;
/// Their length, bytes.
pub(crate) const CONTENT_BYTES: usize = 60;

/// The file type of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symlink.
    Symlink,
    /// A device, socket or pipe.
    Special,
}

/// Flags of an inode (`i_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InodeFlags(pub u32);

impl InodeFlags {
    /// The file system encrypts the contents.
    pub const ENCRYPTED: Self = Self(0x800);
    /// A directory with a hash index.
    pub const INDEXED: Self = Self(0x1000);
    /// The number of blocks counts blocks, not sectors.
    pub const HUGE: Self = Self(0x4_0000);
    /// The file is mapped by an extent tree.
    pub const EXTENTS: Self = Self(0x8_0000);
    /// The file holds the value of an extended attribute and has no name.
    pub const ATTRIBUTE_VALUE: Self = Self(0x20_0000);
    /// The data is in the inode.
    pub const INLINE_DATA: Self = Self(0x1000_0000);
    /// A directory that ignores case.
    pub const CASEFOLD: Self = Self(0x4000_0000);

    /// Whether every flag of `other` is set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A time in the form of inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the second; 0 in inodes of 128 bytes. A damaged inode can have more than
    /// 999,999,999.
    pub nanoseconds: u32,
}

/// The fields of an inode, without the places of its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) kind: FileKind,
    pub(crate) size_bytes: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) links: u16,
    pub(crate) flags: InodeFlags,
    pub(crate) modified: Timestamp,
    pub(crate) changed: Timestamp,
    pub(crate) created: Option<Timestamp>,
    /// The block with extended attributes; 0 if there is none.
    pub(crate) attribute_block: u64,
    /// The initial value of the checksums of the inode's own blocks.
    pub(crate) checksum_seed: u32,
    pub(crate) content: [u8; CONTENT_BYTES],
}

impl Inode {
    /// Parses inode `number`. `None` if it is unused or deleted (no links).
    ///
    /// Errors: a wrong checksum; an unknown file type; an impossible size.
    pub(crate) fn parse(
        bytes: &[u8],
        number: u32,
        superblock: &Superblock,
        verify: bool,
    ) -> Result<Option<Self>, Problem> {
        let (mode, links) = (u16_at(bytes, 0x0), u16_at(bytes, 0x1A));
        let generation = u32_at(bytes, 0x64);
        let own = u64::from(number) | u64::from(generation) << 32;
        let seed = crc32c(superblock.checksum_seed, &own.to_le_bytes());
        if verify {
            verify_checksum(bytes, seed)?;
        }
        if links == 0 {
            return Ok(None);
        }
        let kind = match mode >> 12 {
            0x8 => FileKind::Regular,
            0x4 => FileKind::Directory,
            0xA => FileKind::Symlink,
            0x1 | 0x2 | 0x6 | 0xC => FileKind::Special,
            _ => return Err(format!("its mode is {mode:#o}, which is no file type").into()),
        };
        let flags = InodeFlags(u32_at(bytes, 0x20));
        let has_high_size = kind == FileKind::Regular || superblock.has_incompat(incompat::LARGEDIR);
        let size_bytes = wide(u32_at(bytes, 0x4), if has_high_size { u32_at(bytes, 0x6C) } else { 0 });
        let most = superblock.block_bytes << 32;
        if size_bytes > most {
            return Err(format!("its size is {size_bytes} bytes, and no file has more than {most}").into());
        }
        let huge = superblock.has_ro_compat(ro_compat::HUGE_FILE);
        let units = wide(u32_at(bytes, 0x1C), if huge { u32::from(u16_at(bytes, 0x74)) } else { 0 });
        let unit_bytes = if huge && flags.contains(InodeFlags::HUGE) { superblock.block_bytes } else { 512 };
        let extra_end = compute_extra_end(bytes);
        let moment = |low: usize, extra: usize| {
            let extra = if extra + 4 <= extra_end { u32_at(bytes, extra) } else { 0 };
            let seconds = i64::from(u32_at(bytes, low) as i32) + (i64::from(extra & 3) << 32);
            Timestamp { seconds, nanoseconds: extra >> 2 }
        };
        let content = bytes.get(CONTENT_OFFSET_BYTES..).and_then(|rest| rest.first_chunk()).copied();
        Ok(Some(Self {
            kind,
            size_bytes,
            // Larger values are wrong, and sums could overflow.
            allocated_bytes: units
                .saturating_mul(unit_bytes)
                .min(superblock.blocks.saturating_mul(superblock.block_bytes)),
            links,
            flags,
            modified: moment(0x10, 0x88),
            changed: moment(0xC, 0x84),
            created: (0x94 <= extra_end).then(|| moment(0x90, 0x94)),
            attribute_block: wide(u32_at(bytes, 0x68), u32::from(u16_at(bytes, 0x76))),
            checksum_seed: seed,
            content: content.unwrap_or([0; CONTENT_BYTES]),
        }))
    }

    /// Whether the target of a symlink is in the inode.
    pub(crate) fn is_fast_symlink(&self, superblock: &Superblock) -> bool {
        let attribute_bytes = match self.attribute_block {
            0 => 0,
            _ => superblock.block_bytes * superblock.cluster_blocks,
        };
        self.kind == FileKind::Symlink
            && !self.flags.contains(InodeFlags::INLINE_DATA)
            && !self.flags.contains(InodeFlags::EXTENTS)
            && self.allocated_bytes.saturating_sub(attribute_bytes) == 0
            && self.size_bytes < CONTENT_BYTES as u64
    }
}

/// The end of the fields after the first 128 bytes of this inode.
pub(crate) fn compute_extra_end(bytes: &[u8]) -> usize {
    if bytes.len() <= 128 { 128 } else { (128 + usize::from(u16_at(bytes, 0x80))).min(bytes.len()) }
}

fn verify_checksum(bytes: &[u8], seed: u32) -> Result<(), Problem> {
    const LOW: usize = 0x7C;
    const HIGH: usize = 0x82;
    let has_high = compute_extra_end(bytes) >= HIGH + 2;
    // The checksum itself counts as zero.
    let crc = crc32c_with_zeros(seed, bytes, &[LOW, if has_high { HIGH } else { LOW }]);
    let low = u32::from(u16_at(bytes, LOW));
    let (stored, computed) =
        if has_high { (low | u32::from(u16_at(bytes, HIGH)) << 16, crc) } else { (low, crc & 0xFFFF) };
    if stored == computed { Ok(()) } else { Err(Problem::Checksum { stored, computed }) }
}

/// A number that changes with every field of an inode except its access time.
pub(crate) fn compute_digest(seed: u32, bytes: &[u8]) -> u32 {
    // The access time and its fraction, and the two halves of the checksum, which covers the access
    // time.
    crc32c_with_zeros(seed, bytes, &[0x8, 0xA, 0x8C, 0x8E, 0x7C, 0x82])
}

/// Continues a checksum over an inode. Two bytes at each of `places` count as zero.
fn crc32c_with_zeros(seed: u32, bytes: &[u8], places: &[usize]) -> u32 {
    /// Words are read faster if they are aligned.
    #[repr(align(8))]
    struct Aligned([u8; 256]);
    let (head, rest) = bytes.split_at_checked(256).unwrap_or((bytes, &[]));
    let mut aligned = Aligned([0; 256]);
    let counted = &mut aligned.0[..head.len()];
    counted.copy_from_slice(head);
    for &place in places {
        counted.iter_mut().skip(place).take(2).for_each(|byte| *byte = 0);
    }
    let crc = crc32c(seed, counted);
    if rest.is_empty() { crc } else { crc32c(crc, rest) }
}
