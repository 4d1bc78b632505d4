//! `senesce bundle`, `senesce verify-bundle` and `senesce rerun`: a run as one file for reviewers.

mod contents;
mod open;
mod planned;
mod rerun;
mod verify;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_bundle::{Limits, Prepared};
use senesce_core::{Bytes, Printable};
use senesce_device::presets;
use senesce_experiment::{ErrorKind, Interrupted};
use senesce_volume::{install_signal_cleanup, interrupted, rename_new};
use senesce_workload::profile::builtin_profiles;

pub use self::{rerun::rerun, verify::verify_bundle};
pub(super) use self::{
    rerun::{RERUN_SCHEMA, RerunDocument},
    verify::{CHECK_SCHEMA, CheckDocument},
};
use super::{place::check_new_files, show::check_exists};
use crate::{
    args::BundleArgs,
    exit::{Failure, usage},
};

/// The end of the name of a bundle.
const SUFFIX: &str = ".senesce-bundle";

/// Writes the bundle of a run.
pub fn bundle(args: BundleArgs) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    check_exists(&args.run)?;
    let out = args.out.clone().map_or_else(|| default_name(&args.run), Ok)?;
    check_new_files([&Some(out.clone())])?;
    if !cfg!(feature = "png-pdf") {
        let message = "a bundle needs figures as PDF, and this program was built without PNG and PDF".to_owned();
        let hint = Some("build it with `make build`, and use target/release/senesce".to_owned());
        return Err(Failure { kind: ErrorKind::Environment, message, hint }.into());
    }
    let (contents, notes) = contents::collect(&args)?;
    for note in notes {
        eprintln!("senesce: note: {}", Printable::new(&note));
    }
    let goes_on = || interrupted().map_or(Ok(()), |signal| Err(io::Error::other(Interrupted { signal })));
    let or_interrupted = |error: senesce_bundle::Error| match interrupted() {
        Some(signal) => anyhow::Error::from(Interrupted { signal }),
        None => error.into(),
    };
    let keep = |name: &str| open::is_kept(name, true);
    let prepared = Prepared::new(contents, Limits::default(), keep, &goes_on).map_err(or_interrupted)?;
    let (files, bytes) = (prepared.files(), prepared.bytes());
    if args.dry_run {
        let (run, out) = (Printable::new(&args.run), Printable::new(&out));
        println!("{files} files of {run}, {bytes}, would be written to {out}");
        return Ok(());
    }
    let unfinished = Unfinished::create(&out)?;
    let writer = prepared.write(io::BufWriter::new(&unfinished.file), &out, &goes_on).map_err(or_interrupted)?;
    writer
        .into_inner()
        .map_err(io::IntoInnerError::into_error)
        .and_then(File::sync_all)
        .with_context(|| cannot_write(&out))?;
    let size = unfinished.file.metadata().map_or(0, |found| found.len());
    unfinished.publish(&out)?;
    println!("{}", Printable::new(&out));
    println!("{files} files, {bytes} ({} compressed)", Bytes(size));
    Ok(())
}

fn cannot_write(out: &Path) -> String {
    format!("cannot write {}", out.display())
}

/// The text names a device or a profile of senesce itself, not a file.
fn is_built_in(text: &str) -> bool {
    presets().any(|(name, _)| name == text) || builtin_profiles().any(|(name, _)| name == text)
}

/// The name of the run's directory, in the working directory.
fn default_name(run: &Path) -> Result<PathBuf> {
    let run = fs::canonicalize(run).with_context(|| format!("cannot look up {}", run.display()))?;
    let mut name =
        run.file_name().ok_or_else(|| usage("the run has no name", Some("name the file with -o")))?.to_owned();
    name.push(SUFFIX);
    Ok(name.into())
}

/// A file that is written under a temporary name. It is removed if it is not published.
struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Unfinished {
    fn create(out: &Path) -> Result<Self> {
        let mut name = out.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        let file = File::create_new(&path).with_context(|| cannot_write(&path))?;
        Ok(Self { path, file })
    }

    /// Gives the file its name. Another file of that name is not replaced.
    fn publish(self, out: &Path) -> Result<()> {
        // After this, `drop` finds no file of the temporary name.
        rename_new(&self.path, out).with_context(|| cannot_write(out))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename, the name does not exist.
        let _ = fs::remove_file(&self.path);
    }
}
