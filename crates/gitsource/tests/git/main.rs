//! Replays of awkward histories into real directories, judged by the git binary.

mod deep;
mod errors;
mod fixture;
mod history;
mod judge;
mod replay;
mod trust;
