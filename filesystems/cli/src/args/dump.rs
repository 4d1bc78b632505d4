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
    /// Print at most N rows of each table, and the number of the others.
    #[arg(long, value_name = "N", default_value_t = 1000, global = true)]
    pub most: u64,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// A structure. Volumes have names, paths start at the root of a volume.
#[derive(Debug, Subcommand)]
pub enum FsDumpWhat {
    /// Print the labels of all drives and of the log.
    Label,
    /// Print both superblocks of all drives.
    Superblock,
    /// Print the record of every volume.
    Volumes,
    /// Print the record of every snapshot.
    Snapshots,
    /// Print the inode and the pointers of a file of the aggregate.
    Aggregate {
        /// The number of the file.
        ///
        /// 0 inodes, 1 bits of PVBNs, 2 volume table, 3 areas, 4 snapshot table, 5 chunk counts,
        /// 7 objects, 16 and up containers.
        file: u64,
    },
    /// Print an inode of a volume, and its pointers.
    Inode {
        /// The volume.
        volume: String,
        /// The inode's number.
        ino: u64,
    },
    /// Print the inode of a file or directory, and the locations of its blocks.
    File {
        /// The volume.
        volume: String,
        /// The path.
        path: PathBuf,
    },
    /// Print the blocks of a directory.
    Directory {
        /// The volume.
        volume: String,
        /// The path.
        path: PathBuf,
    },
    /// Print the container map of a volume: the PVBN of each VVBN.
    Vvbn {
        /// The volume.
        volume: String,
        /// One number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
    },
    /// Print the block at a PVBN, its trailer, and the pointers to it.
    Pvbn {
        /// The number.
        pvbn: u64,
        /// Also print the bytes of its payload.
        #[arg(long)]
        hex: bool,
    },
    /// Print the bitmap of blocks in use.
    Bitmap {
        /// One number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
        /// Print VVBNs of this volume. Default: PVBNs.
        #[arg(long, value_name = "NAME")]
        volume: Option<String>,
        /// Print the VVBNs that the snapshots of the volume use.
        #[arg(long, requires = "volume")]
        snapshots: bool,
    },
    /// Print the number of pointers to each VVBN that is or was shared.
    References {
        /// The volume.
        volume: String,
        /// One number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
    },
    /// Print the chunks of each compacted block: written, and still in use.
    Chunks {
        /// PVBNs: one number, or FROM..TO.
        #[arg(default_value = "..")]
        range: Numbers,
    },
    /// Print the areas with most free blocks, for each RAID group.
    Areas,
    /// Print the records of the objects that hold cold blocks.
    Objects,
    /// Print the head and the blocks of an object in its store.
    Object {
        /// Its number.
        number: u64,
        #[command(flatten)]
        objects: FsObjectsArgs,
    },
    /// Print the log, record by record.
    Log,
    /// Evergreen: print the location of each node.
    Map,
    /// Evergreen: print the free extents.
    Space,
    /// Evergreen: print all nodes from the root, with their bounds.
    Tree,
    /// Evergreen: print a node, its parts and their contents.
    Node {
        /// Its number.
        id: u64,
    },
}

/// Numbers: `7`, `7..20`, `7..`, `..`.
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
