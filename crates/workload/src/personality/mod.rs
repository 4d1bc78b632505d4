//! Personalities: what the threads of a server do to files, as Filebench describes it, from a seed.
//!
//! [`Personality`] is the description; [`plan_script`] makes the files and the threads of it, and
//! [`PersonalityScript::stream`] the calls of each thread. The same personality, scale and seed give every thread the same
//! calls, whatever the others do meanwhile: where a personality makes and deletes files, each thread has its own share of
//! them (Filebench lets every thread choose among all, so that there what one does depends on how fast the others are).
//!
//! Source: the workload language and the personalities of Filebench 1.5; the four that are built in say which numbers are
//! whose.

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
