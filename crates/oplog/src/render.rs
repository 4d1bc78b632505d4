//! Operations and steps as text: one line each, for `log show` and for error messages.

use std::fmt::{self, Write as _};

use crate::{Content, DoneStep, Op, Outcome, SpaceChange};

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(bytes) => write!(f, "inline {} B", bytes.len()),
            Self::Seeded { seed, len } => write!(f, "seeded {len} B from {seed:#x}"),
            Self::Derived(derived) => write!(f, "derived {}", derived.key),
        }
    }
}

impl Op {
    /// The operation's name, as the log's statistics and its text form use it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mkdir { .. } => "mkdir",
            Self::Rmdir { .. } => "rmdir",
            Self::Create { .. } => "create",
            Self::Write { .. } => "write",
            Self::Truncate { .. } => "truncate",
            Self::Rename { .. } => "rename",
            Self::Unlink { .. } => "unlink",
            Self::Symlink { .. } => "symlink",
            Self::Link { .. } => "link",
            Self::Chmod { .. } => "chmod",
            Self::RemoveTree { .. } => "remove-tree",
            Self::Fsync { .. } => "fsync",
            Self::SyncFs => "syncfs",
            Self::Allocate { .. } => "allocate",
            Self::SetModified { .. } => "set-modified",
            Self::Read { .. } => "read",
            Self::Fallocate { .. } => "fallocate",
            Self::Exchange { .. } => "exchange",
            Self::SetXattr { .. } => "set-xattr",
            Self::RemoveXattr { .. } => "remove-xattr",
            Self::SetTimes { .. } => "set-times",
            Self::Chown { .. } => "chown",
            Self::Mknod { .. } => "mknod",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Self::Mkdir { path, mode } | Self::Chmod { path, mode } => write!(f, " {path} {mode:04o}"),
            Self::Rmdir { path } | Self::Unlink { path } | Self::RemoveTree { path } | Self::Fsync { path } => {
                write!(f, " {path}")
            }
            Self::Create { path, mode, content } => write!(f, " {path} {mode:04o} {content}"),
            Self::Write { path, offset, content } => write!(f, " {path} at {offset} {content}"),
            Self::Truncate { path, len } => write!(f, " {path} to {len}"),
            Self::Rename { from, to } => write!(f, " {from} -> {to}"),
            Self::Symlink { path, target } => write!(f, " {path} -> {}", target.escape_ascii()),
            Self::Link { existing, path } => write!(f, " {existing} {path}"),
            Self::SyncFs => Ok(()),
            Self::Allocate { path, mode, len } => write!(f, " {path} {mode:04o} {len} B"),
            Self::SetModified { path, unix_seconds } => write!(f, " {path} to {unix_seconds}"),
            Self::Read { path, offset, len } => write!(f, " {path} at {offset} {len} B"),
            Self::Fallocate { path, how, offset, len } => write!(f, " {path} {how} at {offset} {len} B"),
            Self::Exchange { first, second } => write!(f, " {first} <-> {second}"),
            Self::SetXattr { path, name, value } => write!(f, " {path} {} {} B", name.escape_ascii(), value.len()),
            Self::RemoveXattr { path, name } => write!(f, " {path} {}", name.escape_ascii()),
            Self::SetTimes { path, accessed, modified } => {
                write!(f, " {path}")?;
                for (word, time) in [("accessed", accessed), ("modified", modified)] {
                    if let Some(time) = time {
                        write!(f, " {word} {}.{:09}", time.unix_seconds, time.nanoseconds)?;
                    }
                }
                Ok(())
            }
            Self::Chown { path, uid, gid } => {
                let text = |id: &Option<u32>| id.map_or(String::new(), |id| id.to_string());
                write!(f, " {path} {}:{}", text(uid), text(gid))
            }
            Self::Mknod { path, mode, device } => write!(f, " {path} {mode:06o} {device:#x}"),
        }
    }
}

impl fmt::Display for SpaceChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reserve => "reserve",
            Self::ReserveKeepSize => "reserve-keep-size",
            Self::Punch => "punch",
            Self::Zero => "zero",
            Self::ZeroKeepSize => "zero-keep-size",
        })
    }
}

/// Renders a step as text: a headline, then one indented line for each operation.
///
/// Contents appear with their recorded length and hash. An operation without space shows how much
/// it wrote.
pub fn render_step(done: &DoneStep) -> String {
    let mut text = format!("{} {}", done.number, done.step.label.escape_debug());
    if !done.step.root.is_root() {
        let _ = write!(text, " in {}", done.step.root);
    }
    if let Some(began) = done.began {
        let _ = write!(text, " [{:.6} s]", began.0 as f64 / 1e9);
    }
    if done.step.counted {
        text.push_str(" [counted]");
    }
    if let Outcome::NoSpace { failed_op, .. } = done.outcome {
        let _ = write!(text, " [no space at operation {failed_op}]");
    }
    text.push('\n');
    let mut contents = done.contents.iter();
    for (index, op) in done.step.ops.iter().enumerate() {
        let _ = write!(text, "  {op}");
        if op.content().is_some()
            && let Some((len, hash)) = contents.next()
        {
            let _ = write!(text, " ({len} B, xxh3 {hash:016x})");
        }
        if let Outcome::NoSpace { failed_op, written } = done.outcome
            && failed_op == index
        {
            let _ = match written {
                None => write!(text, " [nothing done]"),
                Some(n) => write!(text, " [{n} B written]"),
            };
        }
        text.push('\n');
    }
    text
}
