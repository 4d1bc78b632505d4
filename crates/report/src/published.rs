//! Values that a publication prints, beside those of the run.
//!
//! The plan names the printed values. Each is a ratio of the costs of two volumes, on one device.
//! The verdict depends on our number, and on its direction beyond chance.

use senesce_core::{
    Printable,
    verdict::{Claim, Side, Verdict},
};
use senesce_store::{CircumstanceRow, PUBLISHED, Published, PublishedCost, Role};

use crate::{
    columns::text_table,
    devices::{VIRTUAL_TIME, short},
    format::{count, figure, list, number},
    model::{Model, Spread, words},
    noise::Alike,
    reproduction::verdict_class,
};

/// Heads of the table. The decisive columns come first: narrow screens show those.
const HEADS: [&str; 8] = ["arm", "place", "quantity", "published", "ours", "verdict", "device", "95% (n)"];
/// The columns of [`HEADS`] that are texts.
const TEXTS: [usize; 5] = [0, 1, 2, 5, 6];
/// More comparisons are no table for readers. A plan that a person wrote has fewer.
const MOST: usize = 500;

/// The claim that the two volumes cost the same.
const NO_DIFFERENCE: Claim = Claim::Number(1.0);

/// What the run says about a printed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Verdict(Verdict),
    /// Ours is no difference beyond chance, but another run of the plan could reach the published
    /// value.
    Undecided,
}

impl Finding {
    const ALL: [Self; 5] = [
        Self::Verdict(Verdict::Met),
        Self::Verdict(Verdict::DirectionOnly),
        Self::Verdict(Verdict::NotMet),
        Self::Undecided,
        Self::Verdict(Verdict::NotComparable),
    ];

    /// After a number. A claim that is met need not be a number within 40%.
    fn words(self) -> &'static str {
        match self {
            Self::Verdict(Verdict::Met) => "met",
            Self::Verdict(verdict) => verdict.words(),
            Self::Undecided => "undecided",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Verdict(verdict) => verdict_class(verdict),
            Self::Undecided => "undecided",
        }
    }
}

/// A printed value, beside that of one arm.
struct Beside {
    published: Published,
    claim: Claim,
    arm: String,
    /// Our ratio; the reason if there is none.
    ours: Result<Spread, String>,
    finding: Finding,
    /// The ratios that are no difference.
    limit: Alike,
}

/// The printed values of all arms, in the order of the plan, then of the page.
fn beside(model: &Model) -> Vec<Beside> {
    let of_row = |row: &CircumstanceRow| -> Vec<(Published, Claim)> {
        // Another version may have other keys. Its values count as none.
        let all: Vec<Published> = serde_json::from_str(&row.value).unwrap_or_default();
        all.into_iter().filter_map(|one| one.claim().map(|claim| (one, claim))).collect()
    };
    let rows = model.results.circumstances.iter().filter(|row| row.key == PUBLISHED);
    let all = rows.flat_map(|row| of_row(row).into_iter().map(move |(published, claim)| (row, published, claim)));
    let of_arms = all.flat_map(|(row, published, claim)| {
        let is_of = |(arm, kind): &&(String, String)| {
            (row.arm.is_empty() || row.arm == *arm)
                && (published.file_systems.is_empty() || published.file_systems.contains(kind))
        };
        let arms: Vec<String> = model.arms.iter().filter(is_of).map(|(arm, _)| arm.clone()).collect();
        arms.into_iter().map(move |arm| (published.clone(), claim, arm))
    });
    let compare = |(published, claim, arm): (Published, Claim, String)| {
        let ours = ratio(model, &published, &arm);
        let limit = limit(model, &published);
        let finding = match &ours {
            Ok(ours) => judge(claim, ours, limit),
            Err(_) => Finding::Verdict(Verdict::NotComparable),
        };
        Beside { published, claim, arm, ours, finding, limit }
    };
    of_arms.take(MOST).map(compare).collect()
}

