//! The file system: names, inodes and blocks as keys and values of a store.
//!
//! Every call becomes one batch of the store, so that it is there whole or not at all; only a write or a clone of more than
//! [`contents::BATCH_BLOCKS`] blocks is several. What is changed is known: inodes are in memory while they are used
//! ([`table`]), and a file without holes has all its blocks. So a write reads nothing, and sends patches where it does not fill a
//! block; a truncation and a removal are ranges, whatever their length.
//!
//! What an object claims of the space follows from its inode ([`inode::Inode::claim`]), and is given back at once.
//!
//! Inode numbers do not come again. The record `home_of` of each leads from its number to its keys: it is written once, behind those
//! made before, and read only if an inode is asked for by its number that neither a name nor a listing led to lately.

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
