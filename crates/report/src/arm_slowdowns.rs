//! The slowdowns of arms at one checkpoint of each plan, and whether they are differences.

use std::collections::BTreeMap;

use senesce_store::Role;

use crate::format::{count, figure, list, two_digits};
use crate::model::{Lines, Model, Spread, words};
use crate::noise::Finding;

/// Slowdowns of the aged volumes of one arm at one checkpoint.
pub(crate) struct OfArm<'m> {
    pub(crate) arm: &'m str,
    pub(crate) pulls: u64,
    pub(crate) volumes: Vec<(Role, &'m Spread)>,
    /// Whether [`Self::differences`] removed all volumes without a difference.
    pub(crate) is_judged: bool,
}

/// The checkpoint of the figures of each arm. Arms that share a plan share their checkpoint.
pub(crate) struct Checkpoints<'m>(BTreeMap<&'m str, u64>);

impl<'m> Checkpoints<'m> {
    /// For each plan, the last checkpoint at which one of its arms has a slowdown. It is read from
    /// the first lines of `all` that contain an arm of the plan.
    pub(crate) fn of(model: &'m Model, all: &[&Lines]) -> Self {
        let mut of_plans: BTreeMap<&str, u64> = BTreeMap::new();
        for lines in all {
            let mut last: BTreeMap<&str, u64> = BTreeMap::new();
            for ((arm, _), line) in lines.iter() {
                let known = last.entry(model.plans.name(arm)).or_default();
                *known = line.last_key_value().map_or(*known, |(at, _)| (*known).max(*at));
            }
            for (plan, at) in last {
                of_plans.entry(plan).or_insert(at);
            }
        }
        let planned = |arm: &str| model.plans.ends(arm).map(|(_, last)| last);
        let of_arm = |arm: &str| of_plans.get(model.plans.name(arm)).copied().or_else(|| planned(arm)).unwrap_or(0);
        Self(model.arms.iter().map(|(arm, _)| (arm.as_str(), of_arm(arm))).collect())
    }

    pub(crate) fn of_arm(&self, arm: &str) -> u64 {
        self.0.get(arm).copied().unwrap_or(0)
    }

    /// The checkpoint of all arms. `None` if arms have different ones.
    pub(crate) fn common(&self) -> Option<u64> {
        let first = *self.0.values().next()?;
        self.0.values().all(|at| *at == first).then_some(first)
    }

    /// Each plan once, with its name and checkpoint, the earliest first.
    pub(crate) fn of_plans(&self, model: &Model) -> Vec<(u64, String)> {
        let mut all: Vec<_> = self.0.iter().map(|(arm, at)| (*at, model.plans.name(arm).to_owned())).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Slowdowns of arms, each at the checkpoint of its plan.
pub(crate) struct Slowdowns<'m> {
    /// The largest slowdown first.
    pub(crate) arms: Vec<OfArm<'m>>,
    /// Arms with at least one volume without a slowdown.
    pub(crate) missing: Vec<Missing<'m>>,
}

/// Volumes of one arm that have no slowdown at the checkpoint.
pub(crate) struct Missing<'m> {
    pub(crate) arm: &'m str,
    pub(crate) pulls: u64,
    /// The volumes, each with one of [`REASONS`].
    pub(crate) volumes: Vec<(Role, &'static str)>,
    /// Whether no volume of the arm has one.
    pub(crate) is_whole: bool,
}

pub(crate) const NO_RESULT: &str = "no valid result";
pub(crate) const NOT_MEASURED: &str = "not measured";
/// The volume has a valid cost, but no fresh copy to compare it with.
const INVALID_FRESH: &str = "fresh copy invalid";
const UNMEASURED_FRESH: &str = "fresh copy not measured";
/// Why a volume has no slowdown.
const REASONS: [&str; 4] = [NO_RESULT, INVALID_FRESH, UNMEASURED_FRESH, NOT_MEASURED];

impl<'m> Missing<'m> {
    /// The volumes of the arm without a slowdown; `None` if all have one.
    ///
    /// A volume is expected if it has a slowdown at another checkpoint, or an invalid cell at this
    /// one. Volumes that a device or method never covers are not expected.
    fn at(model: &Model, (costs, lines): (&Lines, &Lines), arm: &'m str, pulls: u64) -> Option<Self> {
        let key = |role: Role| (arm.to_owned(), role);
        let is_invalid = |role: Role| model.invalid.contains_key(&(arm.to_owned(), role, pulls));
        let aged = [Role::Full, Role::Empty];
        if !aged.iter().any(|role| lines.contains_key(&key(*role))) {
            return None;
        }
        let has_figure = |role: &Role| lines.get(&key(*role)).is_some_and(|line| line.contains_key(&pulls));
        let is_expected = |role: &Role| lines.contains_key(&key(*role)) || is_invalid(*role);
        let has_cost = |role: Role| costs.get(&key(role)).is_some_and(|line| line.contains_key(&pulls));
        // A valid cell without a figure was not measured: the plan has no such test there.
        let with_reason = |role: Role| match (is_invalid(role), is_invalid(Role::Unaged)) {
            (true, _) => (role, NO_RESULT),
            (false, true) => (role, INVALID_FRESH),
            (false, false) if has_cost(role) && !has_cost(Role::Unaged) => (role, UNMEASURED_FRESH),
            (false, false) => (role, NOT_MEASURED),
        };
        let without = aged.into_iter().filter(|role| is_expected(role) && !has_figure(role));
        let volumes: Vec<_> = without.map(with_reason).collect();
        (!volumes.is_empty()).then(|| Self { arm, pulls, volumes, is_whole: !aged.iter().any(has_figure) })
    }

