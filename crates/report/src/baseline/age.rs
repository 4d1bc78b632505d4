//! The figures by which the age of two runs is compared.
//!
//! The slowdown shows how aged a volume is. The comparison uses the first device that both runs
//! model. The disk in virtual time comes first. Without a common device, it is the
//! measured slowdown, if repetitions and noise allow a finding.

use senesce_store::Role;

use super::change::{Change, Kind, Outcome};
use super::{over_ratio, settle};
use crate::devices::{TRACED, short};
use crate::format::list;
use crate::model::{Line, Lines, Model, Spread};
use crate::noise::{Alike, Finding, Noise, is_too_wide};

/// The figures that the age is judged by.
pub(super) enum Basis<'m> {
    /// Slowdowns on a device that both runs model.
    Modelled {
        device: &'m str,
        new: &'m Lines,
        old: &'m Lines,
        /// Whether it is the first device of this run.
        is_main: bool,
        settles: bool,
    },
    /// Measured slowdowns.
    Measured,
    /// No figure of a checkpoint of both runs shows the age.
    Unknown { why: String },
}

impl<'m> Basis<'m> {
    pub(super) fn find(model: &'m Model, old: &'m Model) -> Self {
        let devices = model.devices();
        let slowdowns = |device: &&str| {
            let (new, before) = (model.modelled_slowdown.get(*device)?, old.modelled_slowdown.get(*device)?);
            let is_common = |(volume, line): (_, &Line)| {
                let has = |at: &u64| before.get(volume).is_some_and(|line| line.contains_key(at));
                line.keys().any(|at| shows_age(model, *at) && has(at))
            };
            new.iter().any(is_common).then_some((new, before))
        };
        let of_device = |device: &&'m str| {
            let (new, old_lines) = slowdowns(device)?;
            let is_main = devices.first() == Some(device);
            Some(Self::Modelled { device, new, old: old_lines, is_main, settles: settle(model, old) })
        };
        let modelled = devices.iter().filter(|device| !device.ends_with(TRACED)).find_map(of_device);
        let has_measured = || measured_slowdowns(model, old).iter().any(|change| shows_age(model, change.at));
        modelled.unwrap_or_else(|| match has_measured() {
            true => Self::Measured,
            false => Self::Unknown { why: why_unknown(model, old) },
        })
    }

    pub(super) fn device(&self) -> Option<&'m str> {
        match self {
            Self::Modelled { device, .. } => Some(device),
            Self::Measured | Self::Unknown { .. } => None,
        }
    }

    /// ` on SSD` or ` (measured)`; empty for the main device, which the other sentences also use.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Modelled { is_main: false, device, .. } => format!(" on {}", short(device)),
            Self::Measured => " (measured)".to_owned(),
            Self::Modelled { .. } | Self::Unknown { .. } => String::new(),
        }
    }

    /// `unchanged within 10% for xfs`. Wider limits are those of chance.
    pub(super) fn unchanged(&self, arms: &[String]) -> String {
        match self {
            Self::Modelled { settles: true, .. } => {
                format!("unchanged within {} for {}", Alike::slowdowns(true).percent(), list(arms))
            }
            Self::Modelled { settles: false, .. } => format!(
                "no measurable change for {} (two runs of one plan can differ by up to {})",
                list(arms),
                Alike::slowdowns(false).percent()
            ),
            Self::Measured | Self::Unknown { .. } => format!("no measurable change for {}", list(arms)),
        }
    }
}

/// Whether figures of a checkpoint show the age. In a run that has steps, those of the state before
/// any step do not.
fn shows_age(model: &Model, at: u64) -> bool {
    at > 0 || model.checkpoints.last().is_none_or(|last| *last == 0)
}

/// Why no figure of both runs says how aged the volumes are.
fn why_unknown(model: &Model, old: &Model) -> String {
    let has_fresh = |model: &Model| !model.slowdown.is_empty();
    let devices = match (model.modelled.is_empty(), old.modelled.is_empty()) {
        (true, true) => "neither run has a device model",
        (true, false) => "this run has no device model",
        (false, true) => "the earlier run has no device model",
        (false, false) => "the runs model no common device with a fresh copy after a step",
    };
    let ratios = measured_ratios(model, old);
    let measured = match (model.is_wall_of_memory() || old.is_wall_of_memory(), model.method == old.method) {
        (true, _) => "wall times of memory do not show age",
        _ if !has_fresh(model) || !has_fresh(old) => "a run measured no fresh copy",
        (_, false) => "they were read by different methods",
        _ if ratios.is_empty() => "they measured no common volume",
        _ if !ratios.iter().any(|change| shows_age(model, change.at)) => {
            "they measured no common checkpoint after a step"
        }
        _ => "the measured times have too few repetitions, or too much noise, for a finding",
    };
    format!("{devices}, and {measured}")
}

