//! Applies steps to targets: a mounted file system, an engine in this process, a model in memory,
//! or no file system at all.
//!
//! [`apply_step`] applies a step for the first time. It returns a record of the operations that
//! were done, also if the space ran out before the end. [`apply_done`] replays such a record
//! elsewhere. All targets with the same operations have the same [`tree`].
//!
//! ```
//! use senesce_core::{Bytes, RelPath};
//! use senesce_exec::{CheckContents, ModelTarget, apply_done, apply_step};
//! use senesce_oplog::{Content, Op, Outcome, Step};
//!
//! let file = RelPath::try_from("file").unwrap();
//! let content = Content::Seeded { seed: 1, len: 10_000 };
//! let ops = vec![Op::Create { path: file, mode: 0o644, content }];
//! let step = Step { label: "fill".into(), counted: true, root: RelPath::root(), ops: ops.into() };
//!
//! let mut full = ModelTarget::new(Some(Bytes(8192)));
//! let done = apply_step(&mut full, 0, step, &()).unwrap();
//! assert_eq!(done.outcome, Outcome::NoSpace { failed_op: 0, written: Some(8192) });
//!
//! let mut empty = ModelTarget::default();
//! apply_done(&mut empty, &done, &(), CheckContents::Yes).unwrap();
//! assert_eq!(full.tree().hash(), empty.tree().hash());
//! ```

mod apply;
mod conflicts;
mod content;
mod direct_io;
mod engine;
mod error;
mod latency;
mod model;
mod null_target;
mod parallel_log;
mod parallel_step;
mod parents;
mod posix;
mod prefetch;
mod prefetch_contents;
mod recorded_operations;
mod remove;
mod script;
pub mod syscall_baseline;
mod target;
pub mod tree;
mod untrusted_log;

pub use apply::{CheckContents, PreparedStep, Replay, apply_done, apply_prepared, apply_step, prepare_step};
pub use content::{CHUNK_BYTES, resolve_ops};
pub use direct_io::DIRECT_ALIGNMENT;
pub use engine::{EngineTarget, collect_engine_extents, collect_engine_tree, collect_engine_tree_until};
pub use error::{ExecError, OpPlace};
pub use latency::{Latencies, LatencyHistogram, LatencySums, OpKind, TimedTarget};
pub use model::ModelTarget;
pub use null_target::NullTarget;
pub use parallel_log::apply_parallel;
pub use parallel_step::apply_step_parallel;
pub use posix::PosixTarget;
pub use prefetch::Prefetcher;
pub use prefetch_contents::{PrefetchedItems, prefetch_contents};
pub use script::{FlowTally, ScriptEnd, ScriptLimits, make_script_files, run_script};
pub use target::{OpFailure, Settle, SpaceLeft, Target};
pub use untrusted_log::{Guard, Guarded, Withheld};
