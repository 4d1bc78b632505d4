//! Personalities: the file operations of a server's threads in the manner of Filebench, from a
//! seed.
//!
//! [`Personality`] is the description. [`plan_script`] turns it into files and threads, and
//! [`PersonalityScript::stream`] into the calls of each thread. The same personality, scale and
//! seed give every thread the same calls, independent of the other threads. If a personality
//! creates and deletes files, each thread has its own share of them. Filebench lets every thread
//! choose among all files, so that its calls depend on the speed of the others.
//!
//! Source: the workload language and the personalities of Filebench 1.5. The four built-in ones
//! name the source of each number.

mod builtin;
mod check;
mod format;
mod gamma;
mod script;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

pub use builtin::{builtin_personalities, find_personality};
pub use check::PersonalityProblem;
pub use format::{Fileset, Flowop, FlowopKind, PERSONALITY_FORMAT, Personality, Process, Scales};
pub use script::{PersonalityOptions, PersonalityScript, plan_script};
pub use stream::CallStream;
