//! `senesce garden reproduce`: the published experiments, run here, beside what was published.

use std::{
    collections::BTreeMap,
    fs,
    num::NonZeroUsize,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use senesce_cli::{check_output_directory, fit};
use senesce_core::Printable;
use senesce_report::render_reproduction;
use senesce_timed::published::{FigureLine, PUBLISHED, Part, Published, Record, Tally};
use senesce_trials::Scale;
use senesce_volume::{Host, LinuxHost, install_signal_cleanup};

use super::{
    jobs::{Ended, run_parts},
    kept::{Kept, Ran, RunPart, hash_executable, tell_scale},
    table::{Made, Reproduction, render, smoke_test},
};
use crate::{
    args::ReproduceArgs,
    clock::{SystemClock, tell_utc},
    exit::{failed, usage},
};

/// Runs the requested parts that have no result yet, and prints the table of all.
pub fn reproduce(args: &ReproduceArgs, quiet: bool) -> Result<()> {
    let scale: Scale = args.scale.parse().map_err(|error: senesce_trials::Error| usage(error.to_string(), None))?;
    let wanted = choose(&args.experiments)?;
    install_signal_cleanup().context("cannot handle signals")?;
    let build = hash_executable()?;
    let kept = args.out.as_deref().map(|dir| Kept::of(dir, scale, &build));
    if let Some(dir) = &args.out {
        check_output_directory(dir, "--out", || Kept::is_marked(dir))?;
    }
    let mut records: Vec<RunPart> = Vec::new();
    let mut open = Vec::new();
    // The table also has the results of earlier runs.
    for published in PUBLISHED {
        for part in published.parts() {
            match kept.as_ref().map_or(Ok(None), |kept| kept.read(part))? {
                Some(record) => records.push(record),
                None if wanted.iter().any(|wanted| wanted.name == published.name) && !open.contains(&part.source()) => {
                    open.push(part.source());
                }
                None => {}
            }
        }
    }
    if args.dry_run {
        print_preview(args, scale, &open, records.len());
        return Ok(());
    }
    kept.as_ref().map_or(Ok(()), Kept::create_dir)?;
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let host = describe_host();
    let mut failures = Vec::new();
    let progress = Progress { quiet, started: Instant::now(), of: open.len() };
    let (mut done, mut worked) = (0, Duration::ZERO);
    if !open.is_empty() && !records.is_empty() {
        progress.tell(&format!("{} parts are complete, {} to run", records.len(), open.len()));
    }
    let ran = run_parts(open, scale, jobs, &mut |ended| {
        match ended {
            Ended::Began(part) => progress.tell(&format!("{part}: {}, started", part.title())),
            Ended::Failed(part, reason) => {
                done += 1;
                progress.tell(&format!("{part}: failed: {reason} ({done} of {})", progress.of));
                failures.push((part, reason));
            }
            Ended::Done(part, new, took) => {
                (done, worked) = (done + 1, worked + took.processor);
                let tally = Tally::of(new.iter().flat_map(|record| &record.figures));
                let met = match smoke_test(scale) {
                    Some(_) => "smoke test".to_owned(),
                    None => format!("{} of {} published numbers met", tally.verdicts[0], tally.numbers),
                };
                let ran = Ran {
                    part: part.to_string(),
                    ended: tell_utc(SystemClock::unix_time().seconds),
                    processor_seconds: tell_seconds(took.processor),
                    wall_seconds: tell_seconds(took.wall),
                    jobs,
                    host: host.clone(),
                };
                let took = ran.processor_seconds;
                progress.tell(&format!("{part}: {met}, {took:.0} s of processor time ({done} of {})", progress.of));
                // One that comes with another may have been there before.
                let is_there = |record: &Record| {
                    let is_same =
                        |there: &Record| (&there.experiment, &there.kind) == (&record.experiment, &record.kind);
                    records.iter().any(|there| is_same(&there.record))
                };
                let new = new.into_iter().filter(|record| !is_there(record));
                let new: Vec<RunPart> = new.map(|record| RunPart { record, ran: ran.clone() }).collect();
                for part in &new {
                    kept.as_ref().map_or(Ok(()), |kept| kept.write(part))?;
                }
                records.extend(new);
            }
        }
        Ok(())
    });
    if let (Err(_), Some(dir)) = (&ran, &args.out) {
        progress.tell(&format!("finished parts are in {}; the same command continues after them", dir.display()));
    }
    ran?;
    progress.tell(&format!("all parts: {:.0} s of processor time", worked.as_secs_f64()));
    let table = Reproduction::new(
        Made { build, at: tell_utc(SystemClock::unix_time().seconds) },
        scale,
        &wanted,
        records,
        &failures,
    );
    if let Some(dir) = &args.out {
        write(dir, &table)?;
    }
    match args.json {
        true => println!("{}", serde_json::to_string(&table)?),
        false => print!("{}", fit(&render(&table))),
    }
    if let Some(dir) = args.out.as_ref().filter(|_| !args.json) {
        println!(
            "\ntable: {}\npage:  {}",
            Printable::new(&dir.join("table.json")),
            Printable::new(&dir.join("report.html"))
        );
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failed(format!("{} parts failed; the table has the reasons", failures.len()))),
    }
}

