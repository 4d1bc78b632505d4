//! Tips for wrong command lines, where those of clap do not help.

use std::{ffi::OsString, path::Path};

use clap::{
    Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::verb::shell::{command_with, quote};

/// Options that users expect of a verb, and what has their effect.
const GUESSED: &[(&str, &str, &str)] = &[
    ("age", "--profile", "a profile is the workload: senesce age profile:NAME --on PLACE"),
    ("age", "--repo", "a repository is the workload: senesce age git:REPO --on PLACE"),
    ("age", "--rounds", "the keys of the workload have --set: --set rounds=100"),
    ("age", "--size", "the size is part of the place: --on image:4GiB"),
    ("age", "--workload", "the workload has no option: senesce age fsfb --on PLACE"),
    ("bench", "--fs", "the volumes name their file systems: --aged IMAGE"),
    ("compare", "--html", "`senesce report RUN --baseline RUN` writes a page"),
    (
        "inspect",
        "--compare",
        "two inspections: `senesce inspect PLACE --json > A.json` for each place, then `senesce compare A.json B.json`",
    ),
    ("inspect", "--fs", "inspect finds the file system itself"),
    ("inspect", "--on", "the place has no option: senesce inspect PLACE"),
    ("inspect", "--out", "--html FILE writes a page, --map FILE a picture, --json prints all figures"),
    ("record", "--out", "--log FILE is the recording"),
    ("replay", "--log", "the log has no option: senesce replay LOG --on PLACE"),
    ("report", "--html", "the report is a page already; --out FILE names its file"),
    ("run", "--dir", "--out DIR is the directory of the run"),
    ("run", "--fs", "the file systems are in the plan: [[file_system]] with kind = \"xfs\""),
    ("run", "--json", "`senesce show RUN --json` prints the results"),
    ("run", "--on", "the volumes are in the plan: [volumes]; --device NAME models a disk"),
    ("run", "--rounds", "--set overrides a key of the plan: --set workload.fsfb.rounds=100"),
    ("run", "--steps", "--set overrides a key of the plan: --set workload.fsfb.rounds=100"),
    ("show", "--csv", "`senesce export RUN --csv TABLE` prints a table"),
];

/// Two options that exclude each other, and what to do.
const CONFLICTS: &[(&str, &str, &str)] = &[("--guest", "--dry-run", "leave --guest out: a dry run starts no kernel")];

/// Options that a verb needs, with a value for an example of its command line.
const NEEDED: &[(&str, &str, &str)] = &[
    ("age", "--on", "empty-dir"),
    ("record", "--on", "src"),
    ("record", "--mount", "empty-dir"),
    ("record", "--log", "new.senesce-log"),
    ("replay", "--on", "empty-dir"),
];
/// The value of `--on` in the example if the user names a file system or a file to keep.
const NEEDED_IMAGE: &str = "image:4GiB";

/// Verbs whose commands read a file, and the command that prints it.
const READERS: &[(&str, &str)] = &[("log", "show"), ("image", "list")];

/// Verbs whose last argument is a command line, which a user may write without `--`.
const WITH_COMMAND: [&str; 3] = ["bench", "record", "trace"];

/// Adds tips to an error, or replaces those of clap.
pub(super) fn improve(mut error: Error, root: &Command, arguments: &[OsString]) -> Error {
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return error };
            let verbs = named_verbs(root, arguments);
            let verb = verbs.first().map_or("", |verb| verb.get_name());
            let wrong = wrong.clone();
            let guessed = GUESSED.iter().find(|(of, option, _)| (*of, *option) == (verb, wrong.as_str()));
            let is_number = wrong.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            match guessed {
                Some((_, _, tip)) => {
                    error.remove(ContextKind::SuggestedArg);
                    Some((*tip).to_owned())
                }
                None if is_number => Some(format!("a value that starts with - follows an =, as in --option={wrong}")),
                None if WITH_COMMAND.contains(&verb) && !wrong.starts_with('-') => {
                    Some(format!("write -- before the command: senesce {verb} [OPTIONS] -- {wrong}"))
                }
                None if WITH_COMMAND.contains(&verb) => return error,
                None => None,
            }
        }
        ErrorKind::InvalidSubcommand if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            match named_verbs(root, arguments).last() {
                Some(verb) => {
                    let names = verb.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
                    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
                    let list = format!("the commands are {}", names.join(", "));
                    Some(name_reader(&error, verb.get_name()).map_or(list.clone(), |tip| format!("{tip}; {list}")))
                }
                None => Some("`senesce -h` lists all commands".to_owned()),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let verbs = named_verbs(root, arguments);
            let Some(tip) = verbs.first().and_then(|verb| complete(&error, verb.get_name(), arguments)) else {
                return error;
            };
            Some(tip)
        }
        ErrorKind::ArgumentConflict => {
            let conflict = CONFLICTS.iter().find(|(one, other, _)| is_about(&error, one) && is_about(&error, other));
            let Some((_, _, tip)) = conflict else { return error };
            Some((*tip).to_owned())
        }
        _ => return error,
    };
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// The command that prints a file, if the user named the file without it.
fn name_reader(error: &Error, verb: &str) -> Option<String> {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let (_, reader) = READERS.iter().find(|(of, _)| *of == verb).filter(|_| Path::new(wrong).is_file())?;
    Some(format!("`senesce {verb} {reader} {}` prints it", quote(wrong)))
}

