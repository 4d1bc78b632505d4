//! The small files of `.git`: skeleton, configuration, refs, reflogs.

use senesce_core::RelPath;
use senesce_oplog::{Content, Op};

use super::Oid;

/// The only branch.
pub const BRANCH: &str = "main";

/// `.git/info/attributes`: switches every conversion off, whatever the history's `.gitattributes` say, so that the
/// work tree holds the blobs' bytes.
pub const ATTRIBUTES: &str = "* -text -ident !eol !filter !working-tree-encoding\n";

/// `.git/config`, in full. `gc_auto` of 0 switches automatic gc off.
///
/// Names that other systems could not hold are allowed, commit graphs are not written, reflogs never expire (their times
/// are those of the commits, hence old).
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

/// A path below the repository's root, from text that is known to be one.
pub(super) fn path(text: &str) -> RelPath {
    RelPath::try_from(text).expect("paths of git's own files are made of plain components")
}

/// A file made with a few bytes.
pub(super) fn create(text: &str, content: impl AsRef<[u8]>) -> Op {
    Op::Create { path: path(text), mode: 0o644, content: Content::Inline(content.as_ref().into()) }
}

/// A directory.
pub(super) fn mkdir(text: &str) -> Op {
    Op::Mkdir { path: path(text), mode: 0o755 }
}

/// A removed file.
pub(super) fn unlink(text: &str) -> Op {
    Op::Unlink { path: path(text) }
}

/// A rename.
pub(super) fn rename(from: &str, to: &str) -> Op {
    Op::Rename { from: path(from), to: path(to) }
}

/// A file that comes to be by `name.lock` and a rename.
pub(super) fn replace(name: &str, content: impl AsRef<[u8]>, ops: &mut Vec<Op>) {
    let lock = format!("{name}.lock");
    ops.push(create(&lock, content));
    ops.push(rename(&lock, name));
}

/// The repository's root directory and what `git init` puts into it.
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

/// The branch and its reflogs as they stand.
#[derive(Clone, Debug)]
pub(super) struct Refs {
    head: Oid,
    reflog_bytes: u64,
}

impl Refs {
    /// Before the first commit.
    pub fn new() -> Self {
        Self { head: Oid::NULL, reflog_bytes: 0 }
    }

    /// What the branch points to.
    pub fn head(&self) -> Oid {
        self.head
    }

    /// `git reset --hard`, after the work tree: `ORIG_HEAD`, the branch under its lock, a line in both reflogs.
    pub fn plan_move(&mut self, to: Oid, unix_seconds: i64, message: &str, ops: &mut Vec<Op>) {
        let first = self.head == Oid::NULL;
        if !first {
            replace(".git/ORIG_HEAD", format!("{}\n", self.head), ops);
        }
        let branch = format!(".git/refs/heads/{BRANCH}");
        let logs = [".git/logs/HEAD".to_owned(), format!(".git/logs/refs/heads/{BRANCH}")];
        // A reflog with a negative time is not readable; histories hold such commits.
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
