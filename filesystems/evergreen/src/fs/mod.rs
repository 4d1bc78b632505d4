//! The file system: names, inodes and blocks as keys and values of a store.
//!
//! Each call is one batch of the store, so it is atomic; only a write or a clone of more than
//! [`contents::BATCH_BLOCKS`] blocks has several. Changes need few reads: inodes in use are in
//! memory ([`table`]), and a file without holes has all its blocks. So a write to it reads nothing,
//! and sends a patch where it does not fill a block. A truncation and a removal delete ranges,
//! whatever their length.
//!
//! The claim of an object follows from its inode ([`inode_record::Inode::claim`]), and is freed at
//! once.
//!
//! Inode numbers are never reused. The record `home_of` leads from a number to the keys. It is
//! written at birth and when the keys move. It is read only if a call names an inode that no recent
//! lookup or listing returned.

mod check;
mod contents;
pub(crate) mod evergreen;
mod file_ranges;
mod file_system;
pub(crate) mod inode_record;
mod inode_table;
mod inodes;
mod key_sweep;
pub(crate) mod labels;
mod listing;
pub(crate) mod name_record;
pub(crate) mod names;
mod on_device;
mod rename;
mod survey;
pub(crate) mod xattrs;

pub use check::check_files;
pub use evergreen::{EvergreenFs, FsOptions};
pub use key_sweep::{KeySweep, KeySweepCounts};
pub use survey::{Survey, SurveyedFile, survey};
