//! The place that `--on` names, and files that a verb writes: checked before any work.

use std::{
    ffi::OsStr,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::fs::{Access, access};
use senesce_core::Bytes;

use crate::exit::usage;

/// The hint for a place that cannot be used.
const PLACES: &str =
    "name an existing directory, a block device, image:SIZE (with --fs), garden:DIRECTORY or evergreen:FILE";

/// Checks a place that is no directory: `image:SIZE`, or a block device.
///
/// Errors: it does not exist; it is a file.
pub fn check_place(on: &str) -> Result<()> {
    if on.starts_with("image:") {
        return Ok(());
    }
    match Path::new(on).metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(usage(format!("--on: {on} does not exist"), Some(PLACES)))
        }
        Ok(found) if !found.file_type().is_block_device() => {
            Err(usage(format!("--on: {on} is neither a directory nor a block device"), Some(PLACES)))
        }
        _ => Ok(()),
    }
}

/// Reads the size of `image:SIZE`; `None` if the place is no image. `example` is a command with a
/// correct size.
///
/// Errors: it is no size.
pub fn image_size(on: &str, example: impl FnOnce() -> String) -> Result<Option<Bytes>> {
    let Some(size) = on.strip_prefix("image:") else { return Ok(None) };
    size.parse()
        .map(Some)
        .map_err(|error| usage(format!("--on: {error}"), Some(&format!("for example: {}", example()))))
}

/// Checks files that a verb makes.
///
/// Errors: one exists; its directory does not exist or cannot be written.
pub fn check_new_files<'a>(paths: impl IntoIterator<Item = &'a Option<PathBuf>>) -> Result<()> {
    for path in paths.into_iter().flatten() {
        if path.symlink_metadata().is_ok() {
            return Err(usage(format!("{} exists already", path.display()), Some("give another name")));
        }
        check_directory(path)?;
    }
    Ok(())
}

/// Errors: the directory of a new file does not exist or cannot be written.
pub fn check_directory(file: &Path) -> Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let answer = access(dir, Access::WRITE_OK | Access::EXEC_OK).map_err(std::io::Error::from);
    answer.with_context(|| format!("cannot make {} in the directory {}", file.display(), dir.display()))
}

/// Checks that a command can be started. A relative path is looked up in `dir`; without `dir` it is
/// not checked.
///
/// Errors: there is no such program, or it cannot be executed.
pub fn check_program(program: &OsStr, dir: Option<&Path>) -> Result<()> {
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let (is_found, problem) = match (program.as_encoded_bytes().contains(&b'/'), dir) {
        (true, None) if Path::new(program).is_relative() => return Ok(()),
        (true, dir) => (is_program(&dir.unwrap_or(Path::new("/")).join(program)), "it is no executable file"),
        (false, _) => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            (std::env::split_paths(&path).any(|dir| is_program(&dir.join(program))), "no directory of PATH has it")
        }
    };
    match is_found {
        true => Ok(()),
        false => Err(usage(format!("cannot run {}: {problem}", program.to_string_lossy()), Some("check the name"))),
    }
}

/// Checks the directory of a new run.
///
/// Errors: it is a file, or below one; it cannot be made.
pub fn check_run_directory(out: &Path) -> Result<()> {
    let existing = out.ancestors().find(|dir| dir.symlink_metadata().is_ok());
    let existing = existing.unwrap_or(Path::new("."));
    if !existing.is_dir() {
        let message = format!("the directory of the run cannot be {}: {} is a file", out.display(), existing.display());
        return Err(usage(message, Some("name a new or an empty directory with --out")));
    }
    let answer = access(existing, Access::WRITE_OK | Access::EXEC_OK).map_err(std::io::Error::from);
    answer.with_context(|| format!("cannot make the directory of the run {}", out.display()))
}
