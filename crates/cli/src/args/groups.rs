//! The verbs in groups, and the exit codes, as the help shows them.

use std::fmt::Write;

use clap::{Command, builder::styling::Style};

use super::help::reflow;
use crate::fit::fill;

/// Every visible verb, in the order of the help.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("Look", &["inspect", "forecast", "defrag", "trace", "grep", "device"]),
    ("Age", &["age", "fragment", "profile", "synth"]),
    ("Measure", &["demo", "run", "campaign", "show", "report", "export", "compare", "gate", "bench"]),
    ("Keep", &["bundle", "verify-bundle", "rerun", "image", "record", "replay", "log"]),
    ("File systems", &["fs", "garden"]),
    ("Housekeeping", &["clean", "kernels", "schema", "completions", "man"]),
];

/// The rule of exit codes: the long help of `senesce help exit-codes`, and a part of the reference.
pub const EXIT_CODES: &str = "\
Exit codes of all verbs. The first row that matches decides.

  0    done, also if there was nothing to do (`defrag`: not worth it), or the reader closed the pipe
  130  interrupted by SIGINT (Ctrl-C)
  143  interrupted by SIGTERM; `senesce run --resume DIR` continues a run after both
  5    a gate fails: `gate` found a regression, or `compare --fail-if` or `inspect --fail-if` found
       a figure beyond its limit, or a deterministic figure of `rerun` differs
  6    a gate is undecided: the figures prove neither outcome
  125  `gate --bisect` is undecided or failed, so `git bisect run` skips the commit; 1 is a regression there
  7    `fs mount` unmounted in order, but a drive or a copy of the log is missing or not rebuilt
  2    usage: change the command line or the plan. An option or value is wrong; a file, directory, device,
       run or command that the command line or the plan names does not exist; it is of another kind or of a
       newer format; an output exists already; a size in a plan is too small
  3    environment: change the machine. Rights, kernel features or tools are missing; a file system is full
       or read-only; a device is in use or carries a signature; stdout cannot be written
  4    internal error: a fault of senesce. Please report it
  1    failed: the work started and failed, or found a fault: damage, differences, an invalid cell

Every error prints its cause (`because:`) and, where one exists, the way out (`hint:`) to stderr.";

/// Replaces the list of verbs in the help by one list for each group, of this number of columns.
pub fn group(command: Command, columns: usize) -> Command {
    let width = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter()).map(|name| name.len()).max().unwrap_or(0);
    let style = Style::new().bold();
    let heading = style.underline();
    let mut text = String::new();
    for (title, verbs) in GROUPS {
        let _ = writeln!(text, "{heading}{title}:{heading:#}");
        for name in *verbs {
            let verb = command.find_subcommand(name);
            let about = verb.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default();
            let about = fill(about.trim_end_matches('.'), (width + 4, width + 4), columns);
            let _ = writeln!(text, "  {style}{name:<width$}{style:#}  {}", about.trim_start());
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    );
    let command = command.mut_subcommand("exit-codes", |verb| verb.long_about(reflow(EXIT_CODES, columns)));
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// The lines of the help at 100 columns, without styles.
    fn help(command: &mut Command, is_long: bool) -> Vec<String> {
        let text = if is_long { command.render_long_help() } else { command.render_help() };
        text.to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_visible_verb_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let times = grouped.iter().filter(|name| **name == verb.get_name()).count();
            assert_eq!(times, 1, "{}", verb.get_name());
        }
        assert!(grouped.iter().all(|name| Cli::command().find_subcommand(name).is_some()));
    }

    #[test]
    fn misspelt_exit_codes_are_found() {
        for name in ["exit-codes", "exitcodes", "exit-code", "exit_codes", "exit"] {
            assert_eq!(Cli::command().find_subcommand(name).map(Command::get_name), Some("exit-codes"), "{name}");
        }
    }

    #[test]
    fn every_verb_is_listed_once() {
        for is_long in [false, true] {
            let lines = help(&mut Cli::grouped(), is_long);
            for (_, verbs) in GROUPS {
                for verb in *verbs {
                    let own: Vec<_> = lines.iter().filter(|line| line.starts_with(&format!("  {verb} "))).collect();
                    assert_eq!(own.len(), 1, "{verb}: {lines:#?}");
                }
            }
        }
    }

    #[test]
    fn short_help_has_one_line_for_each_option() {
        let mut faults = Vec::new();
        let mut command = Cli::grouped().term_width(100).disable_help_subcommand(true);
        command.build();
        check_short(&mut command, "senesce", &mut faults);
        assert!(faults.is_empty(), "{} lines continue another:\n{}", faults.len(), faults.join("\n"));
    }

    fn check_short(command: &mut Command, name: &str, faults: &mut Vec<String>) {
        let lines = help(command, false);
        let usage = lines.iter().position(|line| line.starts_with("Usage:")).unwrap_or(0);
        let options = lines.iter().skip(usage).skip_while(|line| !line.is_empty());
        faults.extend(options.filter(|line| line.starts_with("        ")).map(|line| format!("{name}: {line}")));
        for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name());
            check_short(inner, &name, faults);
        }
    }
}
