//! `senesce bench`: any command on aged volumes and their unaged twins, in turn, with the
//! statistics.
//!
//! What it is not: it judges no command. What one run reads or writes is the command's, and only
//! its figure is kept.

mod command;
mod document;
mod outcome;
mod pattern;
mod personality;
mod suite;
mod volumes;

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result};
use senesce_core::{
    Bytes, Printable, SECTOR_BYTES,
    statistics::{Figures, compute_ranking, compute_rows},
};
use senesce_experiment::DriveMeter;
use senesce_probe::{
    collect::collect_load,
    score::{Load, LoadSample},
};
use senesce_report::{BenchOptions, render_bench};
use senesce_volume::{Custodian, Host, Volume, check_interrupted, check_place, install_signal_cleanup};
use serde_json::Value;

pub(super) use self::document::BenchDocument;
pub use pattern::Pattern;

use self::{
    command::{Ran, collect_run},
    document::{BenchVolume, PersonalityOptionsDocument},
    outcome::{SECONDS, find, order_changes, render},
    volumes::{Bench, Source, State},
};
use super::{
    home::{patient_host, with_home},
    little::warn_of_little,
    output::{check_files, print_file_preview},
    place::{check_directory, check_program},
};
use crate::{
    args::{BenchArgs, BenchVerb},
    exit::{failed, usage},
    fit::fit,
    progress::format_eta,
    schema::document,
};

/// The schema of the outcome as JSON.
pub(super) const SCHEMA: &str = "senesce-bench/1";

/// Runs the command on every state in turn, and returns the results.
pub fn bench(args: BenchArgs, quiet: bool) -> Result<()> {
    if let Some(BenchVerb::Personality(args)) = args.verb {
        return super::personality::personality(args);
    }
    install_signal_cleanup().context("cannot handle signals")?;
    if let (Some(plan), Some(out)) = (&args.suite, &args.out) {
        return match args.dry_run {
            true => suite::preview(plan, out, args.resume),
            false => suite::run_suite(plan, out, args.resume, quiet),
        };
    }
    if args.out.is_some() || args.resume {
        return Err(usage("--out and --resume need --suite", Some("name its plan with --suite")));
    }
    if let (None, Some(option)) = (&args.personality, args.personality_options.given()) {
        let hint = Some("name one with --personality (`senesce bench personality list`)");
        return Err(usage(format!("{option} needs --personality"), hint));
    }
    let work = Work::of(&args)?;
    for path in &args.aged {
        fs::metadata(path)
            .map_err(|error| usage(format!("cannot read {}: {error}", path.display()), Some("check the name")))?;
    }
    check_files([&args.html], None)?;
    if args.dry_run {
        return preview(&args, &work);
    }
    let answer = with_home(|custodian| {
        let (_, scratch) = custodian.acquire_tree(&args.dir, "senesce-bench")?;
        bench_in(&args, &work, custodian, &scratch, quiet)
    })?;
    // Printed when all is cleaned: a reader that closes the pipe leaves no resources.
    match args.json {
        true => println!("{:#}", answer.document),
        false => print!("{}", fit(&answer.text)),
    }
    // The last step: an error must not lose the figures.
    if let Some(path) = &args.html {
        fs::write(path, answer.page()?).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("page: {}", Printable::new(path));
    }
    Ok(())
}

/// The result of a benchmark.
struct Answer {
    /// As JSON.
    document: Value,
    /// As text for a terminal.
    text: String,
    /// The sentences with which the page begins.
    findings: Vec<String>,
}

impl Answer {
    fn page(&self) -> Result<String> {
        let (findings, senesce_version) = (self.findings.clone(), crate::VERSION.to_owned());
        Ok(render_bench(&self.document, &BenchOptions { findings, senesce_version, made_at: None })?)
    }
}

