//! Generated texts: schemas, shell completions, man pages, the reference of commands.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, Result};
use clap::{Command, ValueEnum};
use clap_complete::env::Shells;
use serde_json::Value;

use super::{output::check_output_directory, schemas::output_schema};
use crate::{
    args::{Cli, CompletionsArgs, EXIT_CODES, MOST_COLUMNS, ManArgs, SchemaArgs, SchemaOf, ShellArg},
    engines::engines,
    exit::usage,
    out::Stdout,
};

/// The JSON schema of a kind of file or output, or the keys of a plan as Markdown.
pub fn schema(args: &SchemaArgs) -> Result<()> {
    let text = match args.of {
        SchemaOf::Plan if args.markdown => senesce_experiment::plan::plan_reference(),
        SchemaOf::Plan => senesce_experiment::plan::plan_schema_json(),
        SchemaOf::Suite => senesce_experiment::suite::suite_schema_json(),
        SchemaOf::Personality => senesce_experiment::personality_schema_json(),
        SchemaOf::Grid => senesce_experiment::campaign::grid_schema_json(),
        SchemaOf::Metrics => super::metrics::reference(),
        of if of.is_of_engine() => {
            engines().hand_over()?;
            return engine_schema(args);
        }
        of => described(of, output_schema(of))?,
    };
    Ok(Stdout.write_all(text.as_bytes())?)
}

/// The JSON schema of an output of `fs` or `garden`, in the program that has the engines.
pub fn engine_schema(args: &SchemaArgs) -> Result<()> {
    let text = described(args.of, engines().schema(args.of))?;
    Ok(Stdout.write_all(text.as_bytes())?)
}

/// A schema as text, with the help of its kind as description.
fn described(of: SchemaOf, schema: Option<Value>) -> Result<String> {
    let mut schema = schema.context("the kind has no schema")?;
    let help = of.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
    schema["description"] = help.unwrap_or_default().into();
    Ok(format!("{schema:#}\n"))
}

/// A completion script. It calls `senesce` with `COMPLETE` set, so that values are current.
pub fn completions(args: CompletionsArgs) -> Result<()> {
    let name = match args.shell {
        ShellArg::Bash => "bash",
        ShellArg::Zsh => "zsh",
        ShellArg::Fish => "fish",
        ShellArg::Elvish => "elvish",
        ShellArg::Powershell => "powershell",
    };
    let shells = Shells::builtins();
    let shell = shells.completer(name).context("the shell has no completer")?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "senesce", "senesce", "senesce", &mut script)?;
    if args.shell == ShellArg::Bash {
        let text = String::from_utf8_lossy(&script).replace("-F _clap_complete_senesce", "-F _senesce_joined");
        script = [BASH_JOINED, &text].concat().into_bytes();
    }
    Ok(Stdout.write_all(&script)?)
}

