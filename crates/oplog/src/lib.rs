//! Operations, steps, and the versioned log that holds what was done.
//!
//! One operation log drives interchangeable targets. A *step* is what belongs together (one pull); its operations are
//! applied in order. What the log records is what was *done*: of a step that ran out of space, the completed part.
//! Where the bytes of a content come from is not this room's business: see [`ContentSource`].

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
