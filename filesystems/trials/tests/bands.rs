//! Published experiments on small aggregates that are fast enough for every change, with bounds
//! near their figures. A garden that cleans half as well, or places blocks half as well, fails. A
//! nightly run checks the figures at the published scales.

use senesce_trials::{CleaningPolicy, Experiment, LoadKind, Outcome, Rotation, Scale, Setup, Stage, Trial};

/// A quarter of the drives of the published set-up; areas, fill and consistency points as at scale
/// 64/2.
const SCALE: Scale = Scale { areas: 64, areas_per_point: 2, turnover_percent: 100 };
const OLTP: LoadKind = LoadKind::Oltp { units: 1 };

fn setup() -> Setup {
    Setup { data_drives: 5, ..Setup::published(SCALE) }
}

/// Runs the turnovers of each policy, one after the other on one aggregate.
fn age(setup: Setup, load: LoadKind, policies: &[(CleaningPolicy, u64)]) -> Vec<Stage> {
    let mut trial = Trial::new(setup, load).unwrap();
    let stage = |&(cleaning, turnovers): &(CleaningPolicy, u64)| {
        let before = trial.series().points.len();
        trial.set_cleaning(cleaning);
        trial.run(turnovers * 1000).unwrap();
        Stage::since(before, &trial, "stage", cleaning)
    };
    policies.iter().map(stage).collect()
}

#[track_caller]
fn assert_within(outcome: &Outcome, bounds: &[(&str, f64, f64)]) {
    let mut outside = Vec::new();
    for (name, least, most) in bounds {
        let figure = outcome.figures.iter().find(|figure| figure.name == *name).unwrap_or_else(|| panic!("no {name}"));
        if !(*least..=*most).contains(&figure.ours) {
            outside.push(format!("{name} is {:.3}, not {least} to {most}", figure.ours));
        }
    }
    assert!(outside.is_empty(), "{}: {}", outcome.experiment, outside.join("; "));
}

#[test]
fn cleaning_lengthens_chains_of_oltp() {
    use CleaningPolicy::{AllRight, Default, Off};
    // Chains with cleaning are compared with a twin of the same age that is never cleaned.
    let without = age(setup(), OLTP, &[(Off, 7), (Off, 4)]);
    let with = age(setup(), OLTP, &[(Off, 7), (Default, 4), (AllRight, 1)]);
    let stages = without.into_iter().chain(with.into_iter().skip(1)).collect();
    let outcome = Experiment::E4.judge(SCALE, stages).unwrap();
    assert_within(
        &outcome,
        &[
            ("write chain without cleaning", 9.3, 11.5),
            ("write chain with cleaning", 56.0, 64.0),
            ("read chain of clients with cleaning, times that", 0.85, 1.0),
            ("blocks moved for each block of clients", 0.25, 0.38),
        ],
    );
}

#[test]
fn cleaning_bounds_chains_of_random_overwrites() {
    use CleaningPolicy::{Default, Off, Unlimited};
    let stages = age(setup(), LoadKind::Random, &[(Off, 3), (Default, 3), (Unlimited, 1)]);
    let outcome = Experiment::E5.judge(SCALE, stages).unwrap();
    assert_within(
        &outcome,
        &[
            ("write chain without cleaning", 2.1, 2.6),
            ("write chain with cleaning", 55.0, 64.0),
            ("its lowest of a consistency point", 50.0, 64.0),
            ("parity reads without, over those with cleaning", 3.0, 3.8),
            ("blocks moved for each block of clients", 0.95, 1.2),
        ],
    );
}

#[test]
fn large_overwrites_in_order_fragment_slowly() {
    let rotated = Setup { snapshots: Some(Rotation { every_percent: 10, kept: 2 }), ..setup() };
    let chain = |setup, load| {
        let stages = age(setup, load, &[(CleaningPolicy::Off, 5)]);
        stages[0].series.last_turnover().write_chain()
    };
    let secondary = chain(rotated, LoadKind::Runs { longest: 4096 });
    let oltp = chain(setup(), OLTP);
    assert!(
        secondary > 48.0 && (13.5..17.0).contains(&oltp),
        "{secondary} after overwrites in order, {oltp} after OLTP"
    );
}
