//! The headline: the cost of aging, the largest effect first, and its certainty.
//!
//! The gain of cures is first, if the run has any. The modelled slowdown follows: it is computed
//! from the places of blocks, and has no noise.
//! Measured ratios are next. They count only if they exceed chance and the noise band of the run
//! (see [`crate::noise`]).
//!
//! All figures of a plan are of one checkpoint, see [`lead_checkpoints`].

mod effect;
mod order;

use senesce_store::Role;

use self::effect::{before_cure, effect, name, other_checkpoint};
use self::order::order_by_cost;
use crate::arm_slowdowns::{Checkpoints, Missing, OfArm, Slowdowns};
use crate::cure_headline::{cure_headline, cure_key_figures};
use crate::devices::{TRACED, VIRTUAL_TIME, short};
use crate::format::{count, figure, list, number};
use crate::model::{Lines, Model, Spread, words};
use crate::noise::{Alike, Finding, Noise};
use crate::own_cost::{own_changes, own_costs};

/// The sentences that the report and the summary begin with; the first is the headline.
pub(crate) fn headline(model: &Model) -> Vec<String> {
    let mut sentences = cure_headline(model);
    let at = lead_checkpoints(model);
    let lead = lead_device(model, &at);
    let grep_cost = model.grep_cost();
    let wall = Slowdowns::at(model, &grep_cost, &model.slowdown, &at);
    // The words of the lead about missing volumes. Later sentences do not repeat them.
    let mut known = Vec::new();
    match lead {
        Some((device, costs, slowdown)) => {
            let slowdowns = Slowdowns::at(model, costs, slowdown, &at);
            if !slowdowns.arms.is_empty() {
                let (all, limit) = ((costs, slowdown, &model.plans), |_: &str| Alike::aged(model.settles));
                let own = own_changes(&slowdowns.slower(model), all, limit);
                sentences.push(lead_of(effect(model, &slowdowns, &on_device(device)), own));
                sentences.extend(plans_of(model, &at));
                if model.results.cures.is_empty() {
                    let limit = |_: &str, _: &str| Alike::aged(model.settles);
                    sentences.extend(order_by_cost(model, &slowdowns, costs, limit));
                    sentences.extend(absolute_costs(model, &at, costs));
                }
                sentences.extend(own_costs(&slowdowns.worst(model), all, |_| Alike::fresh(model.settles)));
                sentences.push(basis(model, device, &slowdowns));
                known = slowdowns.missing_words(model);
                sentences.extend(other_devices(model, (device, &slowdowns), &at, &known));
            }
        }
        None => {
            let arms = wall.arms.iter().filter_map(|arm| arm.differences(model)).collect();
            let found = Slowdowns { arms, ..Slowdowns::at(model, &grep_cost, &model.slowdown, &at) };
            if !found.arms.is_empty() {
                let limit =
                    |arm: &str| model.noise.get(arm).map_or(Alike::fresh(false), |noise| Alike::measured(*noise));
                let all = (&grep_cost, &model.slowdown, &model.plans);
                let own = own_changes(&found.slower(model), all, limit);
                sentences.push(lead_of(effect(model, &found, "this machine's device (measured)"), own));
                sentences.extend(plans_of(model, &at));
                if model.results.cures.is_empty() {
                    let of_both = |a: &str, b: &str| limit(a).and(limit(b));
                    sentences.extend(order_by_cost(model, &found, &grep_cost, of_both));
                }
                sentences.extend(own_costs(&found.worst(model), all, limit));
                known = found.missing_words(model);
            }
        }
    }
    sentences.extend(measured(model, &wall, &known));
    sentences.extend(model.arms.iter().filter_map(|(arm, _)| floor(model, arm, at.of_arm(arm))));
    let has_pair = |arm: &str| model.slowdown.keys().any(|(name, _)| name == arm);
    let has_model = |arm: &str| model.modelled_slowdown.values().any(|lines| lines.keys().any(|(name, _)| name == arm));
    for (arm, _) in model.arms.iter().filter(|(arm, _)| !has_pair(arm) && !has_model(arm)) {
        sentences.push(format!("{arm}: no valid pair of an aged and an unaged volume, so its slowdown is unknown."));
    }
    sentences
}

