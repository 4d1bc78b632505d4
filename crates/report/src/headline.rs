//! The headline: the cost of aging, the largest effect first, and its certainty.
//!
//! The gain of cures is first, if the run has any. The modelled slowdown follows: it is computed
//! from the places of blocks, and has no noise.
//! Measured ratios are next. They count only if they exceed chance and the noise band of the run
//! (see [`crate::noise`]).

use senesce_store::Role;

use crate::cure_headline::{cure_headline, cure_key_figures};
use crate::devices::{TRACED, VIRTUAL_TIME, short};
use crate::format::{count, list, number, two_digits};
use crate::model::{Lines, Model, Spread, words};
use crate::noise::{Alike, Finding, Noise};
use crate::own_cost::own_costs;

/// The sentences that the report and the summary begin with; the first is the headline.
pub(crate) fn headline(model: &Model) -> Vec<String> {
    let lead = model.main_device();
    let mut sentences = cure_headline(model);
    let wall = Slowdowns::of(model, &model.slowdown);
    match lead {
        Some((device, costs, slowdown)) => {
            let slowdowns = Slowdowns::of(model, slowdown);
            if !slowdowns.0.is_empty() {
                sentences.push(effect(model, &slowdowns, &on_device(device)));
                sentences.extend(own_costs(&slowdowns.worst(model), costs, slowdown, |_| Alike::fresh(model.settles)));
                sentences.push(basis(model, device, &slowdowns));
                sentences.extend(other_devices(model, device));
            }
        }
        None => {
            let found = Slowdowns(wall.0.iter().filter_map(|arm| arm.differences(model)).collect());
            if !found.0.is_empty() {
                sentences.push(effect(model, &found, "this machine's device (measured)"));
                let limit =
                    |arm: &str| model.noise.get(arm).map_or(Alike::fresh(false), |noise| Alike::measured(*noise));
                sentences.extend(own_costs(&found.worst(model), &model.grep_cost(), &model.slowdown, limit));
            }
        }
    }
    sentences.extend(measured(model, &wall));
    sentences.extend(model.arms.iter().filter_map(|(arm, _)| floor(model, arm)));
    let has_pair = |arm: &str| model.slowdown.keys().any(|(name, _)| name == arm);
    let has_model = |arm: &str| lead.is_some_and(|(_, _, lines)| lines.keys().any(|(name, _)| name == arm));
    for (arm, _) in model.arms.iter().filter(|(arm, _)| !has_pair(arm) && !has_model(arm)) {
        sentences.push(format!("{arm}: no valid pair of an aged and an unaged volume, so its slowdown is unknown."));
    }
    sentences
}

/// A figure that the page shows in large type: how many times a fresh copy reading costs, or how
/// many times a cure makes it faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyFigure {
    pub arm: String,
    /// `12×`, or `5.3–7.2×` over the volumes.
    pub factor: String,
    /// The device, and whether the factor is modelled or measured.
    pub device: String,
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
    let figure = |arm: &OfArm, device: &str| KeyFigure {
        arm: arm.arm.to_owned(),
        factor: arm.range(),
        device: device.to_owned(),
        is_difference: arm.is_slower(model),
    };
    if model.main_device().is_none() {
        let wall = Slowdowns::of(model, &model.slowdown);
        let found = wall.0.iter().filter_map(|arm| arm.differences(model));
        return found.take(MOST).map(|arm| figure(&arm, "this machine, measured")).collect();
    }
    let mut figures = Vec::new();
    for device in model.devices().into_iter().filter(|device| !device.ends_with(TRACED)) {
        let Some(slowdowns) = model.modelled_slowdown.get(device) else { continue };
        let name = short(device).trim_end_matches(VIRTUAL_TIME);
        // A device that already has a figure, by another method, has no second one.
        if figures.iter().any(|figure: &KeyFigure| figure.device.starts_with(&format!("{name}, "))) {
            continue;
        }
        let how = if device.ends_with(VIRTUAL_TIME) { "virtual time" } else { "modelled" };
        let slowdowns = Slowdowns::of(model, slowdowns);
        figures.extend(slowdowns.0.iter().map(|arm| figure(arm, &format!("{name}, {how}"))));
    }
    figures.truncate(MOST);
    figures
}

