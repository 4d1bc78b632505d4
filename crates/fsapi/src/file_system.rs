//! The trait [`FileSystem`].

use std::ops::ControlFlow;

use senesce_core::Extent;

use crate::{Attributes, Caller, FileKind, FsError, FsResult, Ino, NewNode, SetAttributes, SpaceReport, Timestamp};

/// One name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The inode of the name.
    pub ino: Ino,
    /// The kind of the inode.
    pub kind: FileKind,
    /// The position after this entry, where a listing can continue. From 1 to 2^62.
    pub cookie: u64,
    /// The name.
    pub name: &'a [u8],
}

/// The treatment of an existing name by a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// Replaces it: a file by a file, an empty directory by a directory.
    Replace,
    /// Fails with `Exists`.
    NoReplace,
    /// Exchanges both names, which must exist; their kinds may differ.
    Exchange,
}

/// The effect of `allocate` on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallocateMode {
    /// Reserves space, so that later writes do not fail for lack of it, as far as the engine can
    /// promise. The contents stay.
    Reserve {
        /// Keeps the length; else the file grows to include the range.
        keep_size: bool,
    },
    /// Makes a hole; the length stays.
    Punch,
    /// Makes the range read as zeros.
    Zero {
        /// Keeps the length; else the file grows to include the range.
        keep_size: bool,
    },
}

/// The target of `seek`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekTo {
    /// The next byte that may not be zero.
    Data,
    /// The next byte of a hole; the end of the file counts as one.
    Hole,
}

/// The treatment of an existing attribute by `set_xattr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetXattrMode {
    /// Sets it, whether it exists or not.
    Any,
    /// Fails with `Exists` if it exists.
    Create,
    /// Fails with `NoAttribute` if it does not exist.
    Replace,
}

/// The rest of a read that waits for a remote store. It reads as many bytes as the original
/// request.
pub type RestOfRead = Box<dyn FnOnce(&mut [u8]) -> FsResult<usize> + Send>;

/// The state of a read.
pub enum ReadBegun {
    /// The read is complete.
    Done(FsResult<usize>),
    /// The read must wait; any thread may continue it.
    Waits(RestOfRead),
}

/// A file system at the level of inodes.
///
/// **Every call is atomic**: it is complete, or it fails and changes nothing. Only a write, a clone
/// or a truncation may be partial, if it meets the end of the space or an error of a device.
/// Several threads may call, and calls take effect in some order.
///
/// **Names** are bytes ([`check_name`](crate::check_name)). `.` and `..` are never listed, and only
/// `lookup` accepts them.
///
/// **Times** come with the [`Caller`]. A call that changes something sets
/// - *changed* and *modified* of a directory whose names change (both directories of a rename),
/// - *changed* of an inode whose attributes, extended attributes or number of names change, and of
///   a renamed inode,
/// - *changed* and *modified* of a file that is written or cloned to (at least one byte), truncated
///   or allocated (whether the length changes or not),
/// - all three times of a new inode.
///
/// Reads change no time.
///
/// **Inodes without a name** exist as long as they are held open ([`open`](Self::open)), with
/// `links` 0. All calls work on them, except the creation of names. They are removed when the file
/// system is opened again.
///
/// **Durable** are all changes before a [`sync`](Self::sync) that returned; an engine may promise
/// more. After a loss of power, the state is one that existed after the last sync.
///
/// **Permissions** are not checked, nor is the sticky bit, and writes do not clear set-id bits:
/// kernels do that.
///
/// Errors of every method, which are not repeated below: `Io`, `Corrupt`, and `Stale` or `NotFound`
/// for an inode that does not exist. Methods that change return `ReadOnly` and, unless they remove,
/// `NoSpace`.
pub trait FileSystem: Send + Sync {
    /// The inode of a name. `.` is the directory itself, `..` its parent. The root is its own
    /// parent, and a removed directory has none.
    ///
    /// Errors: `NotFound`, `NotDirectory`, `TooLong`.
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes>;

    /// The attributes that `stat` shows.
    fn attributes(&self, ino: Ino) -> FsResult<Attributes>;

