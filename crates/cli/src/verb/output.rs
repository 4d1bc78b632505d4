//! The rule for outputs: senesce replaces only files that it wrote, unless `--force` is given.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::fs::{Access, access};
use senesce_core::Printable;

use super::place::check_directory;
use crate::exit::usage;

/// The number of bytes at the start of a file that contain the mark of senesce.
const HEAD_BYTES: u64 = 1 << 16;
/// The largest file whose whole contents are checked, bytes.
const WHOLE_BYTES: u64 = 64 << 20;
/// The marks of files that senesce writes: pages, the report of a gate, requests, metrics.
const MARKS: [&str; 5] = [
    r#"<meta name="generator" content="senesce">"#,
    r#"<testsuites name="senesce gate""#,
    "### senesce gate: ",
    "issued_ns,op,sector,sectors,completed_ns",
    "# HELP senesce_",
];
/// Members of JSON that senesce writes, without spaces. Plans, suites and descriptions in TOML have
/// the same formats, and users write them.
const JSON_MARKS: [&str; 2] = [r#""schema":"senesce-"#, r#""format":"senesce-"#];
/// The marks of a picture of senesce. Other pictures do not have both.
const PICTURE_MARKS: [&str; 2] = [r#"<rect class="paper""#, r#"<text class="figure-title""#];

/// Checks files that a verb writes, or replaces if senesce wrote them. `force` is `None` if the
/// verb has no option `--force`.
///
/// Errors: another program or a user wrote the file, and `force` is not set; a path is a directory;
/// the directory of a file does not exist or cannot be written.
pub fn check_files<'a>(paths: impl IntoIterator<Item = &'a Option<PathBuf>>, force: Option<bool>) -> Result<()> {
    let is_ours = |head: &[u8]| is_marked(&String::from_utf8_lossy(head));
    paths.into_iter().flatten().try_for_each(|path| check_file(path, force, HEAD_BYTES, is_ours))
}

/// Checks a file of a format that has no field for a mark. `is_ours` reads the first
/// [`WHOLE_BYTES`] bytes, and decides whether the file may be replaced.
///
/// Errors: those of [`check_files`] without an option `--force`.
pub fn check_file_by(path: &Path, is_ours: impl FnOnce(&[u8]) -> bool) -> Result<()> {
    check_file(path, None, WHOLE_BYTES, is_ours)
}

fn check_file(path: &Path, force: Option<bool>, bytes: u64, is_ours: impl FnOnce(&[u8]) -> bool) -> Result<()> {
    if path.is_dir() {
        return Err(usage(format!("{} is a directory", path.display()), Some("name a file in it")));
    }
    // A device or a pipe needs no directory.
    if path.symlink_metadata().is_err() {
        return check_directory(path);
    }
    if force != Some(true) && is_foreign(path, bytes, is_ours)? {
        let message = format!("{} exists already, and senesce did not write it", Printable::new(path));
        let hint = if force.is_some() { "give another name, or replace it with --force" } else { "give another name" };
        return Err(usage(message, Some(hint)));
    }
    Ok(())
}

/// Checks a description in TOML that a verb writes. One that exists is never replaced, because
/// users edit them.
///
/// Errors: the file exists and is not empty; as [`check_files`].
pub fn check_description(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    if path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0) {
        let message = format!("{} exists already, and may have been edited", Printable::new(&path));
        return Err(usage(message, Some("give another name, or move the file away first")));
    }
    check_files([&Some(path.to_owned())], None)
}

