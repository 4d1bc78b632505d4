//! Arguments of `image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::NameValue;

#[derive(Debug, Args)]
pub struct ImageArgs {
    #[command(subcommand)]
    pub verb: ImageVerb,
}

#[derive(Debug, Subcommand)]
pub enum ImageVerb {
    /// Save an image or a device that is not in use into a container.
    #[command(after_long_help = "Examples:\n  \
        senesce image save aged.img aged.senesce-image --set workload=fsfb\n  \
        sudo senesce image save aged.img aged.senesce-image --trim     without contents of deleted files")]
    Save(ImageSaveArgs),
    /// Restore the volume, byte for byte, to a sparse image or a device.
    #[command(after_long_help = "Examples:\n  \
        senesce image restore aged.senesce-image aged.img\n  \
        sudo senesce image restore aged.senesce-image /dev/sdb --dry-run")]
    Restore(ImageRestoreArgs),
    /// List the contents of containers and how they were aged.
    #[command(after_long_help = "Example:\n  \
        senesce image list *.senesce-image")]
    List {
        /// Containers, or directories with containers in them.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check every byte of containers against their hashes.
    #[command(after_long_help = "Example:\n  \
        senesce image verify aged.senesce-image")]
    Verify {
        /// The containers.
        #[arg(required = true)]
        containers: Vec<PathBuf>,
        /// Threads. Default: one for each processor.
        #[arg(long, value_name = "N")]
        threads: Option<std::num::NonZeroUsize>,
    },
}

#[derive(Debug, Args)]
pub struct ImageSaveArgs {
    /// The image or device.
    pub source: PathBuf,
    /// The container. It must not exist.
    pub container: PathBuf,
    /// Add a circumstance, such as workload=fsfb. Repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<NameValue>,
    /// Leave out deleted contents in free space. Needs root.
    ///
    /// Saves a copy of the image that was mounted and trimmed (fstrim). The copy is made beside the
    /// container.
    #[arg(long)]
    pub trim: bool,
    /// Check the source and the container. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Level of zstd.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: i32,
    /// Threads. Default: one for each processor.
    ///
    /// The container does not depend on them.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}

#[derive(Debug, Args)]
pub struct ImageRestoreArgs {
    /// The container.
    pub container: PathBuf,
    /// An image, which must not exist, or a block device.
    pub to: PathBuf,
    /// Replace an image, or a device that carries a signature.
    ///
    /// A device in use is never replaced.
    #[arg(long)]
    pub force: bool,
    /// Check the target and print the container. Write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not wait until an image is on the disk.
    #[arg(long)]
    pub no_sync: bool,
    /// Threads. Default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}