/// Prints the parts that a run would run, and how it would run them.
fn print_preview(args: &ReproduceArgs, scale: Scale, open: &[Part], kept: usize) {
    open.iter().for_each(|part| println!("{part}: {}", part.title()));
    println!("{} parts would run at {}; nothing was run or written", open.len(), tell_scale(scale));
    if let Some(dir) = &args.out {
        println!("{kept} results are in {} already", Printable::new(dir));
    }
}

/// The machine as it is shown: figures of a model do not depend on it, times that a run takes do.
fn describe_host() -> String {
    let known: BTreeMap<String, String> = LinuxHost::default().circumstances(None).into_iter().collect();
    let said = |key: &str| known.get(key).map_or("?", String::as_str);
    format!("{} x {}, Linux {}", said("cpu_count"), said("cpu_model"), said("kernel_release"))
}

/// To the millisecond.
fn tell_seconds(span: Duration) -> f64 {
    span.as_millis() as f64 / 1000.0
}

/// Experiments by their names; all if none is named.
fn choose(names: &[String]) -> Result<Vec<&'static Published>> {
    let all = || PUBLISHED.iter().map(|published| published.name).collect::<Vec<_>>().join(", ");
    let known = |name: &String| PUBLISHED.iter().any(|published| published.name.eq_ignore_ascii_case(name));
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        return Err(usage(format!("there is no experiment {unknown:?}; the names are {}", all()), None));
    }
    let asked =
        |published: &&Published| names.is_empty() || names.iter().any(|name| published.name.eq_ignore_ascii_case(name));
    Ok(PUBLISHED.iter().filter(asked).collect())
}

/// The table as JSON, as tab-separated values, and as a page.
fn write(dir: &Path, table: &Reproduction) -> Result<()> {
    let json = serde_json::to_value(table)?;
    let page = render_reproduction(&json)?;
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    put("table.json", &serde_json::to_string_pretty(table)?)?;
    put("figures.tsv", &FigureLine::write_all(table.records()))?;
    put("report.html", &page)
}

/// Lines on stderr with the time that has gone by.
struct Progress {
    quiet: bool,
    started: Instant,
    of: usize,
}

impl Progress {
    fn tell(&self, text: &str) {
        if !self.quiet {
            eprintln!("[{:>5.0} s] {text}", self.started.elapsed().as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_that_is_code_belongs_to_a_published_experiment() {
        let parts: Vec<Part> = PUBLISHED.iter().flat_map(Published::parts).collect();
        let code = senesce_trials::Experiment::ALL.len() + senesce_timed::Experiment::ALL.len();
        assert_eq!(parts.len(), code);
        for published in PUBLISHED {
            assert!(!published.parts().is_empty(), "{} is not run", published.name);
        }
    }

    #[test]
    fn experiments_are_named_in_either_case_and_stand_in_order() {
        let names = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
            choose(&given).map(|chosen| chosen.iter().map(|published| published.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), 14);
        assert_eq!(names(&["e12", "E4"]).unwrap(), ["E4", "E12"]);
        assert!(names(&["E15"]).unwrap_err().to_string().contains("E13, E14"));
    }
}