/// The ratio of the measured slowdowns of each volume that both runs have, at the last common
/// checkpoint, with both slowdowns.
fn measured_ratios(model: &Model, old: &Model) -> Vec<Change> {
    let of = |arm: &str, role: Role| {
        let key = (arm.to_owned(), role);
        let (new, before) = (model.slowdown.get(&key)?, old.slowdown.get(&key)?);
        let at = *new.keys().rev().find(|at| before.contains_key(at))?;
        Some(Change {
            arm: arm.to_owned(),
            role,
            kind: Kind::Slowdown(None),
            at,
            old: before[&at].median,
            new: new[&at].median,
            ratio: over_ratio(&new[&at], &before[&at])?,
            outcome: Outcome::Unchanged,
        })
    };
    let arms = model.arms.iter().map(|(arm, _)| arm);
    arms.flat_map(|arm| [Role::Full, Role::Empty].into_iter().filter_map(|role| of(arm, role))).collect()
}

/// Judges the measured slowdowns that allow a finding.
pub(super) fn measured_slowdowns(model: &Model, old: &Model) -> Vec<Change> {
    if model.is_wall_of_memory() || old.is_wall_of_memory() || model.method != old.method {
        return Vec::new();
    }
    let judged = |mut change: Change| {
        let noise = both_bands(model.noise.get(&change.arm), old.noise.get(&change.arm));
        change.outcome = match Finding::of(&change.ratio, noise) {
            Finding::Difference if change.ratio.median > 1.0 => Outcome::Worse,
            Finding::Difference => Outcome::Better,
            Finding::Noise if noise.is_some_and(|noise| !noise.is_too_wide()) && is_narrow(&change.ratio) => {
                Outcome::Unchanged
            }
            Finding::Noise | Finding::Unknown => return None,
        };
        Some(change)
    };
    measured_ratios(model, old).into_iter().filter_map(judged).collect()
}

/// Whether a ratio is certain enough to say that nothing changed. One measurement has no interval.
fn is_narrow(ratio: &Spread) -> bool {
    ratio.count > 1 && !is_too_wide(ratio.high / ratio.low)
}

/// The noise of a ratio of two runs: the product of the noise of both.
fn both_bands(new: Option<&Noise>, old: Option<&Noise>) -> Option<Noise> {
    let (new, old) = (new?, old?);
    Some(Noise { low: 1.0, high: new.factor() * old.factor(), figures: new.figures.min(old.figures) })
}

#[cfg(test)]
mod tests {
    use senesce_store::Results;

    use super::super::{change::judged_at, sentence::sentence};
    use super::*;
    use crate::devices::DeviceOrder;
    use crate::model::Spread;

    fn ratio(median: f64, spread: f64, count: usize) -> Spread {
        Spread { count, median, low: median / spread, high: median * spread, ..Spread::default() }
    }