/// The first device with a slowdown, else the main device: the valid figures of a device must not
/// be hidden because all those of the main device are invalid.
fn lead_device<'m>(model: &'m Model, at: &Checkpoints) -> Option<(&'m str, &'m Lines, &'m Lines)> {
    let figures = |device: &'m str| Some((device, model.modelled.get(device)?, model.modelled_slowdown.get(device)?));
    let has_any =
        |(_, costs, slowdown): &(&str, &Lines, &Lines)| !Slowdowns::at(model, costs, slowdown, at).arms.is_empty();
    let mut devices = model.devices().into_iter().filter(|device| !device.ends_with(TRACED)).filter_map(figures);
    devices.find(has_any).or_else(|| model.main_device())
}

/// The checkpoints of the headline, of all sentences after it and of all key figures. For each
/// plan, it is the last one that has a slowdown on the first device of its arms. Without a device,
/// it is the last one that has a measured slowdown.
fn lead_checkpoints<'m>(model: &'m Model) -> Checkpoints<'m> {
    let devices = model.devices().into_iter().filter_map(|device| model.modelled_slowdown.get(device));
    Checkpoints::of(model, &devices.chain([&model.slowdown]).collect::<Vec<_>>())
}

/// Where each plan is compared. `None` if all arms have one checkpoint.
fn plans_of(model: &Model, at: &Checkpoints) -> Option<String> {
    let of = |(at, plan): &(u64, String)| format!("{plan} at {} {}", count(*at), model.unit);
    at.common().is_none().then(|| {
        let plans: Vec<String> = at.of_plans(model).iter().map(of).collect();
        format!(
            "The arms are compared at different checkpoints, each at the last one of its plan with a slowdown: {}.",
            list(&plans)
        )
    })
}

