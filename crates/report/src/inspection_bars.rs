//! Bars of the page of an inspection: what reading everything costs on a device, for four layouts.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::devices::short;
use crate::format::{escape, figure, seconds};

/// Height of a bar with its space, px.
const ROW: f64 = 24.0;
const LEFT: f64 = 96.0;
/// Length of the longest bar; the rest is for its value.
const LONGEST: f64 = 150.0;
/// The layouts: key, name, class.
const LAYOUTS: [(&str, &str, &str); 4] = [
    ("as_it_lies", "as it is", "found"),
    ("defragmented", "defragmented", "gain"),
    ("best_order", "best order", "gain"),
    ("fresh_copy", "fresh copy", "gain"),
];

/// A drawing for each device, the device of the verdict first. Each has its own scale.
pub(crate) fn cost_bars(inspection: &Json) -> Vec<String> {
    let own: Vec<&str> =
        inspection["device"]["judged_as"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let mut costs: Vec<&Json> = inspection["costs"].as_array().into_iter().flatten().collect();
    costs.sort_by_key(|cost| !is_own(cost, &own));
    let mark = if own.len() > 1 { ", a device of the verdict" } else { ", the device of the verdict" };
    costs.into_iter().filter_map(|cost| draw(cost, if is_own(cost, &own) { mark } else { "" })).collect()
}

fn is_own(cost: &Json, own: &[&str]) -> bool {
    cost["device"].as_str().is_some_and(|device| own.contains(&device))
}

/// `mark` follows the name of the device.
fn draw(cost: &Json, mark: &str) -> Option<String> {
    let device = cost["device"].as_str()?;
    let values: Vec<_> =
        LAYOUTS.iter().filter_map(|layout| Some((layout, cost["seconds"][layout.0].as_f64()?))).collect();
    let most = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let fresh = cost["seconds"]["fresh_copy"].as_f64().unwrap_or(f64::NAN);
    let title = escape(&format!("{}{mark}", short(device)));
    let mut svg = format!(r#"<text class="panel-title" x="0" y="14">{title}</text>"#);
    for (at, ((_, name, class), value)) in values.iter().enumerate() {
        let top = 26.0 + at as f64 * ROW;
        let width = (value / most.max(f64::MIN_POSITIVE) * LONGEST).max(1.0);
        let times = if fresh > 0.0 && value / fresh >= 1.005 {
            format!(" · {}×", figure(value / fresh))
        } else {
            String::new()
        };
        let (y, base) = (top + 4.0, top + 16.0);
        let _ = write!(
            svg,
            r#"<text class="tick" x="{:.0}" y="{base}" text-anchor="end">{name}</text><rect class="bar {class}" x="{LEFT}" y="{y}" width="{width:.1}" height="16" rx="2"/><text class="value" x="{:.1}" y="{base}">{}{times}</text>"#,
            LEFT - 8.0,
            LEFT + width + 7.0,
            seconds(*value),
        );
    }
    let height = 30.0 + values.len() as f64 * ROW;
    Some(format!(
        r#"<svg class="panel" viewBox="0 0 360 {height}" role="img" aria-label="Cost of reading everything: {title}">{svg}</svg>"#
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_device_of_the_verdict_comes_first() {
        let seconds = json!({ "as_it_lies": 2.0, "defragmented": 1.0, "best_order": 0.5, "fresh_copy": 0.5 });
        let cost = |device: &str| json!({ "device": device, "seconds": seconds });
        let bars = cost_bars(
            &json!({ "device": { "judged_as": ["model: NVMe"] }, "costs": [cost("model: HDD"), cost("model: NVMe")] }),
        );
        let both = json!({ "device": { "judged_as": ["model: HDD", "model: NVMe"] }, "costs": [cost("model: HDD"), cost("model: NVMe")] });
        assert!(cost_bars(&both).iter().all(|bars| bars.contains(", a device of the verdict<")));
        assert!(bars[0].contains(">NVMe, the device of the verdict<") && bars[1].contains(">HDD<"), "{bars:?}");
        assert!(bars[0].contains(">2.00 s · 4.00×<") && bars[0].contains(">500 ms<"), "{}", bars[0]);
    }
}
