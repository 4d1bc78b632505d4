//! Experiments run completely, with the same results each time.

use senesce_sim::{CpuOrigin, CpuProfile};
use senesce_timed::{Experiment, TimedTrial, calibrate};
use senesce_trials::{LoadKind, Scale, Setup};

const TINY: Scale = Scale { areas: 16, areas_per_point: 1, turnover_percent: 3 };

#[test]
fn the_table_is_fitted_by_one_factor() {
    let setup = Setup { data_drives: 6, area_stripes: 16, areas: 32, fill: 765, ..Setup::published(TINY) };
    let mut trial = TimedTrial::new(setup.clone(), LoadKind::Oltp { units: 1 }, true).unwrap();
    let window = trial.collect(30).unwrap();
    let found = calibrate(&setup, &window).unwrap();
    assert_eq!(found, calibrate(&setup, &window).unwrap());
    assert_eq!(found.profile.origin, CpuOrigin::Calibrated);
    assert!(found.latency > 0.0 && found.latency < 3.0e6, "{found:?}");
    for ((event, time), (_, assumed)) in found.profile.times.list().into_iter().zip(CpuProfile::assumed().times.list())
    {
        assert_eq!(time, (assumed * found.factor_per_mille + 500) / 1000, "{event}");
    }
}

#[test]
fn the_used_table_is_the_assumed_times_a_factor() {
    let (used, assumed) = (CpuProfile::paper20().times.list(), CpuProfile::assumed().times.list());
    let factor = used[0].1 as f64 / assumed[0].1 as f64;
    for ((event, time), (_, before)) in used.into_iter().zip(assumed) {
        assert!((time as f64 - factor * before as f64).abs() <= 1.0, "{event}: {time} of {before}");
    }
}

#[test]
fn an_experiment_has_all_stages_and_loads() {
    let outcome = Experiment::E5.run(TINY, &CpuProfile::measured()).unwrap();
    assert_eq!(
        outcome.stages.iter().map(|stage| stage.name.as_str()).collect::<Vec<_>>(),
        ["without cleaning", "with cleaning"]
    );
    for stage in &outcome.stages {
        assert!(!stage.collection_is_meant, "drives of this size stand for larger ones");
        let loads: Vec<u64> = stage.runs.iter().map(|run| run.load).collect();
        assert!(loads.len() > 5 && loads.is_sorted());
        assert!(
            stage.runs.iter().all(|run| run.figures.origin == CpuOrigin::Measured && run.figures.latency.count > 0)
        );
        let busy = |load: usize| stage.runs[load].figures.group_busy[0];
        assert!(busy(3) > busy(0), "more operations keep drives more busy");
        assert_eq!(stage.runs[0].cleaning_cores > 0.0, stage.name == "with cleaning");
    }
    assert!(outcome.figures.iter().all(|figure| !figure.ours.is_nan()), "{:?}", outcome.figures);
    // The counters equal those without simulation, until the window makes a stage longer.
    let (counted, alone) = (outcome.structure.clone().unwrap(), senesce_trials::Experiment::E5.run(TINY).unwrap());
    assert_eq!(counted.stages.len(), alone.stages.len());
    let (longer, points) = (&counted.stages[0].series.points, &alone.stages[0].series.points);
    assert!(!points.is_empty() && longer.len() > points.len() && longer.starts_with(points));
    // The ablation of moving, which the container makes cheaper.
    let [.., by_container, by_volume] = &counted.figures[..] else { panic!("{:?}", counted.figures) };
    assert_eq!(counted.figures.len(), alone.figures.len() + 2);
    assert!(by_container.ours > 0.0 && by_container.ours < by_volume.ours, "{by_container:?} {by_volume:?}");
    assert!(senesce_trials::Experiment::E5.judge(TINY, alone.stages[1..].to_vec()).is_none());
    let text = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["experiment"], "E5");
}

#[test]
fn experiment_names_parse_in_either_case() {
    for experiment in Experiment::ALL {
        assert_eq!(experiment.to_string().to_lowercase().parse::<Experiment>().unwrap(), experiment);
    }
    assert!("E2".parse::<Experiment>().unwrap_err().to_string().contains("E1, E3, E4, E5, E6, E7, E8, E10, E13"));
}

#[test]
fn gardening_by_load_works_only_at_night() {
    // On a barely aged aggregate days need less processor time than in the experiment. Gardening
    // would use processors below 60 % load.
    let mut profile = CpuProfile::paper20();
    profile.times.front_end += 15_000;
    let outcome = Experiment::E13.run(TINY, &profile).unwrap();
    let of = |name: &str| outcome.stages.iter().filter(|stage| stage.name == name).collect::<Vec<_>>();
    let (nothing, by_room) = (of("no gardening"), of("gardening by what is left"));
    // Two days and their nights, so that a day comes after a gardened night.
    assert_eq!((nothing.len(), by_room.len(), outcome.stages.len()), (24, 24, 72));
    let moved = |stages: &[&senesce_timed::Stage], night: bool| -> u64 {
        let of = stages.iter().filter(|stage| (stage.runs[0].load == 25_000) == night);
        of.map(|stage| stage.counted.relocations).sum()
    };
    assert_eq!(moved(&nothing, true) + moved(&nothing, false), 0);
    // Gardening learns the usual latency of a night in its first second; until then both arms are
    // equal.
    assert!((0..3).all(|second| by_room[second].counted == nothing[second].counted));
    let (by_night, by_day) = (moved(&by_room, true), moved(&by_room, false));
    assert!(by_night > 9 * by_day && by_night > 0, "{by_night} by night, {by_day} by day: {by_room:?}");
    // Figures of the days after a night count the blocks moved in it. On such an empty aggregate no
    // old location is overwritten, so no read is redirected.
    let figure = |name: &str| outcome.figures.iter().find(|figure| figure.name == name).unwrap().ours;
    assert!(by_room[..2].iter().all(|stage| stage.counted.redirects == 0));
    assert!(figure("part of the moved blocks that moved by night") > 0.9, "{:?}", outcome.figures);
    assert!(figure("the same by day").is_finite(), "{:?}", outcome.figures);
}