/// The effect, and how the volumes changed from their own first cost.
fn lead_of(effect: String, own: Option<String>) -> String {
    [Some(effect), own].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A figure that the page shows in large type: how many times a fresh copy reading costs, or how
/// many times a cure makes it faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyFigure {
    pub arm: String,
    /// `6.7×` with `nearly full`, then `7.0×` with `roomy`. A factor of all volumes has no words.
    pub factors: Vec<(String, &'static str)>,
    /// The device, and whether the factor is modelled or measured.
    pub device: String,
    /// The cost of the volumes, and of their fresh copy; empty if it is not known.
    pub cost: String,
    /// Whether it is more than chance: slower than a fresh copy, or another cost after a cure.
    pub is_difference: bool,
}

/// At most three key figures, the largest effect first.
///
/// Cures come alone, because the headline is about them. Otherwise the arms on the main device come
/// first. If the run has fewer than three arms, its other devices follow. Without modelled figures,
/// only measured differences count.
pub(crate) fn key_figures(model: &Model) -> Vec<KeyFigure> {
    const MOST: usize = 3;
    let mut cured = cure_key_figures(model);
    if !cured.is_empty() {
        cured.truncate(MOST);
        return cured;
    }
    let at = lead_checkpoints(model);
    if model.main_device().is_none() {
        let costs = model.grep_cost();
        let wall = Slowdowns::at(model, &costs, &model.slowdown, &at);
        let arms = wall.arms.iter().filter_map(|arm| arm.differences(model)).collect();
        let wall = Slowdowns { arms, ..wall };
        let mut figures = of_device(model, &wall, "this machine, measured", (&costs, &at));
        figures.truncate(MOST);
        return figures;
    }
    let mut figures = Vec::new();
    for device in model.devices().into_iter().filter(|device| !device.ends_with(TRACED)) {
        let Some(slowdowns) = model.modelled_slowdown.get(device) else { continue };
        let name = format!("{}, ", short(device).trim_end_matches(VIRTUAL_TIME));
        let how = if device.ends_with(VIRTUAL_TIME) { "virtual time" } else { "modelled" };
        let costs = &model.modelled[device];
        let slowdowns = Slowdowns::at(model, costs, slowdowns, &at);
        let mut found = of_device(model, &slowdowns, &format!("{name}{how}"), (costs, &at));
        // An arm that already has a figure for this device, by another method, has no second one.
        let is_of = |figure: &KeyFigure, arm: &str| figure.arm == arm && figure.device.starts_with(&name);
        found.retain(|new| !figures.iter().any(|figure| is_of(figure, &new.arm)));
        figures.extend(found);
    }
    figures.truncate(MOST);
    figures
}

/// The key figures of one device, then the arms without a result.
fn of_device(
    model: &Model,
    slowdowns: &Slowdowns,
    device: &str,
    (costs, at): (&Lines, &Checkpoints),
) -> Vec<KeyFigure> {
    const NONE: &str = "–";
    let dashes = |missing: &Missing| -> Vec<(String, &'static str)> {
        missing.volumes.iter().map(|(role, _)| (NONE.to_owned(), words(*role))).collect()
    };
    let when = |pulls: u64| match at.common() {
        Some(_) => device.to_owned(),
        None => format!("{device}, after {} {}", count(pulls), model.unit),
    };
    let missing_of = |arm: &str| slowdowns.missing.iter().find(|missing| missing.arm == arm);
    let shown = slowdowns.arms.iter().map(|arm| {
        let (mut factors, mut notes) = (arm.named_factors(), vec![arm.costs(costs)]);
        if let Some(missing) = missing_of(arm.arm) {
            factors.extend(dashes(missing));
            notes.extend(missing.notes());
        }
        notes.retain(|note| !note.is_empty());
        KeyFigure {
            arm: arm.arm.to_owned(),
            factors,
            device: when(arm.pulls),
            cost: notes.join("; "),
            is_difference: arm.is_slower(model),
        }
    });
    let without = slowdowns.missing.iter().filter(|missing| missing.is_whole).map(|missing| {
        let (factors, reasons) = match missing.reason_of_all() {
            Some(why) => {
                (vec![(NONE.to_owned(), "")], vec![format!("{why} at {} {}", count(missing.pulls), model.unit)])
            }
            None => (dashes(missing), missing.notes()),
        };
        // A valid cost does not depend on the fresh copy.
        let cost = |(role, _): &(Role, &str)| {
            let cost = costs.get(&(missing.arm.to_owned(), *role))?.get(&missing.pulls)?;
            Some(format!("{} s/GiB {}", figure(cost.median), words(*role)))
        };
        let notes: Vec<String> = missing.volumes.iter().filter_map(cost).chain(reasons).collect();
        let (arm, cost) = (missing.arm.to_owned(), notes.join("; "));
        KeyFigure { arm, factors, device: when(missing.pulls), cost, is_difference: false }
    });
    shown.chain(without).collect()
}

/// Why the charts of measured reading say little; none if they show a difference, or if the run has
/// nothing else.
pub(crate) fn why_folded(model: &Model) -> Option<&'static str> {
    model.main_device()?;
    let wall = Slowdowns::at(model, &model.grep_cost(), &model.slowdown, &lead_checkpoints(model));
    if model.is_wall_of_memory() {
        return Some("These are wall times of memory, not of the disk");
    }
    let mut counts = wall.arms.iter().flat_map(|arm| &arm.volumes).map(|(_, ratio)| ratio.count).peekable();
    counts.peek()?;
    if counts.all(|count| count <= 1) {
        return Some("Every cell was measured once (n = 1)");
    }
    let is_noise = wall.arms.iter().all(|arm| arm.differences(model).is_none());
    is_noise.then_some("Nothing measured is beyond the noise")
}

