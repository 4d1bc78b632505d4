//! The `senesce-fs` program: the file systems of this project.
//!
//! It has a command line of its own. `senesce` hands over whole commands that need an engine
//! ([`HANDED_OVER`]): `fs` and `garden`, and `age`, `replay` and `inspect` of such a place. So the
//! command line of the laboratory is a library here.

#[macro_use]
extern crate senesce_cli;

mod allocator;
mod args;
mod exit;
mod laboratory_engines;
mod schemas;
mod verb;
mod version;

use std::{env, ffi::OsString, process::ExitCode};

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use senesce_cli::{HANDED_OVER, VERSION, clock, progress, run_handed_over, table, trust_owners};

use args::{Cli, Verb};
use laboratory_engines::Here;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == HANDED_OVER) {
        let caller = arguments.next().unwrap_or_default();
        if caller != VERSION {
            return senesce_cli::exit::run(|| Err(refuse(&caller)));
        }
        return run_handed_over(&Here, [OsString::from("senesce")].into_iter().chain(arguments));
    }
    CompleteEnv::with_factory(Cli::command).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return senesce_cli::exit::refuse(&error),
    };
    senesce_cli::choose(&Here);
    trust_owners();
    senesce_cli::exit::run(|| execute(cli.verb, cli.quiet))
}

fn execute(verb: Verb, quiet: bool) -> anyhow::Result<()> {
    if !quiet {
        senesce_volume::notice_slow_end(senesce_cli::exit::note_slow_end);
    }
    match verb {
        Verb::Fs(verb) => verb::fs::fs(*verb, quiet),
        Verb::Garden(verb) => verb::garden::garden(verb, quiet),
    }
}

/// The error of a caller of another version.
fn refuse(caller: &OsString) -> anyhow::Error {
    let own = env::current_exe().map_or_else(|_| "senesce-fs".to_owned(), |path| path.display().to_string());
    exit::environment(
        format!("senesce is {}, and {own} is {VERSION}", caller.display()),
        "install both from one build, such as `cargo build -p senesce -p senesce-fs`",
    )
}
