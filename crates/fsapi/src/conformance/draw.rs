//! Random operations.

use senesce_core::{Rng, Seed};

use super::{Operation, Player, operation::Place};
use crate::{CLONE_BYTES, FallocateMode, FileKind, RenameMode, SetXattrMode};

/// The options of a sequence.
#[derive(Clone, Debug)]
pub struct SequenceOptions {
    /// The number of operations.
    pub operations: usize,
    /// The number of operations between comparisons of the whole trees, with the subject's own
    /// check.
    pub compare_every: usize,
    /// Sizes and offsets at which the engine changes its behaviour. They are drawn often, and so
    /// are their neighbours. None should exceed a few MiB, because contents are kept in memory.
    pub boundaries: Vec<u64>,
    /// Whether the file system is reopened now and then.
    pub reopen: bool,
    /// A directory that exists; all paths are below it. Empty for the root.
    pub below: String,
}

impl Default for SequenceOptions {
    /// 300 operations, compared every 20; page boundaries up to 64 KiB.
    fn default() -> Self {
        Self {
            operations: 300,
            compare_every: 20,
            boundaries: vec![0, 1, 4096, 8192, 65536],
            reopen: true,
            below: String::new(),
        }
    }
}

/// A source of operations with few names, so that operations meet.
pub struct Draw<'a> {
    rng: Rng,
    options: &'a SequenceOptions,
}

const PERMISSIONS: [u32; 6] = [0o644, 0o755, 0o600, 0o2755, 0o1777, 0o7777];
const XATTRS: [&str; 4] = ["user.a", "user.b", "trusted.c", "user.long-name-of-an-attribute"];

impl<'a> Draw<'a> {
    /// The same seed and options give the same operations.
    pub fn new(seed: Seed, options: &'a SequenceOptions) -> Self {
        Self { rng: Rng::for_purpose(seed, "conformance operations"), options }
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len() as u64) as usize].clone()
    }

    fn name(&mut self) -> String {
        let long = "n".repeat(255);
        let names = ["a", "b", "c", "d", "e", "file with spaces", "\u{e4}\u{1f333}", &long];
        self.one_of(&names).to_owned()
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.rng.weighted(&[5, 3, 1]);
        let mut path = self.options.below.clone();
        for _ in 0..depth {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&self.name());
        }
        path
    }

    fn place(&mut self) -> Place {
        match self.rng.chance(1, 5) {
            true => Place::Slot(self.slot()),
            false => Place::Path(self.path()),
        }
    }

    fn slot(&mut self) -> usize {
        self.rng.below(Player::SLOTS as u64) as usize
    }

    /// A boundary, a value near a boundary, or any smaller value.
    fn position(&mut self) -> u64 {
        let boundary = self.one_of(&self.options.boundaries);
        match self.rng.below(6) {
            0 => boundary,
            1 => boundary.saturating_sub(1),
            2 => boundary + 1,
            3 => boundary.saturating_sub(self.rng.below(200)),
            _ => self.rng.below(boundary + 1),
        }
    }

    fn len(&mut self) -> u64 {
        match self.rng.below(4) {
            0 => self.rng.below(10),
            1 => self.rng.below(5000),
            2 => 4096,
            _ => self.position().min(70_000),
        }
    }

    fn allocate_how(&mut self) -> FallocateMode {
        let keep_size = self.rng.chance(1, 2);
        match self.rng.below(3) {
            0 => FallocateMode::Reserve { keep_size },
            1 => FallocateMode::Punch,
            _ => FallocateMode::Zero { keep_size },
        }
    }

    /// An offset for a clone, usually an allowed one.
    fn clone_position(&mut self) -> u64 {
        let at = self.position();
        if self.rng.chance(1, 16) { at } else { at / CLONE_BYTES * CLONE_BYTES }
    }

    fn clone_range(&mut self) -> Operation {
        let len = match self.rng.below(4) {
            0 => self.position(),
            1 => u64::MAX >> 1,
            _ => self.position().next_multiple_of(CLONE_BYTES),
        };
        // Two random names are rarely two files. So the target is often the source, and often
        // starts at offset 0, where there are data.
        let from = self.place();
        let to = if self.rng.chance(1, 2) { from.clone() } else { self.place() };
        let from_offset = if self.rng.chance(1, 2) { 0 } else { self.clone_position() };
        Operation::CloneRange { from, from_offset, to, to_offset: self.clone_position(), len }
    }

    fn node(&mut self) -> Operation {
        let kind = match self.rng.weighted(&[8, 6, 1, 1, 1]) {
            0 => FileKind::File,
            1 => FileKind::Directory,
            2 => FileKind::Fifo,
            3 => FileKind::Socket,
            _ => FileKind::CharDevice,
        };
        Operation::MakeNode { path: self.path(), kind, permissions: self.one_of(&PERMISSIONS) }
    }

    fn rename(&mut self) -> Operation {
        let how = match self.rng.weighted(&[4, 1, 2]) {
            0 => RenameMode::Replace,
            1 => RenameMode::NoReplace,
            _ => RenameMode::Exchange,
        };
        Operation::Rename { from: self.path(), to: self.path(), how }
    }

    fn set_xattr(&mut self) -> Operation {
        let how = self.one_of(&[SetXattrMode::Any, SetXattrMode::Any, SetXattrMode::Create, SetXattrMode::Replace]);
        let len = match self.rng.below(8) {
            0 => 0,
            1 => 4000,
            _ => self.rng.below(100),
        };
        Operation::SetXattr {
            at: self.place(),
            name: self.one_of(&XATTRS).to_owned(),
            len,
            seed: self.rng.next_u64(),
            how,
        }
    }
}

impl Iterator for Draw<'_> {
    type Item = Operation;

    /// The next operation; there is always one.
    fn next(&mut self) -> Option<Operation> {
        let reopen = u64::from(self.options.reopen);
        let weights = [16, 2, 1, 4, 6, 4, 10, 16, 4, 5, 5, 4, 4, 1, 2, 2, 2, 4, 2, 1, 1, 10, reopen];
        Some(match self.rng.weighted(&weights) {
            0 => self.node(),
            1 => Operation::Symlink { path: self.path(), target: self.path() },
            2 => Operation::ReadLink { path: self.path() },
            3 => Operation::Link { existing: self.path(), path: self.path() },
            4 => Operation::Unlink { path: self.path() },
            5 => Operation::Rmdir { path: self.path() },
            6 => self.rename(),
            7 => Operation::Write {
                at: self.place(),
                offset: self.position(),
                len: self.len(),
                seed: self.rng.next_u64(),
            },
            8 => Operation::Read { at: self.place(), offset: self.position(), len: self.len() },
            9 => Operation::Truncate { at: self.place(), size: self.position() },
            10 => Operation::Allocate {
                at: self.place(),
                how: self.allocate_how(),
                offset: self.position(),
                len: self.len(),
            },
            11 => Operation::SetAttributes { at: self.place(), seed: self.rng.next_u64() },
            12 => self.set_xattr(),
            13 => Operation::GetXattr { at: self.place(), name: self.one_of(&XATTRS).to_owned() },
            14 => Operation::RemoveXattr { at: self.place(), name: self.one_of(&XATTRS).to_owned() },
            15 => Operation::List { path: self.path() },
            16 => Operation::Stat { at: self.place() },
            17 => Operation::Hold { slot: self.slot(), path: self.path() },
            18 => Operation::Release { slot: self.slot() },
            19 => Operation::Sync { at: self.place() },
            20 => Operation::SyncAll,
            21 => self.clone_range(),
            _ => Operation::Reopen,
        })
    }
}
