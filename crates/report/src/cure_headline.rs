//! The headline of a run with cures: the gain of the last cure of each arm, and how the cured
//! volume compares with a fresh copy.
//!
//! Reads in virtual time are first, then models of the layout, then wall times. Only a gain beyond
//! chance and noise counts.

use std::collections::BTreeMap;

use senesce_store::{CellKey, CureRow, Role};

use crate::arm_slowdowns::{NO_RESULT, NOT_MEASURED};
use crate::cures::read_seconds;
use crate::format::{count, list, two_digits};
use crate::headline::{KeyFigure, on_device};
use crate::model::{Lines, Model, Spread, lines, words};
use crate::noise::{Alike, Finding};

/// After a cure that comes this close to a fresh copy, reading is nearly as fast.
const NEARLY: f64 = 1.5;

/// The last cure of one arm.
struct Cured<'m> {
    row: &'m CureRow,
    /// The arm.
    name: &'m str,
    /// Cost before over cost after, of each volume.
    gains: Vec<(Role, Spread)>,
    /// Cost before over that of a fresh copy, of each volume.
    before: Vec<Spread>,
    /// Whether a volume was slower than its fresh copy before the cure.
    had_aged: bool,
    /// Cost after over that of a fresh copy, of each volume.
    to_fresh: Vec<Spread>,
    effect: Effect,
    /// Reading beside a fresh copy: faster if all volumes are, slower if one is.
    beside_fresh: Effect,
}

/// A difference of reading, beyond chance and noise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Faster,
    Slower,
    None,
}

/// The sentences about cures; none without cures.
pub(crate) fn cure_headline(model: &Model) -> Vec<String> {
    let Some((costs, device, is_measured)) = costs(model) else { return Vec::new() };
    let mut cured = last_cures(model, &costs, is_measured);
    let Some(at) = keep_last(&mut cured) else { return Vec::new() };
    let mut sentences = vec![gain_sentence(model, &cured, at, &device)];
    sentences.extend(fresh_sentence(&cured));
    sentences
}

/// The gains of cures as key figures, the largest first; none without cures.
pub(crate) fn cure_key_figures(model: &Model) -> Vec<KeyFigure> {
    let Some((costs, device, is_measured)) = costs(model) else { return Vec::new() };
    let mut cured = last_cures(model, &costs, is_measured);
    let Some(at) = keep_last(&mut cured) else { return Vec::new() };
    let device = device.trim_start_matches("a ");
    let figure = |cured: &Cured<'_>| KeyFigure {
        arm: cured.name.to_owned(),
        factors: cured.key_factors(),
        device: format!("{} {}, {device}", cured.key_words(), cured.row.tool),
        cost: String::new(),
        is_difference: cured.effect != Effect::None,
    };
    let without = missing(model, &cured, at).into_iter().map(|(arm, why)| KeyFigure {
        arm: arm.to_owned(),
        factors: vec![("–".to_owned(), "")],
        device: format!("after its cure, {device}"),
        cost: missing_words(model, why, at),
        is_difference: false,
    });
    cured.iter().map(figure).chain(without).collect()
}

/// Keeps only the cures of the last checkpoint: an earlier figure must not replace a missing one.
/// Sorts by gain, the largest first. Returns the checkpoint; `None` without cures.
fn keep_last(cured: &mut Vec<Cured<'_>>) -> Option<u64> {
    let at = cured.iter().map(|arm| arm.row.key.pulls).max()?;
    cured.retain(|arm| arm.row.key.pulls == at);
    cured.sort_by(|a, b| b.most_gain().total_cmp(&a.most_gain()));
    Some(at)
}

fn is_invalid(model: &Model, arm: &str, pulls: u64) -> bool {
    model.invalid.keys().any(|(name, _, at)| name == arm && *at == pulls)
}

