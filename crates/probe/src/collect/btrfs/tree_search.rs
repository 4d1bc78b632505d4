//! Reads the trees of a mounted Btrfs: the calls, and the items they return.

use std::os::fd::AsFd;

use rustix::ioctl::Updater;

/// The key of an item. Items are ordered by object, kind, offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) object: u64,
    pub(super) kind: u32,
    pub(super) offset: u64,
}

impl Key {
    pub(super) const FIRST: Self = Self { object: 0, kind: 0, offset: 0 };
    pub(super) const LAST: Self = Self { object: u64::MAX, kind: 255, offset: u64::MAX };

    /// The smallest key after this one; none after the last.
    fn next(self) -> Option<Self> {
        let Self { object, kind, offset } = self;
        if let Some(offset) = offset.checked_add(1) {
            Some(Self { object, kind, offset })
        } else if kind < 255 {
            Some(Self { object, kind: kind + 1, offset: 0 })
        } else {
            object.checked_add(1).map(|object| Self { object, kind: 0, offset: 0 })
        }
    }
}

/// Buffer size of a search: more than the largest item with its header, so that few calls read a
/// hundred thousand small items.
const BUFFER_BYTES: usize = 128 << 10;

/// `struct btrfs_ioctl_search_args_v2` with its buffer.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Search {
    tree: u64,
    min_object: u64,
    max_object: u64,
    min_offset: u64,
    max_offset: u64,
    min_transaction: u64,
    max_transaction: u64,
    min_kind: u32,
    max_kind: u32,
    items: u32,
    unused: u32,
    unused64: [u64; 4],
    buffer_bytes: u64,
    buffer: [u8; BUFFER_BYTES],
}

impl Search {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            tree: 0,
            min_object: 0,
            max_object: 0,
            min_offset: 0,
            max_offset: 0,
            min_transaction: 0,
            max_transaction: u64::MAX,
            min_kind: 0,
            max_kind: 0,
            items: 0,
            unused: 0,
            unused64: [0; 4],
            buffer_bytes: BUFFER_BYTES as u64,
            buffer: [0; BUFFER_BYTES],
        })
    }

    /// Returns the items of a tree from key `from` to key `to`, in order, as far as they fit.
    fn call(&mut self, file: impl AsFd, tree: u64, from: Key, to: Key) -> rustix::io::Result<Vec<(Key, &[u8])>> {
        self.tree = tree;
        (self.min_object, self.min_kind, self.min_offset) = (from.object, from.kind, from.offset);
        (self.max_object, self.max_kind, self.max_offset) = (to.object, to.kind, to.offset);
        self.items = u32::MAX;
        self.buffer_bytes = BUFFER_BYTES as u64;
        // SAFETY: 0xC0709411 is BTRFS_IOC_TREE_SEARCH_V2. The kernel writes the header and at most
        // `buffer_bytes` bytes after it, which the structure has. The box keeps it in place and
        // alive during the call.
        unsafe { rustix::ioctl::ioctl(file, Updater::<0xC070_9411, Self>::new(self))? };
        Ok(parse_items(&self.buffer, self.items))
    }

    /// Calls `visit` for every item of a tree from key `from` to key `to`.
    pub(super) fn each(
        &mut self,
        file: impl AsFd,
        tree: u64,
        from: Key,
        to: Key,
        visit: &mut dyn FnMut(Key, &[u8]),
    ) -> rustix::io::Result<()> {
        let mut from = Some(from);
        while let Some(start) = from.filter(|start| *start <= to) {
            let items = self.call(file.as_fd(), tree, start, to)?;
            let Some((last, _)) = items.last() else { break };
            from = last.next();
            for (key, data) in items {
                visit(key, data);
            }
        }
        Ok(())
    }
}

/// Parses the items in a buffer. Each has a header (transaction, object, offset, kind, length) and
/// its data. A truncated item ends the list.
fn parse_items(buffer: &[u8], count: u32) -> Vec<(Key, &[u8])> {
    const HEADER_BYTES: usize = 32;
    let mut items = Vec::new();
    let mut rest = buffer;
    for _ in 0..count {
        let Some((header, behind)) = rest.split_at_checked(HEADER_BYTES) else { break };
        let (Some(object), Some(offset)) = (u64_at(header, 8), u64_at(header, 16)) else { break };
        let (Some(kind), Some(length)) = (u32_at(header, 24), u32_at(header, 28)) else { break };
        let Some((data, behind)) = behind.split_at_checked(length as usize) else { break };
        items.push((Key { object, kind, offset }, data));
        rest = behind;
    }
    items
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Node and sector size of the file system, bytes: fields of `struct btrfs_ioctl_fs_info_args`.
pub(super) fn collect_sizes(file: impl AsFd) -> rustix::io::Result<(u64, u64)> {
    #[repr(C)]
    struct FsInfo {
        max_id: u64,
        devices: u64,
        fsid: [u8; 16],
        node_bytes: u32,
        sector_bytes: u32,
        rest: [u8; 984],
    }
    const _: () = assert!(size_of::<FsInfo>() == 1024);
    let mut info = FsInfo { max_id: 0, devices: 0, fsid: [0; 16], node_bytes: 0, sector_bytes: 0, rest: [0; 984] };
    // SAFETY: 0x8400941F is BTRFS_IOC_FS_INFO. The kernel reads and writes 1024 bytes, which the
    // structure has.
    unsafe { rustix::ioctl::ioctl(file, Updater::<0x8400_941F, FsInfo>::new(&mut info))? };
    Ok((u64::from(info.node_bytes), u64::from(info.sector_bytes)))
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_structure_has_the_kernels_layout() {
        assert_eq!(offset_of!(Search, min_kind), 56);
        assert_eq!(offset_of!(Search, items), 64);
        assert_eq!(offset_of!(Search, buffer_bytes), 104);
        assert_eq!(offset_of!(Search, buffer), 112);
    }

    #[test]
    fn keys_follow_each_other() {
        let key = |object, kind, offset| Key { object, kind, offset };
        assert_eq!(key(1, 2, 3).next(), Some(key(1, 2, 4)));
        assert_eq!(key(1, 2, u64::MAX).next(), Some(key(1, 3, 0)));
        assert_eq!(key(1, 255, u64::MAX).next(), Some(key(2, 0, 0)));
        assert_eq!(Key::LAST.next(), None);
    }

    #[test]
    fn truncated_items_end_the_list() {
        let mut buffer = Vec::new();
        let lengths = [0usize, 5, 48];
        for (n, length) in lengths.iter().enumerate() {
            for word in [7, n as u64, 100 + n as u64] {
                buffer.extend(word.to_le_bytes());
            }
            buffer.extend((198 + n as u32).to_le_bytes());
            buffer.extend((*length as u32).to_le_bytes());
            buffer.extend(vec![n as u8; *length]);
        }
        for end in 0..=buffer.len() {
            let items = parse_items(&buffer[..end], 3);
            let whole = (1..=3).filter(|n| n * 32 + lengths[..*n].iter().sum::<usize>() <= end).count();
            assert_eq!(items.len(), whole, "{end} bytes");
            for (n, (key, data)) in items.iter().enumerate() {
                let expected = Key { object: n as u64, kind: 198 + n as u32, offset: 100 + n as u64 };
                assert_eq!((*key, data.to_vec()), (expected, vec![n as u8; lengths[n]]));
            }
        }
    }

    proptest! {
        #[test]
        fn any_buffer_parses_without_panic(buffer in prop::collection::vec(any::<u8>(), 0..300), count: u32) {
            prop_assert!(parse_items(&buffer, count).len() <= buffer.len() / 32);
        }
    }
}
