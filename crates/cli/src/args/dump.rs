//! Arguments of `fs dump`.

use std::{ops::Range, path::PathBuf, str::FromStr};

use clap::{Args, Subcommand};

use super::FsObjectsArgs;

#[derive(Debug, Args)]
pub struct FsDumpArgs {
    /// The directory, file or device that `fs mkfs` made.
    pub place: PathBuf,
    #[command(subcommand)]
    pub what: FsDumpWhat,
    /// Rows of each table that are shown; more are counted.
    #[arg(long, value_name = "N", default_value_t = 1000, global = true)]
    pub most: u64,
    /// As JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// Which structure. Volumes are named, paths begin at a volume's root.
#[derive(Debug, Subcommand)]
pub enum FsDumpWhat {
    /// The labels of all drives and of the log.
    Label,
    /// Both superblocks of all drives.
    Superblock,
    /// The record of every volume.
    Volumes,
    /// The record of every snapshot.
    Snapshots,
    /// A file of the aggregate: its inode and pointers.
    Aggregate {
        /// 0 inodes, 1 bits of PVBNs, 2 volume table, 3 areas, 4 snapshot table, 5 counts of chunks, 7 objects, 16 and up containers.
        file: u64,
    },
    /// An inode of a volume, and its pointers.
    Inode {
        /// The volume.
        volume: String,
        /// The inode's number.
        ino: u64,
    },
    /// A file or directory by its path: its inode, and where its blocks lie.
    File {
        /// The volume.
        volume: String,
        /// The path.
        path: PathBuf,
    },
    /// The blocks of a directory.
    Directory {
        /// The volume.
        volume: String,
        /// The path.
        path: PathBuf,
    },
    /// The container map of a volume: where its VVBNs lie.
    Vvbn {
        /// The volume.
        volume: String,
        /// One number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
    },
    /// The block at a PVBN, its trailer, and who names it.
    Pvbn {
        /// The number.
        pvbn: u64,
        /// Also the bytes of its payload.
        #[arg(long)]
        hex: bool,
    },
    /// The bits that say which blocks are in use.
    Bitmap {
        /// One number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
        /// The VVBNs of this volume; else PVBNs.
        #[arg(long, value_name = "NAME")]
        volume: Option<String>,
        /// Of the volume: those that its snapshots use, all together.
        #[arg(long, requires = "volume")]
        snapshots: bool,
    },
    /// How many pointers of a volume name each VVBN that is or was shared.
    References {
        /// The volume.
        volume: String,
        /// One number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
    },
    /// How many chunks each compacted block had at first, and how many are left.
    Chunks {
        /// PVBNs: one number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
    },
    /// The areas with most free blocks, for each RAID group.
    Areas,
    /// The records of the objects that hold cold blocks.
    Objects,
    /// An object as its store has it: its head, and the blocks that it holds.
    Object {
        /// Its number.
        number: u64,
        #[command(flatten)]
        objects: FsObjectsArgs,
    },
    /// The log, record by record.
    Log,
    /// Of an evergreen: where each node lies.
    Map,
    /// Of an evergreen: the extents that are free.
    Space,
    /// Of an evergreen: all nodes from the root on, with their bounds.
    Tree,
    /// Of an evergreen: a node, its parts and what is in them.
    Node {
        /// Its number.
        id: u64,
    },
}

/// Some numbers: `7`, `7..20`, `7..`, `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(pub Range<u64>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str, none: u64| if part.is_empty() { Some(none) } else { part.parse().ok() };
        let range = match text.split_once("..") {
            Some((from, to)) => number(from, 0).zip(number(to, u64::MAX)),
            None => text.parse().ok().and_then(|one: u64| Some((one, one.checked_add(1)?))),
        };
        match range {
            Some((from, to)) if from < to => Ok(Self(from..to)),
            _ => Err(format!("{text:?} names no numbers; write 7, or 7..20 without the last")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_one_or_some() {
        let parsed = |text: &str| text.parse::<Numbers>().map(|numbers| numbers.0);
        assert_eq!(parsed("7"), Ok(7..8));
        assert_eq!(parsed("7..9"), Ok(7..9));
        assert_eq!((parsed("..9"), parsed("9.."), parsed("..")), (Ok(0..9), Ok(9..u64::MAX), Ok(0..u64::MAX)));
        for bad in ["", "x", "9..7", "7..7", "-1", "18446744073709551615"] {
            assert!(parsed(bad).unwrap_err().contains("names no numbers"), "{bad}");
        }
    }
}