/// Arms with cures that have no gain at this checkpoint, each with [`NO_RESULT`] or
/// [`NOT_MEASURED`].
fn missing<'m>(model: &'m Model, cured: &[Cured<'_>], at: u64) -> Vec<(&'m str, &'static str)> {
    let has_cure = |arm: &str| {
        model.results.cures.iter().any(|row| row.key.arm == arm)
            || model.invalid.keys().any(|(name, role, _)| name == arm && role.is_cured())
    };
    let is_shown = |arm: &str| cured.iter().any(|shown| shown.name == arm);
    let names = model.arms.iter().map(|(arm, _)| arm.as_str());
    let why = |arm: &str| if is_invalid(model, arm, at) { NO_RESULT } else { NOT_MEASURED };
    names.filter(|arm| has_cure(arm) && !is_shown(arm)).map(|arm| (arm, why(arm))).collect()
}

/// `no valid result at 1,000 pulls`.
fn missing_words(model: &Model, why: &str, at: u64) -> String {
    format!("{why} at {} {}", count(at), model.unit)
}

/// The largest gain of the last cure of each arm that has one.
pub(crate) fn most_gains(model: &Model) -> BTreeMap<String, f64> {
    let Some((costs, _, is_measured)) = costs(model) else { return BTreeMap::new() };
    last_cures(model, &costs, is_measured).iter().map(|cured| (cured.name.to_owned(), cured.most_gain())).collect()
}

/// The costs of reading, the device in words, and whether they were measured with noise. `None`
/// without cures and without costs.
fn costs(model: &Model) -> Option<(Lines, String, bool)> {
    let results = model.results;
    if results.cures.is_empty() {
        return None;
    }
    if let Some((device, ..)) = model.virtual_disk() {
        let reads = read_seconds(results);
        let all = lines(reads.iter().flat_map(|(key, all)| all.iter().map(|seconds| (*key, *seconds))));
        return Some((all, on_device(device), false));
    }
    let of_model = |device: &str| {
        let rows = results.modelled.iter().filter(|row| row.device == device && row.method == "extents");
        lines(rows.map(|row| (&row.key, row.seconds)))
    };
    let modelled = model.main_device().map(|(device, ..)| (of_model(device), on_device(device), false));
    let has_cured = |lines: &Lines| lines.keys().any(|(_, role)| role.is_cured());
    modelled.filter(|(lines, ..)| has_cured(lines)).or_else(|| {
        let wall = lines(results.counted_grep().map(|row| (&row.key, row.wall_seconds)));
        has_cured(&wall).then(|| (wall, "this machine's device (measured)".to_owned(), true))
    })
}

/// The last cure of each arm that has valid costs before and after it.
fn last_cures<'m>(model: &'m Model, costs: &Lines, is_measured: bool) -> Vec<Cured<'m>> {
    let is_valid = |key: &CellKey| model.results.cells.iter().any(|cell| cell.valid && cell.key == *key);
    let mut last: BTreeMap<&str, &CureRow> = BTreeMap::new();
    for row in model.results.cures.iter().filter(|row| is_valid(&row.key)) {
        let known = last.entry(&row.key.arm).or_insert(row);
        if row.key.pulls > known.key.pulls {
            *known = row;
        }
    }
    let of_arm = |(arm, row): (&&'m str, &&'m CureRow)| {
        let cost = |role: Role| costs.get(&((*arm).to_owned(), role))?.get(&row.key.pulls);
        let volumes =
            || [Role::Full, Role::Empty].into_iter().filter_map(|role| Some((role, cost(role)?, cost(role.cured())?)));
        let gains: Vec<(Role, Spread)> =
            volumes().filter_map(|(role, before, after)| Some((role, before.over(after)?))).collect();
        let fresh = cost(Role::Unaged);
        let to_fresh: Vec<Spread> = volumes().filter_map(|(.., after)| after.over(fresh?)).collect();
        let before: Vec<Spread> = volumes().filter_map(|(_, before, _)| before.over(fresh?)).collect();
        let noise = model.noise.get(*arm).copied();
        let is_difference = |ratio: &Spread, limit: Alike| match is_measured {
            true => Finding::of(ratio, noise) == Finding::Difference,
            false => limit.is_difference(ratio),
        };
        let is_gain = |(_, gain): &&(Role, Spread)| is_difference(gain, Alike::aged(model.settles));
        let differences: Vec<f64> = gains.iter().filter(is_gain).map(|(_, gain)| gain.median).collect();
        let effect = match differences.as_slice() {
            [] => Effect::None,
            some if some.iter().any(|gain| *gain > 1.0) => Effect::Faster,
            _ => Effect::Slower,
        };
        let differs = |ratio: &Spread| is_difference(ratio, Alike::fresh(model.settles));
        let beside_fresh = match to_fresh.as_slice() {
            some if some.iter().any(|ratio| ratio.median > 1.0 && differs(ratio)) => Effect::Slower,
            all if all.iter().all(|ratio| ratio.median < 1.0 && differs(ratio)) => Effect::Faster,
            _ => Effect::None,
        };
        let had_aged = before.is_empty() || before.iter().any(|ratio| ratio.median > 1.0 && differs(ratio));
        (!gains.is_empty()).then_some(Cured { row, name: arm, gains, before, had_aged, to_fresh, effect, beside_fresh })
    };
    last.iter().filter_map(of_arm).collect()
}