/// Why the charts of measured reading say little; none if they show a difference, or if the run has
/// nothing else.
pub(crate) fn why_folded(model: &Model) -> Option<&'static str> {
    model.main_device()?;
    let wall = Slowdowns::of(model, &model.slowdown);
    if model.is_wall_of_memory() {
        return Some("These are wall times of memory, not of the disk");
    }
    let mut counts = wall.0.iter().flat_map(|arm| &arm.volumes).map(|(_, ratio)| ratio.count).peekable();
    counts.peek()?;
    if counts.all(|count| count <= 1) {
        return Some("Every cell was measured once (n = 1)");
    }
    let is_noise = wall.0.iter().all(|arm| arm.differences(model).is_none());
    is_noise.then_some("Nothing measured is beyond the noise")
}

/// Slowdowns of the aged volumes of one arm at the last checkpoint that has any.
struct OfArm<'m> {
    arm: &'m str,
    pulls: u64,
    volumes: Vec<(Role, &'m Spread)>,
    /// Whether [`Self::differences`] removed all volumes without a difference.
    is_judged: bool,
}

/// Slowdowns of arms, the largest first.
struct Slowdowns<'m>(Vec<OfArm<'m>>);

impl<'m> OfArm<'m> {
    fn of(lines: &'m Lines, arm: &'m str) -> Option<Self> {
        let of_arm = lines.iter().filter(|((name, _), _)| name == arm);
        let pulls = *of_arm.filter_map(|(_, line)| line.last_key_value()).map(|(pulls, _)| pulls).max()?;
        let of = |role| Some((role, lines.get(&(arm.to_owned(), role))?.get(&pulls)?));
        let volumes: Vec<_> = [Role::Full, Role::Empty].into_iter().filter_map(of).collect();
        Some(Self { arm, pulls, volumes, is_judged: false })
    }

    /// The arm with only the volumes whose ratio is a difference; none if there are none.
    fn differences(&self, model: &Model) -> Option<Self> {
        let noise = model.noise.get(self.arm).copied();
        let is_one = |(_, ratio): &&(Role, &'m Spread)| Finding::of(ratio, noise) == Finding::Difference;
        let volumes: Vec<_> = self.volumes.iter().filter(is_one).copied().collect();
        (!volumes.is_empty()).then_some(Self { arm: self.arm, pulls: self.pulls, volumes, is_judged: true })
    }

    fn least(&self) -> f64 {
        self.volumes.iter().map(|(_, ratio)| ratio.median).fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.volumes.iter().map(|(_, ratio)| ratio.median).fold(0.0, f64::max)
    }

    fn worst(&self) -> Option<Role> {
        self.volumes.iter().max_by(|a, b| a.1.median.total_cmp(&b.1.median)).map(|(role, _)| *role)
    }

    /// `12×`, or `5.3–7.2×` over the volumes.
    fn range(&self) -> String {
        let (least, most) = (two_digits(self.least()), two_digits(self.most()));
        if least == most { format!("{most}×") } else { format!("{least}–{most}×") }
    }

    /// Whether reading an aged volume is slower than reading its fresh copy, by more than chance.
    fn is_slower(&self, model: &Model) -> bool {
        self.volumes.iter().any(|(_, ratio)| ratio.median > 1.0 && self.is_difference(model, ratio))
    }

    /// Whether a volume is faster to read than its fresh copy, beyond chance, and no volume is
    /// slower.
    fn is_faster(&self, model: &Model) -> bool {
        !self.is_slower(model) && self.volumes.iter().any(|(_, ratio)| self.is_difference(model, ratio))
    }

    fn is_difference(&self, model: &Model, ratio: &Spread) -> bool {
        self.is_judged || model.is_difference(ratio)
    }
}

impl<'m> Slowdowns<'m> {
    fn of(model: &'m Model, lines: &'m Lines) -> Self {
        let mut arms: Vec<_> = model.arms.iter().filter_map(|(arm, _)| OfArm::of(lines, arm)).collect();
        arms.sort_by(|a, b| b.most().total_cmp(&a.most()));
        Self(arms)
    }

