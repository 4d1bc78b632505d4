//! The small files of `.git`: skeleton, configuration, refs, reflogs.

use senesce_core::RelPath;
use senesce_oplog::{Content, Op};

use super::Oid;

/// The only branch.
pub const BRANCH: &str = "main";

/// The content of `.git/info/attributes`. It disables every conversion, whatever the
/// `.gitattributes` of the history say. The work tree therefore holds the bytes of the blobs.
pub const ATTRIBUTES: &str = "* -text -ident !eol !filter !working-tree-encoding\n";

/// The content of `.git/config`. `gc_auto` of 0 disables automatic gc.
///
/// It allows names that other systems reject, and writes no commit graphs. Reflogs never expire,
/// because their times are those of the commits and hence old.
pub fn compute_config(gc_auto: u32, gc_auto_pack_limit: u32) -> String {
    format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
         \tautocrlf = false\n\tsymlinks = true\n\tprotectNTFS = false\n\tprotectHFS = false\n\thooksPath = /dev/null\n\
         [gc]\n\tauto = {gc_auto}\n\tautoPackLimit = {gc_auto_pack_limit}\n\tautoDetach = false\n\
         \twriteCommitGraph = false\n\treflogExpire = never\n\treflogExpireUnreachable = never\n\
         [fetch]\n\twriteCommitGraph = false\n\
         [submodule]\n\trecurse = false\n"
    )
}

/// A path below the repository's root, from text that is a valid path.
pub(super) fn path(text: &str) -> RelPath {
    RelPath::try_from(text).expect("paths of git's own files are made of plain components")
}

/// Creates a file with the given bytes.
pub(super) fn create(text: &str, content: impl AsRef<[u8]>) -> Op {
    Op::Create { path: path(text), mode: 0o644, content: Content::Inline(content.as_ref().into()) }
}

/// Makes a directory.
pub(super) fn mkdir(text: &str) -> Op {
    Op::Mkdir { path: path(text), mode: 0o755 }
}

/// Removes a file.
pub(super) fn unlink(text: &str) -> Op {
    Op::Unlink { path: path(text) }
}

/// Renames a file.
pub(super) fn rename(from: &str, to: &str) -> Op {
    Op::Rename { from: path(from), to: path(to) }
}

/// Replaces a file: writes `name.lock` and renames it.
pub(super) fn replace(name: &str, content: impl AsRef<[u8]>, ops: &mut Vec<Op>) {
    let lock = format!("{name}.lock");
    ops.push(create(&lock, content));
    ops.push(rename(&lock, name));
}

/// Makes the repository's root directory and the files of `git init`.
pub(super) fn plan_skeleton(config: &str, ops: &mut Vec<Op>) {
    ops.push(Op::Mkdir { path: RelPath::root(), mode: 0o755 });
    for directory in [".git", ".git/objects", ".git/objects/pack", ".git/objects/info", ".git/refs", ".git/refs/heads"]
    {
        ops.push(mkdir(directory));
    }
    ops.push(mkdir(".git/refs/tags"));
    ops.push(mkdir(".git/info"));
    ops.push(create(".git/HEAD", format!("ref: refs/heads/{BRANCH}\n")));
    ops.push(create(".git/config", config));
    ops.push(create(".git/info/exclude", ""));
    ops.push(create(".git/info/attributes", ATTRIBUTES));
}

/// The branch and its reflogs.
#[derive(Clone, Debug)]
pub(super) struct Refs {
    head: Oid,
    reflog_bytes: u64,
}

impl Refs {
    /// The state before the first commit.
    pub fn new() -> Self {
        Self { head: Oid::NULL, reflog_bytes: 0 }
    }

    /// The commit of the branch.
    pub fn head(&self) -> Oid {
        self.head
    }

    /// Plans the last part of `git reset --hard`: `ORIG_HEAD`, the branch under its lock, a line in
    /// both reflogs.
    pub fn plan_move(&mut self, to: Oid, unix_seconds: i64, message: &str, ops: &mut Vec<Op>) {
        let first = self.head == Oid::NULL;
        if !first {
            replace(".git/ORIG_HEAD", format!("{}\n", self.head), ops);
        }
        let branch = format!(".git/refs/heads/{BRANCH}");
        let logs = [".git/logs/HEAD".to_owned(), format!(".git/logs/refs/heads/{BRANCH}")];
        // Git cannot read a reflog with a negative time, and some histories hold such commits.
        let time = unix_seconds.max(0);
        let line = format!("{} {to} senesce <senesce@localhost> {time} +0000\t{message}\n", self.head);
        ops.push(create(".git/HEAD.lock", ""));
        ops.push(create(&format!("{branch}.lock"), format!("{to}\n")));
        if first {
            ops.push(mkdir(".git/logs"));
            ops.push(create(&logs[0], &line));
            ops.push(mkdir(".git/logs/refs"));
            ops.push(mkdir(".git/logs/refs/heads"));
            ops.push(create(&logs[1], &line));
        } else {
            for log in &logs {
                let content = Content::Inline(line.as_bytes().into());
                ops.push(Op::Write { path: path(log), offset: self.reflog_bytes, content });
            }
        }
        ops.push(rename(&format!("{branch}.lock"), &branch));
        ops.push(unlink(".git/HEAD.lock"));
        self.reflog_bytes += line.len() as u64;
        self.head = to;
    }
}
