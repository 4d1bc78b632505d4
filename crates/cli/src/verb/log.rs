//! `senesce log`: looking into operation logs.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::Result;
use senesce_core::{Bytes, Printable};
use senesce_oplog::{Ended, LogReader, LogSummary, render_step, verify};

use crate::{
    args::{LogArgs, LogVerb},
    exit::{failed, usage},
    out::Stdout,
    schema::Versioned,
};

/// The version of the summary of a log as JSON.
pub(super) const LOG_STAT_SCHEMA: &str = "senesce-log-stat/1";
/// The name of an arm's log.
const LOG: &str = "oplog.senesce-log";

/// Runs the verb below `log`.
pub fn log(args: LogArgs) -> Result<()> {
    let mut out = BufWriter::new(Stdout);
    match args.what {
        LogVerb::Show { log, step, steps } => {
            check_is_log(&log)?;
            let mut reader = LogReader::open(&log)?;
            writeln!(out, "{}", serde_json::to_string(reader.header())?)?;
            let mut shown = 0;
            while let Some(done) = reader.next().transpose()? {
                if step.is_some_and(|wanted| wanted != done.number) {
                    continue;
                }
                if steps.is_some_and(|most| shown >= most) {
                    break;
                }
                write!(out, "{}", render_step(&done))?;
                shown += 1;
            }
        }
        LogVerb::Stat { log, json } => {
            check_is_log(&log)?;
            let summary = verify(&log)?;
            if json {
                writeln!(out, "{}", serde_json::to_string_pretty(&Versioned::new(LOG_STAT_SCHEMA, &summary))?)?;
            } else {
                write_summary(&mut out, &summary)?;
            }
        }
        LogVerb::Verify { log } => {
            check_is_log(&log)?;
            let summary = verify(&log)?;
            writeln!(
                out,
                "{}: {} steps in {} frames, {}",
                log.display(),
                summary.steps,
                summary.frames,
                summary.ended
            )?;
            if summary.ended != Ended::Complete {
                out.flush()?;
                return Err(failed(format!(
                    "the log {} is incomplete: the steps that were counted are intact, and the rest cannot be read",
                    log.display()
                )));
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// Refuses a directory. The hint names the logs of a run, or the log of an arm.
fn check_is_log(path: &Path) -> Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let logs = find_logs(path);
    let hint = match logs.as_slice() {
        [] => {
            "it holds no log; `age --log FILE`, `record` and `run` write logs, `run` as RUN/arms/ARM/oplog.senesce-log"
                .to_owned()
        }
        [log] => format!("name its log: {}", Printable::new(log)),
        [first, .., last] => format!(
            "it holds {} logs; name one, from {} to {}",
            logs.len(),
            Printable::new(first),
            Printable::new(last)
        ),
    };
    Err(usage(format!("{} is a directory, and no operation log", Printable::new(&path)), Some(&hint)))
}

/// The logs in a directory, or of the arms of a run, or of an arm; sorted.
fn find_logs(dir: &Path) -> Vec<PathBuf> {
    let list = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_log = |path: &PathBuf| path.extension().is_some_and(|name| name == "senesce-log") && path.is_file();
    let mut logs: Vec<PathBuf> = list(dir.to_owned()).filter(is_log).collect();
    logs.extend([dir.join("arms"), dir.to_owned()].into_iter().flat_map(list).map(|arm| arm.join(LOG)).filter(is_log));
    logs.sort();
    logs.dedup();
    logs
}

fn write_summary(out: &mut impl Write, summary: &LogSummary) -> io::Result<()> {
    writeln!(
        out,
        "steps        {} ({} counted, {} without space)",
        summary.steps, summary.counted_steps, summary.no_space_steps
    )?;
    writeln!(out, "operations   {}", summary.operations)?;
    let width = summary.operations_by_kind.keys().map(|kind| kind.len() + 1).max().unwrap_or(0).max(11);
    for (kind, count) in &summary.operations_by_kind {
        writeln!(out, "  {kind:<width$}{count}")?;
    }
    writeln!(out, "content      {}", Bytes(summary.content_bytes))?;
    writeln!(
        out,
        "log          {} ({} before compression), {} frames",
        Bytes(summary.file_bytes),
        Bytes(summary.raw_bytes),
        summary.frames
    )?;
    writeln!(out, "digest       {}", summary.digest)?;
    writeln!(out, "state        {}", summary.ended)
}
