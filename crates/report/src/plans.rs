//! The plans of arms. All arms of a run share one plan. The merged run of a campaign has arms of
//! several plans, each with its own number of steps and its own device.

use std::collections::{BTreeMap, BTreeSet};

use senesce_store::Results;

use crate::format::count;

/// The plan of each arm, and the checkpoints of each plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    /// The plan and the device of each arm of a campaign.
    of_arms: BTreeMap<String, (String, String)>,
    /// The checkpoints of each plan. Arms without a campaign share a plan without a name.
    checkpoints: BTreeMap<String, BTreeSet<u64>>,
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
            let name = plans.name(&cell.key.arm).to_owned();
            plans.checkpoints.entry(name).or_default().insert(cell.key.pulls);
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
        self.checkpoints.get(self.name(arm)).and_then(ends)
    }

    /// Whether plans have different checkpoints at their start or end.
    pub(crate) fn differ(&self) -> bool {
        let mut all = self.checkpoints.values().map(ends);
        all.next().is_some_and(|first| all.any(|other| other != first))
    }

    /// `up to 400 pulls`, or `up to 400 pulls, fewer in some plans`. `None` without a checkpoint.
    pub(crate) fn up_to(&self, unit: &str) -> Option<String> {
        let most = *self.checkpoints.values().filter_map(BTreeSet::last).max()?;
        let is_less = self.checkpoints.values().any(|all| all.last() < Some(&most));
        let fewer = if is_less { ", fewer in some plans" } else { "" };
        Some(format!("up to {} {unit}{fewer}", count(most)))
    }

    /// `11 checkpoints`, or `6 to 11 checkpoints`. `None` without a checkpoint.
    pub(crate) fn checkpoints(&self) -> Option<String> {
        let counts: BTreeSet<u64> = self.checkpoints.values().map(|all| all.len() as u64).collect();
        let (least, most) = ends(&counts)?;
        Some(match (least, most) {
            (1, 1) => "1 checkpoint".to_owned(),
            _ if least == most => format!("{} checkpoints", count(most)),
            _ => format!("{} to {} checkpoints", count(least), count(most)),
        })
    }
}

/// The least and the largest number.
fn ends(numbers: &BTreeSet<u64>) -> Option<(u64, u64)> {
    Some((*numbers.first()?, *numbers.last()?))
}

#[cfg(test)]
mod tests {
    use senesce_store::{CellKey, CellRow, CircumstanceRow, Role};

    use super::*;

    /// Arms, each with its plan and its checkpoints.
    fn results(arms: &[(&str, &str, &[u64])]) -> Results {
        let mut results = Results::default();
        for (arm, plan, checkpoints) in arms {
            let (arm, key, value) = ((*arm).to_owned(), "campaign.workload".to_owned(), (*plan).to_owned());
            for pulls in *checkpoints {
                let key = CellKey { arm: arm.clone(), file_system: "ext4".into(), role: Role::Full, pulls: *pulls };
                results.cells.push(CellRow::without_figures(key, ""));
            }
            results.circumstances.push(CircumstanceRow { arm, key, value });
        }
        results
    }

    #[test]
    fn plans_with_different_checkpoints_have_a_range() {
        let of = |arms: &[(&str, &str, &[u64])]| {
            let plans = Plans::of(&results(arms));
            (plans.checkpoints().unwrap_or_default(), plans.up_to("steps").unwrap_or_default())
        };
        let one: (&str, &str, &[u64]) = ("a", "git", &[0, 40, 60]);
        assert_eq!(of(&[one, ("b", "git", &[0, 40])]), ("3 checkpoints".into(), "up to 60 steps".into()));
        let both = ("3 to 5 checkpoints".to_owned(), "up to 1,000 steps, fewer in some plans".to_owned());
        assert_eq!(of(&[one, ("b", "mail", &[0, 1, 2, 3, 1000])]), both);
        let begin_later = ("2 checkpoints".to_owned(), "up to 400 steps".to_owned());
        assert_eq!(of(&[("a", "git", &[4, 400]), ("b", "mail", &[0, 400])]), begin_later);
        assert_eq!(of(&[("a", "git", &[0])]), ("1 checkpoint".into(), "up to 0 steps".into()));
        assert_eq!(of(&[]), Default::default());
    }
}
