//! Small real repositories, good and bad.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A repository in a directory.
pub struct Repository {
    path: PathBuf,
}

impl Repository {
    /// One without commits.
    pub fn empty(path: &Path) -> Self {
        let repository = Self { path: path.to_owned() };
        fs::create_dir_all(path).unwrap();
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        // Objects stay in files of their own, where a test can damage one.
        repository.git(&["config", "gc.auto", "0"]);
        repository
    }

    /// One with this number of commits; each adds `file-N` and changes `shared`.
    pub fn with_commits(path: &Path, commits: u64) -> Self {
        let repository = Self::empty(path);
        for number in 1..=commits {
            fs::write(path.join(format!("file-{number}")), format!("new in commit {number}\n").repeat(50)).unwrap();
            fs::write(path.join("shared"), format!("line {number}\n").repeat(number as usize)).unwrap();
            repository.git(&["add", "--all"]);
            repository.git(&["commit", "--quiet", "--message", &format!("commit {number}")]);
        }
        repository
    }

    /// A clone that lacks the history.
    pub fn clone_shallow(&self, to: &Path) {
        let from = format!("file://{}", self.path.display());
        self.git(&["clone", "--quiet", "--depth", "1", &from, &to.to_string_lossy()]);
    }

    /// Overwrites the middle of a blob; gives its name.
    pub fn damage_blob(&self, commit: &str, file: &str) -> String {
        let name = self.git(&["rev-parse", &format!("{commit}:{file}")]);
        let path = self.path.join(".git/objects").join(&name[..2]).join(&name[2..]);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].fill(0x55);
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        name
    }

    /// Runs git; gives what it printed.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let who = ["-c", "user.name=A U Thor", "-c", "user.email=author@example.com", "-c", "commit.gpgSign=false"];
        let mut command = Command::new("git");
        command.args(who).args(args).current_dir(&self.path);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_AUTHOR_DATE", "1700000000 +0000").env("GIT_COMMITTER_DATE", "1700000000 +0000");
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }
}
