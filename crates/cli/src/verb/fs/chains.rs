//! What an aggregate's drives were asked for, for people and for machines.

use senesce_garden::{AggregateReport, Chains};
use serde_json::{Value, json};

/// Chains and stripes since the aggregate was opened, and in the last consistency point.
pub fn report_chains(report: &AggregateReport) -> Value {
    let chains =
        |chains: Chains| json!({ "blocks": chains.blocks, "requests": chains.requests, "mean": chains.mean() });
    let counts = |counts: &senesce_garden::RaidCounts| {
        json!({
            "write_chains": chains(counts.data.writes),
            "read_chains": chains(counts.data.reads),
            "parity_read_chains": chains(counts.data.parity_reads),
            "full_stripes": counts.full_stripes,
            "partial_stripes": counts.partial_stripes,
        })
    };
    json!({
        "consistency_points": report.counts.consistency_points,
        "map_lookups": report.counts.map_lookups,
        "redirects": report.counts.redirects,
        "relocations": report.counts.relocations,
        "demotions": report.counts.demotions,
        "areas_cleaned": report.counts.areas_cleaned,
        "fix_ups": report.counts.fix_ups,
        "sequential_reads": report.counts.sequential_reads,
        "read_aheads": report.counts.read_aheads,
        "read_ahead_blocks": report.counts.read_ahead_blocks,
        "fake_dirty_blocks": report.counts.fake_dirty,
        "fake_dirty_writes": report.counts.fake_writes,
        "rewritten_after_read": report.counts.rewritten_after_read,
        "rewrites_put_off": report.counts.rewrites_put_off,
        "since_opening": counts(&report.raid),
        "last_consistency_point": counts(&report.raid_last_point),
    })
}

/// The same, a line for each kind.
pub fn print_chains(counts: &Value) {
    for (what, when) in [("since_opening", "since opening"), ("last_consistency_point", "last consistency point")] {
        println!("chains, {when}");
        for (name, key) in [("write", "write_chains"), ("read", "read_chains"), ("parity read", "parity_read_chains")] {
            let chains = &counts[what][key];
            let mean = chains["mean"].as_f64().map_or("none".to_owned(), |mean| format!("{mean:.2}"));
            println!("  {name:<15} {mean:>8} blocks; {} in {} requests", chains["blocks"], chains["requests"]);
        }
        let (full, partial) = (&counts[what]["full_stripes"], &counts[what]["partial_stripes"]);
        println!("  stripes         {full} whole, {partial} in part");
    }
    println!("gardening");
    println!("  areas cleaned   {}, {} blocks moved", counts["areas_cleaned"], counts["relocations"]);
    println!("  demotions       {} blocks from flash to disks", counts["demotions"]);
    println!("  redirects       {}, {} pointers put right", counts["redirects"], counts["fix_ups"]);
    println!(
        "  reads in order  {}, {} blocks read ahead, {} written together after it; {} times put off",
        counts["sequential_reads"],
        counts["read_ahead_blocks"],
        counts["rewritten_after_read"],
        counts["rewrites_put_off"]
    );
}
