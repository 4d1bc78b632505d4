//! Runs the git binary in an environment of its own, and only on repositories that this program
//! wrote.
//!
//! Git runs other programs in many ways. A repository that the user named controls none of them:
//!
//! - The repository's configuration: `filter.*`, `diff.*`, `merge.*`, `alias.*`, `gpg.program`,
//!   `core.sshCommand`, `core.gitProxy`, `core.pager`, `core.editor`, `core.askPass`,
//!   `core.alternateRefsCommand`, `credential.helper`, `uploadpack.packObjectsHook`,
//!   `remote.*.uploadpack`, `submodule.*.update`, `gc.recentObjectsHook`, `include.*`. Git runs on
//!   a [`SpoolRepository`](crate::SpoolRepository) or on the aged volume. This program writes both
//!   configurations.
//! - The configuration of the user and the machine: `GIT_CONFIG_GLOBAL` is empty,
//!   `GIT_CONFIG_NOSYSTEM` is set.
//! - The environment (`GIT_SSH`, `GIT_EXTERNAL_DIFF`, `GIT_TRACE`, ...): cleared.
//! - Hooks, and those of a template: `core.hooksPath=/dev/null`, `--template=`.
//! - `core.fsmonitor`: false.
//! - Lazy fetches of a partial clone: refused; the spool names no promisor; `GIT_NO_LAZY_FETCH` is
//!   set.
//! - Remote helpers (`ext::`): `GIT_ALLOW_PROTOCOL` lists the transports that a command needs; for
//!   most commands it is empty.
//! - Attributes in the history (`filter=`, `diff=`): they name drivers of the configuration, which
//!   has none.
//! - Submodules: never followed.
//! - `gc --auto`: off in the spool; on the volume, the plan controls it.
//!
//! Git still runs its own parts (`upload-pack`, `index-pack`, `remote-https`) and, for an ssh URL,
//! `ssh`.
//!
//! An adapter: reads `PATH` and `TMPDIR` of the environment, nothing else.

use std::{
    ffi::OsStr,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use senesce_core::Printable;

use crate::Error;

/// Writes the standard input of a command.
pub(crate) type Feed<'a> = &'a mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>;

/// One call of git.
pub(crate) struct Git {
    command: Command,
    operation: String,
    path: PathBuf,
}

impl Git {
    /// `git <operation>` that works on `path` (only for messages; see [`Git::git_dir`] and
    /// [`Git::inside`]).
    pub fn new(operation: &str, path: &Path) -> Self {
        let mut command = Command::new("git");
        command.env_clear();
        for name in ["PATH", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "") // none; see `allow_protocols`
            .env("GIT_PAGER", "cat")
            .env("GIT_EDITOR", "false")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("LC_ALL", "C")
            .stdout(Stdio::piped()); // the standard output of this program is for results
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "senesce").env(format!("GIT_{role}_EMAIL"), "senesce@localhost");
        }
        for setting in ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass=", "credential.helper="] {
            command.args(["-c", setting]);
        }
        Self { command, operation: operation.to_owned(), path: path.to_owned() }
    }

    /// Allows these transports, separated by colons.
    pub fn allow_protocols(mut self, protocols: &str) -> Self {
        self.command.env("GIT_ALLOW_PROTOCOL", protocols);
        self
    }

    /// Names the repository by its git directory, without a search.
    pub fn git_dir(mut self) -> Self {
        self.command.arg("--git-dir").arg(&self.path);
        self
    }

    /// Runs inside the work tree.
    pub fn inside(mut self) -> Self {
        self.command.arg("-C").arg(&self.path);
        self
    }

    /// Sets `-c key=value`.
    pub fn config(mut self, setting: &str) -> Self {
        self.command.args(["-c", setting]);
        self
    }

    /// Adds the operation and its arguments, after the general options.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.arg(&self.operation).args(args);
        self
    }

    /// Runs git. An exit status other than 0 is an error.
    pub fn run(self) -> Result<Vec<u8>, Error> {
        let output = self.output(None)?;
        Ok(output.stdout)
    }

    /// Runs git with `input` on its standard input.
    pub fn run_with(self, input: &str) -> Result<Vec<u8>, Error> {
        let output = self.output(Some(input))?;
        Ok(output.stdout)
    }

    /// Runs git; `feed` writes its standard input. If git fails, the result is its own error, not
    /// that of the broken pipe.
    pub fn run_fed(self, feed: Feed<'_>) -> Result<Vec<u8>, Error> {
        let output = self.output_fed(Some(feed))?;
        Ok(output.stdout)
    }

    fn output(self, input: Option<&str>) -> Result<Output, Error> {
        match input {
            None => self.output_fed(None),
            Some(input) => self.output_fed(Some(&mut |stdin| stdin.write_all(input.as_bytes()))),
        }
    }

    fn output_fed(mut self, input: Option<Feed<'_>>) -> Result<Output, Error> {
        let spawn = |source| Error::Spawn { operation: self.operation.clone(), source };
        self.command.stderr(Stdio::piped());
        let output = match input {
            None => self.command.stdin(Stdio::null()).output().map_err(spawn)?,
            Some(feed) => {
                // Every command here reads all its input before it prints more than a pipe holds.
                let mut child = self.command.stdin(Stdio::piped()).spawn().map_err(spawn)?;
                let written = child.stdin.take().map_or(Ok(()), |mut stdin| feed(&mut stdin));
                let output = child.wait_with_output().map_err(spawn)?;
                if output.status.success() {
                    written.map_err(spawn)?;
                }
                output
            }
        };
        if output.status.success() {
            return Ok(output);
        }
        Err(Error::Git {
            operation: self.operation,
            path: self.path,
            status: output.status.code().unwrap_or(-1),
            stderr: printable_end(&output.stderr),
        })
    }
}

/// The last 2,000 characters of a message of git. A remote or a repository may have chosen the
/// text, so control characters within a line are escaped.
fn printable_end(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let text = text.trim();
    let start = text.char_indices().rev().nth(1999).map_or(0, |(at, _)| at);
    Printable::lines(&text[start..]).to_string()
}

/// The version of the git binary: the output of `git --version` without its first words.
pub fn collect_git_version() -> Result<String, Error> {
    let output = Git::new("version", Path::new("/")).args::<&str>([]).run()?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.trim().trim_start_matches("git version ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_messages_are_escaped() {
        let said = printable_end(b"fatal: object\0 \x1b[2J\xe2\x80\xae\nhint: two lines\n");
        assert!(said.ends_with("\nhint: two lines"), "{said:?}");
        assert!(said.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{said:?}");
        assert!(said.starts_with("fatal: object"), "{said:?}");
    }
}
