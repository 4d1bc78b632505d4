//! A made-up table of published experiments.

use serde_json::{Value, json};

/// Three experiments: one with figures of all kinds and charts, one that did not keep up, one that
/// was not run.
pub fn reproduction() -> Value {
    let figure = |name: &str, ours: &str, verdict: Option<&str>| {
        let ratio = verdict.map(|_| 0.89);
        let cause = verdict.filter(|verdict| *verdict != "met").map(|_| "Cleaning moves the <emptiest> areas.");
        let fitted = (verdict == Some("met")).then_some("the <fill> was set");
        json!({ "name": name, "paper": "-> 10.9", "section": "7.1", "value": 1.0, "ours": ours, "ratio": ratio, "verdict": verdict, "cause": cause, "fitted": fitted })
    };
    let line = |name: &str, unkept: u32| {
        let place = |at: u32| json!({ "x": at, "y": 64.0 / f64::from(at + 1), "unkept": at > 6 - unkept });
        json!({ "name": name, "places": (1..=6).map(place).collect::<Vec<_>>() })
    };
    let chart = |title: &str, unkept: u32| {
        let lines = [line("without <cleaning>", unkept), line("with cleaning", 0)];
        json!({ "title": title, "x": "turnovers", "y": "blocks a write chain", "logarithmic": true, "lines": lines })
    };
    let part = |kind: &str, figures: Vec<Value>, charts: Vec<Value>| {
        json!({ "kind": kind, "title": "OLTP on drives", "figures": figures, "charts": charts, "notes": ["One parity drive."],
        "particular": [{ "what": "gardening", "told": "without <cleaning>: none · with cleaning: quota 200 %" }],
        "ran": { "part": "E4 time", "ended": "2026-11-23 06:40:12 UTC", "processor_seconds": 34.25, "wall_seconds": 40.5, "jobs": 2, "host": "2 x X" } })
    };
    let experiment = |name: &str, status: &str, why: &str, parts: Vec<Value>| {
        let tally = json!({ "numbers": 3, "verdicts": [1, 1, 0, 1], "fitted": 1, "directions": 0, "kept": 0 });
        json!({
            "name": name, "setup": "OLTP <on> disks", "paper": "chains go to 1", "status": status, "tally": tally,
            "why": why, "parts": parts,
        })
    };
    let counted = part(
        "structure",
        vec![
            figure("write chain", "9.7", Some("met")),
            figure("read chain", "0.8", Some("not-met")),
            figure("cores", "0.8", Some("direction-only")),
            figure("latency", "0.8", Some("not-comparable")),
        ],
        vec![chart("Write chains", 0), chart("Reads for parity", 0)],
    );
    let timed = part("time", vec![figure("latency", "did not keep up", None)], vec![chart("Mean latency", 2)]);
    json!({
        "schema": "senesce-reproduction/3", "summary": "1 of 3 published numbers are met within 40% (1 of them <fitted>).", "senesce_version": "1.2.3", "senesce_build": "0123456789abcdef".repeat(4), "made_at": "2026-11-23 06:41:00 UTC",
        "common": [{ "what": "drives", "told": "20 of data and 1 of <parity>" }, { "what": "seed", "told": "1" }],
        "scale": { "areas": 256, "areas_per_point": 4, "turnover_percent": 100 },
        "experiments": [
            experiment("E4", "run", "", vec![counted, timed.clone()]),
            experiment("E6", "in part", "", vec![timed]),
            experiment("E9", "not run", "Not here: compaction.", Vec::new()),
        ],
    })
}
