//! The outputs of a gate that has no verdict: its run failed, or nothing can be compared.

use std::path::Path;

use anyhow::{Error, Result};
use senesce_core::Printable;

use super::{GATE_SCHEMA, GateDocument, github, junit, markdown, write_file};
use crate::{args::GateArgs, exit, schema::document};

/// Writes the error to all outputs that the command line names. If an output cannot be written, the
/// function only prints why, because the caller reports the error of the gate.
pub(super) fn write(args: &GateArgs, error: &Error) {
    if let Err(problem) = write_all(args, &exit::text_of(error)) {
        eprintln!("senesce: {}", Printable::new(&format!("{problem:#}")));
    }
}

fn write_all(args: &GateArgs, message: &str) -> Result<()> {
    let outputs = &args.outputs;
    if let Some(path) = &outputs.junit {
        write_file(path, &junit::render_failure(message)?)?;
    }
    match outputs.markdown.as_deref() {
        Some(path) if path == Path::new("-") => print!("{}", markdown::render_failure(message)),
        Some(path) => write_file(path, &markdown::render_failure(message))?,
        None => {}
    }
    if outputs.json {
        println!("{}", document(GATE_SCHEMA, GateDocument::Failed { error: message }));
    }
    if outputs.github {
        github::print_failure(message, &markdown::render_failure(message))?;
    }
    Ok(())
}
