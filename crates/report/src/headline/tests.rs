//! Headlines and key figures of made-up models.

use senesce_store::Results;

use super::*;
use crate::devices::DeviceOrder;

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
    model.device_order = DeviceOrder::of(model);
}

/// The factors of a tile as text.
fn factors(figure: &KeyFigure) -> String {
    let text = |(factor, volume): &(String, &str)| format!("{factor} {volume}").trim_end().to_owned();
    figure.factors.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Moves all slowdowns of an arm to the first checkpoint.
fn move_to_first_checkpoint(model: &mut Model, moved: &str) {
    for lines in [&mut model.slowdown].into_iter().chain(model.modelled_slowdown.values_mut()) {
        for (_, line) in lines.iter_mut().filter(|((arm, _), _)| arm == moved) {
            *line = std::mem::take(line).into_values().map(|ratio| (0, ratio)).collect();
        }
    }
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
        "After 1,000 pulls, xfs takes 12× as long to read as a fresh copy on a modelled HDD 7.2K, btrfs 7.2× (nearly full) \
         and 5.3× (roomy), ext4 1.8× (nearly full) and 1.5× (roomy)."
    );
    assert_eq!(said[1], "Seconds to read a GiB of the aged tree: btrfs 9.00 (nearly full); ext4 9.00; xfs 9.00.");
    assert_eq!(said[2], "Modelled from where the blocks are, not measured.");
    assert_eq!(
        said[3],
        "Measured on this machine, times a fresh copy: ext4 nearly full 1.9× (n = 5; fresh copies vary 1.3×). And no \
         measurable difference: ext4 roomy 1.19× (n = 5; fresh copies vary 1.3×); btrfs nearly full 1.05×, roomy 0.935× \
         (n = 1; fresh copies vary 1.6×); xfs nearly full 0.589×, roomy 0.964× (n = 1; fresh copies vary 2.8×)."
    );
    assert_eq!(said.len(), 4);
    let figures = key_figures(&model);
    let shown: Vec<_> = figures.iter().map(|figure| (figure.arm.as_str(), factors(figure))).collect();
    let expected =
        [("xfs", "12×"), ("btrfs", "7.2× nearly full, 5.3× roomy"), ("ext4", "1.8× nearly full, 1.5× roomy")];
    assert_eq!(shown, expected.map(|(arm, factors)| (arm, factors.to_owned())));
    assert!(figures.iter().all(|figure| figure.device == "HDD 7.2K, modelled" && figure.cost == "9.00 s/GiB"));
    assert!(figures.iter().all(|figure| figure.is_difference));
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
    model.device_order = DeviceOrder::of(&model);
    let figures = key_figures(&model);
    let shown: Vec<_> =
        figures.iter().map(|figure| (figure.device.as_str(), factors(figure), figure.is_difference)).collect();
    let expected = [("HDD 7.2K, modelled", "12×", true), ("SSD, modelled", "1.0× nearly full", false)];
    assert_eq!(shown, expected.map(|(device, factors, is_difference)| (device, factors.to_owned(), is_difference)));
    // Without a model, only a measured difference is a key figure.
    model.modelled.clear();
    model.device_order = DeviceOrder::of(&model);
    assert_eq!(key_figures(&model), []);
}

