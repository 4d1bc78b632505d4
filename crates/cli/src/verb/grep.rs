//! `senesce grep`: the grep test of any tree, with the caches as they are.

use std::sync::Arc;

use anyhow::Result;
use schemars::JsonSchema;
use senesce_core::{Bytes, Clock, Seed, never, numbers::three_digits};
use senesce_probe::collect::{GrepFigures, GrepOptions, Order, collect_gnu_grep, collect_grep, compute_pattern};
use serde::Serialize;

use crate::{
    args::{GrepArgs, OrderArg},
    clock::SystemClock,
    schema::document,
};

/// The version of [`GrepDocument`].
pub(super) const GREP_SCHEMA: &str = "senesce-grep/1";

/// A line of the JSON output of `grep`: one run.
#[derive(Serialize, JsonSchema)]
pub(super) struct GrepDocument {
    /// The number of the run, from 0.
    repetition: u64,
    /// Wall time, nanoseconds.
    wall_ns: u64,
    /// Bytes allocated to the files.
    allocated_bytes: u64,
    /// Bytes read from the files.
    read_bytes: u64,
    /// Files that were read.
    files: u64,
    /// Directories that were listed.
    directories: u64,
    /// User time of the processor, microseconds.
    user_us: u64,
    /// System time of the processor, microseconds.
    system_us: u64,
    /// Whether the processor, not the device, limited the speed.
    cpu_bound: bool,
    /// Files that could not be read.
    unreadable_files: u64,
}

/// Runs the test and prints its figures.
pub fn grep(args: GrepArgs) -> Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let pattern = compute_pattern(Seed(1));
    let run = || -> Result<GrepFigures> {
        if args.grep {
            return Ok(collect_gnu_grep(&args.path, &pattern, &*clock, &never)?);
        }
        let order = match args.order {
            OrderArg::Readdir => Order::Readdir,
            OrderArg::Sorted => Order::Sorted,
            OrderArg::Inode => Order::Inode,
        };
        Ok(collect_grep(&args.path, &GrepOptions { order, pattern: pattern.clone() }, &*clock, &never)?)
    };
    for _ in 0..args.warmups {
        run()?;
    }
    for number in 0..args.runs {
        let figures = run()?;
        if args.json {
            println!("{}", json(&figures, number));
        } else {
            print(&figures);
        }
    }
    Ok(())
}

fn print(figures: &GrepFigures) {
    println!(
        "{} s/GiB: {} s for {} allocated; read {} in {} files; CPU {} s user, {} s system{}",
        three_digits(figures.seconds_per_gib().unwrap_or(f64::NAN)),
        three_digits(figures.wall.as_secs_f64()),
        Bytes(figures.allocated_bytes),
        Bytes(figures.read_bytes),
        figures.files,
        three_digits(figures.user_seconds),
        three_digits(figures.system_seconds),
        if figures.is_cpu_bound() { " (CPU bound: the device did not set the pace)" } else { "" },
    );
    if figures.errors_count > 0 {
        eprintln!("senesce: warning: {} file(s) could not be read", figures.errors_count);
    }
}

fn json(figures: &GrepFigures, repetition: u64) -> serde_json::Value {
    document(
        GREP_SCHEMA,
        GrepDocument {
            repetition,
            wall_ns: figures.wall.0,
            allocated_bytes: figures.allocated_bytes,
            read_bytes: figures.read_bytes,
            files: figures.files,
            directories: figures.directories,
            user_us: (figures.user_seconds * 1e6) as u64,
            system_us: (figures.system_seconds * 1e6) as u64,
            cpu_bound: figures.is_cpu_bound(),
            unreadable_files: figures.errors_count,
        },
    )
}
