//! The trait.

use std::ops::ControlFlow;

use senesce_core::Extent;

use crate::{Attributes, Caller, FileKind, FsError, FsResult, Ino, NewNode, SetAttributes, SpaceReport, Timestamp};

/// One name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The name's inode.
    pub ino: Ino,
    /// What the inode is.
    pub kind: FileKind,
    /// Where the next reading goes on: behind this entry. From 1 to 2^62.
    pub cookie: u64,
    /// The name.
    pub name: &'a [u8],
}

/// What a rename does with a name that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameHow {
    /// Replaces it: a file by a file, an empty directory by a directory.
    Replace,
    /// Fails with `Exists`.
    NoReplace,
    /// Both names must exist, and change places; one may be a directory and the other not.
    Exchange,
}

/// What `allocate` does to a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocateHow {
    /// Reserves space: writes there do not fail for want of it, as far as the engine can promise. Content stays.
    Reserve {
        /// The length stays; else the file grows to hold the range.
        keep_size: bool,
    },
    /// Makes a hole; the length stays.
    Punch,
    /// Makes it read as zeros.
    Zero {
        /// The length stays; else the file grows to hold the range.
        keep_size: bool,
    },
}

/// What `seek` looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekTo {
    /// The next byte that is not known to be zero.
    Data,
    /// The next byte of a hole; the end of the file is one.
    Hole,
}

/// What `set_xattr` does with an attribute that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetXattrHow {
    /// Sets it, whether it exists or not.
    Any,
    /// Fails with `Exists` if it does.
    Create,
    /// Fails with `NoAttribute` if it does not.
    Replace,
}

/// What is left to do of a read that waits for something far away: it reads into as many bytes as the read was begun with.
pub type RestOfRead = Box<dyn FnOnce(&mut [u8]) -> FsResult<usize> + Send>;

/// How far a read is.
pub enum ReadBegun {
    /// It is done.
    Done(FsResult<usize>),
    /// It has to wait, which any thread may do.
    Waits(RestOfRead),
}

/// A file system at inode level.
///
/// **Every call is atomic**: it is done, or it fails and changes nothing; only a write, a clone or a truncation that
/// meets the end of the space or a device's error may be done in part. Calls come from several threads, and take effect in some order.
///
/// **Names** are bytes ([`check_name`](crate::check_name)). `.` and `..` are never listed, and only `lookup` knows them.
///
/// **Times** come with the [`Caller`]. Where a method changes something, it sets
/// - *changed* and *modified* of a directory whose names change (both directories of a rename),
/// - *changed* of an inode whose attributes, extended attributes or number of names change, and of what is renamed,
/// - *changed* and *modified* of a file that is written or cloned to (one byte at least), truncated or allocated (whether
///   the length changes or not),
/// - all three of what is made.
///
/// Reading changes no time.
///
/// **Inodes without a name** live on while they are held open ([`open`](Self::open)), with `links` 0; everything but
/// making names works on them. They are gone when the file system is opened again.
///
/// **Durable** is what was done before a [`sync`](Self::sync) that returned; an engine may promise more. After a loss of
/// power, the state is one that existed after the last sync.
///
/// **Permissions** are not looked at, nor is the sticky bit, nor are set-id bits cleared by writes: kernels do that.
///
/// Errors that every method may give, and that are not told again: `Io`, `Corrupt`, and `Stale` or `NotFound` for an
/// inode that is not there. Methods that change give `ReadOnly` and, unless they remove, `NoSpace`.
pub trait FileSystem: Send + Sync {
    /// The inode behind a name. `.` is the directory itself, `..` its parent; that of the root is the root, and a
    /// directory that was removed has none.
    ///
    /// Errors: `NotFound`, `NotDirectory`, `TooLong`.
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes>;

    /// What `stat` shows.
    fn attributes(&self, ino: Ino) -> FsResult<Attributes>;

