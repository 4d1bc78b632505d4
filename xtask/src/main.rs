//! Checks that the compiler does not make, and small tools for developers.
//!
//! `cargo xtask tidy` checks dependencies between crates, the pages of architecture, the size of
//! files, licences of crates, calls that belong to adapters, switched-off tests, prose, links of
//! pages and of the book, and tables of kept runs.
//! `cargo xtask results` writes these tables, and `cargo xtask architecture` those of crates.
//! `cargo xtask commits` checks messages of commits, and `cargo xtask book-links` the built book.

mod architecture;
mod book;
mod calls;
mod commits;
mod files;
mod links;
mod prose;
mod results;
mod walls;

use std::{path::Path, process::ExitCode};

const USAGE: &str = "usage: cargo xtask tidy             check the tree
       cargo xtask tidy --shrink    lower the allowances of prose to what is left, then check
       cargo xtask results          write the tables of docs/results from the kept runs
       senesce show RUN --json | cargo xtask results --keep NAME RUN COMMAND [KEY=VALUE]...
                                    keep a run that COMMAND made, as docs/results/kept/NAME
       cargo xtask results --keep-table NAME FILE.tsv COMMAND [KEY=VALUE]...
                                    keep a table that COMMAND made; KEY is day, commit,
                                    kernel, cpu, memory, load or note
       cargo xtask commits [RANGE]  check the messages of commits (default: main..HEAD)
       cargo xtask commits --message FILE
                                    check one message (as a commit-msg hook does)
       cargo xtask architecture     write the tables of crates in the pages of architecture
       cargo xtask book-links DIR   check the links of the book that `make docs` built in DIR";

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
        ["results"] => write_results(root),
        ["results", "--keep", name, run, command, ref facts @ ..] => {
            kept(root, run, keep_run(root, name, run, command, facts))
        }
        ["results", "--keep-table", name, file, command, ref facts @ ..] => {
            kept(root, file, results::keep_table(root, name, Path::new(file), command, facts))
        }
        ["commits"] => commits(commits::check_range(root, "main..HEAD")),
        ["commits", "--message", file] => {
            commits(std::fs::read_to_string(file).map(|text| commits::check_message(&text)).map_err(Into::into))
        }
        ["commits", range] => commits(commits::check_range(root, range)),
        ["architecture"] => write_architecture(root),
        ["book-links", dir] => report(
            "book-links",
            book::check_html(Path::new(dir)).unwrap_or_else(|error| vec![format!("cannot check: {error:#}")]),
        ),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

type Check = fn(&Path) -> anyhow::Result<Vec<String>>;

fn tidy(root: &Path) -> ExitCode {
    let mut complaints = Vec::new();
    let checks: [(&str, Check); 8] = [
        ("walls", walls::check),
        ("architecture", architecture::check),
        ("files", files::check),
        ("calls", calls::check),
        ("prose", prose::check),
        ("links", links::check),
        ("book", book::check),
        ("results", results::check),
    ];
    for (name, check) in checks {
        match check(root) {
            Ok(found) => complaints.extend(found.into_iter().map(|complaint| format!("{name}: {complaint}"))),
            Err(error) => complaints.push(format!("{name}: cannot check: {error:#}")),
        }
    }
    report("tidy", complaints)
}

fn write_results(root: &Path) -> ExitCode {
    match results::write(root) {
        Ok((changed, faults)) => {
            changed.iter().for_each(|page| println!("wrote {page}"));
            report("results", faults)
        }
        Err(error) => report("results", vec![format!("{error:#}")]),
    }
}

fn kept(root: &Path, what: &str, result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => write_results(root),
        Err(error) => report("results", vec![format!("cannot keep {what}: {error:#}")]),
    }
}

/// Keeps a run, whose tables are read as JSON from the standard input.
fn keep_run(root: &Path, name: &str, run: &str, command: &str, facts: &[&str]) -> anyhow::Result<()> {
    let json = serde_json::from_reader(std::io::stdin().lock())?;
    results::keep(root, name, Path::new(run), &json, command, facts)
}

fn write_architecture(root: &Path) -> ExitCode {
    match architecture::write(root) {
        Ok(changed) => {
            changed.iter().for_each(|page| println!("wrote {page}"));
            report("architecture", Vec::new())
        }
        Err(error) => report("architecture", vec![format!("{error:#}")]),
    }
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
