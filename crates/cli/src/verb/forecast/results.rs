//! Histories from the results of a run: the costs of each volume at its checkpoints.

use std::{cmp::Reverse, collections::BTreeMap, path::Path};

use anyhow::Result;
use senesce_core::{Printable, statistics::compute_median};
use senesce_store::{Results, Role};

use super::history::{Against, History, Unit, Value};
use crate::{
    args::ForecastArgs,
    exit::usage,
    verb::{
        compare::figures::{Figures, Kind, collect_figures},
        show::read_results,
    },
};

/// The end of the names of costs.
const COST: &str = " s/GiB";

/// The history of each aged volume of a run.
///
/// Errors: the directory holds no results; no volume, arm or device is the wanted one.
pub(super) fn read_histories(run: &Path, args: &ForecastArgs) -> Result<Vec<History>> {
    let results = read_results(run)?;
    let figures = collect_figures(&results);
    let mut volumes: Vec<(&str, Role)> = figures.keys().map(|(arm, role, ..)| (arm.as_str(), role.uncured())).collect();
    volumes.sort();
    volumes.dedup();
    volumes.retain(|(arm, role)| {
        *role != Role::Unaged
            && (args.arm.is_empty() || args.arm.iter().any(|wanted| wanted == arm))
            && (args.role.is_empty() || args.role.contains(role))
    });
    if volumes.is_empty() {
        return Err(usage(
            "the run has no aged volume that matches --arm and --role",
            Some("`senesce show RUN` lists them"),
        ));
    }
    let unit = unit(&results);
    let histories = volumes.into_iter().map(|volume| make_history(&figures, volume, &unit, args.device.as_deref()));
    let histories: Vec<History> = histories.flatten().collect();
    match histories.is_empty() {
        true => {
            let mut devices: Vec<&str> = figures.keys().filter_map(|(.., figure)| figure.strip_suffix(COST)).collect();
            devices.sort_unstable();
            devices.dedup();
            let hint = format!("its devices: {}", Printable::new(&devices.join(", ")));
            Err(usage("the run has no cost on this device", Some(&hint)))
        }
        false => Ok(histories),
    }
}

/// The unit of checkpoints.
fn unit(results: &Results) -> Unit {
    let row = results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == "workload.step_unit");
    Unit::Steps(row.map_or_else(|| "pulls".to_owned(), |row| Printable::new(&row.value).to_string()))
}

/// The history of a volume since its last cure. `None` if it has no cost on the device.
fn make_history(figures: &Figures, (arm, role): (&str, Role), unit: &Unit, device: Option<&str>) -> Option<History> {
    let of_volume = || figures.iter().filter(|((of, found, ..), _)| of == arm && found.uncured() == role);
    let mut counts: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for ((_, found, _, figure), values) in of_volume() {
        let name = figure.strip_suffix(COST);
        let matches = |name: &&str| device.is_none_or(|wanted| name.to_lowercase().contains(&wanted.to_lowercase()));
        if let Some(name) = name.filter(matches).filter(|_| !found.is_cured()) {
            *counts.entry((values.kind == Kind::Modelled, name)).or_default() += 1;
        }
    }
    // A model before wall times, then most checkpoints, then the first name.
    let best = counts.into_iter().max_by_key(|((is_model, name), count)| (*is_model, *count, Reverse(*name)));
    let ((_, device), _) = best?;
    let figure = format!("{device}{COST}");
    let cost = |role: Role, pulls: u64| {
        let values = figures.get(&(arm.to_owned(), role, pulls, figure.clone()))?;
        compute_median(&values.values).filter(|cost| *cost > 0.0)
    };
    let mut checkpoints: Vec<u64> = of_volume().map(|((_, _, pulls, _), _)| *pulls).collect();
    checkpoints.sort_unstable();
    checkpoints.dedup();
    let cured = checkpoints.iter().rev().find(|pulls| cost(role.cured(), **pulls).is_some()).copied();
    let mut costs: Vec<(u64, f64)> = Vec::new();
    if let Some(cured) = cured {
        costs.extend(cost(role.cured(), cured).map(|cost| (cured, cost)));
    }
    let after = checkpoints.iter().filter(|pulls| cured.is_none_or(|cured| **pulls > cured));
    costs.extend(after.filter_map(|pulls| Some((*pulls, cost(role, *pulls)?))));
    let first = costs.first()?.1;
    let mut notes: Vec<String> = cured
        .map(|cured| format!("The volume was cured at {}: only checkpoints since then count.", unit.tell(cured as f64)))
        .into_iter()
        .collect();
    let fresh: Vec<Option<f64>> = costs.iter().map(|(pulls, _)| cost(Role::Unaged, *pulls)).collect();
    let has_fresh = fresh.iter().any(Option::is_some);
    if has_fresh && fresh.iter().any(Option::is_none) {
        notes.push("Checkpoints without a fresh copy are left out.".to_owned());
    }
    let values = costs.iter().zip(fresh).filter_map(|((pulls, cost), fresh)| {
        let base = if has_fresh { fresh? } else { first };
        Some(Value { at: *pulls as f64, cost: *cost, slowdown: cost / base })
    });
    Some(History {
        of: Printable::new(&format!("{arm} {}", role.name())).to_string(),
        device: Printable::new(device).to_string(),
        unit: unit.clone(),
        cost_unit: "s/GiB",
        against: if has_fresh { Against::FreshCopy } else { Against::FirstValue },
        values: values.collect(),
        notes,
    })
}
