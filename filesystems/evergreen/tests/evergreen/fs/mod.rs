//! The file system over the store in memory.

mod blind;
mod conformance;
mod failing;
mod found;
mod golden;
mod prefixes;
mod rehome;
mod rig;
mod space;
mod together;
mod unordered;
mod watched;
