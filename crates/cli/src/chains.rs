//! The requests to the drives of an aggregate, for people: in all, by medium, and by drive.

use serde_json::Value;

use crate::table::render_table;

/// The spans of which there are counts, as keys and in words.
const SPANS: [(&str, &str); 2] =
    [("since_opening", "since opening"), ("last_consistency_point", "last consistency point")];
/// Kinds of chains, as keys and in words.
const KINDS: [(&str, &str); 3] =
    [("write_chains", "write"), ("read_chains", "read"), ("parity_read_chains", "parity read")];

/// The same, a line for each kind.
pub fn print_chains(counts: &Value) {
    for (span, when) in SPANS {
        println!("chains, {when}");
        for (key, name) in KINDS {
            let chains = &counts[span][key];
            println!(
                "  {name:<15} {:>8} blocks; {} in {} requests",
                mean(chains),
                chains["blocks"],
                chains["requests"]
            );
        }
        let (full, partial) = (&counts[span]["full_stripes"], &counts[span]["partial_stripes"]);
        println!("  stripes         {full} whole, {partial} in part");
        media(counts, span).iter().for_each(|line| println!("  {line}"));
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

/// Chains of each medium since opening, a line for each: what `fs stat` says, whose opening writes
/// in memory only.
pub fn print_media(counts: &Value) {
    media(counts, "since_opening").iter().for_each(|line| println!("  {line}"));
}

/// Chains of each drive since opening, as a table.
pub fn print_each_drive(counts: &Value) {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let row = |drive: &Value| {
        let kinds = KINDS.map(|(key, _)| {
            let chains = &drive["since_opening"][key];
            format!("{} ({} in {})", mean(chains), chains["blocks"], chains["requests"])
        });
        let parity = if drive["parity"] == true { "parity" } else { "" };
        let head = [word(&drive["drive"]), word(&drive["medium"]), parity.to_owned()];
        head.into_iter().chain(kinds).collect::<Vec<_>>()
    };
    let heading = ["drive", "medium", "", "write chain", "read chain", "parity read chain"].map(str::to_owned).to_vec();
    let rows = counts["drives"].as_array().into_iter().flatten().map(row);
    print!("{}", render_table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()));
}

/// A line for each medium with requests.
fn media(counts: &Value, span: &str) -> Vec<String> {
    let line = |of: &Value| {
        let counts = &of[span];
        let kinds =
            KINDS.iter().filter(|(key, _)| counts[*key]["requests"].as_u64().is_some_and(|requests| requests > 0));
        let kinds: Vec<String> = kinds
            .map(|(key, name)| {
                let chains = &counts[*key];
                format!("{name} {} blocks ({} in {} requests)", mean(chains), chains["blocks"], chains["requests"])
            })
            .collect();
        let medium = of["medium"].as_str().unwrap_or("?");
        (!kinds.is_empty()).then(|| format!("chains, {medium}: {}", kinds.join(", ")))
    };
    counts["media"].as_array().into_iter().flatten().filter_map(line).collect()
}

fn mean(chains: &Value) -> String {
    chains["mean"].as_f64().map_or("none".to_owned(), |mean| format!("{mean:.2}"))
}
