//! Arguments of the evergreen.

use clap::{Args, ValueEnum};
use senesce_core::Bytes;

/// The shape of an evergreen. Other shapes than the default show what the default is worth.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Of an evergreen")]
pub struct FsTreeArgs {
    /// Largest node of the tree. Default: 4MiB.
    ///
    /// On devices below 1GiB the default is a 256th of the device.
    #[arg(long, value_name = "SIZE")]
    pub node_size: Option<Bytes>,
    /// Part of a leaf that one read needs (basement).
    ///
    /// Default: a 32nd of a node, 4KiB to 128KiB.
    #[arg(long, value_name = "SIZE")]
    pub basement_size: Option<Bytes>,
    /// Children of a node. Default: 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=1024))]
    pub fanout: Option<u32>,
    /// Unit of space, a power of two.
    ///
    /// Default: a 64th of a node, 4KiB to 64KiB.
    #[arg(long, value_name = "SIZE")]
    pub unit_size: Option<Bytes>,
    /// Key order: birth-path (default) or inode-number.
    ///
    /// birth-path: by the path at creation, so that neighbours of a directory are adjacent.
    #[arg(long, value_enum, value_name = "ORDER", hide_possible_values = true)]
    pub key_order: Option<KeyOrderArg>,
    /// Copies of inner nodes and of their map. Default: 2.
    ///
    /// With 2, no damaged block of them loses a file. 1 writes less.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    pub metadata_copies: Option<u32>,
}

impl FsTreeArgs {
    /// Whether an option is given.
    pub fn is_given(&self) -> bool {
        let Self { node_size, basement_size, fanout, unit_size, key_order, metadata_copies } = self;
        let has_size = node_size.or(*basement_size).or(*unit_size).is_some();
        has_size || fanout.or(*metadata_copies).is_some() || key_order.is_some()
    }
}

/// The order of keys in an evergreen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyOrderArg {
    /// By the path at creation: neighbours of a directory are adjacent.
    BirthPath,
    /// By the number of the inode.
    InodeNumber,
}