/// Checks the volumes, the command and the space, and prints what would run.
fn preview(args: &BenchArgs, work: &Work) -> Result<()> {
    let host = patient_host();
    check_root(&host)?;
    check_place(&args.dir)?;
    check_directory(&args.dir.join("senesce-bench"))?;
    let is_memory = host.is_in_memory(&args.dir)?;
    check_program_of(args, work)?;
    let mut sources = Vec::new();
    for path in &args.aged {
        sources.push(volumes::look_at(path)?);
    }
    name_apart(&mut sources);
    check_identities(&sources, args.keep_state)?;
    let roles: &[&str] = if args.unaged { &["aged", "unaged"] } else { &["aged"] };
    let command: Vec<_> = args.command.iter().map(|part| part.to_string_lossy()).collect();
    let mut needed = 0;
    println!("{}: {} runs and {} warm-ups of each state", work.name(&command), args.runs, args.warmups);
    for source in &sources {
        let path = Printable::new(&source.path);
        println!("{} ({}): {path}, {}", source.name, roles.join(", "), Bytes(source.volume_bytes));
        // One volume at a time is restored whole; the images of both states stay.
        needed += source.data_bytes * roles.len() as u64;
    }
    let largest = sources.iter().map(|source| source.volume_bytes).max().unwrap_or(0);
    volumes::check_free(&host, &args.dir, largest)?;
    needed += largest;
    let (available, needed) = (host.free_bytes(&args.dir)?, Bytes(needed).rounded_up());
    let place = if is_memory { "memory" } else { "the disk" };
    println!("up to {needed} below {} ({place}), which has {available} free", Printable::new(&args.dir));
    args.html.iter().for_each(|path| print_file_preview(path));
    Ok(())
}

/// Checks the command before volumes are restored for it. A command in a volume does not exist yet.
fn check_program_of(args: &BenchArgs, work: &Work) -> Result<()> {
    match (work, args.command.first()) {
        (Work::Command, Some(program)) if !program.to_string_lossy().contains("{}") => check_program(program, None),
        _ => Ok(()),
    }
}

fn check_root(host: &dyn Host) -> Result<()> {
    match host.is_root() {
        true => Ok(()),
        false => Err(senesce_volume::Error::NotRoot { operation: "mount volumes" }.into()),
    }
}

fn bench_in(args: &BenchArgs, work: &Work, custodian: &Custodian, scratch: &Path, quiet: bool) -> Result<Answer> {
    let host = custodian.host();
    check_root(&**host)?;
    let is_memory = host.is_in_memory(scratch)?;
    let (_, images) = custodian.acquire_tree(scratch, "images")?;
    check_program_of(args, work)?;
    let bench = Bench { custodian, scratch, images: &images, is_memory };
    let mut sources = Vec::new();
    for (number, path) in args.aged.iter().enumerate() {
        tell(quiet, &format!("restoring {}", path.display()));
        sources.push(bench.open_aged(path, number)?);
    }
    name_apart(&mut sources);
    check_identities(&sources, args.keep_state)?;
    for (number, source) in sources.iter_mut().enumerate().filter(|_| args.unaged) {
        tell(quiet, &format!("making the unaged twin of {}", source.path.display()));
        bench.add_twin(source, number)?;
    }
    measure(args, work, &bench, &mut sources, quiet)?;
    Ok(describe(args, work, &sources, is_memory))
}

/// A figure with three significant digits.
fn round_figure(figure: f64) -> String {
    let digits = 2 - figure.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
    format!("{figure:.*}", digits.clamp(0, 9) as usize)
}

/// All states, one after the other, so often; every other round backwards, so that whatever else
/// the machine does hits all alike.
fn measure(args: &BenchArgs, work: &Work, bench: &Bench<'_>, sources: &mut [Source], quiet: bool) -> Result<()> {
    let turns: Vec<(usize, usize)> = sources
        .iter()
        .enumerate()
        .flat_map(|(number, source)| (0..source.states.len()).map(move |state| (number, state)))
        .collect();
    let all = turns.len() * (args.warmups + args.runs) as usize;
    let (started, mut done) = (Instant::now(), 0);
    for round in 0..args.warmups + args.runs {
        let mut turns = turns.clone();
        if round % 2 == 1 {
            turns.reverse();
        }
        for (number, state) in turns {
            check_interrupted("a benchmark")?;
            let is_warmup = round < args.warmups;
            let source = &mut sources[number];
            let what = match is_warmup {
                true => format!("{} {}, warm-up {}", source.name, source.states[state].role, round + 1),
                false => format!("{} {}, run {}", source.name, source.states[state].role, round + 1 - args.warmups),
            };
            let mut volume = bench.begin(source, state, number)?;
            let read_before = read_bytes(&volume)?;
            let (drive, began) = (DriveMeter::of(&volume), Instant::now());
            let before = sample_load(&drive, &volume)?;
            let figure = work.run(args, bench.scratch, &mut volume, round).context(what.clone());
            let load = Load::between(&before, &sample_load(&drive, &volume)?, began.elapsed().as_secs_f64());
            let read = read_bytes(&volume)?.zip(read_before).map(|(after, before)| after.saturating_sub(before));
            let ended = bench.end(&mut source.states[state], volume, args.keep_state);
            // The first failure is the one to report.
            let (figure, details) = figure?;
            ended?;
            done += 1;
            let eta = format_eta(started.elapsed().as_secs_f64() / done as f64 * (all - done) as f64);
            let unit = if args.metric.is_none() && args.personality.is_none() { " s" } else { "" };
            tell(quiet, &format!("{what}: {}{unit} ({done} of {all}, ETA {eta})", round_figure(figure)));
            if !is_warmup {
                source.states[state].figures.push(figure);
                source.states[state].details.extend(details);
                source.states[state].device_read_bytes.extend(read);
                source.states[state].disturbances.push(load.describe_disturbances());
            }
        }
    }
    Ok(())
}