    /// The slowest volume of each arm that is slower than a fresh copy.
    fn worst(&self, model: &Model) -> Vec<(String, Role)> {
        let slower = self.0.iter().filter(|arm| arm.is_slower(model));
        slower.filter_map(|arm| Some((arm.arm.to_owned(), arm.worst()?))).collect()
    }
}

/// `After 1,000 pulls, xfs is 12× slower to read than a fresh copy on a modelled HDD 7.2K, btrfs
/// 5.3–7.2× and f2fs 1.5–1.8×; no measurable difference: ext4 (1.0×).`
///
/// The sentence compares states of one checkpoint. It does not name the cause: see
/// [`crate::own_cost`].
fn effect(model: &Model, slowdowns: &Slowdowns, device: &str) -> String {
    let at = match slowdowns.0.iter().map(|arm| arm.pulls).max() {
        None | Some(0) => "In the first state of the tree".to_owned(),
        Some(pulls) => format!("After {} {}", count(pulls), model.unit),
    };
    let (slower, others): (Vec<&OfArm>, Vec<&OfArm>) = slowdowns.0.iter().partition(|arm| arm.is_slower(model));
    let (faster, alike): (Vec<&OfArm>, Vec<&OfArm>) = others.into_iter().partition(|arm| arm.is_faster(model));
    let named =
        |arms: &[&OfArm]| list(&arms.iter().map(|arm| format!("{} ({})", arm.arm, arm.range())).collect::<Vec<_>>());
    let mut parts = Vec::new();
    if let Some((first, rest)) = slower.split_first() {
        let rest: Vec<_> = rest.iter().map(|arm| format!("{} {}", arm.arm, arm.range())).collect();
        let rest = if rest.is_empty() { String::new() } else { format!(", {}", list(&rest)) };
        parts.push(format!(
            "{at}, {} is {} slower to read than a fresh copy on {device}{rest}",
            first.arm,
            first.range()
        ));
    }
    for (arms, alone, further) in [
        (faster, "faster to read than a fresh copy", "faster than a fresh copy"),
        (alike, "no measurable difference from a fresh copy", "no measurable difference"),
    ] {
        if arms.is_empty() {
            continue;
        }
        let names = named(&arms);
        parts.push(match parts.is_empty() {
            true => format!("{at}, {alone} on {device}: {names}"),
            false => format!("{further}: {names}"),
        });
    }
    parts.join("; ") + "."
}

/// The method of the modelled figures, and how the layout of the arm that ages most differs.
fn basis(model: &Model, device: &str, slowdowns: &Slowdowns) -> String {
    let how = match (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED)) {
        (true, _) => "Modelled from the requests of the grep test: the volumes were such disks, in virtual time",
        (_, true) => "Modelled from the traced requests of one grep test",
        _ => "Modelled from where the blocks are, not measured",
    };
    let Some(most) = slowdowns.0.first().filter(|arm| arm.is_slower(model)) else { return format!("{how}.") };
    let share = |role: Role| {
        let line = model.adjacent_files_share.get(&(most.arm.to_owned(), role))?;
        Some(line.get(&most.pulls)?.median * 100.0)
    };
    match most.worst().and_then(|role| share(role).zip(share(Role::Unaged))) {
        Some((aged, fresh)) if aged + 5.0 < fresh => format!(
            "{how} ({}: two files that follow each other in a directory are adjacent in {aged:.0}% of cases; in a fresh \
             copy in {fresh:.0}%).",
            most.arm
        ),
        _ => format!("{how}."),
    }
}

/// The same effect on the other devices that the plan names, one sentence each. A device that
/// already has a sentence, by another method, has no second one.
fn other_devices(model: &Model, lead: &str) -> Vec<String> {
    let of = |device: &&str| {
        let slowdowns = Slowdowns::of(model, model.modelled_slowdown.get(*device)?);
        let arms: Vec<_> = slowdowns.0.iter().map(|arm| format!("{} {}", arm.arm, arm.range())).collect();
        (!arms.is_empty()).then(|| format!("On {}: {}.", on_device(device), list(&arms)))
    };
    let devices = model.devices();
    let predicted = devices.iter().filter(|device| on_device(device) != on_device(lead) && !device.ends_with(TRACED));
    predicted.filter_map(of).collect()
}

