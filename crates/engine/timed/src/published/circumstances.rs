//! What was set in all stages of a part, so that whoever has its figures can have them again.

use std::collections::BTreeSet;

use senesce_trials::Fact;

use crate::machine::tell_arrivals;

/// More different ones than this are told as their first and their last.
const MOST: usize = 4;
/// Nothing is drawn but from the seeds, so a second run gives the same figures.
const RUNS: &str = "one of each stage";

/// Of what was counted.
pub(super) fn of_structure(outcome: &senesce_trials::Outcome) -> Vec<Fact> {
    let alone = (String::new(), outcome.experiment.facts(outcome.scale));
    let stages = outcome.stages.iter().map(|stage| (stage.name.clone(), stage.facts()));
    let mut facts = merge(&stages.chain([alone]).collect::<Vec<_>>());
    facts.push(Fact::new("runs", RUNS));
    facts
}

/// Of what was simulated.
pub(super) fn of_time(outcome: &crate::Outcome) -> Vec<Fact> {
    let stages: Vec<(String, Vec<Fact>)> =
        outcome.stages.iter().map(|stage| (stage.name.clone(), stage.facts.clone())).collect();
    let mut facts = merge(&stages);
    for open in [true, false] {
        let runs = outcome.stages.iter().flat_map(|stage| &stage.runs);
        let loads: BTreeSet<u64> =
            runs.filter(|run| run.figures.offered_per_second.is_some() == open).map(|run| run.load).collect();
        if !loads.is_empty() {
            let loads: Vec<u64> = loads.into_iter().collect();
            facts.push(Fact::new("arrivals", tell_arrivals(&loads, open)));
        }
    }
    facts.push(Fact::new("runs", RUNS));
    facts
}

/// A fact for each matter that stages have: what all have in common, or which stage has what.
fn merge(stages: &[(String, Vec<Fact>)]) -> Vec<Fact> {
    let mut matters: Vec<&str> = Vec::new();
    for fact in stages.iter().flat_map(|(_, facts)| facts) {
        if !matters.contains(&fact.what.as_str()) {
            matters.push(&fact.what);
        }
    }
    matters.into_iter().map(|what| Fact::new(what, merge_one(what, stages))).collect()
}

fn merge_one(what: &str, stages: &[(String, Vec<Fact>)]) -> String {
    // What is told, and who has it.
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, facts) in stages {
        for fact in facts.iter().filter(|fact| fact.what == what) {
            match told.iter_mut().find(|(known, _)| *known == fact.told) {
                Some((_, names)) if names.contains(&name.as_str()) => {}
                Some((_, names)) => names.push(name),
                None => told.push((&fact.told, vec![name])),
            }
        }
    }
    match &told[..] {
        [(all, _)] => (*all).to_owned(),
        [(first, _), .., (last, _)] if told.len() > MOST => format!("{first}, in {} steps to {last}", told.len() - 1),
        _ => told.iter().map(|(told, names)| format!("{}: {told}", tell_names(names))).collect::<Vec<_>>().join(" · "),
    }
}

/// Stages by their names, which have commas of their own.
fn tell_names(names: &[&str]) -> String {
    match names {
        [first, .., last] if names.len() > MOST => format!("{first} … {last}"),
        _ => names.join(" / "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_that_are_alike_are_told_once_and_others_by_name() {
        let stage = |name: &str, facts: &[(&str, &str)]| {
            (name.to_owned(), facts.iter().map(|(what, told)| Fact::new(what, *told)).collect::<Vec<_>>())
        };
        let stages = [
            stage("one", &[("drives", "20"), ("gardening", "none"), ("fill", "a")]),
            stage("one", &[("drives", "20"), ("gardening", "none"), ("fill", "b")]),
            stage("other", &[("drives", "20"), ("gardening", "cleaning"), ("fill", "c")]),
            stage("third", &[("drives", "20"), ("gardening", "cleaning"), ("fill", "d"), ("cores", "8")]),
            stage("fourth", &[("drives", "20"), ("fill", "e")]),
        ];
        let merged: Vec<(String, String)> = merge(&stages).into_iter().map(|fact| (fact.what, fact.told)).collect();
        let wanted = [
            ("drives", "20"),
            ("gardening", "one: none · other / third: cleaning"),
            ("fill", "a, in 4 steps to e"),
            ("cores", "8"),
        ];
        assert_eq!(merged, wanted.map(|(what, told)| (what.to_owned(), told.to_owned())));
    }
}
