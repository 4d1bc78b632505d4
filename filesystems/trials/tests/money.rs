//! Experiments without a series of consistency points: savings inside blocks, and the cost of
//! objects.

use senesce_trials::{Experiment, Figure, Outcome, Scale, Verdict};

const SMALL: Scale = Scale { areas: 32, areas_per_point: 1, turnover_percent: 100 };

fn of<'o>(outcome: &'o Outcome, name: &str) -> &'o Figure {
    let found = outcome.figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no {name:?} in {:?}", outcome.figures))
}

#[test]
fn recompaction_recovers_savings() {
    // With four fifths of zeros two blocks become one chunk of little more than a fifth of both,
    // and two chunks fit a block.
    let saved = Experiment::E9.run(SMALL).unwrap();
    assert!((of(&saved, "percent saved, four fifths zeros").ours - 75.0).abs() < 0.5);
    assert!((of(&saved, "chunks a block, four fifths zeros").ours - 2.0).abs() < 0.01);
    // Contents for which both published figures hold together. This is a fit, and the figures say
    // so.
    for (name, near) in [("percent saved", 1.5), ("chunks a block", 0.35)] {
        let figure = of(&saved, &format!("{name}, groups of 32 KiB with small tails"));
        let quote = figure.quote.as_ref().unwrap();
        assert!((figure.ours - quote.claim.number().unwrap()).abs() < near, "{figure:?}");
        assert_eq!((figure.verdict(), quote.fitted.is_some()), (Some(Verdict::Met), true));
    }
    // Of two random chunks in a block, the last is freed after one and a half times the mean life.
    // So most savings remain if the overwrites compress equally well. If they do not, the published
    // 27 % are reached, and recompaction gains some points.
    let outcome = Experiment::E10.run(SMALL).unwrap();
    let rest = |by: &str| of(&outcome, &format!("percent saved after overwriting {by}")).ours;
    let gained = |by: &str| of(&outcome, &format!("points brought back, overwritten {by}"));
    assert!((60.0..70.0).contains(&rest("by what compresses")), "{outcome:?}");
    assert!((22.0..=27.0).contains(&rest("by what does not compress")), "{outcome:?}");
    for by in ["by what compresses", "by what does not compress"] {
        assert!(gained(by).ours > 3.0, "{:?}", gained(by));
        assert_eq!(gained(by).verdict(), Some(Verdict::DirectionOnly));
    }
}

#[test]
fn object_rewrites_pay_within_a_month() {
    let outcome = Experiment::E11.run(SMALL).unwrap();
    let slower = of(&outcome, "days until the cost is back, at the slower of both price lists");
    assert_eq!(slower.verdict(), Some(Verdict::Met), "{slower:?}");
    for name in ["S3", "Azure"] {
        let of = |what: &str| of(&outcome, &format!("{name}: {what}"));
        // The paper has no thresholds. These come from the formula at list prices, and have no
        // verdict.
        let threshold = of("part of an object that lives, up to which it pays");
        assert!((0.15..0.2).contains(&threshold.ours) && threshold.verdict().is_none(), "{threshold:?}");
        assert!(of("objects rewritten").ours >= 1.0 && of("booked in the end").ours > 0.0, "{:?}", outcome.figures);
        assert!(of("booked, least of all days, millionths of a dollar").ours >= 0.0, "{name}");
        assert!(of("cash, least of all days, millionths of a dollar").ours < 0.0, "requests are paid first");
        assert!(of("days from the last decision until cash is above 0").ours <= slower.ours, "{:?}", outcome.figures);
    }
}
