//! `senesce garden`: what is done with gardens that are made for it, in memory.

mod circumstances;
mod jobs;
mod kept;
mod reproduce;
mod table;

pub use table::Reproduction;

use anyhow::Result;

use crate::args::GardenVerb;

/// Reproduces.
pub fn garden(verb: GardenVerb, quiet: bool) -> Result<()> {
    match verb {
        GardenVerb::Reproduce(args) => reproduce::reproduce(&args, quiet),
    }
}
