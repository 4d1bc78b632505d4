//! Checks of a checked-out repository, with git and with a walk of the tree.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
    process::Stdio,
};

use crate::fixture::{git, git_output, git_text};

/// Fails unless `dir` is a valid, clean repository at `commit`, and its work tree is the tree of
/// the commit.
pub fn judge(dir: &Path, commit: &str) {
    assert_eq!(git_text(dir, &["rev-parse", "HEAD"]), commit);
    assert_eq!(git_text(dir, &["--no-optional-locks", "status", "--porcelain"]), "", "status at {commit}");
    let fsck = git(dir).args(["fsck", "--full", "--strict", "--no-dangling"]).stderr(Stdio::piped()).output().unwrap();
    let said = [fsck.stdout, fsck.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(fsck.status.success(), "fsck at {commit}: {said}");
    for word in ["missing", "error", "broken", "corrupt"] {
        assert!(!said.contains(word), "fsck at {commit}: {said}");
    }
    assert_eq!(work_tree(dir), wanted(dir, commit), "work tree at {commit}");
    for path in [".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/main.lock", ".git/gc.pid"] {
        assert!(!dir.join(path).exists(), "{path} is left at {commit}");
    }
}

/// Maps a path to `mode oid`; the value of a directory is `40000`.
type Listing = BTreeMap<Vec<u8>, String>;

fn wanted(dir: &Path, commit: &str) -> Listing {
    let mut listing = Listing::new();
    for line in git_output(dir, &["ls-tree", "-r", "-z", commit]).split(|&b| b == 0).filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|&b| b == b'\t').unwrap();
        let words: Vec<&str> = std::str::from_utf8(&line[..tab]).unwrap().split(' ').collect();
        let path = line[tab + 1..].to_vec();
        for at in (0..path.len()).filter(|&at| path[at] == b'/') {
            listing.insert(path[..at].to_vec(), "40000".into());
        }
        let what = if words[0] == "160000" { "40000".into() } else { format!("{} {}", words[0], words[2]) };
        listing.insert(path, what);
    }
    listing
}

fn work_tree(dir: &Path) -> Listing {
    let mut listing = Listing::new();
    walk(dir, dir, &mut listing);
    listing
}

fn walk(top: &Path, dir: &Path, listing: &mut Listing) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let relative = path.strip_prefix(top).unwrap().as_os_str();
        if relative == OsStr::new(".git") {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let what = if metadata.is_dir() {
            assert_eq!(metadata.permissions().mode() & 0o7777, 0o755, "{path:?}");
            walk(top, &path, listing);
            "40000".to_owned()
        } else if metadata.is_symlink() {
            format!("120000 {}", blob_name(fs::read_link(&path).unwrap().as_os_str().as_bytes()))
        } else {
            format!("100{:o} {}", metadata.permissions().mode() & 0o7777, blob_name(&fs::read(&path).unwrap()))
        };
        listing.insert(relative.as_bytes().to_vec(), what);
    }
}

/// The id of these bytes in git.
fn blob_name(data: &[u8]) -> String {
    use sha1::{Digest, Sha1};
    let hash = Sha1::new().chain_update(format!("blob {}\0", data.len())).chain_update(data).finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
