//! The importer of `blkparse` text: it ends with a trace or with an error that names the line, and what it takes for
//! requests can be scored, and served by modelled devices.
#![no_main]

use std::num::NonZeroU32;

use libfuzzer_sys::fuzz_target;
use senesce_device::{QueuePolicy, compute_cost, find_preset};
use senesce_probe::{score::compute_trace_figures, trace::import_blkparse};

fuzz_target!(|text: &[u8]| {
    let trace = match import_blkparse(text) {
        Ok(trace) => trace,
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("line "), "an error names the line: {error}");
            return;
        }
    };
    let figures = compute_trace_figures(trace.block_requests());
    for score in [figures.reads.dynamic_layout_score, figures.writes.dynamic_layout_score].into_iter().flatten() {
        assert!((0.0..=1.0).contains(&score), "{score}");
    }
    let requests: Vec<_> = trace.block_requests().collect();
    let depth = NonZeroU32::new(4).expect("not zero");
    let policies = [QueuePolicy::default(), QueuePolicy::BackToBack { depth }, QueuePolicy::Recorded { depth }];
    for device in ["hdd-7200", "nvme"] {
        let spec = find_preset(device).expect("it is built in");
        for policy in policies {
            let mut model = spec.build().expect("presets can be built");
            let cost = compute_cost(&mut *model, &requests, policy);
            assert!(cost.seconds.is_finite() && cost.seconds >= 0.0, "{cost:?}");
            assert_eq!(cost.requests, requests.len() as u64);
        }
    }
});
