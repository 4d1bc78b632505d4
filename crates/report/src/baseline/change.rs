//! A figure of two runs, and its outcome.

use std::collections::{BTreeMap, BTreeSet};

use senesce_store::{Results, Role};

use crate::model::{Model, Spread};

/// The outcome for one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Better,
    Worse,
    /// A difference without a verdict: other input, a fresh copy, or a state before any aging.
    Differs,
    /// A difference that repetitions, or two runs of one plan, can show by chance.
    Unchanged,
    /// A difference beyond the spread of the repetitions, but below the least one that counts.
    Small,
    /// Measured times that do not allow a verdict: other work disturbed every repetition, or the
    /// fresh copies of a run vary too much.
    Noisy,
    /// A figure of an earlier checkpoint than the last one of its arm. It is not judged.
    Earlier,
}

impl Outcome {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Differs => "differs",
            Self::Unchanged => "no measurable difference",
            Self::Small => "small",
            Self::Noisy => "too noisy to judge",
            Self::Earlier => "earlier checkpoint",
        }
    }

    pub(super) fn is_change(self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Differs)
    }
}

/// The kind of a figure. The device is that of a model; without one, the figure was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// How aged a volume is.
    Slowdown(Option<String>),
    /// Seconds per GiB.
    Cost(Option<String>),
    AdjacentFiles,
}

impl Kind {
    /// The title of its rows in the table.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Slowdown(Some(device)) => format!("slowdown, model: {device}"),
            Self::Slowdown(None) => "slowdown, measured".to_owned(),
            Self::Cost(Some(device)) => format!("s/GiB, model: {device}"),
            Self::Cost(None) => "s/GiB, measured".to_owned(),
            Self::AdjacentFiles => "adjacent files".to_owned(),
        }
    }

    /// The figure as the subject of a sentence.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Self::Slowdown(Some(_)) => "the modelled slowdown",
            Self::Slowdown(None) => "the measured slowdown",
            Self::Cost(Some(_)) => "the modelled cost",
            Self::Cost(None) => "the measured cost",
            Self::AdjacentFiles => "the share of adjacent files",
        }
    }

    /// Whether it shows how aged a volume is.
    pub(super) fn is_age(&self) -> bool {
        matches!(self, Self::Slowdown(_))
    }

    /// A larger share is better, a larger cost is worse.
    pub(super) fn is_share(&self) -> bool {
        *self == Self::AdjacentFiles
    }
}

/// A figure of both runs.
#[derive(Clone)]
pub(super) struct Change {
    pub arm: String,
    pub role: Role,
    pub kind: Kind,
    pub at: u64,
    pub old: f64,
    pub new: f64,
    pub ratio: Spread,
    pub outcome: Outcome,
}

impl Change {
    /// How far the ratio is from 1, in either direction.
    pub(super) fn size(&self) -> f64 {
        self.ratio.median.ln().abs()
    }
}

/// A checkpoint for each arm.
pub(super) type JudgedAt<'m> = BTreeMap<&'m str, u64>;

/// The checkpoint at which each arm is judged: the last one of both runs, with valid results or
/// without. An earlier figure must not replace a missing one.
pub(super) fn judged_at<'m>(model: &'m Model, old: &'m Model) -> JudgedAt<'m> {
    fn checkpoints(results: &Results) -> BTreeMap<&str, BTreeSet<u64>> {
        let mut all: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for cell in &results.cells {
            all.entry(&cell.key.arm).or_default().insert(cell.key.pulls);
        }
        all
    }
    let (new, old) = (checkpoints(model.results), checkpoints(old.results));
    let last = |arm: &str| {
        let common = new.get(arm).zip(old.get(arm)).and_then(|(new, old)| new.intersection(old).last().copied());
        common.or_else(|| model.checkpoints.last().copied()).unwrap_or(0)
    };
    model.arms.iter().map(|(arm, _)| (arm.as_str(), last(arm))).collect()
}
