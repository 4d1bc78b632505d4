//! Conditions that stop an aging.

use std::str::FromStr;

use senesce_core::Bytes;

/// A fullness counts as reached this far below, because workloads fill by whole files.
const FULLNESS_TOLERANCE: f64 = 0.005;

/// The aging stops when all given conditions hold. Without a condition, it stops at the end of the
/// workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Until {
    /// The share of the capacity that is not free.
    pub fullness: Option<f64>,
    /// Bytes written or reserved after set-up over those of set-up.
    pub turnover: Option<f64>,
    /// The upper limit of the aggregate layout score.
    pub layout_score: Option<f64>,
    /// Stops after this number of counted steps in any case.
    pub steps: Option<u64>,
}

/// The age of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ages {
    /// The share of the capacity that is not free.
    pub fullness: f64,
    /// The highest fullness so far.
    pub highest_fullness: f64,
    /// Bytes written or reserved after set-up over those of set-up.
    pub turnover: f64,
    /// The layout score of the last check.
    pub layout_score: Option<f64>,
    /// Steps after set-up.
    pub counted_steps: u64,
}

impl Ages {
    pub(super) fn note_space(&mut self, capacity: Bytes, free: Bytes) {
        self.fullness = 1.0 - free.0 as f64 / capacity.0.max(1) as f64;
        self.highest_fullness = self.highest_fullness.max(self.fullness);
    }
}

impl Until {
    /// Whether all given conditions except the bound on steps hold. A fullness that was reached
    /// once counts, because deletions lower it again. A workload that `holds` its fullness must
    /// have it at the end. If a workload `fills` the volume, its aging starts at the fullness, so
    /// the fullness is no condition.
    pub(super) fn is_reached(&self, ages: &Ages, fills: bool, holds: bool) -> bool {
        let is_given = (self.fullness.is_some() && !fills) || self.turnover.is_some() || self.layout_score.is_some();
        is_given && self.compute_missed(ages, holds).is_empty()
    }

    /// The given conditions that do not hold, in words. A workload that `holds` its fullness must
    /// have it at the end, others once.
    pub(super) fn compute_missed(&self, ages: &Ages, holds: bool) -> Vec<String> {
        let mut missed = Vec::new();
        let (reached, how) = if holds { (ages.fullness, "is") } else { (ages.highest_fullness, "reached at most") };
        if let Some(wanted) = self.fullness.filter(|wanted| reached < wanted - FULLNESS_TOLERANCE) {
            missed.push(format!("fullness {wanted} ({how} {reached:.4})"));
        }
        if let Some(wanted) = self.turnover.filter(|wanted| ages.turnover < *wanted) {
            missed.push(format!("turnover {wanted} (reached {:.4})", ages.turnover));
        }
        if let Some(wanted) = self.layout_score.filter(|wanted| ages.layout_score.is_none_or(|score| score > *wanted)) {
            let reached = ages.layout_score.map_or("none".to_owned(), |score| format!("{score:.4}"));
            missed.push(format!("layout score {wanted} (reached {reached})"));
        }
        missed
    }
}

impl FromStr for Until {
    type Err = String;

    /// Parses `fullness=0.8,turnover=2,layout-score=0.9,steps=100`. Shares can also be percentages:
    /// `80%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut until = Self::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not NAME=VALUE"))?;
            if text.split(',').filter(|other| other.split('=').next() == Some(name)).count() > 1 {
                return Err(format!("{name} is given twice"));
            }
            let number = || -> Result<f64, String> {
                let (digits, unit) = value.strip_suffix('%').map_or((value, 1.0), |digits| (digits, 0.01));
                let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
                number.map(|number| number * unit).ok_or_else(|| format!("{name} = {value:?} is no number"))
            };
            let share = || -> Result<f64, String> {
                number().and_then(|share| {
                    if share <= 1.0 {
                        Ok(share)
                    } else {
                        Err(format!("{name} = {value:?} is above 1 (write 0.8 or 80%)"))
                    }
                })
            };
            match name.trim() {
                "fullness" => until.fullness = Some(share()?),
                "turnover" => until.turnover = Some(number()?),
                "layout-score" => until.layout_score = Some(share()?),
                "steps" => {
                    let steps = value.parse().map_err(|_| format!("steps = {value:?} is no number of steps"))?;
                    until.steps = Some(steps);
                }
                other => {
                    return Err(format!("{other:?} is unknown; there are fullness, turnover, layout-score and steps"));
                }
            }
        }
        Ok(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_conditions_except_the_bound_must_hold() {
        let until: Until = "fullness=80%,turnover=2,layout-score=0.9,steps=7".parse().unwrap();
        assert_eq!((until.fullness, until.turnover, until.steps), (Some(0.8), Some(2.0), Some(7)));
        let mut ages = Ages { turnover: 2.0, layout_score: Some(0.9), ..Ages::default() };
        ages.note_space(Bytes(1000), Bytes(204));
        assert!(until.is_reached(&ages, true, true));
        // This fullness was reached once. A workload that fills the volume must hold it.
        ages.note_space(Bytes(1000), Bytes(500));
        assert!(until.is_reached(&ages, false, false) && !until.is_reached(&ages, true, true) && ages.fullness == 0.5);
        assert_eq!(until.compute_missed(&ages, true), ["fullness 0.8 (is 0.5000)"]);
        for younger in [
            Ages { highest_fullness: 0.79, ..ages },
            Ages { turnover: 1.9, ..ages },
            Ages { layout_score: None, ..ages },
            Ages { layout_score: Some(0.91), ..ages },
        ] {
            assert!(!until.is_reached(&younger, false, false));
            assert_eq!(until.compute_missed(&younger, false).len(), 1);
        }
        let bound_only: Until = "steps=7".parse().unwrap();
        assert!(!bound_only.is_reached(&ages, false, false) && bound_only.compute_missed(&ages, false).is_empty());
        let fullness_only: Until = "fullness=0.5".parse().unwrap();
        assert!(fullness_only.is_reached(&ages, false, false) && !fullness_only.is_reached(&ages, true, false));
        assert!(!Until::default().is_reached(&ages, false, false));
    }

    #[test]
    fn wrong_conditions_are_reported() {
        for (text, says) in [
            ("full=1", "unknown"),
            ("fullness", "NAME=VALUE"),
            ("fullness=0.5,turnover=1,fullness=0.6", "twice"),
            ("fullness=80", "above 1"),
            ("turnover=x", "no number"),
            ("turnover=-1", "no number"),
            ("steps=1.5", "number of steps"),
        ] {
            let error = text.parse::<Until>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