/// The costs of the aged volumes, the cheapest arm first, which can differ from the order of the
/// slowdowns. Then the bytes that all arms write, if an arm writes much less than the cheapest one.
/// `None` for a single arm.
fn absolute_costs(model: &Model, at: &Checkpoints, costs: &Lines) -> Option<String> {
    /// Another arm writes much less if the cheapest arm writes more than this times its bytes.
    const MUCH: f64 = 2.0;
    let of = |arm: &str| -> Vec<(Role, f64)> {
        let cost = |role| Some((role, costs.get(&(arm.to_owned(), role))?.get(&at.of_arm(arm))?.median));
        [Role::Full, Role::Empty].into_iter().filter_map(cost).collect()
    };
    let names = model.arms.iter().map(|(arm, _)| arm.as_str());
    let mut arms: Vec<_> = names.map(|arm| (arm, of(arm))).filter(|(_, own)| !own.is_empty()).collect();
    let most = |own: &[(Role, f64)]| own.iter().map(|(_, cost)| *cost).fold(0.0, f64::max);
    arms.sort_by(|a, b| most(&a.1).total_cmp(&most(&b.1)));
    let [(cheapest, first), _, ..] = arms.as_slice() else { return None };
    let roles = |own: &[(Role, f64)]| own.iter().map(|(role, _)| *role).collect::<Vec<_>>();
    let text = |(arm, own): &(&str, Vec<(Role, f64)>)| {
        let is_known = arm != cheapest && roles(own) == roles(first);
        let cost = |(role, cost): &(Role, f64)| match is_known {
            true => figure(*cost),
            false => format!("{} ({})", figure(*cost), words(*role)),
        };
        format!("{arm} {}", list(&own.iter().map(cost).collect::<Vec<_>>()))
    };
    let all: Vec<String> = arms.iter().map(text).collect();
    let role = first.first().map(|(role, _)| *role)?;
    let writes = |arm: &str| model.write_amplification_of_all.get(&(arm.to_owned(), role)).copied();
    let mut fewest: Vec<(&str, f64)> = arms.iter().filter_map(|(arm, _)| Some((*arm, writes(arm)?))).collect();
    fewest.sort_by(|a, b| a.1.total_cmp(&b.1));
    let price = writes(cheapest).zip(fewest.first()).filter(|(own, (_, least))| *own > MUCH * least);
    let price = price.map_or_else(String::new, |(own, _)| {
        let others = fewest.iter().filter(|(arm, _)| arm != cheapest);
        let others: Vec<String> = others.map(|(arm, writes)| format!("{arm} {}", figure(*writes))).collect();
        format!(
            " {cheapest} ({}) writes {} bytes for each byte of content, {}.",
            words(role),
            figure(own),
            list(&others)
        )
    });
    Some(format!("Seconds to read a GiB of the aged tree: {}.{price}", all.join("; ")))
}

/// The method of the modelled figures, and how the layout of the arm that ages most differs.
fn basis(model: &Model, device: &str, slowdowns: &Slowdowns) -> String {
    let how = match (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED)) {
        (true, _) => "Modelled from the requests of the grep test: the volumes were such disks, in virtual time",
        (_, true) => "Modelled from the traced requests of one grep test",
        _ => "Modelled from where the blocks are, not measured",
    };
    let is_single = |arm: &OfArm| arm.volumes.iter().all(|(_, ratio)| ratio.count == 1);
    let once = match device.ends_with(VIRTUAL_TIME) && slowdowns.arms.iter().all(is_single) {
        true => " Each volume was read once, so no interval is known.",
        false => "",
    };
    let Some(most) = slowdowns.arms.first().filter(|arm| arm.is_slower(model)) else { return format!("{how}.{once}") };
    let share = |role: Role| {
        let line = model.adjacent_files_share.get(&(most.arm.to_owned(), role))?;
        Some(line.get(&most.pulls)?.median * 100.0)
    };
    let shares = |role: Role| Some((words(role), share(role)?, share(Role::Unaged)?));
    match most.worst().and_then(shares) {
        Some((volume, aged, fresh)) if aged + 5.0 < fresh => format!(
            "{how} ({} ({volume}): two files that follow each other in a directory are adjacent in {aged:.0}% of cases; in \
             a fresh copy in {fresh:.0}%).{once}",
            most.arm
        ),
        _ => format!("{how}.{once}"),
    }
}

