//! The `senesce` program: one file per verb. The only crate that prints, and that reads the
//! environment and the clock of the machine.

// First, for its macros.
#[macro_use]
mod out;

mod allocator;
mod args;
mod clock;
mod exit;
mod fit;
mod machine;
mod progress;
mod table;
mod verb;

use std::{process::ExitCode, sync::Arc};

use clap_complete::CompleteEnv;

use args::{Cli, EXIT_CODES, Verb};

fn main() -> ExitCode {
    // A shell asks for completions: the program prints them and exits.
    CompleteEnv::with_factory(Cli::grouped).complete();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return exit::refuse(&error),
    };
    if let Verb::VdiskServe = cli.verb {
        // Before the first thread starts: threads inherit the changes to the process.
        return senesce_vdisk::serve_stdio(Arc::new(clock::SystemClock::start()));
    }
    if let Verb::GuestGuard(args) = &cli.verb {
        return ExitCode::from(senesce_guest::guard_stdio(&args.command));
    }
    verb::guest::trust_owners();
    exit::run(|| dispatch(cli))
}

fn dispatch(cli: Cli) -> anyhow::Result<()> {
    let quiet = cli.quiet;
    if !quiet {
        senesce_volume::notice_slow_end(exit::note_slow_end);
    }
    match cli.verb {
        Verb::Inspect(args) => verb::inspect::inspect(args, quiet),
        Verb::Trace(args) => verb::trace::trace(args, quiet),
        Verb::Compare(args) => verb::compare::compare(args),
        Verb::Device(args) => verb::device::device(args),
        Verb::Profile(args) => verb::profile::profile(args, quiet),
        Verb::Demo(args) => verb::demo::demo(&args, quiet),
        Verb::Run(args) => verb::run::run(args, quiet),
        Verb::Show(args) => verb::show::show(args),
        Verb::Export(args) => verb::export::export(args),
        Verb::Report(args) => verb::report::report(args),
        Verb::Record(args) => verb::record::record(args, quiet),
        Verb::Replay(args) => verb::replay::replay(args, quiet),
        Verb::Age(args) => verb::age::age(args, quiet),
        Verb::Bench(args) => verb::bench::bench(args, quiet),
        Verb::Personality(args) => verb::personality::personality(args),
        Verb::Defrag(args) => verb::defrag::defrag(args, quiet),
        Verb::Fragment(args) => verb::fragment::fragment(args),
        Verb::Image(args) => verb::image::image(args, quiet),
        Verb::Fs(args) => verb::fs::fs(args, quiet),
        Verb::Garden(args) => verb::garden::garden(args, quiet),
        Verb::Log(args) => verb::log::log(args),
        Verb::Grep(args) => verb::grep::grep(args),
        Verb::Synth(args) => verb::synth::synth(args),
        Verb::Clean(args) => verb::clean::clean(args),
        Verb::Schema { markdown: true, .. } => verb::generate::plan_reference(),
        Verb::Schema { of, .. } => verb::generate::schema(of),
        Verb::Completions(args) => verb::generate::completions(args),
        Verb::Man(args) => verb::generate::man(&args),
        Verb::Kernels(args) => verb::kernels::kernels(&args),
        Verb::GuestInit(args) => Ok(senesce_guest::init(&args.config)?),
        Verb::ExitCodes => {
            println!("{EXIT_CODES}");
            Ok(())
        }
        Verb::GuestGuard(_) | Verb::VdiskServe => unreachable!("main does it"),
    }
}
