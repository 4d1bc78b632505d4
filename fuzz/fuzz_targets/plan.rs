//! Plan files: any text is a plan or an error that says what is wrong, and what was taken can be written, read again and
//! expanded into arms and checkpoints.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use senesce_experiment::plan::Plan;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let path = Path::new("p.toml");
    let plan = match Plan::parse(path, text) {
        Ok(plan) => plan,
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("p.toml"), "an error names the file: {error}");
            return;
        }
    };
    let written = toml::to_string(&plan).expect("what was read can be written");
    assert_eq!(Plan::parse(path, &written).expect("and read again"), plan);
    assert!(!plan.roles().is_empty());
    for role in plan.roles() {
        plan.volume(*role);
    }
    // As a run would cut its pulls, if it made a thousand at most.
    let pulls = plan.history.pulls.unwrap_or(1000).min(1000);
    let checkpoints = plan.checkpoints(pulls);
    assert_eq!((checkpoints.first(), checkpoints.last()), (Some(&0), Some(&pulls)));
    assert!(checkpoints.is_sorted_by(|a, b| a < b), "{checkpoints:?}");
    for arm in plan.arms().iter().take(4) {
        assert_eq!(plan.cells(arm, pulls).len(), checkpoints.len() * plan.roles().len());
    }
});