/// The same effect on the other devices, one sentence each. An arm that already has a figure for a
/// device, by another method, has no second one. `lead` are the figures of the main device;
/// `known`: see [`further_missing`].
fn other_devices(
    model: &Model,
    (of_lead, lead): (&str, &Slowdowns),
    at: &Checkpoints,
    known: &[String],
) -> Vec<String> {
    let mut shown: Vec<(String, String)> = Vec::new();
    let mut sentences = Vec::new();
    let of_lead_arms = lead.arms.iter().map(|arm| arm.arm).chain(lead.missing.iter().map(|missing| missing.arm));
    shown.extend(of_lead_arms.map(|arm| (on_device(of_lead), arm.to_owned())));
    for device in model.devices().into_iter().filter(|device| *device != of_lead && !device.ends_with(TRACED)) {
        let on = on_device(device);
        let Some(slowdowns) = model.modelled_slowdown.get(device) else { continue };
        let mut slowdowns = Slowdowns::at(model, &model.modelled[device], slowdowns, at);
        let is_second = shown.iter().any(|(known, _)| *known == on);
        let is_new = |arm: &str| !shown.contains(&(on.clone(), arm.to_owned()));
        slowdowns.arms.retain(|arm| is_new(arm.arm));
        slowdowns.missing.retain(|missing| is_new(missing.arm));
        shown.extend(slowdowns.arms.iter().map(|arm| (on.clone(), arm.arm.to_owned())));
        let in_words =
            |arm: &OfArm| format!("{} {}", name(arm, other_checkpoint(model, arm, at.common())), arm.factors(false));
        let arms: Vec<_> = slowdowns.arms.iter().map(in_words).collect();
        let arms = (!arms.is_empty()).then(|| list(&arms));
        let parts: Vec<String> = arms.into_iter().chain(further_missing(model, &slowdowns, known)).collect();
        let cure = before_cure(model, &slowdowns);
        if !parts.is_empty() {
            // The sentence about the other method has the name of the device alone.
            let method = if is_second { ", from the places of blocks" } else { "" };
            sentences.push(format!("On {on}{method}{cure}: {}.", parts.join("; ")));
        }
    }
    sentences
}

/// The missing volumes as in [`Slowdowns::missing_words`], without those that the lead names with
/// the same words.
fn further_missing(model: &Model, slowdowns: &Slowdowns, known: &[String]) -> Vec<String> {
    let mut missing = slowdowns.missing_words(model);
    missing.retain(|words| !known.contains(words));
    missing
}

