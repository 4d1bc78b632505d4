//! House work. `cargo xtask tidy` checks what a compiler cannot: the walls between rooms, the size of files, calls
//! that belong to adapters, tests that were switched off.

mod calls;
mod files;
mod walls;

use std::{path::Path, process::ExitCode};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(root),
        _ => {
            eprintln!("usage: cargo xtask tidy");
            ExitCode::from(2)
        }
    }
}

type Check = fn(&Path) -> anyhow::Result<Vec<String>>;

fn tidy(root: &Path) -> ExitCode {
    let mut complaints = Vec::new();
    let checks: [(&str, Check); 3] = [("walls", walls::check), ("files", files::check), ("calls", calls::check)];
    for (name, check) in checks {
        match check(root) {
            Ok(found) => complaints.extend(found.into_iter().map(|complaint| format!("{name}: {complaint}"))),
            Err(error) => complaints.push(format!("{name}: cannot check: {error:#}")),
        }
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    println!("tidy: {} complaint(s)", complaints.len());
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
