//! Replays of difficult histories into real directories, checked by the git binary.

mod deep;
mod errors;
mod fixture;
mod history;
mod judge;
mod replay;
mod trust;
