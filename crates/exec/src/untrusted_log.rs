//! Guards replays of untrusted logs.
//!
//! A replay as root performs every operation of the log. Three kinds affect more than the files of
//! the log: setuid and setgid bits, extended attributes that the kernel trusts (such as file
//! capabilities), and device nodes. The guard withholds and counts them. It also skips flushes of a
//! file system without changes, so that a log cannot request millions of them.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use senesce_core::{RelPath, StopFn};
use senesce_oplog::{Op, Payload};

use crate::{OpFailure, SpaceLeft, Target};

const SET_ID: u32 = 0o6000;
const FILE_TYPE: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const BLOCK_DEVICE: u32 = 0o060_000;

/// The operations that were not replayed as recorded, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Operations whose setuid or setgid bit was cleared.
    pub set_id: u64,
    /// Operations on attributes `security.*` and `trusted.*` that were left out.
    pub attributes: u64,
    /// Device nodes that became empty files.
    pub devices: u64,
}

impl Withheld {
    /// Whether every operation was replayed as recorded.
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
    /// Whether an operation changed something since the last flush of the file system.
    changed: AtomicBool,
}

/// Withholds and counts the operations that an untrusted log must not do.
///
/// All targets of one directory must come from one guard, because they share its state.
pub struct Guard {
    trusts: bool,
    shared: Arc<Shared>,
}

impl Guard {
    /// Makes a guard for one replay. If `trusts`, operations are replayed as recorded, and only
    /// repeated flushes are left out.
    pub fn new(trusts: bool) -> Self {
        Self { trusts, shared: Arc::default() }
    }

    /// Wraps a target with this guard.
    pub fn over<T: Target>(&self, target: T) -> Guarded<T> {
        Guarded { trusts: self.trusts, shared: Arc::clone(&self.shared), target }
    }

    /// The operations that all targets of this guard withheld so far.
    pub fn withheld(&self) -> Withheld {
        let Shared { set_id, attributes, devices, .. } = &*self.shared;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Withheld { set_id: count(set_id), attributes: count(attributes), devices: count(devices) }
    }
}

/// A target whose operations pass through a [`Guard`].
pub struct Guarded<T> {
    trusts: bool,
    shared: Arc<Shared>,
    target: T,
}

impl<T> Guarded<T> {
    /// Returns the target without its guard.
    pub fn into_inner(self) -> T {
        self.target
    }
}

/// The decision on an operation of an untrusted log.
enum Verdict {
    AsItIs,
    Instead(Op),
    LeaveOut,
}

impl Shared {
    /// Decides about an operation and counts it. The replacement for a node has the same name, so
    /// that later operations find it.
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
            // The replay runs no other operation during a flush, so no change is missed.
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

    fn stop(&self) -> StopFn {
        self.target.stop()
    }

    fn forget_directories(&mut self) {
        self.target.forget_directories();
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        self.target.space()
    }
}
