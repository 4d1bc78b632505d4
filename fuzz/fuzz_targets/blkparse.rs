//! The importer of `blkparse` text: it ends with a trace or with an error that names the line, and what it takes for
//! requests can be scored.
#![no_main]

use libfuzzer_sys::fuzz_target;
use senesce_probe::{score::compute_trace_figures, trace::import_blkparse};

fuzz_target!(|text: &[u8]| {
    let Ok(trace) = import_blkparse(text) else { return };
    let figures = compute_trace_figures(trace.block_requests());
    for score in [figures.reads.dynamic_layout_score, figures.writes.dynamic_layout_score].into_iter().flatten() {
        assert!((0.0..=1.0).contains(&score), "{score}");
    }
});
