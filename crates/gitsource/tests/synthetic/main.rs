//! Synthetic histories checked by the git binary, and a replay of the trace of a real history.

mod import;
mod trace;