/// The ratio of an arm at the last checkpoint of its plan.
///
/// Errors: the reason why the run has none.
fn ratio(model: &Model, published: &Published, arm: &str) -> Result<Spread, String> {
    let name = &published.device;
    let virtual_time = format!("{name}{VIRTUAL_TIME}");
    let has = |device: &str| model.modelled.get(device).filter(|_| model.is_on(arm, device));
    let lines = match published.cost {
        PublishedCost::Read => has(&virtual_time).or_else(|| has(name)),
        // Steps have times of a device only if the volumes are on it in virtual time.
        PublishedCost::Step => has(&virtual_time).map(|_| &model.steps.disk_seconds),
    };
    let lines = lines.ok_or_else(|| match published.cost {
        PublishedCost::Read => format!("no figures of {}", short(name)),
        PublishedCost::Step => format!("the volumes are not on {} in virtual time", short(name)),
    })?;
    let last = model.plans.ends(arm).map_or(0, |(_, last)| last);
    let at_last = |role: Role| {
        let line = lines.get(&(arm.to_owned(), role));
        line.and_then(|line| line.get(&last))
            .ok_or_else(|| format!("{}: no valid result at {} {}", words(role), count(last), model.unit))
    };
    let [upper, lower] = published.ratio.roles();
    at_last(upper)?.over(at_last(lower)?).ok_or_else(|| format!("{}: the cost is 0", words(lower)))
}

/// The ratios that are no difference between the two volumes.
fn limit(model: &Model, published: &Published) -> Alike {
    match published.ratio.roles().contains(&Role::Unaged) {
        true => Alike::fresh(model.settles),
        false => Alike::aged(model.settles),
    }
}

/// The finding. A published difference needs one of ours in the same direction, beyond chance. If
/// the publication has no difference, ours must be within the limit with its whole interval.
fn judge(claim: Claim, ours: &Spread, limit: Alike) -> Finding {
    let is_difference = limit.is_difference(ours);
    if claim == NO_DIFFERENCE {
        return match is_difference {
            true => Finding::Verdict(Verdict::NotMet),
            false if limit.contains(ours.low) && limit.contains(ours.high) => Finding::Verdict(Verdict::Met),
            false => Finding::Undecided,
        };
    }
    let side = claim.side(1.0);
    let is_same_side = match side {
        Some(Side::Above(_)) => is_difference && ours.median > 1.0,
        Some(Side::Below(_)) => is_difference && ours.median < 1.0,
        // The range includes 1.
        None => true,
    };
    let reaches_published = match side {
        Some(Side::Above(least)) => ours.high.max(ours.median * limit.high) >= least,
        Some(Side::Below(most)) => ours.low.min(ours.median * limit.low) <= most,
        None => true,
    };
    match claim.judge(ours.median, Some((1.0, 1.0))) {
        verdict @ (Verdict::Met | Verdict::DirectionOnly) if is_same_side => Finding::Verdict(verdict),
        // A bound has no number that ours could meet by chance.
        Verdict::Met if !is_difference && reaches_published && !matches!(claim, Claim::AtMost(_)) => Finding::Undecided,
        _ => Finding::Verdict(Verdict::NotMet),
    }
}

/// The conclusion, and the rows of the table.
pub(crate) struct Section {
    pub(crate) conclusion: String,
    pub(crate) rows: Vec<Row>,
}

/// A row of the table.
pub(crate) struct Row {
    /// In the order of [`HEADS`].
    pub(crate) cells: [String; 8],
    /// The class of the colour of the verdict.
    pub(crate) class: &'static str,
}

impl Section {
    /// `None`: the plan names no published values. `name` gives the name of a volume.
    pub(crate) fn of(model: &Model, name: fn(Role) -> &'static str) -> Option<Self> {
        let all = beside(model);
        let conclusion = conclusion(&all);
        let rows = all.into_iter().map(|row| Row { cells: cells(&row, name), class: row.finding.class() }).collect();
        (!conclusion.is_empty()).then_some(Self { conclusion, rows })
    }
}