/// The measured ratios: the differences, the largest first, and then the ratios within the noise.
/// `known`: see [`further_missing`].
fn measured(model: &Model, wall: &Slowdowns, known: &[String]) -> Option<String> {
    if model.is_wall_of_memory() {
        return Some("The wall times of this run are those of memory, and say nothing about the disk.".to_owned());
    }
    if wall.arms.is_empty() && wall.missing.is_empty() {
        let has_model = model.main_device().is_some();
        return has_model.then(|| "No measurement of this run can be compared with a fresh copy.".to_owned());
    }
    let missing = further_missing(model, wall, known).join("; ");
    if wall.arms.is_empty() {
        return (!missing.is_empty()).then(|| format!("On this machine, {missing}."));
    }
    let band_of = |arm: &OfArm| model.noise.get(arm.arm).copied();
    let is_too_wide = |arm: &OfArm| band_of(arm).is_some_and(Noise::is_too_wide);
    let of = |wanted: Finding| -> Vec<String> {
        let arm = |arm: &OfArm| {
            let band = band_of(arm);
            // A band that hides most effects has no ratios: they would be read as figures.
            let is_hidden = wanted == Finding::Noise && is_too_wide(arm);
            let is_one = |(_, ratio): &&(Role, &Spread)| !is_hidden && Finding::of(ratio, band) == wanted;
            let volumes: Vec<_> = arm.volumes.iter().filter(is_one).copied().collect();
            (!volumes.is_empty()).then(|| format!("{} {}", arm.arm, volumes_text(model, &volumes, band)))
        };
        wall.arms.iter().filter_map(arm).collect()
    };
    let noisy = wall.arms.iter().filter(|arm| {
        let is_noise = |(_, ratio): &(Role, &Spread)| Finding::of(ratio, band_of(arm)) == Finding::Noise;
        is_too_wide(arm) && arm.volumes.iter().any(is_noise)
    });
    let of_arm = |(at, arm): (usize, &OfArm)| {
        let (vary, factor) = (if at == 0 { " vary" } else { "" }, number(band_of(arm)?.factor()));
        Some(format!("of {}{vary} {factor}×", arm.arm))
    };
    let noisy: Vec<String> = noisy.enumerate().filter_map(of_arm).collect();
    let too_noisy = if noisy.is_empty() { Vec::new() } else { vec![format!("fresh copies {}", list(&noisy))] };
    let parts = [
        ("times a fresh copy", of(Finding::Difference)),
        ("no measurable difference", of(Finding::Noise)),
        ("too few measurements to say anything", of(Finding::Unknown)),
        ("too noisy to judge", too_noisy),
    ];
    let said: Vec<_> = parts
        .iter()
        .filter(|(_, arms)| !arms.is_empty())
        .map(|(what, arms)| format!("{what}: {}", arms.join("; ")))
        .chain((!missing.is_empty()).then_some(missing))
        .collect();
    Some(format!("Measured on this machine, {}.", said.join(". And ")))
}

/// `nearly full 1.30×, roomy 1.19× (n = 5; fresh copies vary 1.1×)`.
fn volumes_text(model: &Model, volumes: &[(Role, &Spread)], noise: Option<Noise>) -> String {
    let of = |(role, ratio): &(Role, &Spread)| format!("{} {}×", words(*role), number(ratio.median));
    let ratios: Vec<_> = volumes.iter().map(of).collect();
    let counts = || volumes.iter().map(|(_, ratio)| ratio.count);
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let n = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let n = match model.planned_repetitions() {
        Some(planned) if most > planned => match least == most {
            true => format!("{n}: {planned}, and {} repeated", most - planned),
            false => format!("{n}: {planned}, and up to {} repeated", most - planned),
        },
        _ => n,
    };
    let noise = match noise {
        Some(noise) => format!("fresh copies vary {}×", number(noise.factor())),
        None => "the noise is unknown".to_owned(),
    };
    format!("{} (n = {n}; {noise})", ratios.join(", "))
}

/// How much of the wall time FUSE itself takes, as a sentence; none for file systems of the kernel.
fn floor(model: &Model, arm: &str, at: u64) -> Option<String> {
    let floor = number(model.floor_at(arm, at)?);
    Some(format!(
        "FUSE alone takes {floor} s/GiB of {arm}'s wall time: reading the same tree from memory through the same adapter \
         takes that long (the FUSE floor)."
    ))
}

/// A device as the object of a sentence.
pub(crate) fn on_device(device: &str) -> String {
    let name = short(device).trim_end_matches(VIRTUAL_TIME).trim_end_matches(TRACED);
    format!("a modelled {name}")
}

#[cfg(test)]
mod tests;
