//! Arguments of the evergreen.

use clap::{Args, ValueEnum};
use senesce_core::Bytes;

/// How an evergreen is made. What is small, or in another order, is for showing what the usual is worth.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Of an evergreen")]
pub struct FsTreeArgs {
    /// Bytes of a node of the tree at most; 4MiB by default, on devices below 1GiB a 256th of them.
    #[arg(long, value_name = "SIZE")]
    pub node_size: Option<Bytes>,
    /// Bytes of a basement, the part of a leaf that is read for one block; a 32nd of a node by default, 4KiB to 128KiB.
    #[arg(long, value_name = "SIZE")]
    pub basement_size: Option<Bytes>,
    /// Children of a node; 16 by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=1024))]
    pub fanout: Option<u32>,
    /// Bytes of a unit of space, a power of two; a 64th of a node by default, 4KiB to 64KiB.
    #[arg(long, value_name = "SIZE")]
    pub unit_size: Option<Bytes>,
    /// The order in which things lie; birth-path by default.
    #[arg(long, value_enum, value_name = "ORDER")]
    pub key_order: Option<KeyOrderArg>,
    /// Copies of inner nodes and of the map of nodes: 2 by default, so that no damaged block of them loses a file; 1 writes less.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    pub metadata_copies: Option<u32>,
}

impl FsTreeArgs {
    /// Whether any of them is.
    pub fn is_given(&self) -> bool {
        let Self { node_size, basement_size, fanout, unit_size, key_order, metadata_copies } = self;
        let has_size = node_size.or(*basement_size).or(*unit_size).is_some();
        has_size || fanout.or(*metadata_copies).is_some() || key_order.is_some()
    }
}

/// The order in which an evergreen keeps things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyOrderArg {
    /// By the path at which they were made: what is read together lies together.
    BirthPath,
    /// By the number of the inode.
    InodeNumber,
}