fn cells(row: &Beside, name: fn(Role) -> &'static str) -> [String; 8] {
    let (ours, interval) = match &row.ours {
        Ok(ours) if ours.count > 1 => {
            (figure(ours.median), format!("{}–{} ({})", figure(ours.low), figure(ours.high), ours.count))
        }
        Ok(ours) => (figure(ours.median), format!("– ({})", ours.count)),
        Err(_) => ("–".to_owned(), "–".to_owned()),
    };
    let verdict = match (&row.ours, row.finding, row.claim) {
        (Err(why), Finding::Verdict(verdict), _) => format!("{verdict}: {why}"),
        (_, Finding::Undecided, _) => "undecided: chance".to_owned(),
        (_, Finding::Verdict(Verdict::Met), NO_DIFFERENCE) => {
            format!("met: no difference over {}", row.limit.percent())
        }
        (_, Finding::Verdict(Verdict::Met), Claim::AtMost(_)) => "within the bound".to_owned(),
        (_, Finding::Verdict(verdict), _) => verdict.to_string(),
    };
    // The text is that of a plan. A line break in it must not make a line of its own.
    let place = Printable::new(&row.published.place).to_string();
    let (quantity, device) = (quantity(&row.published, name), short(&row.published.device).to_owned());
    [row.arm.clone(), place, quantity, claim_text(row.claim), ours, verdict, device, interval]
}

fn claim_text(claim: Claim) -> String {
    match claim {
        NO_DIFFERENCE => "no difference".to_owned(),
        Claim::Number(value) => number(value),
        Claim::Between(low, high) => format!("{} to {}", number(low), number(high)),
        Claim::AtMost(most) => format!("up to {}", number(most)),
        Claim::Rises => "higher".to_owned(),
        Claim::Falls => "lower".to_owned(),
    }
}

/// `read: full/empty`.
fn quantity(published: &Published, name: fn(Role) -> &'static str) -> String {
    let cost = match published.cost {
        PublishedCost::Read => "read",
        PublishedCost::Step => "step",
    };
    let [upper, lower] = published.ratio.roles().map(name);
    format!("{cost}: {upper}/{lower}")
}

/// The conclusion in one sentence. Empty if there is nothing to compare.
fn conclusion(all: &[Beside]) -> String {
    let of = |finding: Finding| all.iter().filter(|row| row.finding == finding).count();
    let parts: Vec<String> = Finding::ALL
        .into_iter()
        .map(|finding| (of(finding), finding))
        .filter(|(count, _)| *count > 0)
        .map(|(count, finding)| format!("{count} {}", finding.words()))
        .collect();
    let comparisons = if all.len() == 1 { "comparison" } else { "comparisons" };
    match parts.is_empty() {
        true => String::new(),
        false => format!("{} {comparisons} with published values ({}).", all.len(), list(&parts)),
    }
}

/// The meaning of the columns.
pub(crate) fn note(model: &Model) -> String {
    let (aged, fresh) = (Alike::aged(model.settles).percent(), Alike::fresh(model.settles).percent());
    let limits = match aged == fresh {
        true => format!("A ratio up to {aged} from 1 is no difference"),
        false => format!("A ratio up to {aged} from 1, or {fresh} with a fresh copy, is no difference"),
    };
    format!(
        "The plan names the published values. Ours are ratios of costs at the last checkpoint. {limits}, because two \
         runs of this plan can differ by as much. A number or a range is met if ours is within 40% of it, and is a \
         difference in the same direction. It is undecided if ours is no difference, but another run of the plan could \
         reach it. If the publication has no difference, ours must have none in its whole interval."
    )
}

