//! Exit codes for `git bisect run`.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

use senesce_experiment::interruption;

use super::{DIFFERENT, INTERNAL, passed, refuse, report_code};
use crate::out::Unwritable;

/// The code with which `git bisect run` skips a commit.
const SKIPPED: u8 = 125;
/// The code with which `git bisect run` marks a commit as bad.
const BAD: u8 = 1;

/// Does `work` for `git bisect run`: a failing gate marks the commit as bad, and every other error
/// skips it. An interruption keeps its code, so the bisection stops.
pub fn bisect(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let code = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) if error.chain().any(|cause| interruption(cause).is_some()) => return Err(error),
        Ok(Err(error)) => match report_code(&error) {
            // An interruption in a guest.
            code if code >= 128 => return passed(code),
            code => code,
        },
        Err(payload) => {
            if let Some(Unwritable(error)) = payload.downcast_ref() {
                eprintln!("senesce: cannot write the results to stdout\n  because: {error}");
            }
            INTERNAL
        }
    };
    passed(if code == DIFFERENT { BAD } else { SKIPPED })
}

/// Prints an error of the command line for `git bisect run`, which skips the commit.
pub fn refuse_bisection(error: &clap::Error) -> ExitCode {
    let code = refuse(error);
    if error.use_stderr() { ExitCode::from(SKIPPED) } else { code }
}
