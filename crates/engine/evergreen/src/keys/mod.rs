//! The keys of the file system: their order is the order in which things are read.
//!
//! An object (a file, a directory, ...) has a *home*, which its keys begin with: that of its parent at its birth, the first
//! [`home::BIRTH_NAME_BYTES`] bytes of its name at birth, a zero, its number. So what lay beside each other at birth lies beside each
//! other in the tree, in the order of the paths; a renamed directory keeps its home, and with it all that lies below.
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
//! What comes behind a home in the key of a child begins with a byte from 3 on, and homes can be told from what follows: so
//! the keys of one home lie together and no other's are among them.

mod home;
mod key;
mod number;

pub use home::Home;
pub use key::{INOS_AT_ONCE, Key, home_of_key, layout_key, next_ino_key, next_ino_of, orphan_key, orphans};
pub(crate) use number::{put_number, take_number};

/// No inode has a greater number: none lasts so long that more are made.
pub(crate) const MOST_INO: u64 = 1 << 62;