    /// Changes attributes, all or none. *changed* becomes the caller's time, whatever else is asked for; a size, even
    /// the one that it has, sets *modified* too.
    ///
    /// Errors for a size: `IsDirectory`, `Invalid` for what is no regular file, `TooLarge`, `NoSpace`.
    fn set_attributes(&self, caller: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes>;

    /// Makes an inode with a name. Owner, group and permissions are those of [`NewNode::ownership`].
    ///
    /// Errors: `Exists`, `NotFound` (a directory that was removed), `NotDirectory`, `TooLong`, `TooManyLinks` for a
    /// directory, `Invalid` (a symbolic link).
    fn make_node(&self, caller: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes>;

    /// Makes a symbolic link of 1 to 4,095 bytes with permissions 777.
    ///
    /// Errors: as `make_node`; `TooLong` for the target, `NotFound` for an empty one.
    fn symlink(&self, caller: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes>;

    /// The target of a symbolic link. Errors: `Invalid` for anything else.
    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>>;

    /// Makes one more name.
    ///
    /// Errors: as `make_node`; `NotPermitted` for a directory, `NotFound` for an inode without a name, `TooManyLinks`.
    fn link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes>;

    /// Removes a name of anything but a directory.
    ///
    /// Errors: `NotFound`, `NotDirectory` (where the name should be), `IsDirectory`.
    fn unlink(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()>;

    /// Removes an empty directory.
    ///
    /// Errors: `NotFound`, `NotDirectory`, `NotEmpty`.
    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()>;

    /// Renames. Two names of one inode: nothing is done (nor are times set), and that is no error; so it is for a name
    /// and itself.
    ///
    /// Errors: `NotFound`; `Exists` (`NoReplace`); `Invalid` if a directory would come below itself;
    /// `NotDirectory` and `IsDirectory` if one is a directory and the other not; `NotEmpty`; `TooManyLinks`.
    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameHow) -> FsResult<()>;

    /// Reads from `offset` on and says how many bytes: fewer than `out` holds only at the end of the file, 0 behind it.
    ///
    /// Errors: `IsDirectory`, `Invalid` for what is neither.
    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize>;

    /// The same, as far as nothing far away has to be waited for: for those who serve many with few threads.
    fn begin_read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> ReadBegun {
        ReadBegun::Done(self.read(ino, offset, out))
    }

    /// Writes at `offset`; what lies between the end and `offset` reads as zeros. Says how many bytes were written: all,
    /// or fewer, at least one, where the space ended. No bytes: nothing is done, and it is not an error.
    ///
    /// Errors: `IsDirectory`, `Invalid` for what is neither; `TooLarge`; `NoSpace` if not one byte could be written.
    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize>;

    /// Whether later writes find the space that [`allocate`](Self::allocate) reserves. A mount
    /// refuses `fallocate` with EOPNOTSUPP if they do not.
    fn keeps_reservations(&self) -> bool {
        true
    }

    /// Changes the space of a range of a regular file, as `fallocate` does.
    ///
    /// Errors: `IsDirectory`, `Invalid` (no regular file, an empty range), `TooLarge`, `NoSpace`, `Unsupported`.
    fn allocate(&self, caller: &Caller, ino: Ino, how: AllocateHow, offset: u64, len: u64) -> FsResult<()>;

    /// Makes a range of a regular file read as one of another (or the same) does now, without copying it where the engine
    /// can share: from then on each goes its own way. Holes stay holes. `len` bytes, or fewer where the source ends or the
    /// space; says how many. None: nothing is done.
    ///
    /// Both places are multiples of [`CLONE_BYTES`](crate::CLONE_BYTES), and so is `len`, unless it reaches the source's end
    /// ([`check_clone`](crate::check_clone)).
    ///
    /// Errors: `IsDirectory`, `Invalid` (no regular file, other places, ranges of one file that overlap), `TooLarge`,
    /// `NoSpace` if nothing could be cloned, `Unsupported`.
    fn clone_range(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        let _ = (caller, from, to, len);
        Err(FsError::Unsupported)
    }

    /// The first place from `offset` on with data or a hole, as `lseek` has it. Holes may be told as data.
    ///
    /// Errors: `NoData` if `offset` is at or behind the end, or there is no more data; `Invalid` for what is no file.
    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64>;

    /// Gives the entries behind `cookie` (0: from the beginning) to `sink`, until it breaks or the directory ends.
    ///
    /// The cookie of an entry does not change while the entry exists, nor when the file system is opened again. Readings
    /// that follow each other give every entry exactly once that exists all the time, whatever is made, removed or renamed
    /// meanwhile. `sink` may be called under a lock: it must not call back.
    ///
    /// Errors: `NotDirectory`. A directory that was removed is empty.
    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()>;

    /// The value of an extended attribute. Its name is whole, with `user.` and the like, which mean nothing here.
    ///
    /// Errors: `NoAttribute`.
    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>>;

    /// Sets an extended attribute, of up to 65,536 bytes; an engine may hold fewer, but
    /// 4,000.
    ///
    /// Errors: `Exists`, `NoAttribute` (see [`SetXattrHow`]), `TooLong` (the name), `ValueTooLong`, `NoSpace`.
    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrHow) -> FsResult<()>;

    /// The names of all extended attributes, in the order of their bytes.
    fn list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>>;

    /// Removes an extended attribute. Errors: `NoAttribute`.
    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()>;

    /// Holds an inode: it lives on when its last name is removed. Counted; holding is not durable.
    fn open(&self, ino: Ino) -> FsResult<()>;

    /// Gives back what was held. With the last one, an inode without a name is removed, with its space.
    ///
    /// `now` is the time at which that is done, if the engine wants to write it down.
    fn release(&self, ino: Ino, now: Timestamp) -> FsResult<()>;

    /// Makes all that was done to an inode durable: its content and attributes, and the names that lead to it.
    fn sync(&self, ino: Ino) -> FsResult<()>;

    /// Makes all that was done durable.
    fn sync_all(&self) -> FsResult<()>;

    /// Where the content of a regular file lies, in the order of the file, without its holes: after writing what waits in
    /// memory. Positions are bytes of the engine's own addresses; neighbours in number lie behind each other on a device.
    /// Content inside the inode has no extent.
    ///
    /// Errors: `IsDirectory`, `Invalid` for what is neither, `Unsupported` where the engine does not tell, `NoSpace`.
    /// Cost: reads maps.
    fn extents(&self, ino: Ino) -> FsResult<Vec<Extent>> {
        self.attributes(ino).and(Err(FsError::Unsupported))
    }

    /// What it holds and has left. Cost: none that grows.
    fn space(&self) -> FsResult<SpaceReport>;
}