    /// Changes attributes, all or none. *changed* becomes the caller's time in any case. A size,
    /// even the current one, also sets *modified*.
    ///
    /// Errors for a size: `IsDirectory`, `Invalid` if it is not a regular file, `TooLarge`,
    /// `NoSpace`.
    fn set_attributes(&self, caller: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes>;

    /// Makes an inode with a name. Owner, group and permissions are those of
    /// [`NewNode::ownership`].
    ///
    /// Errors: `Exists`, `NotFound` (the directory was removed), `NotDirectory`, `TooLong`,
    /// `TooManyLinks` for a directory, `Invalid` (a symbolic link).
    fn make_node(&self, caller: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes>;

    /// Makes a symbolic link of 1 to 4,095 bytes with permissions 777.
    ///
    /// Errors: as for `make_node`; `TooLong` for the target, `NotFound` for an empty one.
    fn symlink(&self, caller: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes>;

    /// The target of a symbolic link. Errors: `Invalid` for other kinds.
    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>>;

    /// Adds a name to an inode.
    ///
    /// Errors: as for `make_node`; `NotPermitted` for a directory, `NotFound` for an inode without
    /// a name, `TooManyLinks`.
    fn link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes>;

    /// Removes a name that is not one of a directory.
    ///
    /// Errors: `NotFound`, `NotDirectory` (the parent), `IsDirectory`.
    fn unlink(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()>;

    /// Removes an empty directory.
    ///
    /// Errors: `NotFound`, `NotDirectory`, `NotEmpty`.
    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()>;

    /// Renames. If both names belong to the same inode, or are equal, nothing changes (no times
    /// either), without an error.
    ///
    /// Errors: `NotFound`; `Exists` (`NoReplace`); `Invalid` if a directory would be below itself;
    /// `NotDirectory` and `IsDirectory` if only one is a directory; `NotEmpty`; `TooManyLinks`.
    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameMode) -> FsResult<()>;

    /// Reads from `offset` on and returns the number of bytes: less than the length of `out` only
    /// at the end of the file, 0 after it.
    ///
    /// Errors: `IsDirectory`; `Invalid` for other kinds.
    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize>;

    /// Like [`read`](Self::read), but it does not wait for a remote store. For servers with few
    /// threads.
    fn begin_read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> ReadBegun {
        ReadBegun::Done(self.read(ino, offset, out))
    }

    /// Writes at `offset`; a gap after the old end reads as zeros. Returns the number of written
    /// bytes: all, or fewer but at least one, if the space ends. An empty write has no effect,
    /// without an error.
    ///
    /// Errors: `IsDirectory`; `Invalid` for other kinds; `TooLarge`; `NoSpace` if not one byte
    /// could be written.
    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize>;

    /// Whether later writes can use the space that [`allocate`](Self::allocate) reserves. If not, a
    /// mount refuses `fallocate` with EOPNOTSUPP.
    fn keeps_reservations(&self) -> bool {
        true
    }

    /// Changes the space of a range of a regular file, as `fallocate` does.
    ///
    /// Errors: `IsDirectory`, `Invalid` (not a regular file, an empty range), `TooLarge`,
    /// `NoSpace`, `Unsupported`.
    fn allocate(&self, caller: &Caller, ino: Ino, how: FallocateMode, offset: u64, len: u64) -> FsResult<()>;

    /// Clones a range of a regular file to another file, or to another place of the same one. The
    /// engine shares the data if it can; later changes of one range do not affect the other. Holes
    /// stay holes. Returns the number of cloned bytes: `len`, or fewer at the end of the source or
    /// of the space. 0 bytes have no effect.
    ///
    /// Both offsets are multiples of [`CLONE_BYTES`](crate::CLONE_BYTES), and so is `len`, unless
    /// the range ends with the source ([`check_clone`](crate::check_clone)).
    ///
    /// Errors: `IsDirectory`, `Invalid` (not a regular file, other offsets, overlapping ranges of
    /// one file), `TooLarge`, `NoSpace` if nothing could be cloned, `Unsupported`.
    fn clone_range(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        let _ = (caller, from, to, len);
        Err(FsError::Unsupported)
    }

    /// The first offset from `offset` on with data or a hole, as in `lseek`. An engine may report
    /// holes as data.
    ///
    /// Errors: `NoData` if `offset` is at or after the end, or if no data follows; `Invalid` if it
    /// is not a file.
    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64>;

    /// Passes the entries after `cookie` (0: the start) to `sink`, until it breaks or the directory
    /// ends.
    ///
    /// The cookie of an entry does not change while the entry exists, not even by reopening.
    /// Consecutive listings return each permanent entry exactly once, with any concurrent changes.
    /// `sink` may be called under a lock, so it must not call the file system.
    ///
    /// Errors: `NotDirectory`. A removed directory is empty.
    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()>;

    /// The value of an extended attribute. The name includes its prefix, such as `user.`, which has
    /// no meaning here.
    ///
    /// Errors: `NoAttribute`.
    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>>;

    /// Sets an extended attribute of up to 65,536 bytes. An engine may have a lower limit, at least
    /// 4,000 bytes.
    ///
    /// Errors: `Exists`, `NoAttribute` (see [`SetXattrMode`]), `TooLong` (the name),
    /// `ValueTooLong`, `NoSpace`.
    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrMode) -> FsResult<()>;

    /// The names of all extended attributes, in the order of their bytes.
    fn list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>>;

    /// Removes an extended attribute. Errors: `NoAttribute`.
    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()>;

    /// Holds an inode, so that it exists without a name. Holds are counted, and are not durable.
    fn open(&self, ino: Ino) -> FsResult<()>;

    /// Releases a hold. With the last one, an inode without a name is removed, and its space is
    /// freed.
    ///
    /// `now` is the time of the removal, for engines that record it.
    fn release(&self, ino: Ino, now: Timestamp) -> FsResult<()>;

    /// Makes all changes of an inode durable: its contents and attributes, and the names that lead
    /// to it.
    fn sync(&self, ino: Ino) -> FsResult<()>;

    /// Makes all changes durable.
    fn sync_all(&self) -> FsResult<()>;

    /// The extents of a regular file, in the order of the file, without holes. It first writes data
    /// that waits in memory. Positions are addresses of the engine; adjacent positions are adjacent
    /// on a device. Contents inside the inode have no extent.
    ///
    /// Errors: `IsDirectory`; `Invalid` for other kinds; `Unsupported` if the engine has no such
    /// report; `NoSpace`. Cost: reads maps.
    fn extents(&self, ino: Ino) -> FsResult<Vec<Extent>> {
        self.attributes(ino).and(Err(FsError::Unsupported))
    }

    /// The size of the file system and its free space. Cost: constant.
    fn space(&self) -> FsResult<SpaceReport>;
}
