//! Bundles of this crate, and those of an attacker.

mod common;
mod forged;
mod whole;
