//! Dumps: every structure of an aggregate that is not open, field by field, as it lies on the devices.
//!
//! It reads as the check does, without the engine, and writes nothing. What is damaged is shown as far as it can be read,
//! with what is wrong; blocks that cannot be read on the way to it are put together from the other drives.

mod aggregate;
mod counts;
mod file;
mod fixed;
mod layout;
mod log;
mod object;
mod reader;
mod slot;
mod survey;
mod walk;

use std::{ops::Range, sync::Arc};

use senesce_block::BlockDevice;
use senesce_fsapi::dump as value;
use senesce_objects::ObjectStore;

use crate::{
    error::{Error, Result},
    log::LogDevices,
};
use reader::Reader;
pub use survey::{Survey, SurveyedArea, SurveyedFile, SurveyedRun, survey};
pub use value::{Dump, DumpTable, DumpValue};

/// What is to be shown. Volumes have names; paths begin at a volume's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpWhat {
    /// The labels of drives and log.
    Labels,
    /// Both superblocks of every drive.
    Superblocks,
    /// The record of every volume.
    Volumes,
    /// The record of every snapshot.
    Snapshots,
    /// A file of the aggregate: its inode and pointers.
    AggregateFile {
        /// Its number.
        file: u64,
    },
    /// An inode of a volume, and its pointers.
    Inode {
        /// The volume's name.
        volume: Vec<u8>,
        /// Its number.
        ino: u64,
    },
    /// The same by a path.
    File {
        /// The volume's name.
        volume: Vec<u8>,
        /// The path.
        path: Vec<u8>,
    },
    /// The blocks of a directory.
    Directory {
        /// The volume's name.
        volume: Vec<u8>,
        /// The path.
        path: Vec<u8>,
    },
    /// A part of the container map of a volume.
    Vvbns {
        /// The volume's name.
        volume: Vec<u8>,
        /// Which VVBNs.
        range: Range<u64>,
    },
    /// The slot at a PVBN.
    Pvbn {
        /// The number.
        pvbn: u64,
        /// Also the bytes of its payload.
        hex: bool,
    },
    /// Bits that say which blocks are in use.
    Bitmap {
        /// The name of the volume whose VVBNs they are; `None` for PVBNs.
        volume: Option<Vec<u8>>,
        /// Of a volume: those that snapshots use, all together.
        held: bool,
        /// Which blocks.
        range: Range<u64>,
    },
    /// How many pointers of a volume name each VVBN that is or was shared.
    References {
        /// The volume's name.
        volume: Vec<u8>,
        /// Which VVBNs.
        range: Range<u64>,
    },
    /// How many chunks each compacted block had at first, and how many are left.
    Chunks {
        /// Which PVBNs.
        range: Range<u64>,
    },
    /// The lists of areas with most free blocks.
    Areas,
    /// The records of the objects that hold cold blocks.
    Objects,
    /// An object as the store has it: its head, and its blocks with the maps that name them.
    Object {
        /// Its number.
        number: u64,
    },
    /// The log: label and records.
    Log,
}

/// Shows a structure of an aggregate that is not open; tables have at most `most` rows.
///
/// Errors: what keeps from looking at all (no label or superblock that can be read, where one is needed; devices'
/// errors); `Invalid` for a volume or path that is not there, and for an object. Damage is in the dump. Cost: reads what is shown
/// and the blocks above it; the whole tree of a file.
pub fn dump(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>, what: &DumpWhat, most: u64) -> Result<Dump> {
    dump_with(drives, log, None, what, most)
}

/// The same with the store of the objects. Errors: `ColdStore` if it does not give the object that is to be shown.
pub fn dump_with(
    drives: &[Arc<dyn BlockDevice>],
    log: impl Into<LogDevices>,
    objects: Option<&Arc<dyn ObjectStore>>,
    what: &DumpWhat,
    most: u64,
) -> Result<Dump> {
    let log = &log.into();
    match what {
        DumpWhat::Labels => return fixed::labels(drives, log),
        DumpWhat::Superblocks => return fixed::superblocks(drives),
        DumpWhat::Log => {
            // Without a superblock nothing says which records count; the log is shown all the same.
            let sb = Reader::open(drives, log).ok().map(|reader| reader.media.sb);
            return log::log(drives, log, sb.as_ref(), most);
        }
        _ => {}
    }
    let reader = Reader::open(drives, log)?;
    let mut dump = match what {
        DumpWhat::Volumes => aggregate::volumes(&reader),
        DumpWhat::AggregateFile { file } => file::of_aggregate(&reader, *file, most),
        DumpWhat::Inode { volume, ino } => file::inode(&reader, volume, *ino, most)?,
        DumpWhat::File { volume, path } => file::by_path(&reader, volume, path, most)?,
        DumpWhat::Directory { volume, path } => file::directory(&reader, volume, path, most)?,
        DumpWhat::Vvbns { volume, range } => aggregate::container(&reader, volume, range.clone(), most)?,
        DumpWhat::Pvbn { pvbn, hex } => slot::at_pvbn(&reader, *pvbn, *hex),
        DumpWhat::Bitmap { volume, held, range } => {
            aggregate::bitmap(&reader, volume.as_deref(), *held, range.clone(), most)?
        }
        DumpWhat::Snapshots => counts::snapshots(&reader),
        DumpWhat::References { volume, range } => counts::references(&reader, volume, range, most)?,
        DumpWhat::Chunks { range } => counts::chunks(&reader, range, most),
        DumpWhat::Objects => counts::objects(&reader, most),
        DumpWhat::Object { number } => match objects {
            Some(store) => object::object(&reader, store, *number, most)?,
            None => return Err(Error::invalid("no object store was given: name one with --objects")),
        },
        DumpWhat::Labels | DumpWhat::Superblocks | DumpWhat::Log | DumpWhat::Areas => aggregate::areas(&reader, most),
    };
    dump.wrong.extend(reader.notes.iter().cloned());
    if reader.repaired.get() > 0 {
        dump.wrong(format!("{} blocks on the way here come from the other drives", reader.repaired.get()));
    }
    Ok(dump)
}
