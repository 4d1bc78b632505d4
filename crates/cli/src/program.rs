//! The program from its arguments to its exit code.

use std::{env, ffi::OsString, process::ExitCode, sync::Arc};

use anyhow::Result;
use clap_complete::CompleteEnv;

use crate::{
    args::{Cli, Verb, exit_codes},
    clock::SystemClock,
    engines::{Engines, choose, engines},
    exit, out, verb,
};

/// Executes a verb. The second argument is `--quiet`.
type Dispatch = fn(Verb, bool) -> Result<()>;

/// Executes the command line of `senesce` with these engines. `arguments` begin with the name of
/// the program.
pub fn run_program(own: &'static dyn Engines, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    execute(own, arguments, dispatch)
}

/// Executes a command that `senesce` handed over to a program with engines.
///
/// It refuses verbs that `senesce` never hands over. So the linker leaves their code out of that
/// program.
pub fn run_handed_over(own: &'static dyn Engines, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    execute(own, arguments, dispatch_handed_over)
}

fn execute(own: &'static dyn Engines, arguments: impl IntoIterator<Item = OsString>, dispatch: Dispatch) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    choose(own);
    if names_engine_verb(&arguments)
        && let Err(error) = engines().hand_over()
    {
        return exit::run(|| Err(error));
    }
    if complete(&arguments) {
        return ExitCode::SUCCESS;
    }
    if verb::gate::is_for_github(&arguments) {
        out::defuse_commands();
    }
    let (cli, matches) = match Cli::read(&arguments) {
        Ok(read) => read,
        Err(error) if verb::gate::is_bisection(&arguments) => return exit::refuse_bisection(&error),
        Err(error) => return exit::refuse(&error),
    };
    if let Verb::VdiskServe = cli.verb {
        // Before the first thread starts: threads inherit the changes to the process.
        return senesce_vdisk::serve_stdio(Arc::new(SystemClock::start()));
    }
    if let Verb::GuestGuard(args) = &cli.verb {
        return ExitCode::from(senesce_guest::guard_stdio(&args.command));
    }
    verb::guest::trust_owners();
    exit::run(|| match matches.subcommand() {
        Some((name @ ("fs" | "garden"), arguments)) => {
            notice_slow_end(cli.quiet);
            engines().run_verb(name, arguments, cli.quiet)
        }
        _ => {
            notice_slow_end(cli.quiet);
            dispatch(cli.verb, cli.quiet)
        }
    })
}

/// Whether the verb is `fs` or `garden`, or the user requests its help. Only senesce-fs knows their
/// arguments.
fn names_engine_verb(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1).skip_while(|word| *word == "-q" || *word == "--quiet");
    let is_one = |word: Option<&OsString>| word.is_some_and(|word| word == "fs" || word == "garden");
    match words.next() {
        Some(word) if word == "help" => is_one(words.next()),
        word => is_one(word),
    }
}

/// Prints completions if a shell requests them. Returns whether it did.
fn complete(arguments: &[OsString]) -> bool {
    if env::var_os("COMPLETE").is_none() {
        return false;
    }
    // The shell completes a command line. Without senesce-fs of this version, the arguments of `fs`
    // and `garden` are not completed.
    if arguments.len() > 1 && engines().is_alike() {
        let _ = engines().hand_over();
    }
    let here = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Cli::grouped).try_complete(arguments.iter().cloned(), here.as_deref());
    asked.unwrap_or_else(|error| error.exit())
}

fn notice_slow_end(quiet: bool) {
    if !quiet {
        senesce_volume::notice_slow_end(exit::note_slow_end);
    }
}

fn dispatch_handed_over(verb: Verb, quiet: bool) -> Result<()> {
    match verb {
        Verb::Inspect(args) => verb::inspect::inspect(args, quiet),
        Verb::Replay(args) => verb::replay::replay(args, quiet),
        Verb::Age(args) => verb::age::age(args, quiet),
        Verb::Schema(args) => verb::generate::engine_schema(&args),
        Verb::Man(args) => verb::generate::man(&args),
        _ => Err(exit::usage("senesce does not hand this verb over", Some("call senesce"))),
    }
}

fn dispatch(verb: Verb, quiet: bool) -> Result<()> {
    match verb {
        Verb::Inspect(args) => verb::inspect::inspect(args, quiet),
        Verb::Trace(args) => verb::trace::trace(args, quiet),
        Verb::Compare(args) => verb::compare::compare(args),
        Verb::Forecast(args) => verb::forecast::forecast(&args),
        Verb::Gate(args) => verb::gate::gate(args, quiet),
        Verb::Device(args) => verb::device::device(args),
        Verb::Profile(args) => verb::profile::profile(args, quiet),
        Verb::Demo(args) => verb::demo::demo(&args, quiet),
        Verb::Run(args) => verb::run::run(args, quiet),
        Verb::Campaign(args) => verb::campaign::campaign(args, quiet),
        Verb::Show(args) => verb::show::show(args),
        Verb::Export(args) => verb::export::export(args),
        Verb::Report(args) => verb::report::report(args),
        Verb::Bundle(args) => verb::bundle::bundle(args),
        Verb::VerifyBundle(args) => verb::bundle::verify_bundle(args),
        Verb::Rerun(args) => verb::bundle::rerun(args, quiet),
        Verb::Record(args) => verb::record::record(args, quiet),
        Verb::Replay(args) => verb::replay::replay(args, quiet),
        Verb::Age(args) => verb::age::age(args, quiet),
        Verb::Bench(args) => verb::bench::bench(args, quiet),
        Verb::Personality(args) => verb::personality::personality(args),
        Verb::Defrag(args) => verb::defrag::defrag(args, quiet),
        Verb::Fragment(args) => verb::fragment::fragment(args),
        Verb::Image(args) => verb::image::image(args, quiet),
        Verb::Log(args) => verb::log::log(args),
        Verb::Grep(args) => verb::grep::grep(args),
        Verb::Synth(args) => verb::synth::synth(args, quiet),
        Verb::Clean(args) => verb::clean::clean(args),
        Verb::Schema(args) => verb::generate::schema(&args),
        Verb::Completions(args) => verb::generate::completions(args),
        Verb::Man(args) => verb::generate::man(&args),
        Verb::Kernels(args) => verb::kernels::kernels(&args),
        Verb::GuestInit(args) => Ok(senesce_guest::init(&args.config)?),
        Verb::ExitCodes => {
            println!("{}", exit_codes());
            Ok(())
        }
        Verb::Fs | Verb::Garden | Verb::GuestGuard(_) | Verb::VdiskServe => unreachable!("`execute` has executed it"),
    }
}
