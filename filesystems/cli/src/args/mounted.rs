//! Arguments about mounted file systems of this project.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use senesce_core::Bytes;

/// How a mounted file system is checked.
#[derive(Clone, Copy, Debug, Args)]
pub struct FsOnlineArgs {
    /// Fail if it is not mounted.
    ///
    /// A mounted file system is checked as it is at one moment, with or without this option.
    #[arg(long, conflicts_with = "repair")]
    pub online: bool,
    /// Memory for data overwritten during the check of a mount.
    ///
    /// If programs overwrite more, the check fails. The programs continue.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", conflicts_with = "repair")]
    pub keep: Bytes,
}

/// A volume or snapshot, and where to mount it.
#[derive(Clone, Debug)]
pub struct AlsoArg {
    /// `VOLUME` or `VOLUME/SNAPSHOT`.
    pub name: String,
    /// The mount point.
    pub point: PathBuf,
}

impl FromStr for AlsoArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, point)) if !name.is_empty() && !point.is_empty() => {
                Ok(Self { name: name.to_owned(), point: point.into() })
            }
            _ => Err("write VOLUME=POINT or VOLUME/SNAPSHOT=POINT"),
        }
    }
}
