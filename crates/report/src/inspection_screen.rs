//! An inspection on one screen of a terminal.

use serde_json::Value as Json;

use crate::format::{bytes, count, figure};

/// Losers of each kind that one screen has room for.
const LOSERS: usize = 10;
/// Width of the longest bar.
const BAR: usize = 24;

/// The inspection (JSON of schema `senesce-inspect/1`) as text.
pub fn inspection_screen(inspection: &Json) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    let target = &inspection["target"];
    let tree = &inspection["tree"];
    let layout = &tree["layout"];
    let device = target["device"].as_str().map(|device| format!(" on {device}")).unwrap_or_default();
    line(&format!(
        "{}  {}{device}, {} of {} in use, {} files, read {}",
        words(&target["path"]),
        words(&target["file_system"]),
        size(&target["used_bytes"]),
        size(&target["capacity_bytes"]),
        number(&tree["files"]),
        words(&target["read"]),
    ));
    line(&format!("\n{}\n", words(&inspection["verdict"])));
    line(&format!(
        "{:<22} {:>11} {:>13} {:>10} {:>9} {:>9}  {:>5} {:>7} {:>8}",
        "cold read (models)",
        "as it lies",
        "defragmented",
        "fresh copy",
        "s/GiB",
        "slowdown",
        "files",
        "between",
        "metadata"
    ));
    for cost in list(&inspection["costs"]) {
        line(&format!(
            "{:<22} {:>11} {:>13} {:>10} {:>9} {:>9}  {:>5} {:>7} {:>8}",
            words(&cost["device"]),
            seconds(&cost["seconds"]["as_it_lies"]),
            seconds(&cost["seconds"]["defragmented"]),
            seconds(&cost["seconds"]["fresh_copy"]),
            float(&cost["seconds_per_gib"]["as_it_lies"]),
            times(&cost["slowdown"]),
            percent(&cost["intrafile_share"]),
            percent(&cost["interfile_share"]),
            percent(&cost["metadata_share"]),
        ));
    }
    line(&format!(
        "\nlayout score {} · extents per file {} · fragmented {} of {} files · next file adjacent {}",
        score(&layout["layout_score"]),
        score(&layout["extents_per_file"]),
        number(&layout["fragmented_files"]),
        number(&layout["files"]),
        percent(&layout["adjacent_files_share"]),
    ));
    let special: Vec<String> = ["shared", "encoded", "inline", "preallocated", "delayed", "sparse_files"]
        .iter()
        .filter(|key| tree["special"][**key].as_u64().is_some_and(|count| count > 0))
        .map(|key| format!("{} {}", number(&tree["special"][*key]), key.replace('_', " ")))
        .collect();
    if !special.is_empty() {
        line(&format!("extents that are more than data in blocks: {}", special.join(" · ")));
    }
    free_space(&inspection["free_space"], &mut line);
    for (key, heading) in [("worst_directories", "worst directories"), ("worst_files", "worst files")] {
        losers(&inspection[key], heading, &mut line);
    }
    for warning in list(&inspection["warnings"]) {
        line(&format!("warning: {}", words(warning)));
    }
    text
}

fn free_space(free: &Json, line: &mut impl FnMut(&str)) {
    let Some(figures) = free.get("figures") else { return };
    line(&format!(
        "\nfree space: {} in {} extents, mean {}, largest {}",
        size(&figures["bytes"]),
        number(&figures["extents"]),
        size(&figures["mean_bytes"]),
        size(&figures["largest_bytes"]),
    ));
    let most = list(&figures["buckets"]).filter_map(|bucket| bucket["bytes"].as_f64()).fold(1.0, f64::max);
    for bucket in list(&figures["buckets"]) {
        let amount = bucket["bytes"].as_f64().unwrap_or(0.0);
        let bar = "▇".repeat((amount / most * BAR as f64).round() as usize);
        line(&format!(
            "  {:>8}… {bar:<BAR$} {:>9} in {}",
            size(&bucket["bucket_bytes"]),
            bytes(amount),
            number(&bucket["extents"])
        ));
    }
    if let Some(btrfs) = free.get("btrfs") {
        let unallocated = &btrfs["unallocated"];
        line(&format!(
            "  block groups: {} unallocated in {} runs",
            size(&unallocated["bytes"]),
            number(&unallocated["extents"])
        ));
        for purpose in list(&btrfs["purposes"]) {
            line(&format!(
                "  {:<18} {:>4} of {:>9}, {:>9} used, {:>9} free in {}, the largest {}",
                format!("{}, {}", words(&purpose["purpose"]), words(&purpose["profile"])),
                number(&purpose["groups"]),
                size(&purpose["bytes"]),
                size(&purpose["used_bytes"]),
                size(&purpose["free"]["bytes"]),
                number(&purpose["free"]["extents"]),
                size(&purpose["free"]["largest_bytes"]),
            ));
        }
    }
    for warning in list(&free["warnings"]) {
        line(&format!("  ahead: {}", words(warning)));
    }
}

fn losers(found: &Json, heading: &str, line: &mut impl FnMut(&str)) {
    if list(found).next().is_none() {
        return;
    }
    line(&format!("\n{heading:<20} {:>9} {:>9} {:>10} {:>9} {:>9}", "lost", "slowdown", "read", "files", "extents"));
    for loser in list(found).take(LOSERS) {
        let path = loser["path"].as_str().filter(|path| !path.is_empty()).unwrap_or("(the root)");
        line(&format!(
            "{:<20} {:>9} {:>9} {:>10} {:>9} {:>9}  {path}",
            "",
            seconds(&loser["lost_seconds"]),
            times(&loser["slowdown"]),
            size(&loser["bytes"]),
            number(&loser["files"]),
            number(&loser["extents"]),
        ));
    }
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn words(value: &Json) -> &str {
    value.as_str().unwrap_or("–")
}

fn number(value: &Json) -> String {
    value.as_u64().map_or("–".to_owned(), count)
}

fn float(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), figure)
}

fn score(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), |value| format!("{value:.3}"))
}

fn size(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), bytes)
}

fn seconds(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), |seconds| format!("{} s", figure(seconds)))
}

fn percent(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), |share| format!("{:.0}%", share * 100.0))
}

fn times(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), |times| format!("{}×", figure(times)))
}