/// The table as text; empty if the plan names no published values.
pub(crate) fn published_text(model: &Model) -> String {
    let Some(Section { conclusion, rows }) = Section::of(model, Role::name) else { return String::new() };
    let rows: Vec<[String; 8]> = rows.into_iter().map(|row| row.cells).collect();
    format!("\nBeside the publication: {conclusion}\n\n{}\n{}\n", text_table(HEADS, &rows, &TEXTS), note(model))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(median: f64, low: f64, high: f64) -> Spread {
        Spread { count: 5, median, low, high, ..Spread::default() }
    }

    #[test]
    fn a_number_needs_its_direction_beyond_chance() {
        use Finding::Undecided;
        const MET: Finding = Finding::Verdict(Verdict::Met);
        const DIRECTION: Finding = Finding::Verdict(Verdict::DirectionOnly);
        const NOT_MET: Finding = Finding::Verdict(Verdict::NotMet);
        let limit = Alike::near_one();
        for (claim, ours, finding) in [
            (Claim::Number(1.2), spread(1.3, 1.2, 1.4), MET),
            // Within 40% of 1.2, but no difference, and chance does not reach 1.2.
            (Claim::Number(1.2), spread(1.02, 1.01, 1.03), NOT_MET),
            (Claim::Number(1.2), spread(1.15, 0.99, 1.3), Undecided),
            (Claim::Number(0.8), spread(0.9, 0.75, 1.1), Undecided),
            (Claim::Number(1.2), spread(1.3, 0.9, 1.6), Undecided),
            // Within 40% of 1.2, but in the other direction.
            (Claim::Number(1.2), spread(0.8, 0.7, 0.9), NOT_MET),
            (Claim::Number(0.8), spread(0.7, 0.6, 0.9), MET),
            (Claim::Number(7.0), spread(2.0, 1.9, 2.1), DIRECTION),
            (Claim::Number(7.0), spread(1.04, 1.03, 1.05), NOT_MET),
            (Claim::Between(1.5, 4.0), spread(3.0, 2.0, 4.0), MET),
            (Claim::Between(1.5, 4.0), spread(1.0, 0.9, 1.1), NOT_MET),
            (Claim::Between(1.5, 4.0), spread(1.4, 0.9, 2.1), Undecided),
            (Claim::Between(1.5, 4.0), spread(0.5, 0.4, 0.6), NOT_MET),
            (Claim::Between(0.8, 4.0), spread(1.0, 0.9, 1.1), MET),
            (Claim::AtMost(22.0), spread(3.0, 2.0, 4.0), MET),
            (Claim::AtMost(22.0), spread(30.0, 29.0, 31.0), DIRECTION),
            // A bound on a rise: no rise does not meet it.
            (Claim::AtMost(22.0), spread(1.0, 0.9, 1.1), NOT_MET),
            (Claim::AtMost(22.0), spread(0.5, 0.4, 0.6), NOT_MET),
            (NO_DIFFERENCE, spread(1.03, 1.01, 1.04), MET),
            (NO_DIFFERENCE, spread(1.3, 0.9, 1.4), Undecided),
            (NO_DIFFERENCE, spread(1.3, 1.2, 1.4), NOT_MET),
        ] {
            assert_eq!(judge(claim, &ours, limit), finding, "{claim:?} {ours:?}");
        }
    }

    #[test]
    fn a_single_repetition_is_judged_by_the_limit_alone() {
        let ours = Spread { count: 1, median: 1.1, low: 1.1, high: 1.1, ..Spread::default() };
        assert_eq!(judge(Claim::Number(1.2), &ours, Alike::near_one()), Finding::Verdict(Verdict::Met));
        assert_eq!(judge(Claim::Number(1.2), &ours, Alike::fresh(false)), Finding::Undecided);
        assert_eq!(judge(NO_DIFFERENCE, &ours, Alike::fresh(false)), Finding::Verdict(Verdict::Met));
    }
}
