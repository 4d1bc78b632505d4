//! Generated texts: schemas, shell completions, the man page.

use std::io::Write;

use anyhow::Result;
use clap::{Command, CommandFactory};

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

/// The keys of a plan as Markdown.
pub fn plan_reference() -> Result<()> {
    Ok(Stdout.write_all(senesce_experiment::plan::plan_reference().as_bytes())?)
}

/// A completion script.
pub fn completions(args: CompletionsArgs) -> Result<()> {
    clap_complete::generate(args.shell, &mut Cli::command(), "senesce", &mut Stdout);
    Ok(())
}

/// The commands and their options, as a man page or as Markdown.
pub fn man(is_markdown: bool) -> Result<()> {
    match is_markdown {
        true => Ok(Stdout.write_all(render_markdown().as_bytes())?),
        false => man_page(),
    }
}

/// The columns of a help text in Markdown.
const MARKDOWN_COLUMNS: usize = 100;

/// The long help of every command. docs/reference/commands.md is this text.
fn render_markdown() -> String {
    let mut text = "# Commands\n\n\
         This page is for users who look up a command or an option. It is generated: `senesce man --markdown`.\n"
        .to_owned();
    let mut command = Cli::command().term_width(MARKDOWN_COLUMNS).disable_help_subcommand(true);
    command.build();
    render_command(&mut text, &mut command, "senesce");
    text
}

/// Adds the help of a command, then that of its subcommands.
fn render_command(text: &mut String, command: &mut Command, name: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
        let name = format!("{name} {}", inner.get_name());
        render_command(text, inner, &name);
    }
}

/// The man page, with a section for each verb.
fn man_page() -> Result<()> {
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