/// Checks a directory that a verb creates or writes into. `is_marked` returns whether an earlier
/// command made an existing directory. Messages name `option`.
///
/// Errors: the directory has other files; the path is a file; its own directory does not exist or
/// cannot be written.
pub fn check_output_directory(dir: &Path, option: &str, is_marked: impl FnOnce() -> bool) -> Result<()> {
    const HINT: Option<&str> = Some("name a new or an empty directory");
    let shown = Printable::new(dir);
    if dir.symlink_metadata().is_err() {
        return check_directory(dir);
    }
    if !dir.is_dir() {
        return Err(usage(format!("{option}: {shown} is a file, and a directory is needed"), HINT));
    }
    access(dir, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(std::io::Error::from)
        .with_context(|| format!("cannot write into {shown}"))?;
    let mut entries = fs::read_dir(dir).with_context(|| format!("cannot list {shown}"))?;
    if entries.next().is_some() && !is_marked() {
        return Err(usage(format!("{option}: {shown} exists already, and has files of another kind"), HINT));
    }
    Ok(())
}

/// Prints that a file would be written, or replaced if it exists.
pub fn print_file_preview(path: &Path) {
    let how = if path.symlink_metadata().is_ok() { "replaced" } else { "written" };
    println!("{} would be {how}", Printable::new(path));
}

/// Whether `is_ours` rejects the first `bytes` bytes of a file. A device or a pipe counts as empty.
fn is_foreign(path: &Path, bytes: u64, is_ours: impl FnOnce(&[u8]) -> bool) -> Result<bool> {
    // A write through a link to a missing file replaces nothing.
    let Ok(found) = path.metadata() else { return Ok(false) };
    if !found.is_file() || found.len() == 0 {
        return Ok(false);
    }
    let mut head = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {}, which exists already", path.display()))?;
    file.take(bytes).read_to_end(&mut head).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(!is_ours(&head))
}

fn is_marked(head: &str) -> bool {
    let is_json = head.trim_start().starts_with('{');
    MARKS.iter().any(|mark| head.contains(mark))
        || PICTURE_MARKS.iter().all(|mark| head.contains(mark))
        || is_json && has_json_mark(head)
}

fn has_json_mark(head: &str) -> bool {
    let compact: String = head.split_ascii_whitespace().collect();
    JSON_MARKS.iter().any(|mark| compact.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &Path, force: Option<bool>) -> Result<(), String> {
        check_files([&Some(path.to_owned())], force).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn foreign_file_is_replaced_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        check(&path, None).unwrap();
        fs::write(&path, "").unwrap();
        check(&path, None).unwrap();
        fs::write(&path, "<!doctype html><p>A page about senesce").unwrap();
        for force in [None, Some(false)] {
            assert!(check(&path, force).unwrap_err().contains("senesce did not write it"));
        }
        check(&path, Some(true)).unwrap();
        fs::write(&path, "<!doctype html>\n<meta name=\"generator\" content=\"senesce\">\n").unwrap();
        check(&path, None).unwrap();
        check(Path::new("/dev/null"), None).unwrap();
    }

    #[test]
    fn only_json_has_the_mark_of_a_format() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for theirs in [
            "format = \"senesce-plan/1\"\nname = \"mine\"\n",
            "format = \"senesce-device/1\"\n",
            "format = \"aging-profile/1\"\n",
            "# \"format\": \"senesce-baseline/1\"\n",
            "{\"title\": \"Thesis\"}",
        ] {
            fs::write(&path, theirs).unwrap();
            assert!(check(&path, None).unwrap_err().contains("senesce did not write it"), "{theirs}");
        }
        for ours in ["{\n\"format\": \"senesce-baseline/1\"", "{\"schema\":\"senesce-inspect/2\"}"] {
            fs::write(&path, ours).unwrap();
            check(&path, None).unwrap();
        }
    }

    #[test]
    fn description_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hdd.toml");
        check_description(Some(&path)).unwrap();
        fs::write(&path, "").unwrap();
        check_description(Some(&path)).unwrap();
        fs::write(&path, "format = \"senesce-device/1\"\n").unwrap();
        assert!(format!("{:#}", check_description(Some(&path)).unwrap_err()).contains("may have been edited"));
        check_description(Some(Path::new("/dev/null"))).unwrap();
        assert!(check_description(Some(&dir.path().join("none/hdd.toml"))).is_err());
    }

    #[test]
    fn directory_with_other_files_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("figures");
        let check = |is_marked| check_output_directory(&inner, "--out", || is_marked).map_err(|e| format!("{e:#}"));
        check(false).unwrap();
        fs::create_dir(&inner).unwrap();
        check(false).unwrap();
        fs::write(inner.join("thesis.tex"), "").unwrap();
        assert!(check(false).unwrap_err().contains("files of another kind"));
        check(true).unwrap();
        let below = check_output_directory(&inner.join("a/b"), "--out", || true).unwrap_err();
        assert!(format!("{below:#}").contains("No such file"));
    }
}
