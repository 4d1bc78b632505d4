//! Values that a publication prints, beside those of the run.
//!
//! The plan names the printed values. Each is a ratio of the costs of two volumes, on one device.
//! The verdict on ours counts the number, and the direction beyond chance.

use senesce_core::verdict::{Claim, Verdict};
use senesce_store::{PUBLISHED, Published, PublishedCost, Role};

use crate::{
    columns::text_table,
    devices::{VIRTUAL_TIME, short},
    format::{count, figure, list, number},
    model::{Model, Spread, words},
    noise::Alike,
    reproduction::verdict_class,
};

/// Heads of the table. The decisive columns come first: narrow screens show those.
pub(crate) const HEADS: [&str; 8] = ["arm", "published", "ours", "verdict", "ratio", "device", "95% (n)", "place"];
/// The columns of [`HEADS`] that are texts.
pub(crate) const TEXTS: [usize; 5] = [0, 3, 4, 5, 7];

/// The claim that the two volumes cost the same.
const NO_DIFFERENCE: Claim = Claim::Number(1.0);

/// A printed value, beside that of one arm.
struct Beside {
    published: Published,
    claim: Claim,
    arm: String,
    /// Our ratio; the reason if there is none.
    ours: Result<Spread, String>,
    verdict: Verdict,
}

