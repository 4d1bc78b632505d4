//! Experiments that have no series of consistency points: what is saved inside blocks, and what objects cost.

use senesce_trials::{Experiment, Figure, Outcome, Scale};

const SMALL: Scale = Scale { areas: 32, areas_per_point: 1, turnover_percent: 100 };

fn of<'o>(outcome: &'o Outcome, name: &str) -> &'o Figure {
    let found = outcome.figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no {name:?} in {:?}", outcome.figures))
}

#[test]
fn half_of_each_page_is_saved_twice_and_recompaction_brings_it_back() {
    // Four fifths of zeros: two blocks become one chunk of little more than a fifth of both, and two chunks fit a block.
    let saved = Experiment::E9.run(SMALL).unwrap();
    assert!((of(&saved, "percent saved, four fifths zeros").ours - 75.0).abs() < 0.5);
    assert!((of(&saved, "chunks a block, four fifths zeros").ours - 2.0).abs() < 0.01);
    assert!(!of(&saved, "chunks a block, four fifths zeros").inside);
    // Of two chunks a block at random the last goes after one and a half times the mean life: 62.5 % at rest.
    let outcome = Experiment::E10.run(SMALL).unwrap();
    let rest = of(&outcome, "percent saved after overwriting, four fifths zeros").ours;
    let back = of(&outcome, "percent saved after recompaction, four fifths zeros").ours;
    assert!((rest - 62.5).abs() < 1.5 && (back - 75.0).abs() < 0.5, "{rest}, {back}");
}

#[test]
fn objects_are_written_anew_where_it_pays_and_the_money_is_back_within_a_month() {
    let outcome = Experiment::E11.run(SMALL).unwrap();
    for name in ["S3", "Azure"] {
        let of = |what: &str| of(&outcome, &format!("{name}: {what}"));
        assert!(of("part of an object that lives, up to which it pays").inside, "{name}");
        assert!(of("objects written anew").ours >= 1.0 && of("booked in the end").ours > 0.0, "{:?}", outcome.figures);
        assert!(of("booked, least of all days, millionths of a dollar").inside, "{name}");
        assert!(of("cash, least of all days, millionths of a dollar").ours < 0.0, "requests are paid first");
        assert!(of("days from the last decision until cash is above 0").inside, "{:?}", outcome.figures);
    }
}
