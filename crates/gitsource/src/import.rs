//! Makes real repositories of synthetic histories with the git binary.

use std::{
    io::BufWriter,
    path::{Path, PathBuf},
};

use senesce_workload::{
    git::Oid,
    synthetic::{SyntheticHistory, write_fast_import},
};

use crate::{Error, command::Git};

/// Bytes that are gathered before they go to git.
const PIPE_BUFFER_BYTES: usize = 1 << 20;

/// A repository with a synthetic history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticRepository {
    /// The bare repository; its branch `main` is HEAD.
    pub path: PathBuf,
    /// The newest commit of the main line.
    pub tip: Oid,
    /// The number of all commits, with those of side branches.
    pub commits: u64,
    /// The number of commits along first parents, with the first one.
    pub main_line_commits: u64,
}

/// Makes a bare repository at `dest` with a synthetic history on its branch `main`.
///
/// In: `dest` must not exist; its parent directory must. Out: the same history always has the same
/// commit ids. Errors: `dest` exists; git fails. After an error, `dest` is removed if this call
/// made it.
///
/// Cost: git compresses every version: about 20 CPU seconds for 20,000 files and 1,000 commits.
/// This process needs a tenth of that, and less than 20 MiB of memory.
pub fn import_synthetic(history: SyntheticHistory, dest: &Path) -> Result<SyntheticRepository, Error> {
    import_synthetic_until(history, dest, || false)
}

/// Makes a bare repository as [`import_synthetic`] does. Calls `stop` before each commit, and fails
/// if it returns true.
pub fn import_synthetic_until(
    history: SyntheticHistory,
    dest: &Path,
    stop: fn() -> bool,
) -> Result<SyntheticRepository, Error> {
    let io_error = |operation| move |source| Error::Io { operation, path: dest.to_owned(), source };
    std::fs::create_dir(dest).map_err(io_error("make the directory"))?;
    let result = import(history, dest, stop);
    if result.is_err() {
        // The first error is the one to return.
        let _ = std::fs::remove_dir_all(dest);
    }
    result
}

fn import(history: SyntheticHistory, dest: &Path, stop: fn() -> bool) -> Result<SyntheticRepository, Error> {
    let options = ["--bare", "--quiet", "--initial-branch=main", "--object-format=sha1", "--template=", "."];
    Git::new("init", dest).inside().args(options).run()?;
    let (mut commits, mut main_line_commits) = (0, 0);
    let counted = history.inspect(|commit| {
        commits += 1;
        main_line_commits += u64::from(commit.main_line);
    });
    let mut stream = Some(counted.take_while(|_| !stop()));
    // Always one pack, and not the smallest one, because it is read only once or twice.
    let import =
        Git::new("fast-import", dest).git_dir().config("fastimport.unpackLimit=1").config("pack.compression=1");
    import.args(["--quiet", "--done"]).run_fed(&mut |input| {
        let stream = stream.take().expect("git is fed once");
        let mut buffered = BufWriter::with_capacity(PIPE_BUFFER_BYTES, input);
        write_fast_import(stream, &mut buffered)?;
        if stop() {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        std::io::Write::flush(&mut buffered)
    })?;
    let tip = Git::new("rev-parse", dest).git_dir().args(["--verify", "refs/heads/main"]).run()?;
    let tip = String::from_utf8_lossy(&tip).trim().parse().map_err(|_| Error::Git {
        operation: "rev-parse".into(),
        path: dest.to_owned(),
        status: 0,
        stderr: format!("it printed {:?}, which is no object id", String::from_utf8_lossy(&tip)),
    })?;
    Ok(SyntheticRepository { path: dest.to_owned(), tip, commits, main_line_commits })
}