    /// A model without device models, with one arm whose measured slowdown is this.
    fn measured(results: &Results, slowdown: Spread, noise: Option<f64>) -> Model<'_> {
        let mut model = Model::compute(results);
        model.arms.push(("xfs".to_owned(), "xfs".to_owned()));
        model.checkpoints = vec![0, 400];
        model.slowdown.insert(("xfs".to_owned(), Role::Full), [(400, slowdown)].into());
        model.noise.extend(noise.map(|high| ("xfs".to_owned(), Noise { low: 1.0, high, figures: 12 })));
        model
    }

    fn said(new: &Model, old: &Model) -> String {
        let (basis, judged) = (Basis::find(new, old), judged_at(new, old));
        // Adds a figure in common: without one, `sentence` compares nothing.
        let mut changes = super::super::changes((new, &judged), old, &basis);
        changes.extend(measured_ratios(new, old).pop().map(|change| Change { kind: Kind::AdjacentFiles, ..change }));
        sentence((new, &judged), &changes, None, &basis)
    }

    #[test]
    fn common_device_is_the_basis_if_the_first_one_is_not_common() {
        let results = Results::default();
        let (mut new, mut old) =
            (measured(&results, ratio(1.0, 1.0, 1), None), measured(&results, ratio(1.0, 1.0, 1), None));
        for (model, devices) in
            [(&mut new, vec!["model: HDD, virtual time", "model: SSD"]), (&mut old, vec!["model: SSD"])]
        {
            for device in devices {
                let lines: Lines = [(("xfs".to_owned(), Role::Full), [(400, ratio(2.0, 1.0, 1))].into())].into();
                model.modelled.insert(device.to_owned(), lines.clone());
                model.modelled_slowdown.insert(device.to_owned(), lines);
            }
            model.device_order = DeviceOrder::of(model);
        }
        let shown = said(&new, &old);
        let start =
            "Age after 400 pulls on SSD: no measurable change for xfs (two runs of one plan can differ by up to 62%). ";
        assert!(shown.starts_with(start), "{shown}");
    }

    #[test]
    fn device_with_only_the_first_state_in_common_is_no_basis() {
        let results = Results::default();
        let five = |median| ratio(median, 1.02, 5);
        let (mut new, mut old) = (measured(&results, five(4.0), Some(1.1)), measured(&results, five(2.0), Some(1.1)));
        let lines = |at: &[u64]| {
            let line = at.iter().map(|at| (*at, ratio(1.0, 1.0, 1))).collect();
            Lines::from([(("xfs".to_owned(), Role::Full), line)])
        };
        for (model, hdd, ssd) in
            [(&mut new, lines(&[0, 400]), lines(&[0, 400])), (&mut old, lines(&[0]), lines(&[0, 400]))]
        {
            for (device, lines) in [("model: HDD", hdd), ("model: SSD", ssd)] {
                model.modelled.insert(device.to_owned(), lines.clone());
                model.modelled_slowdown.insert(device.to_owned(), lines);
            }
            model.device_order = DeviceOrder::of(model);
        }
        assert!(said(&new, &old).starts_with("Age after 400 pulls on SSD: no "), "{}", said(&new, &old));
        old.modelled_slowdown.insert("model: SSD".to_owned(), lines(&[0]));
        assert!(said(&new, &old).starts_with("Age after 400 pulls (measured): worse for xfs"), "{}", said(&new, &old));
        let line = old.slowdown.values_mut().next().unwrap();
        *line = std::mem::take(line).into_values().map(|slowdown| (0, slowdown)).collect();
        new.slowdown.values_mut().next().unwrap().insert(0, five(1.0));
        let why = "Age cannot be compared: the runs model no common device with a fresh copy after a step, and they \
                   measured no common checkpoint after a step. ";
        assert!(said(&new, &old).starts_with(why), "{}", said(&new, &old));
    }

    #[test]
    fn measured_slowdown_counts_without_a_common_model_if_it_is_a_finding() {
        let results = Results::default();
        let said =
            |new: Spread, old: Spread, noise| said(&measured(&results, new, noise), &measured(&results, old, noise));
        let five = |median| ratio(median, 1.02, 5);
        let worse = said(five(4.0), five(2.0), Some(1.1));
        assert!(worse.starts_with("Age after 400 pulls (measured): worse for xfs (nearly full) 2.00×. "), "{worse}");
        let alike = said(five(2.02), five(2.0), Some(1.1));
        assert!(alike.starts_with("Age after 400 pulls (measured): no measurable change for xfs. "), "{alike}");
        // A ratio of 0.3 to 3 does not show that nothing changed.
        let wide = (ratio(2.02, 3.0, 2), Some(1.1));
        for (new, noise) in
            [(ratio(2.02, 1.0, 1), Some(1.1)), (ratio(4.0, 1.0, 1), None), (five(2.02), Some(9.0)), wide]
        {
            assert!(said(new, five(2.0), noise).starts_with(
                "Age cannot be compared: neither run has a device model, and the measured times have too few \
                     repetitions, or too much noise, for a finding. "
            ),);
        }
    }

    #[test]
    fn reason_is_given_if_the_age_cannot_be_compared() {
        let results = Results::default();
        let new = measured(&results, ratio(4.0, 1.0, 1), None);
        let mut old = measured(&results, ratio(2.0, 1.0, 1), None);
        old.slowdown.clear();
        old.modelled.insert("model: SSD".to_owned(), Lines::new());
        assert_eq!(why_unknown(&new, &old), "this run has no device model, and a run measured no fresh copy");
    }
}
