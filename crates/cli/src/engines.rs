//! The calls of the laboratory to the file system engines of this project.
//!
//! The laboratory imports no engine. `senesce` executes `senesce-fs` ([`Beside`]), and `senesce-fs`
//! calls its own engines.

use std::{error::Error, path::Path, sync::OnceLock};

use anyhow::Result;
use clap::{ArgMatches, Command};
use senesce_exec::EngineTarget;
use senesce_experiment::ErrorKind;
use senesce_inspect::Told;
use serde_json::Value;

use crate::{GardeningArg, SchemaOf};

pub use beside::Beside;

mod beside;

/// The version and the commit of both programs.
pub const VERSION: &str = env!("SENESCE_VERSION");

/// The first argument of a command that `senesce` hands over. The second is its [`VERSION`]. The
/// arguments of `senesce` follow.
pub const HANDED_OVER: &str = "for-senesce";

/// The engines, as a program reaches them.
pub trait Engines: Send + Sync {
    /// Continues this command in the program that has the engines.
    ///
    /// Returns `Ok` only in that program. Errors: no program has the engines.
    fn hand_over(&self) -> Result<()>;

    /// Errors: no program has the engines.
    fn check(&self) -> Result<()>;

    /// Whether the program with the engines exists, and is of this version.
    fn is_alike(&self) -> bool {
        true
    }

    /// Adds the arguments of `fs` and `garden` to the command line, if this program knows them.
    fn extend(&self, command: Command) -> Command {
        command
    }

    /// Executes `fs` or `garden` with their arguments.
    fn run_verb(&self, verb: &str, arguments: &ArgMatches, quiet: bool) -> Result<()>;

    /// Surveys the evergreen, or a volume of the garden, at a place that no engine has open. Writes
    /// nothing. Calls `goes_on` at intervals, and stops if it returns false.
    fn survey(&self, place: &Path, volume: Option<&str>, goes_on: &dyn Fn() -> bool) -> Result<Told>;

    /// Returns the outline of an evergreen's tree. Draws the tree into `picture` if it is given.
    fn draw_tree(&self, place: &Path, figures: Option<&Path>, picture: Option<&Path>) -> Result<Value>;

    /// Opens an empty file system at `garden:DIRECTORY` or `evergreen:FILE` for `act`, and closes
    /// it. Returns the requests to the drives of a garden, if `gardening` is given.
    fn drive(
        &self,
        place: &str,
        gardening: Option<GardeningArg>,
        act: &mut dyn FnMut(&EngineTarget) -> Result<()>,
    ) -> Result<Option<Value>>;

    /// The JSON schema of an output of `fs` or `garden`, if this program has it.
    fn schema(&self, _of: SchemaOf) -> Option<Value> {
        None
    }

    /// The kind of an error of an engine, and what to do about it.
    fn kind(&self, _cause: &(dyn Error + 'static)) -> Option<(ErrorKind, Option<&'static str>)> {
        None
    }
}

static ENGINES: OnceLock<&'static dyn Engines> = OnceLock::new();

/// The engines of this program: those of [`run_program`](crate::run_program).
pub fn engines() -> &'static dyn Engines {
    *ENGINES.get().unwrap_or(&(&Beside as &dyn Engines))
}

/// Sets the engines of this program.
pub fn choose(engines: &'static dyn Engines) {
    // A second program in one process does not exist.
    let _ = ENGINES.set(engines);
}

/// Whether `--on` or a path names a file system of this project: `garden:` or `evergreen:`.
pub fn is_engine_place(place: &str) -> bool {
    place.starts_with("garden:") || place.starts_with("evergreen:")
}
