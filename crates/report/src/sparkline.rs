//! Slowdowns over the checkpoints, as one line of letters for each arm and volume.

use std::collections::BTreeSet;

use senesce_store::{Results, Role};

use crate::{
    devices::short,
    format::{count, figure, list},
    model::{Model, ROLES},
};

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the modelled slowdown, or the measured one of a run without a model, of every arm and
/// volume from the first to the last checkpoint.
///
/// In: the results of a run. Out: lines that end with a newline; empty for runs with fewer than two
/// checkpoints. All lines share one scale, which starts at 1. Cost: linear in the rows.
pub fn sparklines(results: &Results) -> String {
    let model = Model::compute(results);
    let devices: Vec<String> = model.first_devices().into_iter().map(|device| short(device).to_owned()).collect();
    let what = if devices.is_empty() { "measured".to_owned() } else { format!("modelled for {}", list(&devices)) };
    let values = |arm: &str, role: Role| -> Vec<f64> {
        let lines = match model.device_of(arm) {
            Some(device) => model.modelled_slowdown.get(device),
            // Measured values do not stand beside modelled ones.
            None => devices.is_empty().then_some(&model.slowdown),
        };
        let line = lines.and_then(|lines| lines.get(&(arm.to_owned(), role)));
        line.into_iter().flatten().map(|(_, spread)| spread.median).collect()
    };
    let mut rows = Vec::new();
    for (arm, _) in &model.arms {
        for role in ROLES.into_iter().filter(|role| *role != Role::Unaged) {
            let values = values(arm, role);
            if values.len() > 1 {
                rows.push((format!("{arm} {}", role.name()), values));
            }
        }
    }
    let most = rows.iter().flat_map(|(_, values)| values).copied().fold(1.0, f64::max);
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, values) in &rows {
        let (first, last) = (values[0], values[values.len() - 1]);
        let line: String = values.iter().map(|value| height(*value, most)).collect();
        text.push_str(&format!("{name:<width$}  {line}  {}× to {}×\n", figure(first), figure(last)));
    }
    if text.is_empty() {
        return text;
    }
    let counts: BTreeSet<u64> = rows.iter().map(|(_, values)| values.len() as u64).collect();
    let checkpoints = match counts.into_iter().collect::<Vec<_>>()[..] {
        [all] => format!("{} checkpoints", count(all)),
        _ => "the checkpoints of each volume".to_owned(),
    };
    format!("Slowdown at {checkpoints}, {what}; scale 1 to {}:\n{text}", figure(most))
}

fn height(value: f64, most: f64) -> char {
    let share = if most > 1.0 { ((value - 1.0) / (most - 1.0)).clamp(0.0, 1.0) } else { 0.0 };
    HEIGHTS[(share * (HEIGHTS.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_start_at_one() {
        let drawn: String = [0.5, 1.0, 2.0, 4.5, 8.0].map(|value| height(value, 8.0)).into_iter().collect();
        assert_eq!(drawn, "▁▁▂▅█");
        assert_eq!(height(1.0, 1.0), '▁');
    }
}
