//! Messages of commits: `area: imperative summary`, at most 72 characters, a blank line, a body.

use std::{path::Path, process::Command};

/// The longest subject, in characters.
const MAX_SUBJECT: usize = 72;
/// Verbs that end like other forms but are imperative.
const IMPERATIVE: &[&str] =
    &["embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "bring", "string", "focus"];

/// Complains about the commits of a range (`main..HEAD`).
pub fn check_range(root: &Path, range: &str) -> anyhow::Result<Vec<String>> {
    let arguments = ["log", "--no-merges", "--format=%h%n%B%x00", range, "--"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output()?;
    anyhow::ensure!(output.status.success(), "git log {range}: {}", String::from_utf8_lossy(&output.stderr).trim());
    let mut complaints = Vec::new();
    for commit in String::from_utf8_lossy(&output.stdout).split('\0') {
        if let Some((hash, message)) = commit.trim_start().split_once('\n') {
            complaints.extend(check_message(message).into_iter().map(|fault| format!("{hash}: {fault}")));
        }
    }
    Ok(complaints)
}

/// The faults of a message. Lines that start with `#` do not count, as in git.
pub fn check_message(message: &str) -> Vec<String> {
    let mut lines = message.lines().filter(|line| !line.starts_with('#'));
    let subject = lines.next().unwrap_or_default();
    let mut faults = Vec::new();
    let length = subject.chars().count();
    if length > MAX_SUBJECT {
        faults.push(format!("the subject has {length} characters; at most {MAX_SUBJECT}"));
    }
    match subject.split_once(": ") {
        Some((areas, summary)) if areas.split(", ").all(is_area) => {
            let verb = summary.split_whitespace().next().unwrap_or_default();
            if !is_imperative(verb) {
                faults.push(format!("\"{verb}\" is not an imperative: write \"fix\", not \"fixes\" or \"fixed\""));
            }
            if summary.ends_with('.') {
                faults.push("the subject ends with a full stop".to_owned());
            }
        }
        _ => faults.push(format!("\"{subject}\" is not `area: imperative summary`")),
    }
    if lines.next().is_some_and(|line| !line.is_empty()) {
        faults.push("the line after the subject is not blank".to_owned());
    }
    if lines.all(|line| line.trim().is_empty()) {
        faults.push("there is no body: say why, and how it was tested".to_owned());
    }
    faults
}

fn is_area(area: &str) -> bool {
    !area.is_empty() && area.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/_.".contains(c))
}

fn is_imperative(verb: &str) -> bool {
    let is_other_form =
        ["ed", "ing"].iter().any(|end| verb.ends_with(end)) || verb.ends_with('s') && !verb.ends_with("ss");
    verb.starts_with(|c: char| c.is_ascii_lowercase()) && (!is_other_form || IMPERATIVE.contains(&verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "\n\nThe old one was wrong. Tested by hand.\n";

    #[test]
    fn good_messages_pass() {
        for subject in ["fs: pass the token", "cli, garden: say who acts", "docs/fs: seed it"] {
            assert_eq!(check_message(&format!("{subject}{BODY}# a comment")), [""; 0], "{subject}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        let long = format!("fs: say {}", "x".repeat(70));
        for (subject, fault) in [
            ("Fixes a thing", "is not `area: imperative summary`"),
            ("fs: fixes a thing", "is not an imperative"),
            ("fs: Fix a thing", "is not an imperative"),
            ("fs: fix a thing.", "full stop"),
            (long.as_str(), "at most 72"),
        ] {
            let faults = check_message(&format!("{subject}{BODY}"));
            assert!(faults.len() == 1 && faults[0].contains(fault), "{subject}: {faults:?}");
        }
        assert!(check_message("fs: fix it\n")[0].contains("no body"));
        assert!(check_message("fs: fix it\nwhy\nmore")[0].contains("not blank"));
    }
}