/// The measured ratios: the differences, the largest first, and then the ratios within the noise.
fn measured(model: &Model, wall: &Slowdowns) -> Option<String> {
    if model.is_wall_of_memory() {
        return Some("The wall times of this run are those of memory, and say nothing about the disk.".to_owned());
    }
    if wall.0.is_empty() {
        let has_model = model.main_device().is_some();
        return has_model.then(|| "No measurement of this run can be compared with a fresh copy.".to_owned());
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
        wall.0.iter().filter_map(arm).collect()
    };
    let noisy = wall.0.iter().filter(|arm| {
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
fn floor(model: &Model, arm: &str) -> Option<String> {
    let floor = number(model.floor_of(arm)?);
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
mod tests {
    use senesce_store::Results;

    use super::*;

    const N_1: usize = 1;

    /// A model with these modelled slowdowns and measured ratios of an arm's full and empty volume.
    fn add(model: &mut Model, arm: &str, modelled: [f64; 2], measured: [f64; 2], count: usize, noise: Option<f64>) {
        let spread = |median: f64| Spread { count, median, low: median, high: median, ..Spread::default() };
        model.arms.push((arm.to_owned(), arm.to_owned()));
        let device = model.modelled.entry("model: HDD 7.2K".to_owned()).or_default();
        device.insert((arm.to_owned(), Role::Full), [(1000, spread(9.0))].into());
        let slowdowns = model.modelled_slowdown.entry("model: HDD 7.2K".to_owned()).or_default();
        for (at, role) in [Role::Full, Role::Empty].into_iter().enumerate() {
            slowdowns.insert((arm.to_owned(), role), [(1000, spread(modelled[at]))].into());
            model.slowdown.insert((arm.to_owned(), role), [(1000, spread(measured[at]))].into());
        }
        model.noise.extend(noise.map(|factor| (arm.to_owned(), Noise { low: 1.0, high: factor, figures: 11 })));
    }

    #[test]
    fn the_modelled_effect_leads_noise_does_not_count() {
        let results = Results::default();
        let mut model = Model::compute(&results);
        add(&mut model, "btrfs", [7.21, 5.30], [1.05, 0.935], N_1, Some(1.6));
        add(&mut model, "ext4", [1.82, 1.53], [1.9, 1.19], 5, Some(1.3));
        add(&mut model, "xfs", [11.9, 12.2], [0.589, 0.964], N_1, Some(2.8));
        let said = headline(&model);
        assert_eq!(
            said[0],
            "After 1,000 pulls, xfs is 12× slower to read than a fresh copy on a modelled HDD 7.2K, btrfs 5.3–7.2× and ext4 \
             1.5–1.8×."
        );
        assert_eq!(said[1], "Modelled from where the blocks are, not measured.");
        assert_eq!(
            said[2],
            "Measured on this machine, times a fresh copy: ext4 nearly full 1.9× (n = 5; fresh copies vary 1.3×). And no \
             measurable difference: ext4 roomy 1.19× (n = 5; fresh copies vary 1.3×); btrfs nearly full 1.05×, roomy 0.935× \
             (n = 1; fresh copies vary 1.6×); xfs nearly full 0.589×, roomy 0.964× (n = 1; fresh copies vary 2.8×)."
        );
        assert_eq!(said.len(), 3);
        let figures = key_figures(&model);
        let shown: Vec<_> = figures.iter().map(|figure| (figure.arm.as_str(), figure.factor.as_str())).collect();
        assert_eq!(shown, [("xfs", "12×"), ("btrfs", "5.3–7.2×"), ("ext4", "1.5–1.8×")]);
        assert!(figures.iter().all(|figure| figure.device == "HDD 7.2K, modelled" && figure.is_difference));
        assert_eq!(why_folded(&model), None, "ext4 was measured to be slower");
        model.arms.retain(|(arm, _)| arm != "ext4");
        assert_eq!(why_folded(&model), Some("Every cell was measured once (n = 1)"));
        add(&mut model, "ext4", [1.82, 1.53], [1.2, 1.19], 5, Some(1.3));
        assert_eq!(why_folded(&model), Some("Nothing measured is beyond the noise"));
    }

    #[test]
    fn devices_follow_if_there_are_few_arms() {
        let results = Results::default();
        let mut model = Model::compute(&results);
        add(&mut model, "xfs", [11.9, 12.2], [0.589, 0.964], N_1, Some(2.8));
        let ssd = [(1000, Spread { count: 1, median: 1.02, ..Spread::default() })].into();
        let ssd: Lines = [(("xfs".to_owned(), Role::Full), ssd)].into();
        model.modelled.insert("model: SSD".to_owned(), Lines::new());
        model.modelled_slowdown.insert("model: SSD".to_owned(), ssd);
        let figures = key_figures(&model);
        let shown: Vec<_> = figures
            .iter()
            .map(|figure| (figure.device.as_str(), figure.factor.as_str(), figure.is_difference))
            .collect();
        assert_eq!(shown, [("HDD 7.2K, modelled", "12×", true), ("SSD, modelled", "1.0×", false)]);
        // Without a model, only a measured difference is a key figure.
        model.modelled.clear();
        assert_eq!(key_figures(&model), []);
    }

    #[test]
    fn without_a_model_measured_differences_lead() {
        let results = Results::default();
        let said = |measured: [f64; 2], count, noise| {
            let mut model = Model::compute(&results);
            add(&mut model, "xfs", [1.0, 1.0], measured, count, noise);
            (model.modelled, model.modelled_slowdown) = Default::default();
            headline(&model)
        };
        // The limits of modelled ratios do not hold for measured ones.
        for (ratios, noise, shown) in [([1.2, 1.12], 1.02, "1.1–1.2×"), ([3.0, 2.0], 1.2, "2.0–3.0×")] {
            let end = "slower to read than a fresh copy on this machine's device (measured).";
            assert_eq!(said(ratios, 5, Some(noise))[0], format!("After 1,000 pulls, xfs is {shown} {end}"));
        }
        for (count, noise, finding) in [
            (5, Some(3.0), "no measurable difference"),
            (1, Some(1.8), "no measurable difference"),
            (1, None, "too few measurements to say anything"),
        ] {
            let said = said([3.0, 2.0], count, noise);
            let start = format!("Measured on this machine, {finding}: xfs nearly full 3×");
            assert!(said[0].starts_with(&start), "{said:?}");
        }
    }

    #[test]
    fn noise_that_hides_most_effects_is_said_once() {
        let results = Results::default();
        let mut model = Model::compute(&results);
        add(&mut model, "xfs", [1.0, 1.0], [1.69, 1.2], 5, Some(12.0));
        add(&mut model, "ext4", [1.0, 1.0], [0.52, 1.1], 5, Some(23.6));
        let said = headline(&model).into_iter().find(|sentence| sentence.starts_with("Measured")).unwrap();
        let expected = "Measured on this machine, too noisy to judge: fresh copies of xfs vary 12× and of ext4 23.6×.";
        assert_eq!(said, expected);
    }

    #[test]
    fn arms_without_a_difference_are_named() {
        let results = Results::default();
        let mut model = Model::compute(&results);
        let first = |model: &Model| headline(model).swap_remove(0);
        add(&mut model, "ext4", [1.01, 0.9], [1.0, 1.0], N_1, Some(1.1));
        let alike =
            "After 1,000 pulls, no measurable difference from a fresh copy on a modelled HDD 7.2K: ext4 (0.90–1.0×).";
        assert_eq!(first(&model), alike);
        add(&mut model, "zfs", [0.5, 1.0], [1.0, 1.0], N_1, Some(1.1));
        assert_eq!(
            first(&model),
            "After 1,000 pulls, faster to read than a fresh copy on a modelled HDD 7.2K: zfs (0.50–1.0×); no measurable \
             difference: ext4 (0.90–1.0×)."
        );
        add(&mut model, "xfs", [2.0, 2.04], [1.0, 1.0], N_1, Some(1.1));
        assert_eq!(
            first(&model),
            "After 1,000 pulls, xfs is 2.0× slower to read than a fresh copy on a modelled HDD 7.2K; faster than a fresh copy: \
             zfs (0.50–1.0×); no measurable difference: ext4 (0.90–1.0×)."
        );
    }

    #[test]
    fn settled_volumes_show_smaller_differences() {
        let results = Results::default();
        let mut model = Model::compute(&results);
        add(&mut model, "xfs", [1.3, 1.1], [1.0, 1.0], N_1, Some(1.1));
        let first = |model: &Model| headline(model).swap_remove(0);
        assert!(first(&model).contains("no measurable difference"), "{}", first(&model));
        model.settles = true;
        assert!(first(&model).contains("xfs is 1.1–1.3× slower"), "{}", first(&model));
    }
}
