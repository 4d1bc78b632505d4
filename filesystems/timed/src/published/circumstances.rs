//! The settings of all stages of a part, so that a reader can reproduce its figures.

use std::collections::BTreeSet;

use senesce_trials::Fact;

use crate::published_machines::tell_arrivals;

/// If a setting has more different values, only the first and the last are listed.
const MOST: usize = 4;
/// All random numbers come from the seeds, so a second run gives the same figures.
const RUNS: &str = "one of each stage";

/// The settings of a counted part.
pub(super) fn of_structure(outcome: &senesce_trials::Outcome) -> Vec<Fact> {
    let alone = (String::new(), outcome.experiment.facts(outcome.scale));
    let stages = outcome.stages.iter().map(|stage| (stage.name.clone(), stage.facts()));
    let mut facts = merge(&stages.chain([alone]).collect::<Vec<_>>());
    facts.push(Fact::new("runs", RUNS));
    facts
}

/// The settings of a simulated part.
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

/// Returns one fact for each setting: the common value, or the values by stage.
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
    // The values, and the stages that have them.
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
        _ => {
            told.iter().map(|(value, names)| format!("{}: {value}", tell_names(names))).collect::<Vec<_>>().join(" · ")
        }
    }
}

/// The names of stages; names can contain commas.
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
    fn common_settings_are_listed_once() {
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
