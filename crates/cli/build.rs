//! Gives the program the commit that it is built from, for `senesce --version`.
//!
//! A package that is built without git sets `SENESCE_COMMIT`.

use std::{path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=SENESCE_COMMIT");
    // A commit moves HEAD, and adds a line to its log.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let named = std::env::var("SENESCE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(|| git(&["rev-parse", "--short=12", "HEAD"])).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=SENESCE_VERSION={} (commit {commit})", env!("CARGO_PKG_VERSION"));
}

/// What a git command prints; none if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
