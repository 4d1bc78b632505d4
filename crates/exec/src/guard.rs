//! Replays of logs that came from elsewhere.
//!
//! A replay as root does what the log says. Three kinds of operations would change the machine
//! beyond the files of the log: setuid and setgid bits, extended attributes that the kernel trusts
//! (file capabilities among them), and nodes of devices. The guard leaves them out and counts them.
//! It also keeps a log from flushing the same clean file system millions of times.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use senesce_core::RelPath;
use senesce_oplog::{Op, Payload};

use crate::{OpFailure, SpaceLeft, Target};

const SET_ID: u32 = 0o6000;
const FILE_TYPE: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const BLOCK_DEVICE: u32 = 0o060_000;

/// What was not replayed as it was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Operations whose setuid or setgid bit was cleared.
    pub set_id: u64,
    /// Operations on attributes `security.*` and `trusted.*` that were left out.
    pub attributes: u64,
    /// Nodes of devices that became empty files.
    pub devices: u64,
}

impl Withheld {
    /// Whether everything was replayed as it was recorded.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.set_id, "setuid or setgid mode(s) cleared"),
            (self.attributes, "operation(s) on security.* or trusted.* attributes left out"),
            (self.devices, "device node(s) replaced by empty files"),
        ];
        let parts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

#[derive(Debug, Default)]
struct Shared {
    set_id: AtomicU64,
    attributes: AtomicU64,
    devices: AtomicU64,
    /// Something was changed since the last flush of the file system.
    changed: AtomicBool,
}

/// Leaves out what an untrusted log may not do, and counts it.
///
/// All targets of one directory come from one guard: they share its state.
pub struct Guard {
    trusts: bool,
    shared: Arc<Shared>,
}

impl Guard {
    /// A guard for one replay. If `trusts`, operations are replayed as they are, and only
    /// repeated flushes are left out.
    pub fn new(trusts: bool) -> Self {
        Self { trusts, shared: Arc::default() }
    }

    /// Puts the guard before a target.
    pub fn over<T: Target>(&self, target: T) -> Guarded<T> {
        Guarded { trusts: self.trusts, shared: Arc::clone(&self.shared), target }
    }

    /// What was withheld so far by all targets of this guard.
    pub fn withheld(&self) -> Withheld {
        let Shared { set_id, attributes, devices, .. } = &*self.shared;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Withheld { set_id: count(set_id), attributes: count(attributes), devices: count(devices) }
    }
}

/// A target behind a [`Guard`].
pub struct Guarded<T> {
    trusts: bool,
    shared: Arc<Shared>,
    target: T,
}

impl<T> Guarded<T> {
    /// The target alone.
    pub fn into_inner(self) -> T {
        self.target
    }
}

/// What becomes of an operation of an untrusted log.
enum Verdict {
    AsItIs,
    Instead(Op),
    LeaveOut,
}

impl Shared {
    /// Decides and counts. What takes the place of a node or a mode keeps its name, so that later
    /// operations find it.
    fn judge(&self, op: &Op) -> Verdict {
        let count = |counter: &AtomicU64| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        match op {
            Op::Mknod { path, mode, .. } if matches!(mode & FILE_TYPE, CHARACTER_DEVICE | BLOCK_DEVICE) => {
                count(&self.devices);
                let mode = mode & 0o7777 & !SET_ID;
                Verdict::Instead(Op::Allocate { path: path.clone(), mode, len: 0 })
            }
            Op::Mkdir { mode, .. }
            | Op::Create { mode, .. }
            | Op::Chmod { mode, .. }
            | Op::Allocate { mode, .. }
            | Op::Mknod { mode, .. }
                if mode & SET_ID != 0 =>
            {
                count(&self.set_id);
                Verdict::Instead(without_set_id(op))
            }
            Op::SetXattr { name, .. } | Op::RemoveXattr { name, .. }
                if name.starts_with(b"security.") || name.starts_with(b"trusted.") =>
            {
                count(&self.attributes);
                Verdict::LeaveOut
            }
            _ => Verdict::AsItIs,
        }
    }
}

fn without_set_id(op: &Op) -> Op {
    let mut safer = op.clone();
    if let Op::Mkdir { mode, .. }
    | Op::Create { mode, .. }
    | Op::Chmod { mode, .. }
    | Op::Allocate { mode, .. }
    | Op::Mknod { mode, .. } = &mut safer
    {
        *mode &= !SET_ID;
    }
    safer
}

impl<T: Target> Target for Guarded<T> {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        let changed = &self.shared.changed;
        match op {
            // The needs of operations keep all others away from a flush: no change is missed.
            Op::SyncFs if !changed.swap(false, Ordering::AcqRel) => return Ok(()),
            Op::SyncFs => {
                return self.target.apply(root, op, payload).inspect_err(|_| changed.store(true, Ordering::Release));
            }
            Op::Read { .. } | Op::Fsync { .. } => {}
            _ => changed.store(true, Ordering::Release),
        }
        match if self.trusts { Verdict::AsItIs } else { self.shared.judge(op) } {
            Verdict::AsItIs => self.target.apply(root, op, payload),
            Verdict::Instead(safer) => self.target.apply(root, &safer, payload),
            Verdict::LeaveOut => Ok(()),
        }
    }

    fn forget_directories(&mut self) {
        self.target.forget_directories();
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        self.target.space()
    }
}
