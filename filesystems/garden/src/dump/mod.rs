//! Dumps: every structure of an aggregate that is not open, field by field, as it is on the
//! devices.
//!
//! A dump reads like the check, without the engine, and writes nothing. A damaged structure is
//! shown as far as it can be read, with its damage. Unreadable blocks on the path to it are
//! restored from the other drives.

mod aggregate;
mod counts;
mod field_offsets;
mod file;
mod fixed;
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

/// The structure to show. Volumes are given by name; paths start at a volume's root.
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
        /// The number of the file.
        file: u64,
    },
    /// An inode of a volume, and its pointers.
    Inode {
        /// The name of the volume.
        volume: Vec<u8>,
        /// The number of the inode.
        ino: u64,
    },
    /// The inode at a path, and its pointers.
    File {
        /// The name of the volume.
        volume: Vec<u8>,
        /// The path.
        path: Vec<u8>,
    },
    /// The blocks of a directory.
    Directory {
        /// The name of the volume.
        volume: Vec<u8>,
        /// The path.
        path: Vec<u8>,
    },
    /// A part of the container map of a volume.
    Vvbns {
        /// The name of the volume.
        volume: Vec<u8>,
        /// The VVBNs to show.
        range: Range<u64>,
    },
    /// The slot at a PVBN.
    Pvbn {
        /// The PVBN.
        pvbn: u64,
        /// Whether to show the bytes of its payload too.
        hex: bool,
    },
    /// The bits of blocks in use.
    Bitmap {
        /// The name of the volume whose VVBNs to show; `None` for PVBNs.
        volume: Option<Vec<u8>>,
        /// Whether to show the VVBNs that snapshots of the volume use.
        held: bool,
        /// The blocks to show.
        range: Range<u64>,
    },
    /// The number of a volume's pointers to each VVBN that is or was shared.
    References {
        /// The name of the volume.
        volume: Vec<u8>,
        /// The VVBNs to show.
        range: Range<u64>,
    },
    /// The initial and current number of chunks of each compacted block.
    Chunks {
        /// The PVBNs to show.
        range: Range<u64>,
    },
    /// The lists of areas with most free blocks.
    Areas,
    /// The records of the objects that hold cold blocks.
    Objects,
    /// An object in the store: its head, its blocks, and the maps that name them.
    Object {
        /// The number of the object.
        number: u64,
    },
    /// The log: its records.
    Log,
}

/// Shows a structure of an aggregate that is not open. Tables have up to `most` rows. Damage is in
/// the dump.
///
/// Errors: no label or superblock can be read where one is needed; a device fails; `Invalid` for a
/// volume or path that does not exist, and for an object.
///
/// Cost: reads the structure and the blocks above it; for a file, its whole tree.
pub fn dump(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>, what: &DumpWhat, most: u64) -> Result<Dump> {
    dump_with(drives, log, None, what, most)
}

/// Like [`dump`], with the store of the objects. Errors: `ColdStore` if it does not return the
/// object.
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
            // Without a superblock it is unknown which records count, but the log is still shown.
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
