//! The engines, for the command line of the laboratory.

use std::{error::Error, path::Path};

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, Command, FromArgMatches, builder::Resettable};
use senesce_cli::{Engines, GardeningArg, SchemaOf};
use senesce_exec::EngineTarget;
use senesce_experiment::ErrorKind;
use senesce_inspect::Told;
use senesce_service::garden::report_chains;
use serde_json::Value;

use crate::{
    args::{FsArgs, GardenArgs},
    exit,
    schemas::engine_schema,
    verb::{
        fs::{self, Policy, collect_told, draw_tree, outline_tree, with_engine, with_evergreen},
        garden,
    },
};

/// The engines of this program.
pub struct Here;

impl Engines for Here {
    fn hand_over(&self) -> Result<()> {
        Ok(())
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn extend(&self, command: Command) -> Command {
        command.mut_subcommands(|verb| match verb.get_name() {
            "fs" => with_arguments::<FsArgs>(verb),
            "garden" => with_arguments::<GardenArgs>(verb),
            _ => verb,
        })
    }

    fn run_verb(&self, verb: &str, arguments: &ArgMatches, quiet: bool) -> Result<()> {
        match verb {
            "fs" => fs::fs(FsArgs::from_arg_matches(arguments)?.verb, quiet),
            _ => garden::garden(GardenArgs::from_arg_matches(arguments)?.verb, quiet),
        }
    }

    fn survey(&self, place: &Path, volume: Option<&str>, goes_on: &dyn Fn() -> bool) -> Result<Told> {
        collect_told(place, volume, goes_on)
    }

    fn draw_tree(&self, place: &Path, figures: Option<&Path>, picture: Option<&Path>) -> Result<Value> {
        let tree = outline_tree(place, figures)?;
        picture.map(|picture| draw_tree(&tree, picture)).transpose()?;
        Ok(tree)
    }

    fn drive(
        &self,
        place: &str,
        gardening: Option<GardeningArg>,
        act: &mut dyn FnMut(&EngineTarget) -> Result<()>,
    ) -> Result<Option<Value>> {
        if let Some(file) = place.strip_prefix("evergreen:") {
            return with_evergreen(Path::new(file), act).map(|()| None);
        }
        let directory = place.strip_prefix("garden:").with_context(|| format!("{place} is no place of an engine"))?;
        with_engine(Path::new(directory), |target, garden| {
            let Some(gardening) = gardening else { return act(target).map(|()| None) };
            garden.set_gardening(gardening.policy(garden));
            act(target)?;
            Ok(Some(report_chains(&garden.report())))
        })
    }

    fn schema(&self, of: SchemaOf) -> Option<Value> {
        engine_schema(of)
    }

    fn kind(&self, cause: &(dyn Error + 'static)) -> Option<(ErrorKind, Option<&'static str>)> {
        exit::kind(cause)
    }
}

/// Adds arguments to a verb, which keeps its own description.
fn with_arguments<A: Args>(verb: Command) -> Command {
    let (about, long_about) = (verb.get_about().cloned(), verb.get_long_about().cloned());
    A::augment_args(verb).about(Resettable::from(about)).long_about(Resettable::from(long_about))
}
