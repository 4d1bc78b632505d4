//! Which modelled device comes first: the disk that the volumes were, then the devices in the order
//! of the plan.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use senesce_store::CircumstanceRow;

use crate::model::{Line, Lines, Model};

/// The suffix of a device's name if the volumes were that device, in virtual time.
pub(crate) const VIRTUAL_TIME: &str = ", virtual time";
/// The suffix of a device's name if the requests of a trace were replayed on it.
pub(crate) const TRACED: &str = ", traced requests";

/// The methods of modelled costs with a suffix.
pub(crate) const METHOD_VIRTUAL_TIME: &str = "virtual-time";
pub(crate) const METHOD_TRACE: &str = "trace";

/// The modelled devices of a run, by their order and by their arms.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceOrder {
    all: Vec<String>,
    /// By the plan and by the device of arms: their places in `all`, the first one first.
    of_groups: BTreeMap<String, BTreeMap<String, Vec<usize>>>,
}

impl DeviceOrder {
    /// In virtual time, then as the plan names them, predictions before single traces. Devices that
    /// no plan orders: predictions first, then the slowest device first, because its cost depends
    /// most on the layout.
    pub(crate) fn of(model: &Model) -> Self {
        let planned = planned_devices(&model.results.circumstances);
        let worst = |lines: &Lines| lines.values().flat_map(Line::values).map(|cost| cost.median).fold(0.0, f64::max);
        let mut all: Vec<String> = model.modelled.keys().cloned().collect();
        all.sort_by_cached_key(|device| {
            let name = device.trim_end_matches(VIRTUAL_TIME).trim_end_matches(TRACED);
            let method = match () {
                () if device.ends_with(VIRTUAL_TIME) => METHOD_VIRTUAL_TIME,
                () if device.ends_with(TRACED) => METHOD_TRACE,
                () => "",
            };
            // Costs are not negative, so their bits have their order.
            (device_place(&planned, name, method), Reverse(worst(&model.modelled[device]).to_bits()))
        });
        let mut of_groups: BTreeMap<String, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
        for (place, device) in all.iter().enumerate() {
            for (plan, own) in model.modelled[device].keys().map(|(arm, _)| model.plans.group(arm)) {
                let places = of_groups.entry(plan.to_owned()).or_default().entry(own.to_owned()).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
        Self { all, of_groups }
    }

    /// The places of the devices with figures of a group of arms.
    fn places(&self, (plan, device): (&str, &str)) -> &[usize] {
        self.of_groups.get(plan).and_then(|plan| plan.get(device)).map_or(&[], Vec::as_slice)
    }
}

impl Model<'_> {
    /// The modelled devices in the order of the report, see [`DeviceOrder::of`].
    pub(crate) fn devices(&self) -> Vec<&str> {
        self.device_order.all.iter().map(String::as_str).collect()
    }

    /// The modelled device of the summary, the first of [`Model::devices`], with its costs and
    /// slowdowns.
    pub(crate) fn main_device(&self) -> Option<(&str, &Lines, &Lines)> {
        let device = self.device_order.all.first()?;
        Some((device, self.modelled.get(device)?, self.modelled_slowdown.get(device)?))
    }

    /// The first device of the report with figures of an arm. It is the main device for all arms of
    /// a run. Arms of a campaign can have other devices.
    pub(crate) fn device_of(&self, arm: &str) -> Option<&str> {
        let first = *self.device_order.places(self.plans.group(arm)).first()?;
        Some(&self.device_order.all[first])
    }

    /// The devices of [`Model::device_of`] of all arms, each once, in the order of the report.
    pub(crate) fn first_devices(&self) -> Vec<&str> {
        let first = |(arm, _): &(String, String)| self.device_order.places(self.plans.group(arm)).first();
        let of_arms: BTreeSet<usize> = self.arms.iter().filter_map(first).copied().collect();
        of_arms.into_iter().map(|place| self.device_order.all[place].as_str()).collect()
    }

    /// Whether a device has figures of an arm, or of an arm that shares its plan and its device in
    /// a campaign. The arm then has a place in charts of the device, even if it has no valid
    /// figure.
    pub(crate) fn is_on(&self, arm: &str, device: &str) -> bool {
        let places = self.device_order.places(self.plans.group(arm));
        places.iter().any(|place| self.device_order.all[*place] == device)
    }

    /// The disk in virtual time below the volumes of the run, with its costs and slowdowns.
    pub(crate) fn virtual_disk(&self) -> Option<(&str, &Lines, &Lines)> {
        self.main_device().filter(|(device, ..)| device.ends_with(VIRTUAL_TIME))
    }

    /// Whether wall times are those of memory: the volumes were disks in virtual time, and no
    /// request waited.
    pub(crate) fn is_wall_of_memory(&self) -> bool {
        self.virtual_disk().is_some() && self.circumstance("volumes.real_time") != Some("true")
    }

    /// A circumstance of the whole run.
    pub(crate) fn circumstance(&self, key: &str) -> Option<&str> {
        let row = self.results.circumstances.iter().find(|row| row.arm.is_empty() && row.key == key)?;
        Some(&row.value)
    }

    /// The target fullness of the full volume, in percent; `None` if the workload has none.
    pub(crate) fn asked_fullness(&self) -> Option<f64> {
        let text = |key: &str| self.circumstance(key).unwrap_or_default().trim_matches('"');
        let key = match text("workload.kind") {
            "fsfb" => "workload.fsfb.fill_percent",
            "profile" => "workload.profile.fullness_percent",
            "history" if text("workload.edition") == "full-disk-paper" => "workload.fill_percent",
            _ => return None,
        };
        text(key).parse().ok()
    }
}

/// Names of the modelled devices in the order of the plan; none if the results do not say.
pub fn planned_devices(circumstances: &[CircumstanceRow]) -> Vec<String> {
    let names = circumstances.iter().find(|row| row.arm.is_empty() && row.key == "measure.device_names");
    // Names that are no list are of another version: the devices then have no order of a plan.
    names.and_then(|names| serde_json::from_str(&names.value).ok()).unwrap_or_default()
}

/// The place of a modelled device among those of a run. The disk in virtual time is the first one.
/// Those of `planned` follow in its order, predictions before single traces.
pub fn device_place(planned: &[String], device: &str, method: &str) -> impl Ord + use<> {
    let place = planned.iter().position(|planned| planned == device).unwrap_or(usize::MAX);
    (method != METHOD_VIRTUAL_TIME, place, method == METHOD_TRACE)
}

/// A device's name without `model: `.
pub(crate) fn short(device: &str) -> &str {
    device.trim_start_matches("model: ")
}
