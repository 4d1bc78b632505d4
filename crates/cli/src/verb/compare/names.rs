//! Names of figures for a terminal, and the figure that comes first.

use std::collections::BTreeSet;

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

/// The name of a figure in the text of a comparison. It keeps the method if `rows` have the figure
/// by another method, too.
pub(super) fn shown(figure: &str, rows: &[Row]) -> String {
    let short_name = short(figure);
    let is_of_two = rows.iter().any(|row| row.figure != figure && short(&row.figure) == short_name);
    if is_of_two { without_mark(figure).to_owned() } else { short_name }
}

/// The figure with which the page of a run begins, as far as `rows` have it: the slowdown on the
/// first device that they have, or else the cost there, or else the measured cost. The disk in
/// virtual time is the first device, then those of the plan in its order.
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
    let on_device = devices.iter().find_map(|(.., name)| of_device(rows, name));
    on_device.or_else(|| find(rows, "grep s/GiB"))
}

/// The headline figure on a device, or else the measured cost, as far as `rows` have it.
pub(super) fn first_of(rows: &[Row], device: Option<&str>) -> Option<String> {
    device.and_then(|device| of_device(rows, device)).or_else(|| find(rows, "grep s/GiB"))
}

fn of_device(rows: &[Row], device: &str) -> Option<String> {
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
