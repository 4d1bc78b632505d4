//! A pending step: its operations, and the effect of each one on the set of existing files.

use senesce_core::RelPath;
use senesce_oplog::{Op, Outcome, Step};

use super::{
    contents::printable_content,
    files::{File, Files},
    tree::DirectoryTree,
};
use crate::generated_paths::path;

/// The directory that holds the tree.
pub(super) const ROOT: &str = "tree";

/// The effect of an operation, once it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// The directories of the tree exist up to this number.
    Directory(u32),
    Create(File),
    Unlink(File),
    /// The unfinished file of a step without space is removed.
    RemovePart,
}

/// A step that was returned to the caller, or that is under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingStep {
    ops: Vec<Op>,
    effects: Vec<Effect>,
    /// Bytes of the new files' contents.
    pub content_bytes: u64,
    /// Bytes that their blocks occupy.
    pub block_bytes: u64,
    /// New files.
    pub created: u64,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StepOutcome {
    /// An operation found no space.
    pub no_space: bool,
    /// At least one file was created or removed.
    pub progressed: bool,
    /// The tree's root exists.
    pub has_root: bool,
}

impl PendingStep {
    pub fn make_directory(&mut self, tree: &DirectoryTree, directory: u32) {
        self.ops.push(Op::Mkdir { path: tree.path(directory).clone(), mode: 0o755 });
        self.effects.push(Effect::Directory(directory));
    }

    /// Creates a file with printable bytes derived from `seed`.
    pub fn create(&mut self, tree: &DirectoryTree, file: File, seed: u64) {
        let content = printable_content(seed, file.size_bytes);
        self.ops.push(Op::Create { path: place(tree, &file), mode: 0o644, content });
        self.effects.push(Effect::Create(file));
        self.content_bytes += file.size_bytes;
        self.block_bytes += file.block_bytes();
        self.created += 1;
    }

    pub fn unlink(&mut self, tree: &DirectoryTree, file: File) {
        self.ops.push(Op::Unlink { path: place(tree, &file) });
        self.effects.push(Effect::Unlink(file));
    }

    /// Removes the file that a lack of space left unfinished.
    pub fn remove_part(&mut self, part: &RelPath) {
        self.ops.push(Op::Unlink { path: part.clone() });
        self.effects.push(Effect::RemovePart);
    }

    pub fn synchronise(&mut self) {
        self.ops.push(Op::SyncFs);
        self.effects.push(Effect::None);
    }

    /// Returns the step. The effects stay here until its outcome is known.
    pub fn start(&mut self, label: String, counted: bool) -> Step {
        let ops = std::mem::take(&mut self.ops).into();
        Step { label, counted, root: path(ROOT), ops }
    }

    /// Applies the effects of the completed operations and reverts the others. `part` is the
    /// unfinished file, before and after the call.
    pub fn finish(
        &mut self,
        outcome: Outcome,
        tree: &mut DirectoryTree,
        files: &mut Files,
        part: &mut Option<RelPath>,
    ) -> StepOutcome {
        let (failed, written) = match outcome {
            Outcome::Done => (usize::MAX, None),
            Outcome::NoSpace { failed_op, written } => (failed_op, written),
        };
        let mut end = StepOutcome { no_space: failed != usize::MAX, progressed: false, has_root: true };
        let mut known = None;
        for (index, effect) in std::mem::take(self).effects.into_iter().enumerate() {
            let done = index < failed;
            match effect {
                Effect::None => {}
                Effect::Directory(directory) if !done => {
                    known.get_or_insert(directory as usize);
                }
                Effect::Create(file) if done => files.add(file),
                Effect::Create(file) if index == failed && written.is_some() => *part = Some(place(tree, &file)),
                Effect::Unlink(file) if !done => files.add(file),
                Effect::RemovePart if done => *part = None,
                Effect::Directory(_) | Effect::Create(_) | Effect::Unlink(_) | Effect::RemovePart => {}
            }
            end.progressed |= done && matches!(effect, Effect::Create(_) | Effect::Unlink(_));
        }
        if let Some(known) = known {
            end.has_root = known > 0;
            tree.truncate(known);
        }
        end
    }
}

fn place(tree: &DirectoryTree, file: &File) -> RelPath {
    tree.path(file.directory).join(&path(&format!("f{}", file.number)))
}
