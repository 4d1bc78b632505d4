//! Grep tests of two trees in turn.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use senesce_core::{Clock, Seed, never, statistics::compute_comparison};
use senesce_experiment::ErrorKind;
use senesce_probe::collect::{GrepOptions, Order, collect_grep, compute_pattern};

use super::{Row, figures::Kind};
use crate::{
    args::CompareArgs,
    clock::SystemClock,
    exit::{Failure, failed, usage},
};

/// The default of `--runs`.
const RUNS: u64 = 5;

/// Reads both trees in turn, with the caches as they are or dropped.
pub(super) fn compare_trees(args: &CompareArgs) -> Result<Vec<Row>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let pattern = compute_pattern(Seed(1));
    let run = |path: &Path| -> Result<f64> {
        if args.cold {
            drop_caches()?;
        }
        let options = GrepOptions { order: Order::Readdir, pattern: pattern.clone() };
        let figures = collect_grep(path, &options, &*clock, &never)?;
        if figures.errors_count > 0 {
            return Err(failed(format!("{} file(s) below {} could not be read", figures.errors_count, path.display())));
        }
        let nothing = || usage(format!("{} holds nothing to read", path.display()), None);
        figures.seconds_per_gib().filter(|cost| cost.is_finite()).ok_or_else(nothing)
    };
    for _ in 0..args.warmups.unwrap_or(0) {
        run(&args.a)?;
        run(&args.b)?;
    }
    let (mut figures_a, mut figures_b) = (Vec::new(), Vec::new());
    for number in 0..args.runs.unwrap_or(RUNS) {
        // The tree that is read first alternates, so that other work of the machine slows both.
        if number % 2 == 0 {
            figures_a.push(run(&args.a)?);
            figures_b.push(run(&args.b)?);
        } else {
            figures_b.push(run(&args.b)?);
            figures_a.push(run(&args.a)?);
        }
    }
    Ok(vec![Row {
        of: Vec::new(),
        figure: "grep s/GiB".to_owned(),
        kind: Kind::Measured,
        more_is_better: false,
        comparison: compute_comparison(&figures_a, &figures_b, Seed(1)),
        figures_a,
        figures_b,
        outcome: None,
        judgement: None,
    }])
}

/// Drops the machine's caches.
fn drop_caches() -> Result<()> {
    const SWITCH: &str = "/proc/sys/vm/drop_caches";
    rustix::fs::sync();
    std::fs::write(SWITCH, "3\n").map_err(|error| {
        let hint = Some("run as root, or without --cold".to_owned());
        Failure { kind: ErrorKind::Environment, message: format!("cannot write {SWITCH}: {error}"), hint }.into()
    })
}