    /// The reason, if it is the same for all volumes of the arm.
    pub(crate) fn reason_of_all(&self) -> Option<&'static str> {
        let (_, first) = *self.volumes.first()?;
        (self.is_whole && self.volumes.iter().all(|(_, why)| *why == first)).then_some(first)
    }

    /// `ext4`, or `ext4 (nearly full)` if this is not the reason of its other volume; `None` if it
    /// is that of no volume.
    fn name(&self, why: &str) -> Option<String> {
        match self.reason_of_all() {
            Some(all) => (all == why).then(|| self.arm.to_owned()),
            None => Some(format!("{} ({})", self.arm, self.names(why)?)),
        }
    }

    /// The volumes with this reason: `nearly full`; `None` without one.
    fn names(&self, why: &str) -> Option<String> {
        let of_reason = self.volumes.iter().filter(|(_, reason)| *reason == why);
        let names: Vec<_> = of_reason.map(|(role, _)| words(*role).to_owned()).collect();
        (!names.is_empty()).then(|| list(&names))
    }

    /// `nearly full: no valid result`, and the same for other reasons.
    pub(crate) fn notes(&self) -> Vec<String> {
        let of = |why| Some(format!("{}: {why}", self.names(why)?));
        REASONS.into_iter().filter_map(of).collect()
    }
}

impl<'m> OfArm<'m> {
    pub(crate) fn at(lines: &'m Lines, arm: &'m str, pulls: u64) -> Option<Self> {
        let of = |role| Some((role, lines.get(&(arm.to_owned(), role))?.get(&pulls)?));
        let volumes: Vec<_> = [Role::Full, Role::Empty].into_iter().filter_map(of).collect();
        (!volumes.is_empty()).then_some(Self { arm, pulls, volumes, is_judged: false })
    }

