//! Which modelled device comes first: the disk that the volumes were, then the devices in the order
//! of the plan.

use std::cmp::Reverse;

use crate::model::{Line, Lines, Model};

/// The suffix of a device's name if the volumes were that device, in virtual time.
pub(crate) const VIRTUAL_TIME: &str = ", virtual time";
/// The suffix of a device's name if the requests of a trace were replayed on it.
pub(crate) const TRACED: &str = ", traced requests";

impl Model<'_> {
    /// The modelled devices in the order of the report: in virtual time, then as the plan names
    /// them, predictions before single traces. Devices that no plan orders: predictions first, then
    /// the slowest device first, because its cost depends most on the layout.
    pub(crate) fn devices(&self) -> Vec<&str> {
        let planned = self.planned_devices();
        let worst = |lines: &Lines| lines.values().flat_map(Line::values).map(|cost| cost.median).fold(0.0, f64::max);
        let mut devices: Vec<&str> = self.modelled.keys().map(String::as_str).collect();
        devices.sort_by_cached_key(|device| {
            let name = device.trim_end_matches(VIRTUAL_TIME).trim_end_matches(TRACED);
            let place = planned.iter().position(|planned| planned == name).unwrap_or(usize::MAX);
            // Costs are not negative, so their bits have their order.
            let slowest_first = Reverse(worst(&self.modelled[*device]).to_bits());
            (!device.ends_with(VIRTUAL_TIME), place, device.ends_with(TRACED), slowest_first)
        });
        devices
    }

    /// The modelled device of the summary, the first of [`Model::devices`], with its costs and
    /// slowdowns.
    pub(crate) fn main_device(&self) -> Option<(&str, &Lines, &Lines)> {
        let device = *self.devices().first()?;
        Some((device, self.modelled.get(device)?, self.modelled_slowdown.get(device)?))
    }

    /// The first device of the report with figures of an arm. It is the main device for all arms of
    /// a run. Arms of a campaign can have other devices.
    pub(crate) fn device_of(&self, arm: &str) -> Option<&str> {
        self.devices().into_iter().find(|device| self.is_on(arm, device))
    }

    /// The devices of [`Model::device_of`] of all arms, each once, in the order of the report.
    pub(crate) fn first_devices(&self) -> Vec<&str> {
        let all = self.devices();
        let first = |(arm, _): &(String, String)| all.iter().copied().find(|device| self.is_on(arm, device));
        let of_arms: Vec<&str> = self.arms.iter().filter_map(first).collect();
        all.into_iter().filter(|device| of_arms.contains(device)).collect()
    }

    /// Whether a device has figures of an arm, or of an arm that shares its plan and its device in
    /// a campaign. The arm then has a place in charts of the device, even if it has no valid
    /// figure.
    pub(crate) fn is_on(&self, arm: &str, device: &str) -> bool {
        let group = self.plans.group(arm);
        self.modelled.get(device).is_some_and(|lines| lines.keys().any(|(other, _)| self.plans.group(other) == group))
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

    /// Names of the devices in the order of the plan; none if the results do not say.
    fn planned_devices(&self) -> Vec<String> {
        let names = self.circumstance("measure.device_names");
        names.and_then(|names| serde_json::from_str(names).ok()).unwrap_or_default()
    }
}

/// A device's name without `model: `.
pub(crate) fn short(device: &str) -> &str {
    device.trim_start_matches("model: ")
}
