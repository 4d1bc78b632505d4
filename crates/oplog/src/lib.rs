//! Operations, steps, and the versioned log of what was done.
//!
//! One operation log drives interchangeable targets. A *step* groups operations that belong
//! together, for example one pull. They are applied in order. The log records what was *done*: of a
//! step without space, the completed part. The bytes of derived contents come from a
//! [`ContentSource`] outside this crate.

mod call;
mod codec;
mod content;
mod error;
mod frame;
mod header;
mod op;
mod reader;
mod render;
mod seeded;
mod summary;
mod writer;

pub use call::{Access, Call, FlowCall, Script, ScriptFile, ScriptFlow, ScriptThread};
pub use content::{Content, ContentError, ContentSource, Derived, Payload};
pub use error::LogError;
pub use header::LogHeader;
pub use op::{DoneStep, FileTime, Op, Outcome, SpaceChange, Step};
pub use reader::{LogReader, verify};
pub use render::render_step;
pub use seeded::seeded_bytes;
pub use summary::{Ended, LogSummary};
pub use writer::LogWriter;
