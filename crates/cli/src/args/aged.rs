//! Arguments of the verbs that make and keep aged volumes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct ImageArgs {
    #[command(subcommand)]
    pub verb: ImageVerb,
}

#[derive(Debug, Subcommand)]
pub enum ImageVerb {
    /// Save an image or a device that is not in use into a container.
    Save(ImageSaveArgs),
    /// Make the volume again, byte for byte: a sparse image, or the contents of a device.
    Restore(ImageRestoreArgs),
    /// What containers hold and how it was aged.
    List {
        /// Containers, or directories with containers in them.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check every byte of containers against their hashes.
    Verify {
        /// The containers.
        #[arg(required = true)]
        containers: Vec<PathBuf>,
        /// Threads; default: one for each processor.
        #[arg(long, value_name = "N")]
        threads: Option<usize>,
    },
}

#[derive(Debug, Args)]
pub struct ImageSaveArgs {
    /// The image or device.
    pub source: PathBuf,
    /// The container; it must not exist.
    pub container: PathBuf,
    /// A circumstance to keep with it, such as workload=fsfb; may be given again.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<NameValue>,
    /// zstd's level.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: i32,
    /// Threads; default: one for each processor. The container does not depend on it.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

#[derive(Debug, Args)]
pub struct ImageRestoreArgs {
    /// The container.
    pub container: PathBuf,
    /// An image, which must not exist, or a block device.
    pub to: PathBuf,
    /// Replace an existing image; write to a device even if it carries a signature (never if it is in use).
    #[arg(long)]
    pub force: bool,
    /// Do not wait until an image is on the disk.
    #[arg(long)]
    pub no_sync: bool,
    /// Threads; default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameValue {
    pub name: String,
    pub value: String,
}

impl std::str::FromStr for NameValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self { name: name.to_owned(), value: value.to_owned() }),
            _ => Err(format!("{text:?} is not NAME=VALUE")),
        }
    }
}
