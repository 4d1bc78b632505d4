//! Names of figures for a terminal, and the figure that comes first.

use std::collections::BTreeSet;

use senesce_store::Results;

use super::{Row, figures::SLOWDOWN};

/// The name of a modelled figure without the mark of models: its device, its method in parentheses
/// and its quantity. Other names stay.
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

/// The name of a figure in the text of a comparison. It keeps the method if `rows` have the figure
/// by another method, too.
pub(super) fn shown(figure: &str, rows: &[Row]) -> String {
    let short_name = short(figure);
    let is_of_two = rows.iter().any(|row| row.figure != figure && short(&row.figure) == short_name);
    if is_of_two { without_mark(figure).to_owned() } else { short_name }
}

/// The figure with which the page of a run begins, as far as `rows` have it: the slowdown on the
/// main device, or else the cost there, or else the measured cost. The main device is the disk in
/// virtual time, or else the first device of the plan.
pub(super) fn find_headline(rows: &[Row], results: &Results) -> Option<String> {
    let of_plan = results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == "measure.device_names");
    let planned: Vec<String> = of_plan.and_then(|row| serde_json::from_str(&row.value).ok()).unwrap_or_default();
    let devices: BTreeSet<(bool, usize, bool, String)> = results
        .modelled
        .iter()
        .map(|row| {
            let place = planned.iter().position(|device| *device == row.device).unwrap_or(usize::MAX);
            let name = format!("{} ({})", row.device, row.method);
            (row.method != "virtual-time", place, row.method == "trace", name)
        })
        .collect();
    let main = devices.first().map(|(.., name)| name.as_str());
    first_of(rows, main)
}

/// The headline figure on a device, as far as `rows` have it.
pub(super) fn first_of(rows: &[Row], device: Option<&str>) -> Option<String> {
    let of_device = device.into_iter().flat_map(|device| [SLOWDOWN, "s/GiB"].map(|end| format!("{device} {end}")));
    let mut figures = of_device.chain(["grep s/GiB".to_owned()]);
    figures.find(|figure| rows.iter().any(|row| row.figure == *figure))
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