impl Cured<'_> {
    fn most_gain(&self) -> f64 {
        self.gains.iter().map(|(_, gain)| gain.median).fold(0.0, f64::max)
    }

    /// `9.3×`, or `4.0× (nearly full) and 9.3× (roomy)`.
    fn gain(&self) -> String {
        match self.factors().as_slice() {
            [(one, "")] => one.clone(),
            some => list(&some.iter().map(|(factor, words)| format!("{factor} ({words})")).collect::<Vec<_>>()),
        }
    }

    /// The factor, faster or slower, of each volume that the cure changes in the direction of its
    /// effect. One factor without a name if all are equal. Only for a cure with an effect.
    fn factors(&self) -> Vec<(String, &'static str)> {
        let of = |gain: f64| if self.effect == Effect::Slower { 1.0 / gain } else { gain };
        let shown = self.gains.iter().filter(|(_, gain)| of(gain.median) > 1.0);
        let factors: Vec<_> =
            shown.map(|(role, gain)| (format!("{}×", two_digits(of(gain.median))), words(*role))).collect();
        let is_whole = factors.len() == self.gains.len() && factors.iter().all(|(text, _)| *text == factors[0].0);
        if is_whole { vec![(factors[0].0.clone(), "")] } else { factors }
    }

    /// The factors of the tile, or words if the cure has no effect.
    fn key_factors(&self) -> Vec<(String, &'static str)> {
        match self.effect {
            Effect::None => vec![("no difference".to_owned(), "")],
            _ => self.factors(),
        }
    }

    fn key_words(&self) -> &'static str {
        match self.effect {
            Effect::Faster => "faster after",
            Effect::Slower => "slower after",
            Effect::None => "after",
        }
    }
}

