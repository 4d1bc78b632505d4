//! Applies operations to a file system, and records the answers.

use senesce_core::{Rng, Seed};

use super::{
    Operation, Subject,
    operation::Place,
    path::{parent_and_name, resolve},
    tree::list,
};
use crate::{Attributes, Caller, FileKind, FileSystem, FsError, FsResult, Ino, NewNode, SetAttributes, Timestamp};

/// The answer to an operation, without attributes that may differ between equal file systems.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Answer {
    Done,
    Stat(Attributes),
    Bytes(Vec<u8>),
    Count(usize),
    /// Sorted.
    Names(Vec<(Vec<u8>, FileKind)>),
    /// The error number; a stale inode counts as not found.
    Failed(i32),
}

/// Applies operations in sequence; it has the time and the held inodes.
#[derive(Debug, Default)]
pub struct Player {
    done: i64,
    slots: [Option<Ino>; Self::SLOTS],
}

/// Makes bytes from a seed. With one seed in three they are incompressible; with the others an
/// engine can compress them to a half or a tenth.
fn grow(seed: u64, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    let grown = [64, 30, 5][(seed % 3) as usize];
    let mut rng = Rng::for_purpose(Seed(seed), "conformance bytes");
    for piece in bytes.chunks_mut(64) {
        let len = piece.len().min(grown);
        rng.fill(&mut piece[..len]);
    }
    bytes
}

impl Player {
    /// The number of inodes that it can hold.
    pub const SLOTS: usize = 3;

    /// Applies an operation at the next second.
    pub fn play(&mut self, subject: &mut dyn Subject, operation: &Operation) -> Answer {
        self.done += 1;
        let answer = match operation {
            Operation::Reopen => {
                self.slots = Default::default();
                subject.reopen().map(|()| Answer::Done)
            }
            operation => self.apply(subject.file_system(), operation),
        };
        answer.unwrap_or_else(|error| match error {
            FsError::Stale => Answer::Failed(FsError::NotFound.errno()),
            error => Answer::Failed(error.errno()),
        })
    }

    /// Whether an inode is held.
    pub fn holds(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }

    fn place(&self, fs: &dyn FileSystem, place: &Place) -> FsResult<Ino> {
        match place {
            Place::Path(path) => resolve(fs, path.as_bytes()),
            Place::Slot(slot) => self.slots[*slot].ok_or(FsError::NotFound),
        }
    }

