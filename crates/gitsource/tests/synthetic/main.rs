//! Synthetic histories judged by the git binary, and the trace of a real history replayed.

mod import;
mod trace;
