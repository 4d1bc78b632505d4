//! Arguments of recording.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The directory to record: programs see it at the mount point. With --import-strace: log only what lies below.
    #[arg(long, value_name = "BACKING", required_unless_present = "import_strace")]
    pub dir: Option<PathBuf>,
    /// Where to mount it: an empty directory outside of BACKING.
    #[arg(long, value_name = "POINT", required_unless_present = "import_strace")]
    pub mount: Option<PathBuf>,
    /// The operation log to make.
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// Keep what was written; by default only its length, and a replay writes random bytes.
    #[arg(long, conflicts_with_all = ["anonymize", "import_strace"])]
    pub keep_contents: bool,
    /// Replace names and contents by random ones of the same lengths, and leave owners out.
    #[arg(long)]
    pub anonymize: bool,
    /// What random names and contents follow from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run the command on three copies of BACKING first, without the recorder, and print what recording cost.
    #[arg(long, requires = "command")]
    pub overhead: bool,
    /// Make the log from the output of `strace -f` (better with -y and -ttt) instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mount", "command", "overhead"])]
    pub import_strace: Option<PathBuf>,
    /// The command; without one, everything is recorded until Ctrl-C or until somebody unmounts.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