    fn apply(&mut self, fs: &dyn FileSystem, operation: &Operation) -> FsResult<Answer> {
        let now = Timestamp { seconds: 1_000_000 + self.done, nanoseconds: self.done as u32 };
        let caller = &Caller { uid: 1000 + (self.done % 3) as u32, gid: 100, now };
        let name = |path| parent_and_name(fs, path);
        Ok(match operation {
            Operation::MakeNode { path, kind, permissions } => {
                let (directory, name) = name(path.as_bytes())?;
                let node = NewNode { kind: *kind, permissions: *permissions, device: 0x105 };
                stat(fs.make_node(caller, directory, name, &node)?)
            }
            Operation::Symlink { path, target } => {
                let (directory, name) = name(path.as_bytes())?;
                stat(fs.symlink(caller, directory, name, target.as_bytes())?)
            }
            Operation::ReadLink { path } => Answer::Bytes(fs.read_link(resolve(fs, path.as_bytes())?)?),
            Operation::Link { existing, path } => {
                let ino = resolve(fs, existing.as_bytes())?;
                let (directory, name) = name(path.as_bytes())?;
                stat(fs.link(caller, ino, directory, name)?)
            }
            Operation::Unlink { path } => {
                let (directory, name) = name(path.as_bytes())?;
                done(fs.unlink(caller, directory, name)?)
            }
            Operation::Rmdir { path } => {
                let (directory, name) = name(path.as_bytes())?;
                done(fs.rmdir(caller, directory, name)?)
            }
            Operation::Rename { from, to, how } => {
                done(fs.rename(caller, name(from.as_bytes())?, name(to.as_bytes())?, *how)?)
            }
            Operation::Write { at, offset, len, seed } => {
                let data = grow(*seed, *len);
                Answer::Count(fs.write(caller, self.place(fs, at)?, *offset, &data)?)
            }
            Operation::Read { at, offset, len } => {
                let mut out = vec![0xee; *len as usize];
                let got = fs.read(self.place(fs, at)?, *offset, &mut out)?;
                out.truncate(got);
                Answer::Bytes(out)
            }
            Operation::Truncate { at, size } => {
                let change = SetAttributes { size: Some(*size), ..SetAttributes::default() };
                stat(fs.set_attributes(caller, self.place(fs, at)?, &change)?)
            }
            Operation::Allocate { at, how, offset, len } => {
                done(fs.allocate(caller, self.place(fs, at)?, *how, *offset, *len)?)
            }
            Operation::CloneRange { from, from_offset, to, to_offset, len } => {
                let (from, to) = ((self.place(fs, from)?, *from_offset), (self.place(fs, to)?, *to_offset));
                Answer::Count(fs.clone_range(caller, from, to, *len)? as usize)
            }
            Operation::SetAttributes { at, seed } => {
                stat(fs.set_attributes(caller, self.place(fs, at)?, &draw_attributes(*seed))?)
            }
            Operation::SetXattr { at, name, len, seed, how } => {
                let value = grow(*seed, *len);
                done(fs.set_xattr(caller, self.place(fs, at)?, name.as_bytes(), &value, *how)?)
            }
            Operation::GetXattr { at, name } => Answer::Bytes(fs.get_xattr(self.place(fs, at)?, name.as_bytes())?),
            Operation::RemoveXattr { at, name } => {
                done(fs.remove_xattr(caller, self.place(fs, at)?, name.as_bytes())?)
            }
            Operation::List { path } => {
                let entries = list(fs, resolve(fs, path.as_bytes())?)?;
                let mut names: Vec<_> = entries.into_iter().map(|(name, _, kind)| (name, kind)).collect();
                names.sort();
                Answer::Names(names)
            }
            Operation::Stat { at } => stat(fs.attributes(self.place(fs, at)?)?),
            Operation::Hold { slot, path } => {
                let ino = resolve(fs, path.as_bytes())?;
                fs.open(ino)?;
                if let Some(held) = self.slots[*slot].replace(ino) {
                    fs.release(held, now)?;
                }
                Answer::Done
            }
            Operation::Release { slot } => {
                let held = self.slots[*slot].take().ok_or(FsError::NotFound)?;
                done(fs.release(held, now)?)
            }
            Operation::Sync { at } => done(fs.sync(self.place(fs, at)?)?),
            Operation::SyncAll => done(fs.sync_all()?),
            Operation::Reopen => Answer::Done,
        })
    }
}

fn done((): ()) -> Answer {
    Answer::Done
}

fn stat(found: Attributes) -> Answer {
    let size = if found.kind == FileKind::Directory { 0 } else { found.size };
    Answer::Stat(Attributes { ino: Ino(0), generation: 0, allocated: 0, size, ..found })
}

fn draw_attributes(seed: u64) -> SetAttributes {
    let mut rng = Rng::for_purpose(Seed(seed), "conformance attributes");
    let mut some = |below: u64| rng.chance(1, 2).then(|| rng.below(below));
    let time =
        |seconds: u64| Timestamp { seconds: seconds as i64 - 1000, nanoseconds: (seconds % 1_000_000_000) as u32 };
    SetAttributes {
        permissions: some(0o10000).map(|bits| bits as u32),
        uid: some(70_000).map(|uid| uid as u32),
        gid: some(70_000).map(|gid| gid as u32),
        size: None,
        accessed: some(1 << 33).map(time),
        modified: some(1 << 33).map(time),
        changed: None,
    }
}