/// The printed values of all arms, in the order of the plan, then of the page.
fn beside(model: &Model) -> Vec<Beside> {
    let mut rows = Vec::new();
    for row in model.results.circumstances.iter().filter(|row| row.key == PUBLISHED) {
        // A later version may have other keys. It then has a table of its own.
        let all: Vec<Published> = serde_json::from_str(&row.value).unwrap_or_default();
        for (published, claim) in all.into_iter().filter_map(|one| one.claim().map(|claim| (one, claim))) {
            let is_of = |(arm, kind): &&(String, String)| {
                (row.arm.is_empty() || row.arm == *arm)
                    && (published.file_systems.is_empty() || published.file_systems.contains(kind))
            };
            for (arm, _) in model.arms.iter().filter(is_of) {
                let ours = ratio(model, &published, arm);
                let verdict = match &ours {
                    Ok(ours) => judge(claim, ours, limit(model, &published)),
                    Err(_) => Verdict::NotComparable,
                };
                rows.push(Beside { published: published.clone(), claim, arm: arm.clone(), ours, verdict });
            }
        }
    }
    rows
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
        // Steps have times of the device only if the volumes are that device.
        PublishedCost::Step => has(&virtual_time).map(|_| &model.steps.disk_seconds),
    };
    let lines = lines.ok_or_else(|| match published.cost {
        PublishedCost::Read => format!("no figures of {}", short(name)),
        PublishedCost::Step => format!("the volumes are no {} in virtual time", short(name)),
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

/// The verdict. A published difference needs one of ours in the same direction, beyond chance. If
/// the publication has no difference, ours must not have one either.
fn judge(claim: Claim, ours: &Spread, limit: Alike) -> Verdict {
    let is_difference = limit.is_difference(ours);
    match (claim, claim.judge(ours.median, Some((1.0, 1.0)))) {
        (NO_DIFFERENCE, _) if !is_difference => Verdict::Met,
        (NO_DIFFERENCE, _) => Verdict::NotMet,
        (Claim::Number(_) | Claim::Between(..), Verdict::Met) if !is_same_side(claim, ours.median, is_difference) => {
            Verdict::NotMet
        }
        (_, Verdict::DirectionOnly) if !is_difference => Verdict::NotMet,
        (_, verdict) => verdict,
    }
}

/// Whether ours is on the same side of 1 as the published value, beyond chance. A range with 1 in
/// it has no side.
fn is_same_side(claim: Claim, ours: f64, is_difference: bool) -> bool {
    let (low, high) = match claim {
        Claim::Between(low, high) => (low, high),
        Claim::Number(number) => (number, number),
        Claim::AtMost(_) | Claim::Rises | Claim::Falls => return true,
    };
    match () {
        () if low > 1.0 => is_difference && ours > 1.0,
        () if high < 1.0 => is_difference && ours < 1.0,
        () => true,
    }
}

/// The rows of the table, with a class for the colour of the verdict.
pub(crate) fn rows(model: &Model) -> Vec<([String; 8], &'static str)> {
    let row = |row: Beside| {
        let (ours, interval) = match &row.ours {
            Ok(ours) if ours.count > 1 => {
                (figure(ours.median), format!("{}–{} ({})", figure(ours.low), figure(ours.high), ours.count))
            }
            Ok(ours) => (figure(ours.median), format!("– ({})", ours.count)),
            Err(_) => ("–".to_owned(), "–".to_owned()),
        };
        let verdict = match (&row.ours, row.verdict) {
            (Err(why), _) => format!("{}: {why}", row.verdict),
            (Ok(_), Verdict::Met) if row.claim == NO_DIFFERENCE => "met".to_owned(),
            (Ok(_), verdict) => verdict.to_string(),
        };
        let Published { place, device, .. } = &row.published;
        let (ratio, device) = (quantity(&row.published), short(device).to_owned());
        let cells = [row.arm, claim_text(row.claim), ours, verdict, ratio, device, interval, place.clone()];
        (cells, verdict_class(row.verdict))
    };
    beside(model).into_iter().map(row).collect()
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

/// `reading: nearly full / roomy`.
fn quantity(published: &Published) -> String {
    let cost = match published.cost {
        PublishedCost::Read => "reading",
        PublishedCost::Step => "a step",
    };
    let [upper, lower] = published.ratio.roles().map(words);
    format!("{cost}: {upper} / {lower}")
}

/// The conclusion in one sentence. `None`: the plan names no published values.
pub(crate) fn conclusion(model: &Model) -> Option<String> {
    let rows = beside(model);
    let of = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let words = |verdict: Verdict| match verdict {
        Verdict::Met => "met",
        Verdict::DirectionOnly => "met in direction only",
        Verdict::NotMet => "not met",
        Verdict::NotComparable => "not comparable",
    };
    let parts: Vec<String> = Verdict::ALL
        .into_iter()
        .filter_map(|verdict| Some((of(verdict), verdict)).filter(|(count, _)| *count > 0))
        .map(|(count, verdict)| format!("{count} {} {}", if count == 1 { "is" } else { "are" }, words(verdict)))
        .collect();
    let values = if rows.len() == 1 { "published value" } else { "published values" };
    (!rows.is_empty()).then(|| format!("Of {} {values}, {}.", rows.len(), list(&parts)))
}

/// What the columns mean.
pub(crate) const NOTE: &str = "The plan names the published values. Ours are ratios of costs at the last checkpoint. A \
    number is met if ours is within 40% of it, and a difference beyond chance in the same direction. Where the \
    publication has no difference, ours must have none beyond chance.";

/// The table as text; empty if the plan names no published values.
pub(crate) fn published_text(model: &Model) -> String {
    let Some(conclusion) = conclusion(model) else { return String::new() };
    let rows: Vec<[String; 8]> = rows(model).into_iter().map(|(row, _)| row).collect();
    format!("\nBeside the publication: {conclusion}\n\n{}\n{NOTE}\n", text_table(HEADS, &rows, &TEXTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(median: f64, low: f64, high: f64) -> Spread {
        Spread { count: 5, median, low, high, ..Spread::default() }
    }

    #[test]
    fn a_number_needs_its_direction_beyond_chance() {
        let limit = Alike::near_one();
        for (claim, ours, verdict) in [
            (Claim::Number(1.2), spread(1.3, 1.2, 1.4), Verdict::Met),
            // Within 40% of 1.2, but no difference.
            (Claim::Number(1.2), spread(1.02, 1.01, 1.03), Verdict::NotMet),
            (Claim::Number(1.2), spread(1.3, 0.9, 1.6), Verdict::NotMet),
            // Within 40% of 1.2, but in the other direction.
            (Claim::Number(1.2), spread(0.8, 0.7, 0.9), Verdict::NotMet),
            (Claim::Number(0.8), spread(0.7, 0.6, 0.9), Verdict::Met),
            (Claim::Number(7.0), spread(2.0, 1.9, 2.1), Verdict::DirectionOnly),
            (Claim::Number(7.0), spread(1.04, 1.03, 1.05), Verdict::NotMet),
            (Claim::Between(1.5, 4.0), spread(3.0, 2.0, 4.0), Verdict::Met),
            (Claim::Between(1.5, 4.0), spread(1.0, 0.9, 1.1), Verdict::NotMet),
            (Claim::Between(0.8, 4.0), spread(1.0, 0.9, 1.1), Verdict::Met),
            (Claim::AtMost(22.0), spread(3.0, 2.0, 4.0), Verdict::Met),
            (Claim::AtMost(22.0), spread(30.0, 29.0, 31.0), Verdict::DirectionOnly),
            (Claim::Number(1.0), spread(1.03, 1.01, 1.04), Verdict::Met),
            (Claim::Number(1.0), spread(1.3, 0.9, 1.4), Verdict::Met),
            (Claim::Number(1.0), spread(1.3, 1.2, 1.4), Verdict::NotMet),
        ] {
            assert_eq!(judge(claim, &ours, limit), verdict, "{claim:?} {ours:?}");
        }
    }

    #[test]
    fn a_single_repetition_is_judged_by_the_limit_alone() {
        let ours = Spread { count: 1, median: 1.1, low: 1.1, high: 1.1, ..Spread::default() };
        assert_eq!(judge(Claim::Number(1.2), &ours, Alike::near_one()), Verdict::Met);
        assert_eq!(judge(Claim::Number(1.2), &ours, Alike::fresh(false)), Verdict::NotMet);
    }
}
