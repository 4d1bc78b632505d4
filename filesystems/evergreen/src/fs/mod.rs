//! The file system: names, inodes and blocks as keys and values of a store.
//!
//! Each call is one batch of the store, so it is atomic; only a write or a clone of more than
//! [`contents::BATCH_BLOCKS`] blocks has several. Changes need few reads: inodes in use are in
//! memory ([`table`]), and a file without holes has all its blocks. So a write to it reads nothing,
//! and sends a patch where it does not fill a block. A truncation and a removal delete ranges,
//! whatever their length.
//!
//! The claim of an object follows from its inode ([`inode::Inode::claim`]), and is freed at once.
//!
//! Inode numbers are never reused. The record `home_of` leads from a number to the keys. It is
//! written at birth and when the keys move. It is read only if a call names an inode that no recent
//! lookup or listing returned.

mod check;
mod contents;
mod device;
mod entry;
mod evergreen;
mod file_system;
mod holes;
mod inode;
mod labels;
mod listing;
mod mend;
mod names;
mod nodes;
mod rehome;
mod rename;
mod survey;
mod table;
mod xattrs;

pub use check::check_files;
pub use evergreen::{EvergreenFs, FsOptions};
pub(crate) use mend::mend_files;
pub use mend::{LostFile, Mended};
pub use rehome::{KeySweep, KeySweepCounts};
pub use survey::{Survey, SurveyedFile, survey};
