//! The keys of the file system. Their order is the order in which objects are read.
//!
//! The keys of an object (a file, a directory, ...) start with its *home*. A home is the home of
//! the parent at birth, a prefix of the name at birth ([`home::BIRTH_NAME_BYTES`]), a zero, and the
//! inode's number. So the tree keeps objects in the order of their paths at birth. A renamed
//! directory keeps its home, and so do all objects below it.
//!
//! | key | what |
//! |---|---|
//! | `m` home `00` | the inode; `m` home `00 00` a symbolic link's target |
//! | `m` home `01 00` number | a name without a place in the order of names: see `fs::labels` |
//! | `m` home `01` name | a name in a directory |
//! | `m` home `02` name `00` piece | a piece of an extended attribute |
//! | `d` home `00` number | a block of a file |
//! | `s` `00` | the layout of the keys; `s` `01` numbers below this one may be in use |
//! | `s` `02` number | the home of an inode; `s` `03` number: an inode without a name |
//!
//! In the key of a child, the bytes after the parent's home start with 3 or more. All other parts
//! of a key start with less. So the keys of a home are adjacent, and no other key is among them.

mod home;
mod key;
mod number;

pub use home::Home;
pub use key::{INOS_AT_ONCE, Key, home_of_key, layout_key, next_ino_key, next_ino_of, orphan_key, orphans};
pub(crate) use number::{put_number, take_number};

/// The greatest inode number. No file system lives long enough to use more.
pub(crate) const MOST_INO: u64 = 1 << 62;
