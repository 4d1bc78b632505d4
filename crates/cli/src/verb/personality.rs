//! `senesce bench personality`: the built-in personalities, and the check of one in a file.

use anyhow::{Context, Result};
use senesce_experiment::{read_description, read_personality};
use senesce_workload::personality::builtin_personalities;

use crate::args::{PersonalityArgs, PersonalityVerb};

/// Lists or shows.
pub fn personality(args: PersonalityArgs) -> Result<()> {
    match args.verb {
        PersonalityVerb::List => {
            for (name, _) in builtin_personalities() {
                println!("{name:<12}  {}", read_personality(name)?.description);
            }
        }
        PersonalityVerb::Show { personality } => {
            read_personality(&personality)?;
            let built_in = builtin_personalities().find(|(name, _)| *name == personality);
            match built_in {
                Some((_, text)) => print!("{text}"),
                None => {
                    let text = read_description(&personality).with_context(|| format!("cannot read {personality}"))?;
                    print!("{text}");
                }
            }
        }
    }
    Ok(())
}