/// Bash splits words at `:` and `=`, and replaces only the last part. This function joins the
/// parts, so that `profile:ag` and `--device=n` are completed, too.
const BASH_JOINED: &str = r#"
_senesce_joined() {
    local line=${COMP_LINE:0:COMP_POINT} word index joins
    local -a joined=()
    for ((index = 0; index <= COMP_CWORD; index++)); do
        [[ $index -gt 0 && $line != [[:space:]]* ]] && joins=1 || joins=0
        line=${line#"${line%%[![:space:]]*}"}
        word=${COMP_WORDS[index]}
        # Only what is before the cursor counts.
        ((index == COMP_CWORD)) && word=$line
        if ((joins)); then
            joined[${#joined[@]}-1]+=$word
        else
            joined+=("$word")
        fi
        line=${line#"$word"}
    done
    local COMP_CWORD=$((${#joined[@]} - 1))
    local current=${joined[COMP_CWORD]}
    local -a COMP_WORDS=("${joined[@]}")
    _clap_complete_senesce "$1" "$current" "$3"
    local start=${current%"$2"}
    COMPREPLY=("${COMPREPLY[@]#"$start"}")
}
"#;

/// The commands and their options, as man pages or as Markdown.
///
/// Errors: there is no such verb; the directory cannot be written.
pub fn man(args: &ManArgs) -> Result<()> {
    let names_engine = args.verb.first().is_some_and(|verb| verb == "fs" || verb == "garden");
    // Only senesce-fs knows the arguments of `fs` and `garden`. Without it, or with one of another
    // version, this program makes the pages of the other commands.
    if names_engine || engines().is_alike() {
        engines().hand_over()?;
    }
    if args.markdown {
        return Ok(Stdout.write_all(render_markdown().as_bytes())?);
    }
    let mut command = Cli::grouped().disable_help_subcommand(true);
    command.build();
    if let Some(dir) = &args.out {
        return write_pages(&command, dir, args.dry_run);
    }
    let mut found = &command;
    for name in &args.verb {
        found = found.find_subcommand(name).filter(|verb| !verb.is_hide_set()).ok_or_else(|| {
            let message = format!("there is no verb \"{}\"", args.verb.join(" "));
            usage(message, Some("`senesce --help` lists the verbs"))
        })?;
    }
    Ok(Stdout.write_all(&render_page(found, &page_name(&args.verb))?)?)
}

/// The long help of every command. docs/reference/commands.md is this text.
fn render_markdown() -> String {
    let mut text = "# Commands\n\n\
         This page is for users who look up a command or an option. It is generated: `senesce man --markdown`.\n"
        .to_owned();
    text.push_str(&format!("\n## Exit codes\n\n```text\n{EXIT_CODES}\n```\n"));
    let mut command = Cli::grouped().term_width(MOST_COLUMNS).disable_help_subcommand(true);
    command.build();
    text.push_str(&format!("\n## Verbs\n\n{}", render_contents(&command, "senesce", 0)));
    render_command(&mut text, &mut command, "senesce");
    text
}

/// The contents list: an item for each verb, and below it one for each of its subcommands.
fn render_contents(command: &Command, name: &str, indent: usize) -> String {
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let items = shown.map(|inner| {
        let name = format!("{name} {}", inner.get_name());
        let below = render_contents(inner, &name, indent + 2);
        format!("{:indent$}- [{name}](#{})\n{below}", "", name.replace(' ', "-"))
    });
    items.collect()
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

/// The name of the page of a verb: `senesce-fs-mount`.
fn page_name(verb: &[String]) -> String {
    let words = ["senesce"].into_iter().chain(verb.iter().map(String::as_str));
    words.collect::<Vec<_>>().join("-")
}

/// Writes a page for senesce and for every verb, and prints their number. With `dry_run` it writes
/// nothing.
fn write_pages(command: &Command, dir: &Path, dry_run: bool) -> Result<()> {
    // A directory of man pages can have pages of other programs, too.
    check_output_directory(dir, "--out", || true)?;
    let mut open = vec![(command, Vec::new())];
    let mut pages = Vec::new();
    while let Some((command, verb)) = open.pop() {
        let path = dir.join(format!("{}.1", page_name(&verb)));
        if path.is_dir() {
            return Err(usage(format!("{} is a directory", path.display()), Some("name another directory")));
        }
        pages.push((path, render_page(command, &page_name(&verb))?));
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let mut verb = verb.clone();
            verb.push(inner.get_name().to_owned());
            open.push((inner, verb));
        }
    }
    let written = pages.len();
    if dry_run {
        let replaced = pages.iter().filter(|(path, _)| path.symlink_metadata().is_ok()).count();
        println!("{written} pages would be written into {}, and would replace {replaced}", dir.display());
        return Ok(());
    }
    if !dir.is_dir() {
        fs::create_dir(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    for (path, page) in pages {
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{written} pages in {}", dir.display());
    Ok(())
}

/// A man page: name, synopsis, options, verbs, examples and version.
fn render_page(command: &Command, name: &str) -> Result<Vec<u8>> {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone().display_name(name)).title(name).section("1");
    man.render_title(&mut page)?;
    writeln!(page, ".SH NAME\n{} \\- {}", escape(name), escape(about.trim_end_matches('.')))?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).peekable();
    if verbs.peek().is_some() {
        writeln!(page, ".SH VERBS")?;
    }
    for verb in verbs {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(page, ".TP\n\\fB{}\\-{}\\fR(1)\n{}", escape(name), escape(verb.get_name()), escape(&about))?;
    }
    if let Some(notes) = command.get_after_long_help() {
        let notes = notes.to_string();
        let (heading, text) = match notes.split_once(":\n") {
            Some((heading @ ("Example" | "Examples"), text)) => (heading.to_uppercase(), text),
            _ => ("NOTES".to_owned(), notes.as_str()),
        };
        writeln!(page, ".SH {heading}\n.nf\n{}\n.fi", escape(text))?;
    }
    if name == "senesce" {
        writeln!(page, ".SH \"EXIT STATUS\"\n.nf\n{}\n.fi", escape(EXIT_CODES))?;
    }
    Ok(page)
}

/// A text in the form of roff: backslashes and hyphens are escaped, and no line is a request.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
