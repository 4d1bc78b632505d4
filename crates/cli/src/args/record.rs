//! Arguments of recording.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The directory to record. Programs use it at --mount.
    ///
    /// With --import-strace: log only operations below it.
    #[arg(long = "on", alias = "dir", value_name = "BACKING", required_unless_present = "import_strace")]
    pub dir: Option<PathBuf>,
    /// Mount point: an empty directory outside of BACKING.
    #[arg(long, value_name = "POINT", required_unless_present = "import_strace")]
    pub mount: Option<PathBuf>,
    /// The operation log to make. It must not exist.
    ///
    /// A command that fails and changes nothing leaves no log.
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// Keep the bytes that were written.
    ///
    /// By default the log has only lengths, and a replay writes random bytes.
    #[arg(long, conflicts_with_all = ["anonymize", "import_strace"])]
    pub keep_contents: bool,
    /// Replace names and contents, and leave owners out.
    ///
    /// The replacements are random and of the same lengths.
    #[arg(long)]
    pub anonymize: bool,
    /// Seed of random names and contents.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print what recording costs the command.
    ///
    /// Runs the command on three copies of BACKING first, without the recorder.
    #[arg(long, requires = "command")]
    pub overhead: bool,
    /// Check the directories, the log and the trace. Write nothing.
    ///
    /// Neither mounts nor runs the command.
    #[arg(long)]
    pub dry_run: bool,
    /// Make the log from the output of `strace -f`.
    ///
    /// -y and -ttt of strace make it more exact.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mount", "command", "overhead"])]
    pub import_strace: Option<PathBuf>,
    /// The command. It runs in POINT: use absolute paths.
    ///
    /// Relative paths are below POINT. Default: record until Ctrl-C or umount.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
