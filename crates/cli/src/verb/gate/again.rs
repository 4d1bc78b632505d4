//! Compares a repeated run with the results of the first one: all figures of all checkpoints.

use std::collections::BTreeSet;

use anyhow::Result;
use senesce_store::{Results, Role};

use super::{
    baseline::Baseline,
    find_missing_figures, find_unlike,
    judge::{Judged, Limits, judge_rows},
};
use crate::{
    args::SelectArgs,
    verb::compare::{
        figures::{Missing, collect_figures, compare_figures, find_missing},
        gate::Scope,
        unlike::Unlike,
    },
};

/// A repeated run beside the first one.
pub(in crate::verb) struct Again {
    /// Circumstances in which the runs differ.
    pub(in crate::verb) unlike: Vec<Unlike>,
    /// Cells and figures that the repeated run lacks.
    pub(in crate::verb) missing: Vec<Missing>,
    /// All figures. Those without noise have a verdict, except free extents.
    pub(in crate::verb) judged: Vec<Judged>,
}

/// Compares `again` with `first`, with the default tolerances of a gate. The reasons of missing
/// cells call `again` by `name`. `planned` has the arms of the plan.
///
/// Errors: the runs have no figure in common.
pub(in crate::verb) fn compare_again(
    first: Results,
    again: &Results,
    planned: &BTreeSet<String>,
    name: &str,
) -> Result<Again> {
    let select = SelectArgs { all: true, figure: Vec::new(), role: Role::ALL.to_vec(), arm: Vec::new() };
    let unlike = find_unlike(&first, again);
    let mut missing = find_missing(&first, again, (planned, name), &select);
    let first = Baseline::of_results(first);
    let of_again = collect_figures(again);
    missing.extend(find_missing_figures(&first.figures, &of_again, &select, false));
    let rows = compare_figures(first.figures, of_again, &select)?;
    let limits = Limits {
        tolerance: None,
        rules: &first.tolerances,
        file_systems: &first.file_systems,
        measured_tolerance: 0.0,
    };
    let scope = Scope { select: &select, measured: false, free_extents: false };
    Ok(Again { unlike, missing, judged: judge_rows(rows, scope, &limits) })
}
