//! Writes commits as the stream that `git fast-import` reads.

use std::io::{self, Write};

use super::{SyntheticChange, SyntheticCommit, SyntheticFile};

/// The date of the first commit, seconds since 1970: 2005-06-17, the release of Linux 2.6.12.
const FIRST_DATE_SECONDS: u64 = 1_118_966_400;
/// Time between two commits, seconds.
const DATE_STEP_SECONDS: u64 = 600;

/// Writes the commits, in order, to the branch `main`. Author, committer and dates are fixed, so
/// that the commit ids depend only on the stream. The stream ends with `done`, so that git refuses
/// a truncated one.
///
/// Marks: version `n` of a file is `:2n`, commit `n` is `:2n+1`. Each version is written once, at
/// its first appearance. Errors: those of `out`. Cost: generates every version's text, a few
/// hundred MB/s.
pub fn write_fast_import(commits: impl IntoIterator<Item = SyntheticCommit>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"feature done\n")?;
    let mut blobs_written = std::collections::HashSet::new();
    for commit in commits {
        for change in &commit.changes {
            if let SyntheticChange::Add { file, .. } | SyntheticChange::Modify { file, .. } = change {
                // A merge repeats the versions of its side branch. After the merge no commit names
                // them again.
                if commit.parents.len() == 2 && blobs_written.remove(&file.blob) {
                    continue;
                }
                write_blob(file, out)?;
                if !commit.main_line {
                    blobs_written.insert(file.blob);
                }
            }
        }
        write_commit(&commit, out)?;
    }
    out.write_all(b"done\n")
}

fn write_blob(file: &SyntheticFile, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "blob\nmark :{}\ndata {}\n", 2 * file.blob, file.text.len())?;
    file.text.write_to(out)?;
    out.write_all(b"\n")
}

fn write_commit(commit: &SyntheticCommit, out: &mut dyn Write) -> io::Result<()> {
    let mark = |number: u64| 2 * number + 1;
    let date = FIRST_DATE_SECONDS + DATE_STEP_SECONDS * commit.number;
    write!(out, "commit refs/heads/main\nmark :{}\n", mark(commit.number))?;
    writeln!(out, "author Synthetic Author <author@senesce.invalid> {date} +0000")?;
    writeln!(out, "committer Synthetic Committer <committer@senesce.invalid> {date} +0000")?;
    write!(out, "data {}\n{}", commit.message.len(), commit.message)?;
    for (position, &parent) in commit.parents.iter().enumerate() {
        writeln!(out, "{} :{}", if position == 0 { "from" } else { "merge" }, mark(parent))?;
    }
    for change in &commit.changes {
        match change {
            SyntheticChange::Add { path, file } | SyntheticChange::Modify { path, file } => {
                let mode = if file.executable { "100755" } else { "100644" };
                writeln!(out, "M {mode} :{} {path}", 2 * file.blob)?;
            }
            SyntheticChange::Delete { path } => writeln!(out, "D {path}")?,
            SyntheticChange::Rename { from, to } => writeln!(out, "R {from} {to}")?,
        }
    }
    out.write_all(b"\n")
}