/// `the volumes had no measurable age before the cure (0.92 to 0.98× the cost of a fresh copy)`;
/// `None` if one had.
fn unaged_words(cured: &[Cured<'_>]) -> Option<String> {
    if cured.iter().any(|arm| arm.had_aged) {
        return None;
    }
    let ratios = || cured.iter().flat_map(|arm| &arm.before).map(|ratio| ratio.median);
    let least = two_digits(ratios().fold(f64::INFINITY, f64::min));
    let most = two_digits(ratios().fold(0.0, f64::max));
    let range = if least == most { format!("{most}×") } else { format!("{least} to {most}×") };
    Some(format!("the volumes had no measurable age before the cure ({range} the cost of a fresh copy)"))
}

/// `After 400 pulls, a cure by senesce makes ext4-senesce 9.3× faster to read on a modelled HDD
/// 7.2K and xfs-senesce 4.0×; e4defrag (ext4-e4defrag) makes no measurable difference.`
fn gain_sentence(model: &Model, cured: &[Cured<'_>], at: u64, device: &str) -> String {
    let when = format!("After {} {}, ", count(at), model.unit);
    let mut tools: Vec<&str> = Vec::new();
    for arm in cured {
        if !tools.contains(&arm.row.tool.as_str()) {
            tools.push(&arm.row.tool);
        }
    }
    let (mut parts, mut vain): (Vec<String>, Vec<String>) = Default::default();
    for tool in &tools {
        let of = |effect: Effect| cured.iter().filter(move |arm| arm.row.tool == *tool && arm.effect == effect);
        let faster: Vec<&Cured<'_>> = of(Effect::Faster).collect();
        if let Some((first, rest)) = faster.split_first() {
            let on = if parts.is_empty() { format!(" on {device}") } else { String::new() };
            let lead = format!("{} {} faster to read{on}", first.name, first.gain());
            let rest = rest.iter().map(|arm| format!("{} {}", arm.name, arm.gain()));
            parts.push(format!("a cure by {tool} makes {}", list(&[lead].into_iter().chain(rest).collect::<Vec<_>>())));
        }
        let slower: Vec<String> = of(Effect::Slower).map(|arm| format!("{} {}", arm.name, arm.gain())).collect();
        if !slower.is_empty() {
            parts.push(format!("one by {tool} makes {} slower", list(&slower)));
        }
        let vain_arms: Vec<String> = of(Effect::None).map(|arm| arm.name.to_owned()).collect();
        if !vain_arms.is_empty() {
            vain.push(format!("{tool} ({})", list(&vain_arms)));
        }
    }
    if parts.is_empty() {
        parts.push(format!("no cure makes a measurable difference to reading on {device}: {}", list(&vain)));
    } else if !vain.is_empty() {
        let make = if vain.len() == 1 { "makes" } else { "make" };
        parts.push(format!("{} {make} no measurable difference", list(&vain)));
    }
    let missing = missing(model, cured, at);
    for why in [NO_RESULT, NOT_MEASURED] {
        let of_reason = missing.iter().filter(|(_, reason)| *reason == why);
        let names: Vec<String> = of_reason.map(|(arm, _)| (*arm).to_owned()).collect();
        if !names.is_empty() {
            parts.push(format!("{}: {}", missing_words(model, why, at), list(&names)));
        }
    }
    let unaged = unaged_words(cured).map(|words| format!("{words}; ")).unwrap_or_default();
    format!("{when}{unaged}{}.", parts.join("; "))
}

/// `Then ext4 is 8.1× faster to read than a fresh copy, btrfs is nearly as fast as one (1.3×), and
/// xfs takes 1.8× as long as one.`
fn fresh_sentence(cured: &[Cured<'_>]) -> Option<String> {
    let mut known =
        cured.iter().filter(|arm| arm.effect == Effect::Faster && !arm.to_fresh.is_empty()).collect::<Vec<_>>();
    let worst = |arm: &Cured<'_>| arm.to_fresh.iter().map(|ratio| ratio.median).fold(0.0, f64::max);
    known.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
    let clause = |arm: &&Cured<'_>| {
        let (name, ratio) = (arm.name, worst(arm));
        match arm.beside_fresh {
            Effect::Faster => format!("{name} is {}× faster to read than a fresh copy", two_digits(1.0 / ratio)),
            Effect::None if Alike::near_one().contains(ratio) => format!("{name} is as fast to read as a fresh copy"),
            Effect::None => {
                format!("{name} has no measurable difference from a fresh copy ({}×)", two_digits(ratio))
            }
            Effect::Slower if ratio <= NEARLY => {
                format!("{name} is nearly as fast to read as a fresh copy ({}×)", two_digits(ratio))
            }
            Effect::Slower => format!("{name} takes {}× as long to read as a fresh copy", two_digits(ratio)),
        }
    };
    let clauses: Vec<String> = known.iter().map(clause).collect();
    // Without a reason, "faster than a fresh copy" reads as an error.
    let why = match known.iter().any(|arm| arm.beside_fresh == Effect::Faster) {
        true => {
            " This is possible: a cure can store files in the order of reading, but a fresh copy does not always have \
             this order."
        }
        false => "",
    };
    (!clauses.is_empty()).then(|| format!("After the cure, {}.{why}", list(&clauses)))
}
