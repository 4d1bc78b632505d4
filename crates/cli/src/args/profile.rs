//! Arguments of `profile`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::complete;

#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(subcommand)]
    pub verb: ProfileVerb,
}

#[derive(Debug, Subcommand)]
pub enum ProfileVerb {
    /// List the built-in profiles.
    #[command(after_long_help = "Example:\n  \
        senesce profile list")]
    List,
    /// Draw sizes, depths and ages of a profile as bars.
    #[command(after_long_help = "Examples:\n  \
        senesce profile show agrawal\n  \
        senesce profile show agrawal --toml > mine.toml")]
    Show {
        /// A built-in profile, or the path of one.
        #[arg(add = complete::profiles())]
        profile: String,
        /// Print its description in TOML, to start your own from.
        #[arg(long)]
        toml: bool,
    },
    /// Make a profile of a directory, or of an ext4 that is not mounted.
    ///
    /// Reads no contents, crosses no mounts and writes nothing there.
    #[command(after_long_help = "Examples:\n  \
        senesce profile capture /home --out home.toml\n  \
        senesce profile capture aged.img --like agrawal --extents     for `profile diff`")]
    Capture(ProfileCaptureArgs),
    /// Merge profiles into one. Each counts by its number of files.
    #[command(after_long_help = "Example:\n  senesce profile merge home.toml srv.toml --name ours --out ours.toml")]
    Merge {
        /// Built-in profiles, or paths.
        #[arg(required = true, num_args = 2.., add = complete::profiles())]
        profiles: Vec<String>,
        /// Name of the result.
        #[arg(long, default_value = "merged")]
        name: String,
        /// File for the result. Default: stdout.
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Check the profiles and the file. Write nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the distance of a profile from another, in the other's bins.
    #[command(after_long_help = "Example:\n  \
        senesce profile diff home.toml agrawal")]
    Diff {
        /// A profile.
        #[arg(add = complete::profiles())]
        found: String,
        /// The profile that it is compared with.
        #[arg(add = complete::profiles())]
        wanted: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct ProfileCaptureArgs {
    /// A directory, or a device or image with an ext4.
    ///
    /// A device or image is read without a mount. It must not be mounted.
    pub path: PathBuf,
    /// File for the profile. Default: stdout.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Name of the profile.
    #[arg(long, default_value = "captured")]
    pub name: String,
    /// Use the bins of this profile, for an exact `diff`.
    #[arg(long, value_name = "PROFILE", add = complete::profiles())]
    pub like: Option<String>,
    /// The end of ages, in seconds since 1970. Default: now.
    ///
    /// Volumes that senesce aged end at 1704067200.
    #[arg(long, value_name = "SECONDS")]
    pub now: Option<u64>,
    /// Also count the extents of every file.
    #[arg(long)]
    pub extents: bool,
    /// Check the place and the file. Read no directory, write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Threads. Default: one for each processor.
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
}
