//! Names of figures for a terminal, and the figure that comes first.

use std::collections::BTreeSet;

use senesce_report::{device_place, planned_devices};
use senesce_store::Results;

use super::{Row, figures::SLOWDOWN};

/// The name of a figure without the prefix `model: `. For a modelled figure these are its device,
/// its method in parentheses and its quantity.
fn without_mark(figure: &str) -> &str {
    figure.strip_prefix("model: ").unwrap_or(figure)
}

/// The short name of a figure: without the mark of models and without the method.
pub(super) fn short(figure: &str) -> String {
    let named = without_mark(figure);
    let parts = || {
        let (device, rest) = named.split_once(" (")?;
        let (_, quantity) = rest.split_once(") ")?;
        Some(format!("{device} {quantity}"))
    };
    let is_modelled = named.len() < figure.len();
    parts().filter(|_| is_modelled).unwrap_or_else(|| named.to_owned())
}

/// The names of figures in the text of a comparison.
pub(super) struct Names {
    /// Short names that two methods share.
    of_two: BTreeSet<String>,
}

impl Names {
    pub(super) fn of(rows: &[Row]) -> Self {
        let figures: BTreeSet<&str> = rows.iter().map(|row| row.figure.as_str()).collect();
        let mut known = BTreeSet::new();
        Self { of_two: figures.into_iter().map(short).filter(|name| !known.insert(name.clone())).collect() }
    }

    /// The name of a figure. It keeps the method if the rows have the figure by another one, too.
    pub(super) fn of_figure(&self, figure: &str) -> String {
        let name = short(figure);
        if self.of_two.contains(&name) { without_mark(figure).to_owned() } else { name }
    }
}

/// The figure with which the page of a run begins, as far as `rows` have it: the slowdown on the
/// first device of the report that they have, or else the cost there, or else the measured cost.
pub(super) fn find_headline(rows: &[Row], results: &Results) -> Option<String> {
    let planned = planned_devices(&results.circumstances);
    let mut devices: Vec<(&str, &str)> =
        results.modelled.iter().map(|row| (row.device.as_str(), row.method.as_str())).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.sort_by_key(|(device, method)| device_place(&planned, device, method));
    let on_device = devices.iter().find_map(|(device, method)| of_device(rows, &format!("{device} ({method})")));
    on_device.or_else(|| find(rows, "grep s/GiB"))
}

/// The headline figure on a device, as far as `rows` have it: the slowdown, or else the cost.
pub(super) fn of_device(rows: &[Row], device: &str) -> Option<String> {
    [SLOWDOWN, "s/GiB"].into_iter().find_map(|end| find(rows, &format!("{device} {end}")))
}

fn find(rows: &[Row], figure: &str) -> Option<String> {
    rows.iter().any(|row| row.figure == figure).then(|| figure.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_lose_mark_and_method() {
        for (figure, name) in [
            ("model: HDD 7.2K (virtual-time) s/GiB", "HDD 7.2K s/GiB"),
            ("model: HDD 7.2K slowdown", "HDD 7.2K slowdown"),
            ("NVMe (x) requests", "NVMe (x) requests"),
            ("layout score", "layout score"),
        ] {
            assert_eq!(short(figure), name);
        }
    }
}
