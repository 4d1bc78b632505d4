//! What the targets of both engines share: what users ask for, what is tried on what may be damaged, and holding an engine against the
//! model in memory.

pub mod patches;

use std::ops::ControlFlow;

use senesce_fsapi::{
    Caller, FallocateMode, FileKind, FileSystem, FsResult, Ino, ModelFs, RenameMode, Timestamp,
    conformance::{Operation, Place, Player, Subject, Tree, collect_tree, find_difference},
};

/// Who asks.
pub const CALLER: Caller = Caller { uid: 1000, gid: 100, now: Timestamp { seconds: 1, nanoseconds: 0 } };
/// How many files users know.
pub const FILES: u64 = 6;

/// Reads all that can be read, and changes the first files of the root: `change` says how, of each with its number and name.
pub fn read_and_change(fs: &impl FileSystem, change: impl Fn(usize, &[u8], Ino) -> FsResult<()>) {
    let _ = collect_tree(fs);
    let mut found = Vec::new();
    let _ = fs.read_dir(Ino::ROOT, 0, &mut |entry| {
        found.push((entry.name.to_vec(), entry.ino));
        if found.len() < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    for (number, (name, ino)) in found.iter().enumerate() {
        let _ = change(number, name, *ino);
    }
}

/// What an event names: files, a range of one. The files are few and small: there is always space.
pub struct Asked {
    pub path: String,
    pub other: String,
    /// The range begins at a block.
    pub offset: u64,
    pub fine: u64,
    pub len: u64,
    pub seed: u64,
}

impl Asked {
    pub fn new(event: &[u8], path: String, other: String, offset: u64) -> Self {
        let fine = u64::from(u16::from_le_bytes([event[3], event[4]]));
        let len = u64::from(event[5] % 6) << 12 | fine % 4096;
        Self { path, other, offset, fine, len, seed: u64::from(event[6]) }
    }

    fn at(&self) -> Place {
        Place::Path(self.path.clone())
    }

    /// One of five that make a file, or make less of it.
    pub fn make_or_cut(self, which: u8) -> Operation {
        let (at, offset, fine, len) = (self.at(), self.offset, self.fine, self.len);
        match which {
            0 => Operation::Unlink { path: self.path },
            1 => Operation::MakeNode { path: self.path, kind: FileKind::File, permissions: 0o600 },
            2 => Operation::Truncate { at, size: offset + fine },
            3 => Operation::Allocate { at, how: FallocateMode::Punch, offset: offset + fine % 3, len },
            _ => Operation::Allocate { at, how: FallocateMode::Zero { keep_size: self.seed > 127 }, offset, len },
        }
    }

    pub fn read(self) -> Operation {
        Operation::Read { at: self.at(), offset: self.offset, len: self.len }
    }

    /// Anywhere, bytes of their own.
    pub fn write(self) -> Operation {
        let offset = self.offset + self.fine % 4096;
        Operation::Write { at: self.at(), offset, len: self.len, seed: self.seed }
    }

    /// Whole blocks, so that some hold the same.
    pub fn write_blocks(self) -> Operation {
        Operation::Write { at: self.at(), offset: self.offset, len: self.len & !4095, seed: self.seed % 4 }
    }

    /// Blocks of one file to another.
    pub fn clone_range(self, to_offset: u64) -> Operation {
        let (from, len) = (self.at(), self.len & !4095);
        Operation::CloneRange { from, from_offset: self.offset, to: Place::Path(self.other), to_offset, len }
    }

    pub fn rename(self, how: RenameMode) -> Operation {
        Operation::Rename { from: self.path, to: self.other, how }
    }
}

/// Does what the first events say to an engine and to the model, whose answers must be the same; what is no operation is done `aside`.
pub fn play<S: Subject>(
    subject: &mut S,
    model: &mut ModelFs,
    events: &[u8],
    most: usize,
    operation: impl Fn(&[u8]) -> Option<Operation>,
    mut aside: impl FnMut(&mut S, &ModelFs, &[u8]),
) {
    let mut players = [Player::default(), Player::default()];
    for event in events.chunks_exact(8).take(most) {
        if let Some(operation) = operation(event) {
            let got = players[0].play(subject, &operation);
            let want = players[1].play(model, &operation);
            assert_eq!(format!("{got:?}"), format!("{want:?}"), "{operation:?}");
        } else {
            aside(subject, model, event);
        }
    }
}

/// The files are those that are wanted.
pub fn expect_same(want: &Tree, fs: &dyn FileSystem, told: &str) {
    let found = collect_tree(fs).expect("it is whole");
    assert_eq!(find_difference(want, &found), None, "{told}");
}