/// Bytes that were read from the volume's device so far.
fn read_bytes(volume: &Volume) -> Result<Option<u64>> {
    Ok(volume.device_stat()?.map(|stat| stat.read_sectors * SECTOR_BYTES))
}

/// The load of the machine, and of the drive below the volume.
fn sample_load(drive: &DriveMeter, volume: &Volume) -> Result<LoadSample> {
    Ok(LoadSample { drive: drive.sample(volume)?, ..collect_load() })
}

/// Returns a warning for each state of which the command read almost nothing from the device, and
/// for each of which other work disturbed runs. Personalities get none of the first kind: they make
/// their own files.
fn warn(work: &Work, sources: &[Source]) -> Vec<String> {
    let states = || sources.iter().flat_map(|source| source.states.iter().map(move |state| (source, state)));
    let little = |(source, state): (&Source, &State)| {
        let most = *state.device_read_bytes.iter().max()?;
        Some(format!("{} {}: {}", source.name, state.role, warn_of_little(most, state.used_bytes)?))
    };
    let disturbed = |(source, state): (&Source, &State)| {
        Some(format!("{} {}: {}", source.name, state.role, warn_of_disturbed(&state.disturbances)?))
    };
    let is_command = matches!(work, Work::Command);
    states().filter(|_| is_command).filter_map(little).chain(states().filter_map(disturbed)).collect()
}

/// A warning if other work disturbed runs. They count like the others: a benchmark leaves out no
/// figure.
fn warn_of_disturbed(disturbances: &[String]) -> Option<String> {
    let mut disturbed = disturbances.iter().filter(|how| !how.is_empty());
    let first = disturbed.next()?;
    let count = 1 + disturbed.count();
    Some(format!("other work disturbed {count} of {} runs, the first one by: {first}", disturbances.len()))
}

/// What is measured.
enum Work {
    Command,
    Personality(Box<personality::Run>),
}

impl Work {
    fn of(args: &BenchArgs) -> Result<Self> {
        Ok(match &args.personality {
            None => Self::Command,
            Some(name) => Self::Personality(Box::new(personality::Run::read(name, args)?)),
        })
    }

    /// One figure, and the text beside it.
    fn run(
        &self,
        args: &BenchArgs,
        scratch: &Path,
        volume: &mut Volume,
        round: u32,
    ) -> Result<(f64, Option<serde_json::Value>)> {
        match self {
            Self::Command => {
                let root = volume.root().to_owned();
                let finish = || if args.sync { Ok(volume.sync()?) } else { Ok(()) };
                let ran = collect_run(&args.command, &root, scratch, finish)?;
                Ok((figure(args, &ran)?, None))
            }
            Self::Personality(run) => {
                let figures = run.measure(volume, round)?;
                Ok((figures.rate(), Some(serde_json::to_value(&figures)?)))
            }
        }
    }

    fn is_more_better(&self, args: &BenchArgs) -> bool {
        args.more_is_better || matches!(self, Self::Personality(_))
    }

