//! Generated texts: schemas, shell completions, the man page.

use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;

use crate::{
    args::{Cli, CompletionsArgs, SchemaOf},
    out::Stdout,
};

/// The JSON schema of what is written by hand.
pub fn schema(of: SchemaOf) -> Result<()> {
    print!(
        "{}",
        match of {
            SchemaOf::Plan => senesce_experiment::plan::plan_schema_json(),
            SchemaOf::Suite => senesce_experiment::suite::suite_schema_json(),
            SchemaOf::Personality => senesce_experiment::personality_schema_json(),
        }
    );
    Ok(())
}

/// A completion script.
pub fn completions(args: CompletionsArgs) -> Result<()> {
    clap_complete::generate(args.shell, &mut Cli::command(), "senesce", &mut Stdout);
    Ok(())
}

/// The man page, with a section for each verb.
pub fn man() -> Result<()> {
    let mut out = Vec::new();
    let command = Cli::command();
    clap_mangen::Man::new(command.clone()).render(&mut out)?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = format!("senesce {}", verb.get_name());
        let mut section = Vec::new();
        let page = clap_mangen::Man::new(verb.clone().bin_name(name.clone()));
        page.render_synopsis_section(&mut section)?;
        page.render_options_section(&mut section)?;
        writeln!(out, ".SH \"{}\"", name.to_uppercase())?;
        if let Some(about) = verb.get_about() {
            writeln!(out, "{about}")?;
        }
        // A page of its own would have these as sections; inside this one they are subsections.
        out.extend(String::from_utf8_lossy(&section).replace(".SH ", ".SS ").bytes());
    }
    Stdout.write_all(&out)?;
    Ok(())
}