    /// The arm with only the volumes whose ratio is a difference; none if there are none.
    pub(crate) fn differences(&self, model: &Model) -> Option<Self> {
        let noise = model.noise.get(self.arm).copied();
        let is_one = |(_, ratio): &&(Role, &'m Spread)| Finding::of(ratio, noise) == Finding::Difference;
        let volumes: Vec<_> = self.volumes.iter().filter(is_one).copied().collect();
        (!volumes.is_empty()).then_some(Self { arm: self.arm, pulls: self.pulls, volumes, is_judged: true })
    }

    pub(crate) fn least(&self) -> f64 {
        self.volumes.iter().map(|(_, ratio)| ratio.median).fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn most(&self) -> f64 {
        self.volumes.iter().map(|(_, ratio)| ratio.median).fold(0.0, f64::max)
    }

    pub(crate) fn worst(&self) -> Option<Role> {
        self.volumes.iter().max_by(|a, b| a.1.median.total_cmp(&b.1.median)).map(|(role, _)| *role)
    }

    /// The factor of each volume with its name; one without a name if all are equal.
    pub(crate) fn named_factors(&self) -> Vec<(String, &'static str)> {
        if self.volumes.len() > 1 && !self.has_two_factors() {
            return vec![(format!("{}×", two_digits(self.most())), "")];
        }
        self.volumes.iter().map(|(role, ratio)| (format!("{}×", two_digits(ratio.median)), words(*role))).collect()
    }

    /// `78.0 and 81.0 s/GiB; fresh copy 11.6`, in the order of the volumes.
    pub(crate) fn costs(&self, costs: &Lines) -> String {
        let own: Vec<String> =
            self.volumes.iter().filter_map(|(role, _)| self.cost(costs, *role)).map(figure).collect();
        match (own.is_empty(), self.cost(costs, Role::Unaged)) {
            (true, _) => String::new(),
            (false, None) => format!("{} s/GiB", list(&own)),
            (false, Some(fresh)) => format!("{} s/GiB; fresh copy {}", list(&own), figure(fresh)),
        }
    }

    /// Seconds per GiB of a volume at the checkpoint of the slowdowns.
    pub(crate) fn cost(&self, costs: &Lines, role: Role) -> Option<f64> {
        Some(costs.get(&(self.arm.to_owned(), role))?.get(&self.pulls)?.median)
    }

    /// `6.7× (nearly full) and 7.0× (roomy)`; `6.7× and 7.0×` if the text before names the
    /// volumes; `12×` if both have the same factor.
    pub(crate) fn factors(&self, are_known: bool) -> String {
        let factor = |ratio: &Spread| format!("{}×", two_digits(ratio.median));
        if self.volumes.len() > 1 && !self.has_two_factors() {
            return format!("{}×", two_digits(self.most()));
        }
        let of = |(role, ratio): &(Role, &Spread)| match are_known {
            true => factor(ratio),
            false => format!("{} ({})", factor(ratio), words(*role)),
        };
        list(&self.volumes.iter().map(of).collect::<Vec<_>>())
    }

    pub(crate) fn has_two_factors(&self) -> bool {
        self.volumes.len() > 1 && two_digits(self.least()) != two_digits(self.most())
    }

    pub(crate) fn roles(&self) -> Vec<Role> {
        self.volumes.iter().map(|(role, _)| *role).collect()
    }

    /// Whether reading an aged volume is slower than reading its fresh copy, by more than chance.
    pub(crate) fn is_slower(&self, model: &Model) -> bool {
        self.volumes.iter().any(|(_, ratio)| ratio.median > 1.0 && self.is_difference(model, ratio))
    }

    /// Whether a volume is faster to read than its fresh copy, beyond chance, and no volume is
    /// slower.
    pub(crate) fn is_faster(&self, model: &Model) -> bool {
        !self.is_slower(model) && self.volumes.iter().any(|(_, ratio)| self.is_difference(model, ratio))
    }

    pub(crate) fn is_difference(&self, model: &Model, ratio: &Spread) -> bool {
        self.is_judged || model.is_difference(ratio)
    }
}

impl<'m> Slowdowns<'m> {
    /// Slowdowns at these checkpoints. Those of other checkpoints are left out: a sentence that
    /// names a checkpoint has only its figures.
    pub(crate) fn at(model: &'m Model, costs: &Lines, lines: &'m Lines, at: &Checkpoints) -> Self {
        let names = model.arms.iter().map(|(arm, _)| arm.as_str());
        let mut arms: Vec<_> = names.clone().filter_map(|arm| OfArm::at(lines, arm, at.of_arm(arm))).collect();
        arms.sort_by(|a, b| b.most().total_cmp(&a.most()));
        let missing = names.filter_map(|arm| Missing::at(model, (costs, lines), arm, at.of_arm(arm))).collect();
        Self { arms, missing }
    }

    /// `no valid result at 1,000 pulls: ext4 (nearly full)`, and the same for other reasons and
    /// checkpoints. Empty if every volume has a slowdown.
    pub(crate) fn missing_words(&self, model: &Model) -> Vec<String> {
        let mut checkpoints: Vec<u64> = self.missing.iter().map(|missing| missing.pulls).collect();
        checkpoints.sort_unstable();
        checkpoints.dedup();
        let of = |(why, at): (&str, u64)| {
            let missing = self.missing.iter().filter(|missing| missing.pulls == at);
            let names: Vec<String> = missing.filter_map(|missing| missing.name(why)).collect();
            (!names.is_empty()).then(|| format!("{why} at {} {}: {}", count(at), model.unit, list(&names)))
        };
        REASONS.into_iter().flat_map(|why| checkpoints.iter().map(move |at| (why, *at))).filter_map(of).collect()
    }

    /// The volumes of each arm that is slower than a fresh copy.
    pub(crate) fn slower(&self, model: &Model) -> Vec<(String, Vec<Role>)> {
        let slower = self.arms.iter().filter(|arm| arm.is_slower(model));
        slower.map(|arm| (arm.arm.to_owned(), arm.roles())).collect()
    }

    /// The slowest volume of each arm that is slower than a fresh copy.
    pub(crate) fn worst(&self, model: &Model) -> Vec<(String, Role)> {
        let slower = self.arms.iter().filter(|arm| arm.is_slower(model));
        slower.filter_map(|arm| Some((arm.arm.to_owned(), arm.worst()?))).collect()
    }
}