/// The user's command line with values for the options that it lacks. `None`: an argument without a
/// name is missing, too.
fn complete(error: &Error, verb: &str, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    // The words after `--` are those of another command.
    let words = || arguments.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let has = |option: &str| {
        words().any(|word| word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
    };
    let (has_fs, is_kept) = (has("--fs"), has("--image") || has("--save"));
    let is_image = matches!(verb, "age" | "replay") && (has_fs || is_kept);
    let is_missing = |option: &str| missing.iter().any(|argument| argument.split(' ').next() == Some(option));
    let needed = NEEDED.iter().filter(|(of, option, _)| *of == verb && is_missing(option));
    let mut options: Vec<(&str, &str)> = needed
        .map(|(_, option, value)| (*option, if is_image && *option == "--on" { NEEDED_IMAGE } else { value }))
        .collect();
    if options.len() < missing.len() {
        return None;
    }
    // An image needs a file system, and `age` makes none that it would remove.
    options.extend((is_image && !has_fs).then_some(("--fs", "ext4")));
    options.extend((is_image && !is_kept && verb == "age").then_some(("--image", "aged.img")));
    let words: Vec<OsString> = ["senesce".into()].into_iter().chain(arguments.iter().skip(1).cloned()).collect();
    Some(format!("for example: {}", command_with(&words, &options)))
}

/// Whether one of the arguments of an error is this option.
fn is_about(error: &Error, option: &str) -> bool {
    let is_it = |value: &ContextValue| value.to_string().contains(option);
    [ContextKind::InvalidArg, ContextKind::PriorArg].iter().any(|kind| error.get(*kind).is_some_and(is_it))
}

/// The verb that the arguments name, and the commands below it.
fn named_verbs<'a>(root: &'a Command, arguments: &[OsString]) -> Vec<&'a Command> {
    let mut found = Vec::new();
    let mut at = root;
    for word in arguments.iter().skip(1) {
        // The commands after `help` are not below it.
        if let Some(next) = word.to_str().filter(|word| *word != "help").and_then(|word| at.find_subcommand(word)) {
            found.push(next);
            at = next;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory};

    use super::*;

    fn message(words: &[&str]) -> String {
        let mut root = Command::new("senesce")
            .subcommand(Command::new("trace").arg(Arg::new("command").last(true)))
            .subcommand(Command::new("age").arg(Arg::new("workload")))
            .subcommand(Command::new("log").subcommand(Command::new("show")).subcommand(Command::new("stat")));
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        let error = root.try_get_matches_from_mut(&arguments).unwrap_err();
        improve(error, &root, &arguments).to_string()
    }

    #[test]
    fn guessed_options_lead_to_the_real_ones() {
        assert!(message(&["senesce", "age", "--profile", "x"]).contains("tip: a profile is the workload"));
        let unknown = message(&["senesce", "age", "--nope"]);
        assert!(!unknown.contains("as a value"), "{unknown}");
        assert!(message(&["senesce", "trace", "ls"]).contains("senesce trace [OPTIONS] -- ls"));
        assert!(message(&["senesce", "age", "-1"]).contains("--option=-1"));
    }

    #[test]
    fn unknown_commands_list_the_known_ones() {
        let text = message(&["senesce", "log", "x.log"]);
        assert!(text.contains("tip: the commands are show, stat\n"), "{text}");
    }

    #[test]
    fn every_conflict_of_a_tip_exists() {
        let root = crate::args::Cli::command();
        let word = |verb: &Command, option: &str| {
            let of_verb = |argument: &&clap::Arg| argument.get_long().is_some_and(|long| format!("--{long}") == option);
            let argument = verb.get_arguments().find(of_verb)?;
            let value =
                argument.get_possible_values().first().filter(|_| argument.get_action().takes_values()).cloned();
            Some(value.map_or(option.to_owned(), |value| format!("{option}={}", value.get_name())))
        };
        for (one, other, tip) in CONFLICTS {
            let message = |verb: &Command| {
                let words = ["senesce".to_owned(), verb.get_name().to_owned(), word(verb, one)?, word(verb, other)?];
                let arguments = words.map(OsString::from);
                let error = root.clone().try_get_matches_from(&arguments).err()?;
                Some(improve(error, &root, &arguments).to_string())
            };
            let messages: Vec<String> = root.get_subcommands().filter_map(message).collect();
            assert!(messages.iter().any(|text| text.contains(&format!("tip: {tip}"))), "{messages:?}");
        }
    }

    #[test]
    fn no_verb_has_a_guessed_option() {
        let root = crate::args::Cli::command();
        for (verb, option, _) in GUESSED {
            let verb = root.find_subcommand(verb).unwrap();
            let known = verb.get_arguments().filter_map(clap::Arg::get_long).any(|long| format!("--{long}") == *option);
            assert!(!known, "{} has {option}", verb.get_name());
        }
    }
}
