//! `senesce log`: looking into operation logs.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use senesce_core::Bytes;
use senesce_oplog::{Ended, LogReader, LogSummary, render_step, verify};

use crate::{
    args::{LogArgs, LogVerb},
    exit::failed,
    out::Stdout,
};

/// Runs the verb below `log`.
pub fn log(args: LogArgs) -> Result<()> {
    let mut out = BufWriter::new(Stdout);
    match args.what {
        LogVerb::Show { log, step, steps } => {
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
            let summary = verify(&log)?;
            if json {
                writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
            } else {
                write_summary(&mut out, &summary)?;
            }
        }
        LogVerb::Verify { log } => {
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
