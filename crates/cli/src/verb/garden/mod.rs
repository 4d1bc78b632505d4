//! `senesce garden`: what is done with gardens that are made for it, in memory.

mod circumstances;
mod jobs;
mod kept;
mod reproduce;
mod table;

use anyhow::Result;

use crate::args::{GardenArgs, GardenVerb};

/// Reproduces.
pub fn garden(args: GardenArgs, quiet: bool) -> Result<()> {
    match args.verb {
        GardenVerb::Reproduce(args) => reproduce::reproduce(&args, quiet),
    }
}
