//! Checks that the compiler does not make, and small tools for developers.
//!
//! `cargo xtask tidy` checks dependencies between crates, the size of files, calls that belong to
//! adapters, switched-off tests, prose and links. `cargo xtask commits` checks messages of commits.

mod calls;
mod commits;
mod files;
mod links;
mod prose;
mod walls;

use std::{path::Path, process::ExitCode};

const USAGE: &str = "usage: cargo xtask tidy             check the tree
       cargo xtask tidy --shrink    lower the allowances of prose to what is left, then check
       cargo xtask commits [RANGE]  check the messages of commits (default: main..HEAD)
       cargo xtask commits --message FILE
                                    check one message (as a commit-msg hook does)";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["tidy"] => tidy(root),
        ["tidy", "--shrink"] => match prose::shrink(root) {
            Ok(()) => tidy(root),
            Err(error) => report("tidy", vec![format!("cannot shrink the allowances: {error:#}")]),
        },
        ["commits"] => commits(commits::check_range(root, "main..HEAD")),
        ["commits", "--message", file] => {
            commits(std::fs::read_to_string(file).map(|text| commits::check_message(&text)).map_err(Into::into))
        }
        ["commits", range] => commits(commits::check_range(root, range)),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

type Check = fn(&Path) -> anyhow::Result<Vec<String>>;

fn tidy(root: &Path) -> ExitCode {
    let mut complaints = Vec::new();
    let checks: [(&str, Check); 5] = [
        ("walls", walls::check),
        ("files", files::check),
        ("calls", calls::check),
        ("prose", prose::check),
        ("links", links::check),
    ];
    for (name, check) in checks {
        match check(root) {
            Ok(found) => complaints.extend(found.into_iter().map(|complaint| format!("{name}: {complaint}"))),
            Err(error) => complaints.push(format!("{name}: cannot check: {error:#}")),
        }
    }
    report("tidy", complaints)
}

fn commits(checked: anyhow::Result<Vec<String>>) -> ExitCode {
    report("commits", checked.unwrap_or_else(|error| vec![format!("cannot check: {error:#}")]))
}

fn report(name: &str, complaints: Vec<String>) -> ExitCode {
    for complaint in &complaints {
        println!("{complaint}");
    }
    println!("{name}: {} complaint(s)", complaints.len());
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
