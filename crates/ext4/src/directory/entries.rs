//! The entries of one directory, packed.

/// The file type in a directory entry. Old file systems do not store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Not stored.
    Unknown,
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symlink.
    Symlink,
    /// A device, socket or pipe.
    Special,
}

impl EntryKind {
    pub(super) fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Regular,
            2 => Self::Directory,
            3..=6 => Self::Special,
            7 => Self::Symlink,
            _ => Self::Unknown,
        }
    }

    fn to_byte(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Regular => 1,
            Self::Directory => 2,
            Self::Special => 3,
            Self::Symlink => 7,
        }
    }
}

/// One name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The number of its inode.
    pub inode: u32,
    /// The file type that the entry has for the inode.
    pub kind: EntryKind,
    /// The name: 1 to 255 bytes without NUL and `/`. In an encrypted directory it is the encrypted
    /// name, with any bytes.
    pub name: &'a [u8],
}

/// The entries of a directory without `.` and `..`, in the requested order.
///
/// Memory: 6 bytes and the length of the name for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryEntries {
    pub(super) packed: Vec<u8>,
    pub(super) count: u32,
}

impl DirectoryEntries {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        EntryIterator(&self.packed)
    }

    /// The packed bytes, which [`EntryIterator`] reads.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }

    pub(super) fn push(&mut self, inode: u32, kind: EntryKind, name: &[u8]) {
        let length = name.len().min(255);
        self.packed.extend_from_slice(&inode.to_le_bytes());
        self.packed.extend_from_slice(&[kind.to_byte(), length as u8]);
        self.packed.extend_from_slice(&name[..length]);
        self.count += 1;
    }

    pub(super) fn append(&mut self, later: &Self) {
        self.packed.extend_from_slice(&later.packed);
        self.count += later.count;
    }
}

/// Reads packed entries.
#[derive(Clone, Debug)]
pub(crate) struct EntryIterator<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for EntryIterator<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let (&[a, b, c, d, kind, length], rest) = self.0.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(usize::from(length))?;
        self.0 = rest;
        Some(Entry { inode: u32::from_le_bytes([a, b, c, d]), kind: EntryKind::from_byte(kind), name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_entries_are_read_unchanged() {
        let mut entries = DirectoryEntries::default();
        let long = [b'n'; 255];
        let put =
            [(12, EntryKind::Regular, &b"\xff"[..]), (13, EntryKind::Special, &long), (14, EntryKind::Symlink, b"s")];
        for (inode, kind, name) in put {
            entries.push(inode, kind, name);
        }
        let got: Vec<_> = entries.iter().map(|entry| (entry.inode, entry.kind, entry.name)).collect();
        assert_eq!(got, put);
        assert_eq!(entries.len(), 3);
    }
}