#[test]
fn without_a_model_measured_differences_lead() {
    let results = Results::default();
    let said = |measured: [f64; 2], count, noise| {
        let mut model = Model::compute(&results);
        add(&mut model, "xfs", [1.0, 1.0], measured, count, noise);
        (model.modelled, model.modelled_slowdown) = Default::default();
        model.device_order = DeviceOrder::of(&model);
        headline(&model)
    };
    // The limits of modelled ratios do not hold for measured ones.
    for (ratios, noise, shown) in [
        ([1.2, 1.12], 1.02, "1.2× (nearly full) and 1.1× (roomy)"),
        ([3.0, 2.0], 1.2, "3.0× (nearly full) and 2.0× (roomy)"),
    ] {
        let end = "as long to read as a fresh copy on this machine's device (measured).";
        assert_eq!(said(ratios, 5, Some(noise))[0], format!("After 1,000 pulls, xfs takes {shown} {end}"));
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
    let alike = "After 1,000 pulls, no measurable difference from a fresh copy on a modelled HDD 7.2K: ext4 (1.0× nearly full, 0.90× roomy).";
    assert_eq!(first(&model), alike);
    add(&mut model, "zfs", [0.5, 1.0], [1.0, 1.0], N_1, Some(1.1));
    assert_eq!(
        first(&model),
        "After 1,000 pulls, less time to read than a fresh copy on a modelled HDD 7.2K: zfs (0.50× nearly full, 1.0× \
         roomy); no measurable difference: ext4 (1.0× nearly full, 0.90× roomy)."
    );
    add(&mut model, "xfs", [2.0, 2.04], [1.0, 1.0], N_1, Some(1.1));
    assert_eq!(
        first(&model),
        "After 1,000 pulls, xfs takes 2.0× as long to read as a fresh copy on a modelled HDD 7.2K; less time than a fresh \
         copy: zfs (0.50× nearly full, 1.0× roomy); no measurable difference: ext4 (1.0× nearly full, 0.90× roomy)."
    );
}

#[test]
fn unchanged_volume_is_in_the_headline() {
    let results = Results::default();
    let mut model = Model::compute(&results);
    add(&mut model, "xfs", [6.0, 6.2], [1.0, 1.0], N_1, Some(1.1));
    add(&mut model, "ext4", [2.0, 1.1], [1.0, 1.0], N_1, Some(1.1));
    model.settles = true;
    let spread = |median: f64| Spread { count: 1, median, low: median, high: median, ..Spread::default() };
    let costs = model.modelled.get_mut("model: HDD 7.2K").unwrap();
    let slowdowns = model.modelled_slowdown.get_mut("model: HDD 7.2K").unwrap();
    for (arm, role, own, fresh) in [
        ("xfs", Role::Full, [69.5, 70.3], [26.7, 11.3]),
        ("xfs", Role::Empty, [69.5, 69.5], [26.7, 11.3]),
        ("ext4", Role::Full, [80.6, 162.0], [80.0, 81.0]),
        ("ext4", Role::Empty, [80.6, 80.6], [80.0, 81.0]),
    ] {
        let line = |costs: [f64; 2]| [(0, spread(costs[0])), (1000, spread(costs[1]))].into();
        costs.insert((arm.to_owned(), role), line(own));
        costs.insert((arm.to_owned(), Role::Unaged), line(fresh));
        slowdowns.insert((arm.to_owned(), role), line([own[0] / fresh[0], own[1] / fresh[1]]));
    }
    assert_eq!(
        headline(&model)[0],
        "After 1,000 pulls, xfs takes 6.2× as long to read as a fresh copy on a modelled HDD 7.2K, ext4 2.0× (nearly \
         full) and 1.0× (roomy). Compared with the first checkpoint, ext4 (nearly full) takes 2.0× as long; xfs shows no \
         measurable change."
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
    assert!(first(&model).contains("xfs takes 1.3× (nearly full) and 1.1× (roomy) as long"), "{}", first(&model));
}

#[test]
fn arm_without_the_last_checkpoint_has_no_figure_of_an_earlier_one() {
    let results = Results::default();
    let mut model = Model::compute(&results);
    add(&mut model, "xfs", [6.6, 7.3], [1.0, 1.0], N_1, Some(1.1));
    add(&mut model, "ext4", [0.98, 0.98], [3.0, 3.0], 5, Some(1.1));
    move_to_first_checkpoint(&mut model, "ext4");
    // The tests give the volume that is nearly full a cost at this checkpoint, and no fresh copy.
    let end =
        "; fresh copy not measured at 1,000 pulls: ext4 (nearly full); not measured at 1,000 pulls: ext4 (roomy).";
    assert!(headline(&model)[0].ends_with(end), "{:?}", headline(&model));
    let invalid = [Role::Full, Role::Empty].map(|role| (("ext4".to_owned(), role, 1000), "in use".to_owned()));
    model.invalid.extend(invalid);
    let said = headline(&model);
    assert_eq!(
        said[0],
        "After 1,000 pulls, xfs takes 6.6× (nearly full) and 7.3× (roomy) as long to read as a fresh copy on a modelled \
         HDD 7.2K; no valid result at 1,000 pulls: ext4."
    );
    // A valid cost, no figure of an earlier checkpoint, and no repeated reason.
    assert_eq!(said[1], "Seconds to read a GiB of the aged tree: xfs 9.00 (nearly full); ext4 9.00.");
    assert!(!said[2..].iter().any(|sentence| sentence.contains("ext4")), "{said:?}");
    let figures = key_figures(&model);
    let shown: Vec<_> =
        figures.iter().map(|figure| (figure.arm.as_str(), factors(figure), figure.is_difference)).collect();
    let expected = [("xfs", "6.6× nearly full, 7.3× roomy", true), ("ext4", "–", false)];
    assert_eq!(shown, expected.map(|(arm, factors, is_difference)| (arm, factors.to_owned(), is_difference)));
    assert_eq!(figures[1].cost, "9.00 s/GiB nearly full; no valid result at 1,000 pulls");
}

#[test]
fn cheapest_arm_that_writes_much_says_so() {
    let results = Results::default();
    let mut model = Model::compute(&results);
    add(&mut model, "xfs", [6.7, 7.0], [1.0, 1.0], N_1, Some(1.1));
    add(&mut model, "btrfs", [2.0, 1.9], [1.0, 1.0], N_1, Some(1.1));
    let costs = model.modelled.get_mut("model: HDD 7.2K").unwrap();
    for (arm, role, cost) in [
        ("xfs", Role::Full, 78.0),
        ("xfs", Role::Empty, 81.0),
        ("btrfs", Role::Full, 51.2),
        ("btrfs", Role::Empty, 48.0),
    ] {
        costs.insert((arm.to_owned(), role), [(1000, Spread { count: 1, median: cost, ..Spread::default() })].into());
    }
    let second = |model: &Model| headline(model).swap_remove(1);
    let order = "Seconds to read a GiB of the aged tree: btrfs 51.2 (nearly full) and 48.0 (roomy); xfs 78.0 and 81.0.";
    assert_eq!(second(&model), order);
    model.write_amplification_of_all =
        [(("btrfs".to_owned(), Role::Full), 12.6), (("xfs".to_owned(), Role::Full), 1.6)].into();
    assert_eq!(
        second(&model),
        format!("{order} btrfs (nearly full) writes 12.6 bytes for each byte of content, xfs 1.60.")
    );
    // All other systems are named, the one that writes least first.
    add(&mut model, "ext4", [1.5, 1.5], [1.0, 1.0], N_1, Some(1.1));
    let full = ("ext4".to_owned(), Role::Full);
    let dear = Spread { count: 1, median: 90.0, ..Spread::default() };
    model.modelled.get_mut("model: HDD 7.2K").unwrap().insert(full.clone(), [(1000, dear)].into());
    model.write_amplification_of_all.insert(full, 2.5);
    assert!(second(&model).ends_with(" for each byte of content, xfs 1.60 and ext4 2.50."), "{}", second(&model));
}

#[test]
fn smaller_slowdown_with_a_higher_cost_is_named() {
    let results = Results::default();
    let said = |ext4: (f64, f64), btrfs: (f64, f64), settles| {
        let mut model = Model::compute(&results);
        model.settles = settles;
        for (arm, (slowdown, cost)) in [("ext4", ext4), ("btrfs", btrfs)] {
            add(&mut model, arm, [slowdown; 2], [1.0, 1.0], N_1, Some(1.1));
            let costs = model.modelled.get_mut("model: HDD 7.2K").unwrap();
            costs.insert((arm.to_owned(), Role::Full), [(1000, Spread::compute([cost]).unwrap())].into());
        }
        headline(&model).into_iter().find(|sentence| sentence.starts_with("The order by cost"))
    };
    let expected = "The order by cost is different: ext4 (nearly full) has a smaller slowdown than btrfs (2.0× and 4.0×), \
                    but a higher cost (162 and 51.2 s/GiB).";
    assert_eq!(said((2.0, 162.0), (4.0, 51.2), false).as_deref(), Some(expected));
    assert_eq!(said((4.0, 162.0), (2.0, 51.2), false), None, "one order");
    assert_eq!(said((2.0, 60.0), (4.0, 51.2), false), None, "two runs of one plan can differ by as much");
    assert!(said((2.0, 60.0), (4.0, 51.2), true).is_some());
    assert_eq!(said((2.0, 162.0), (3.0, 51.2), false), None, "slowdowns of two runs can differ by as much");
    assert_eq!(said((2.01, 162.0), (2.03, 51.2), true), None);
}

/// The tiles: device, arm, factors and costs.
fn tiles(model: &Model) -> Vec<(String, String, String, String)> {
    let tile = |figure: KeyFigure| (figure.device.clone(), figure.arm.clone(), factors(&figure), figure.cost);
    key_figures(model).into_iter().map(tile).collect()
}

#[test]
fn volume_without_the_last_checkpoint_is_named_and_has_a_dash() {
    let results = Results::default();
    let mut model = Model::compute(&results);
    add(&mut model, "xfs", [6.6, 7.3], [1.0, 1.0], N_1, Some(1.1));
    add(&mut model, "ext4", [5.0, 0.98], [33.0, 1.0], 5, Some(1.1));
    let full = ("ext4".to_owned(), Role::Full);

    for lines in [&mut model.slowdown].into_iter().chain(model.modelled_slowdown.values_mut()) {
        let ratio = lines.get_mut(&full).unwrap().remove(&1000).unwrap();
        lines.get_mut(&full).unwrap().insert(0, ratio);
    }
    let costs = model.modelled.get_mut("model: HDD 7.2K").unwrap();
    costs.insert(("ext4".to_owned(), Role::Empty), costs[&full].clone());
    costs.remove(&full);
    model.invalid.insert(("ext4".to_owned(), Role::Full, 1000), "in use".to_owned());
    let said = headline(&model);
    assert_eq!(
        said[0],
        "After 1,000 pulls, xfs takes 6.6× (nearly full) and 7.3× (roomy) as long to read as a fresh copy on a modelled \
         HDD 7.2K; no measurable difference: ext4 (0.98× roomy); no valid result at 1,000 pulls: ext4 (nearly full)."
    );
    let measured = said.iter().find(|sentence| sentence.starts_with("Measured")).unwrap();
    assert!(!measured.contains("ext4 (nearly full)"), "the lead says it: {measured}");
    assert!(said.iter().all(|sentence| !sentence.contains("5.0×") && !sentence.contains("33×")), "{said:?}");
    let (_, arm, factors, cost) = tiles(&model).remove(1);
    assert_eq!((arm.as_str(), factors.as_str()), ("ext4", "0.98× roomy, – nearly full"));
    assert_eq!(cost, "9.00 s/GiB; nearly full: no valid result");
}

#[test]
fn device_without_the_last_checkpoint_has_no_earlier_figure() {
    let key = |pulls| senesce_store::CellKey {
        arm: "xfs".to_owned(),
        file_system: "xfs".to_owned(),
        role: Role::Full,
        pulls,
    };
    let cell = senesce_store::CellRow { valid: true, ..senesce_store::CellRow::without_figures(key(1000), "") };
    let results = Results { cells: vec![cell], ..Results::default() };
    let mut model = Model::compute(&results);
    model.arms.clear();
    add(&mut model, "xfs", [6.6, 7.3], [1.0, 1.0], N_1, Some(1.1));
    add(&mut model, "ext4", [2.0, 2.0], [1.0, 1.0], N_1, Some(1.1));
    let ssd = |at, median| [(at, Spread { count: 1, median, low: median, high: median, ..Spread::default() })].into();
    let slowdowns: Lines = [
        (("xfs".to_owned(), Role::Full), ssd(500, 4.0)),
        (("xfs".to_owned(), Role::Empty), ssd(1000, 1.5)),
        (("ext4".to_owned(), Role::Full), ssd(500, 3.0)),
    ]
    .into();
    model.modelled.insert("model: SSD".to_owned(), Lines::new());
    model.modelled_slowdown.insert("model: SSD".to_owned(), slowdowns);
    model.device_order = DeviceOrder::of(&model);
    let said = headline(&model);
    let of_ssd = said.iter().find(|sentence| sentence.starts_with("On a modelled SSD")).unwrap();
    assert_eq!(of_ssd, "On a modelled SSD: xfs 1.5× (roomy); not measured at 1,000 pulls: xfs (nearly full) and ext4.");
    let of_ssd: Vec<_> = tiles(&model).into_iter().filter(|tile| tile.0.starts_with("SSD")).collect();
    let shown: Vec<_> = of_ssd.iter().map(|(_, arm, factors, _)| (arm.as_str(), factors.as_str())).collect();
    assert_eq!(shown, [("xfs", "1.5× roomy, – nearly full")], "three tiles at most");
    model.arms.retain(|(arm, _)| arm == "ext4");
    let of_ssd = tiles(&model).pop().unwrap();
    assert_eq!((of_ssd.2.as_str(), of_ssd.3.as_str()), ("–", "not measured at 1,000 pulls"));
}

#[test]
fn volumes_of_an_arm_have_their_own_reasons() {
    let results = Results::default();
    let mut model = Model::compute(&results);
    add(&mut model, "xfs", [6.6, 7.3], [1.0, 1.0], N_1, Some(1.1));
    add(&mut model, "ext4", [5.0, 4.0], [1.0, 1.0], N_1, Some(1.1));
    move_to_first_checkpoint(&mut model, "ext4");
    model.invalid.insert(("ext4".to_owned(), Role::Empty, 1000), "in use".to_owned());
    let lead = headline(&model).swap_remove(0);
    let end =
        "; no valid result at 1,000 pulls: ext4 (roomy); fresh copy not measured at 1,000 pulls: ext4 (nearly full).";
    assert!(lead.ends_with(end), "{lead}");
    let (_, arm, factors, cost) = tiles(&model).remove(1);
    assert_eq!((arm.as_str(), factors.as_str()), ("ext4", "– nearly full, – roomy"));
    assert_eq!(cost, "9.00 s/GiB nearly full; roomy: no valid result; nearly full: fresh copy not measured");
    model.invalid.insert(("ext4".to_owned(), Role::Unaged, 1000), "in use".to_owned());
    let lead = headline(&model).swap_remove(0);
    let end = "; no valid result at 1,000 pulls: ext4 (roomy); fresh copy invalid at 1,000 pulls: ext4 (nearly full).";
    assert!(lead.ends_with(end), "{lead}");
    let (.., cost) = tiles(&model).remove(1);
    assert_eq!(cost, "9.00 s/GiB nearly full; roomy: no valid result; nearly full: fresh copy invalid");
}

#[test]
fn arm_with_an_invalid_fresh_copy_keeps_its_costs() {
    let results = Results::default();
    let mut model = Model::compute(&results);
    add(&mut model, "xfs", [6.6, 7.3], [1.0, 1.0], N_1, Some(1.1));
    add(&mut model, "ext4", [5.0, 4.0], [1.0, 1.0], N_1, Some(1.1));
    move_to_first_checkpoint(&mut model, "ext4");
    let costs = model.modelled.get_mut("model: HDD 7.2K").unwrap();
    let roomy = costs[&("ext4".to_owned(), Role::Full)].clone();
    costs.insert(("ext4".to_owned(), Role::Empty), roomy);
    model.invalid.insert(("ext4".to_owned(), Role::Unaged, 1000), "in use".to_owned());
    let said = headline(&model);
    assert!(said[0].ends_with("; fresh copy invalid at 1,000 pulls: ext4."), "{}", said[0]);
    assert!(said[1].contains("ext4 9.00 (nearly full) and 9.00 (roomy)"), "{}", said[1]);
    let (_, _, factors, cost) = tiles(&model).remove(1);
    assert_eq!(factors, "–");
    assert_eq!(cost, "9.00 s/GiB nearly full; 9.00 s/GiB roomy; fresh copy invalid at 1,000 pulls");
}

#[test]
fn layout_of_the_worst_volume_is_named() {
    let results = Results::default();
    let mut model = Model::compute(&results);
    add(&mut model, "xfs", [6.7, 7.0], [1.0, 1.0], N_1, Some(1.1));
    let share = |median| [(1000, Spread { count: 1, median, ..Spread::default() })].into();
    for (role, median) in [(Role::Full, 0.339), (Role::Empty, 0.334), (Role::Unaged, 0.716)] {
        model.adjacent_files_share.insert(("xfs".to_owned(), role), share(median));
    }
    let said = headline(&model).into_iter().find(|sentence| sentence.starts_with("Modelled from")).unwrap();
    let layout = "(xfs (roomy): two files that follow each other in a directory are adjacent in 33% of cases; in a fresh copy in 72%)";
    assert!(said.contains(layout), "{said}");
}
