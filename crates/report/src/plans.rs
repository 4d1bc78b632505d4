//! The plans of arms. All arms of a run share one plan. The merged run of a campaign has arms of
//! several plans, each with its own number of steps and its own device.

use std::collections::BTreeMap;

use senesce_store::Results;

/// The plan of each arm, and the checkpoints of each plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    /// The plan and the device of each arm of a campaign.
    of_arms: BTreeMap<String, (String, String)>,
    /// The first and the last checkpoint of each plan. Arms without a campaign share a plan without
    /// a name.
    ends: BTreeMap<String, (u64, u64)>,
}

impl Plans {
    pub(crate) fn of(results: &Results) -> Self {
        let mut plans = Self::default();
        for row in results.circumstances.iter().filter(|row| !row.arm.is_empty()) {
            match row.key.as_str() {
                "campaign.workload" => plans.of_arms.entry(row.arm.clone()).or_default().0.clone_from(&row.value),
                "campaign.device" => plans.of_arms.entry(row.arm.clone()).or_default().1.clone_from(&row.value),
                _ => {}
            }
        }
        for cell in &results.cells {
            let (name, at) = (plans.name(&cell.key.arm).to_owned(), cell.key.pulls);
            let ends = plans.ends.entry(name).or_insert((at, at));
            *ends = (ends.0.min(at), ends.1.max(at));
        }
        plans
    }

    /// The name of the plan of an arm; empty without a campaign.
    pub(crate) fn name(&self, arm: &str) -> &str {
        self.of_arms.get(arm).map_or("", |(plan, _)| plan)
    }

    /// The plan and the device of an arm in its campaign. Arms that share both are on equal
    /// devices.
    pub(crate) fn group(&self, arm: &str) -> (&str, &str) {
        self.of_arms.get(arm).map_or(("", ""), |(plan, device)| (plan, device))
    }

    /// The first and the last checkpoint of the plan of an arm.
    pub(crate) fn ends(&self, arm: &str) -> Option<(u64, u64)> {
        self.ends.get(self.name(arm)).copied()
    }

    /// Whether plans have different checkpoints at their start or end.
    pub(crate) fn differ(&self) -> bool {
        let mut ends = self.ends.values();
        ends.next().is_some_and(|first| ends.any(|other| other != first))
    }
}