    fn name(&self, command: &[std::borrow::Cow<'_, str>]) -> String {
        match self {
            Self::Command => command.join(" "),
            Self::Personality(run) => format!("personality {}", run.personality.name),
        }
    }

    /// For the outcome: the whole of it, and how it was run.
    fn personality(&self) -> Option<PersonalityOptionsDocument> {
        match self {
            Self::Command => None,
            Self::Personality(run) => Some(run.describe()),
        }
    }

    fn unit(&self, args: &BenchArgs) -> String {
        match (self, &args.metric) {
            (Self::Personality(run), _) => run.unit(),
            (Self::Command, None) => SECONDS.to_owned(),
            (Self::Command, Some(pattern)) => format!("of {}", pattern.text()),
        }
    }
}

/// The seconds, or what the command itself says.
fn figure(args: &BenchArgs, ran: &Ran) -> Result<f64> {
    let Some(pattern) = &args.metric else { return Ok(ran.seconds) };
    let found = pattern.find(&ran.stdout).ok_or_else(|| {
        let last: Vec<&str> = ran.stdout.lines().rev().take(5).collect();
        let last: String = last.into_iter().rev().map(|line| format!("\n    {line}")).collect();
        let said = if last.is_empty() { ", which is empty".to_owned() } else { format!(", which ends with:{last}") };
        failed(format!("--metric {:?} matches nothing in the command's stdout{said}", pattern.text()))
    })?;
    let number: Option<f64> = found.trim().replace(',', "").parse().ok();
    number
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| failed(format!("--metric found {found:?}, which is no number above 0")))
}

/// Names that differ: the file system, and if that is not enough the file.
fn name_apart(sources: &mut [Source]) {
    let kinds: Vec<_> = sources.iter().map(|source| source.file_system).collect();
    for source in sources.iter_mut() {
        if kinds.iter().filter(|kind| **kind == source.file_system).count() > 1 {
            let file = source.path.file_name().unwrap_or(source.path.as_os_str()).to_string_lossy().into_owned();
            source.name = format!("{} {file}", source.file_system);
        }
    }
}

/// Volumes that exist at the same time must have identities of their own.
fn check_identities(sources: &[Source], is_kept: bool) -> Result<()> {
    for (at, source) in sources.iter().enumerate().filter(|_| is_kept) {
        if let Some(other) = sources[..at].iter().find(|other| other.uuid == source.uuid) {
            let message =
                format!("{} and {} hold file systems with the same UUID", other.path.display(), source.path.display());
            return Err(usage(message, Some("without --keep-state only one exists at a time")));
        }
    }
    Ok(())
}

fn describe(args: &BenchArgs, work: &Work, sources: &[Source], is_memory: bool) -> Answer {
    let figures_of = |source: &Source, role: &str| {
        let state = source.states.iter().find(|state| state.role == role);
        state.map(|state| state.figures.clone()).unwrap_or_default()
    };
    let all: Vec<Figures> = sources
        .iter()
        .map(|source| Figures {
            name: source.name.clone(),
            aged: figures_of(source, "aged"),
            unaged: figures_of(source, "unaged"),
        })
        .collect();
    let rows = compute_rows(&all);
    let ranking = compute_ranking(&all, &rows, work.is_more_better(args));
    let unit = work.unit(args);
    let command: Vec<_> = args.command.iter().map(|part| part.to_string_lossy()).collect();
    let is_more_better = work.is_more_better(args);
    let mut findings = find(&rows, &unit, is_more_better);
    findings.extend(ranking.iter().flat_map(order_changes));
    let mut text = render(&work.name(&command), &rows, ranking.as_ref(), &unit, is_more_better);
    let document = document(
        SCHEMA,
        BenchDocument {
            command: command.iter().map(|part| part.to_string()).collect(),
            personality: work.personality(),
            unit,
            more_is_better: is_more_better,
            is_state_kept: args.keep_state,
            is_synced: args.sync,
            warmups: args.warmups,
            warnings: warn(work, sources),
            volumes: sources.iter().map(BenchVolume::of).collect(),
            rows,
            ranking,
        },
    );
    for source in sources {
        for unlike in &source.unlike {
            text.push_str(&format!("unlike: {}: {unlike}\n", source.name));
        }
    }
    for warning in warn(work, sources) {
        text.push_str(&format!("warning: {warning}\n"));
    }
    for (source, state) in sources.iter().flat_map(|source| source.states.iter().map(move |state| (source, state))) {
        text.push_str(&personality::render_flows(&format!("{} {}", source.name, state.role), &state.details));
    }
    if is_memory {
        text.push_str("The images were in memory: no device was read.\n");
    }
    Answer { document, text, findings }
}

fn tell(quiet: bool, text: &str) {
    if !quiet {
        eprintln!("{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_runs_are_counted_and_the_first_is_described() {
        let runs = |all: [&str; 3]| warn_of_disturbed(&all.map(str::to_owned));
        assert_eq!(runs(["", "", ""]), None);
        let said = runs(["", "tasks waited for memory 9% of the time", "the hypervisor took 6% of a processor"]);
        let expected = "other work disturbed 2 of 3 runs, the first one by: tasks waited for memory 9% of the time";
        assert_eq!(said.as_deref(), Some(expected));
    }
}
