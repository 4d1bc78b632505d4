//! A directory in which the program runs.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub use senesce_testkit::Done;
use senesce_testkit::check_printed;
use tempfile::TempDir;

/// The program under test.
pub const SENESCE_FS: &str = env!("CARGO_BIN_EXE_senesce-fs");

/// A directory of the test's own.
pub struct Lab(TempDir);

impl Lab {
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("senesce-lab-").tempdir().unwrap())
    }

    /// A path in the directory.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program, with its registry in the directory.
    pub fn command(&self) -> Command {
        let mut command = Command::new(SENESCE_FS);
        command.env("SENESCE_REGISTRY", self.path("registry")).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program. Fails if its JSON does not fit the published schema.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        let mut command = self.command();
        let done = Done::of(command.args(args).output().unwrap());
        if command.get_args().any(|argument| argument == "--json") {
            check_printed(&done.stdout);
        }
        done
    }
}
