//! The page of an inspection: verdict, map, modelled costs, losers, layout, free space.
//!
//! The input is the inspection as JSON (`senesce-inspect/2`), so that this crate does not import
//! `inspect`.

use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::{
    Error,
    csv::{Csv, exact},
    devices::short,
    format::{
        bytes, count, escape, figure, page_json, percent as format_percent, score as format_score,
        seconds as format_seconds,
    },
    html::style,
    inspection_bars::cost_bars,
    inspection_screen::path_of,
    inspection_verdict,
    page::render_page,
};

/// Options of the page.
#[derive(Clone, Debug, Default)]
pub struct InspectionOptions {
    /// Version of the program, for the footer.
    pub senesce_version: String,
    /// Time of making, as text; `None` shows nothing.
    pub made_at: Option<String>,
}

/// The choice of the files that lose most.
const FILE_CHOICE: &str = "If files lose about the same time, the larger ones are listed. One seek costs a small file and a \
                           large file about the same time.";

/// Renders an inspection as one HTML page, which loads nothing.
///
/// In: JSON of schema `senesce-inspect/2` with its map. Out: the page; the same for the same input.
/// Values that are missing in the input are shown as dashes.
pub fn render_inspection(inspection: &Json, options: &InspectionOptions) -> Result<String, Error> {
    let target = &inspection["target"];
    let tree = &inspection["tree"];
    let map = &inspection["map"];
    let modes = [("tree", "Place in the tree"), ("directory", "Directory"), ("age", "Age"), ("extents", "Extents")];
    let first = inspection["costs"][0]["device"].as_str().unwrap_or("the first device");
    // A ratio of a few milliseconds says little, so a row has its share of the whole read.
    let whole = inspection["costs"][0]["seconds"]["as_it_lies"].as_f64().filter(|whole| *whole > 0.0);
    let losers = |key: &str, title: &str, what: &str, order: &str| {
        let is_directory = key == "worst_directories";
        context! {
            whole => whole.map(format_seconds),
            is_directory => is_directory,
            key => key,
            title => title,
            caption => format!(
                "Time that a cold read loses {what}, against a fresh copy ({}). {order} A row shows its cells on the map.",
                short(first)
            ),
            rows => rows_of(&inspection[key], |loser| loser_row(target, loser, whole, is_directory)),
        }
    };
    let values = context! {
        target => context! {
            path => text(&target["path"]),
            file_system => text(&target["file_system"]),
            device => target["device"].as_str(),
            kernel => text(&target["kernel"]),
            read => text(&target["read"]),
            read_ahead_kib => target["read_ahead_kib"].as_u64(),
        },
        lead => inspection_verdict::lead(inspection),
        key_figures => inspection_verdict::key_figures(inspection),
        verdict => inspection_verdict::details(inspection),
        warnings => inspection["warnings"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>(),
        used => size(&target["used_bytes"]),
        capacity => size(&target["capacity_bytes"]),
        files => number(&tree["files"]),
        directories => number(&tree["directories"]),
        made_at => options.made_at.as_deref(),
        version => options.senesce_version.as_str(),
        schema => text(&inspection["schema"]),
        style => style() + include_str!("../assets/inspect.css"),
        script => include_str!("../assets/report.js"),
        map_script => concat!(include_str!("../assets/mapview.js"), include_str!("../assets/map.js")),
        modes => modes.map(|(name, label)| context! { name => name, label => label }),
        map => context! { cell => size(&map["cell_bytes"]) },
        cost_bars => cost_bars(inspection),
        slow_best_order => inspection_verdict::slow_best_order(inspection),
        own_read_ahead_kib => target["device_read_ahead_kib"].as_u64().filter(|own| Some(*own) != target["read_ahead_kib"].as_u64()),
        cost_csv => cost_csv(&inspection["costs"]),
        costs => rows_of(&inspection["costs"], cost_row),
        losers => [
            losers("worst_directories", "Directories that lose most", "on the files directly in them", ""),
            losers("worst_files", "Files that lose most", "on them", FILE_CHOICE),
        ],
        layout => layout_rows(tree),
        free => free_space(&inspection["free_space"]),
        data => page_json(&inspection.to_string()),
    };
    render_page("inspect.html", include_str!("../assets/inspect.html"), values)
}

fn rows_of(list: &Json, row: impl Fn(&Json) -> Vec<String>) -> Vec<Vec<String>> {
    list.as_array().into_iter().flatten().map(row).collect()
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

fn number(value: &Json) -> String {
    value.as_u64().map_or("–".to_owned(), count)
}

fn size(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), bytes)
}

fn score(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), format_score)
}

fn seconds(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), format_seconds)
}

fn percent(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), format_percent)
}

fn times(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), |times| format!("{}×", figure(times)))
}

/// A share of the loss. Empty if the inspection gives no shares, because the loss is below 2% of a
/// fresh copy.
pub(crate) fn share_of_loss(cost: &Json, key: &str, percent: impl Fn(&Json) -> String) -> String {
    // A part that is faster than in a fresh copy makes the shares of the others exceed 100%.
    let is_split = |key: &str| cost[key].as_f64().is_none_or(|share| (-0.005..=1.005).contains(&share));
    let is_shown = !cost["intrafile_share"].is_null()
        && ["intrafile_share", "interfile_share", "metadata_share"].iter().all(|key| is_split(key));
    if is_shown { percent(&cost[key]) } else { String::new() }
}

fn cost_row(cost: &Json) -> Vec<String> {
    vec![
        text(&cost["device"]),
        seconds(&cost["seconds"]["as_it_lies"]),
        seconds(&cost["seconds"]["defragmented"]),
        seconds(&cost["seconds"]["best_order"]),
        seconds(&cost["seconds"]["fresh_copy"]),
        cost["seconds_per_gib"]["as_it_lies"].as_f64().map_or("–".to_owned(), figure),
        times(&cost["slowdown"]),
        share_of_loss(cost, "intrafile_share", percent),
        share_of_loss(cost, "interfile_share", percent),
        share_of_loss(cost, "metadata_share", percent),
    ]
}

/// The modelled costs as CSV: a row for each device and layout.
fn cost_csv(costs: &Json) -> String {
    let mut csv = Csv::new(&["device", "layout", "seconds", "seconds_per_gib"]);
    for cost in costs.as_array().into_iter().flatten() {
        for layout in ["as_it_lies", "defragmented", "best_order", "fresh_copy"] {
            let at = |key: &str| cost[key][layout].as_f64().map(exact).unwrap_or_default();
            csv.row(&[text(&cost["device"]), layout.to_owned(), at("seconds"), at("seconds_per_gib")]);
        }
    }
    csv.finish()
}

/// The free extents by length as CSV.
fn free_csv(buckets: &[Json]) -> String {
    let mut csv = Csv::new(&["least_extent_bytes", "extents", "bytes"]);
    for bucket in buckets {
        csv.row(&["bucket_bytes", "extents", "bytes"].map(|key| bucket[key].as_u64().unwrap_or(0).to_string()));
    }
    csv.finish()
}

/// A row of a table of losers. In the table of files each row is one file, so it has no count.
fn loser_row(target: &Json, loser: &Json, whole: Option<f64>, is_directory: bool) -> Vec<String> {
    let share = loser["lost_seconds"].as_f64().zip(whole).map(|(lost, whole)| format_percent(lost / whole));
    let mut row = vec![
        seconds(&loser["lost_seconds"]),
        path_of(target, loser),
        share.unwrap_or_else(|| "–".to_owned()),
        times(&loser["slowdown"]),
        size(&loser["bytes"]),
    ];
    if is_directory {
        row.push(number(&loser["files"]));
    }
    row.extend([number(&loser["extents"]), score(&loser["layout_score"])]);
    row
}

fn layout_rows(tree: &Json) -> Vec<(String, String)> {
    let layout = &tree["layout"];
    let fragmented = match (layout["fragmented_files"].as_f64(), layout["files"].as_f64()) {
        (Some(fragmented), Some(files)) if files > 0.0 => {
            format!("{} ({})", count(fragmented as u64), format_percent(fragmented / files))
        }
        _ => "–".to_owned(),
    };
    let mut rows = vec![
        ("Layout score", score(&layout["layout_score"])),
        ("Extents per file", score(&layout["extents_per_file"])),
        ("Files in more than one extent", fragmented),
        ("Next file begins where the last one ended", percent(&layout["adjacent_files_share"])),
        ("Content", size(&tree["content_bytes"])),
        ("Allocated", size(&tree["allocated_bytes"])),
    ];
    let short = &layout["short_extents"];
    if let Some(bytes) = short["natural_transfer_bytes"].as_f64() {
        let name = "Extents shorter than what a device reads at nine tenths of its best rate";
        rows.push((name, format!("{} (below {})", number(&short["extents"]), self::bytes(bytes))));
    }
    for (key, name) in [
        ("sparse_files", "Sparse files"),
        ("preallocated", "Preallocated extents, never written"),
        ("shared", "Shared extents (reflinks, snapshots)"),
        ("inline", "Inline extents, among the metadata"),
        ("encoded", "Compressed or encrypted extents"),
        ("delayed", "Extents not written yet"),
    ] {
        if tree["special"][key].as_u64().is_some_and(|count| count > 0) {
            rows.push((name, number(&tree["special"][key])));
        }
    }
    for class in layout["by_size"].as_array().into_iter().flatten() {
        if class["fragmented_files"].as_u64().is_some_and(|count| count > 0) {
            let least = class["at_least_bytes"].as_f64().unwrap_or(0.0);
            let score = score(&class["layout_score"]);
            let text = format!("{score}, {} of {} files", number(&class["fragmented_files"]), number(&class["files"]));
            rows.push(("", format!("{}–{}: {text}", bytes(least), bytes(least.max(0.5) * 2.0))));
        }
    }
    let mut named = Vec::new();
    for (name, value) in rows {
        match (name, value.split_once(": ")) {
            ("", Some((class, rest))) => {
                named.push((format!("Score of files of {class} (fragmented)"), rest.to_owned()))
            }
            _ => named.push((name.to_owned(), value)),
        }
    }
    named
}

/// The block groups of Btrfs by purpose, and the space in no block group.
fn block_groups(btrfs: &Json) -> Option<Vec<Vec<String>>> {
    let mut rows = rows_of(btrfs.get("purposes")?, |purpose| {
        let free = &purpose["free"];
        vec![
            format!("{}, {}", text(&purpose["purpose"]), text(&purpose["profile"])),
            number(&purpose["groups"]),
            size(&purpose["bytes"]),
            size(&purpose["used_bytes"]),
            size(&free["bytes"]),
            number(&free["extents"]),
            size(&free["largest_bytes"]),
        ]
    });
    let unallocated = &btrfs["unallocated"];
    rows.push(vec![
        "unallocated".to_owned(),
        "–".to_owned(),
        size(&unallocated["bytes"]),
        "–".to_owned(),
        size(&unallocated["bytes"]),
        number(&unallocated["extents"]),
        size(&unallocated["largest_bytes"]),
    ]);
    Some(rows)
}

/// The allocation areas of a garden: a row for each RAID group, with the free share of the fullest
/// and of the emptiest area.
fn allocation_areas(areas: &Json) -> Vec<Vec<String>> {
    rows_of(areas, |group| {
        let mut row = vec![
            number(&group["group"]),
            number(&group["areas"]),
            size(&group["bytes"]),
            size(&group["fullest_bytes"]),
            size(&group["emptiest_bytes"]),
        ];
        row.extend(group["by_tenths"].as_array().into_iter().flatten().map(number));
        row
    })
}

/// The buckets from the first to the last that has free extents.
pub(crate) fn without_empty_ends(buckets: &[Json]) -> &[Json] {
    let has_any = |bucket: &Json| bucket["bytes"].as_f64().is_some_and(|bytes| bytes > 0.0);
    let first = buckets.iter().position(has_any).unwrap_or(buckets.len());
    let last = buckets.iter().rposition(has_any).map_or(first, |last| last + 1);
    &buckets[first..last]
}

/// The histogram of free extents as bars of bytes.
fn free_space(free: &Json) -> Option<Value> {
    let figures = free.get("figures")?;
    let buckets = figures["buckets"].as_array()?;
    let most = buckets.iter().filter_map(|bucket| bucket["bytes"].as_f64()).fold(1.0, f64::max);
    const ROW: usize = 22;
    let mut bars = String::new();
    let drawn = without_empty_ends(buckets);
    for (number, bucket) in drawn.iter().enumerate() {
        let at = number * ROW;
        let amount = bucket["bytes"].as_f64().unwrap_or(0.0);
        let width = (amount / most * 160.0).max(if amount > 0.0 { 1.5 } else { 0.0 });
        let label = escape(&size(&bucket["bucket_bytes"]));
        let value = match amount > 0.0 {
            true => escape(&format!("{} in {}", bytes(amount), self::number(&bucket["extents"]))),
            false => "none".to_owned(),
        };
        bars.push_str(&format!(
            r#"<text x="72" y="{}" text-anchor="end">{label}</text><rect class="bar" x="80" y="{}" width="{width:.1}" height="14" rx="2"/><text x="{:.1}" y="{}">{value}</text>"#,
            at + 15,
            at + 4,
            86.0 + width,
            at + 15,
        ));
    }
    let height = drawn.len() * ROW + 6;
    let label = escape("Bytes of free space by length of free extent");
    let chart =
        format!(r#"<svg class="panel" viewBox="0 0 360 {height}" role="img" aria-label="{label}">{bars}</svg>"#);
    let caption = format!(
        "{} free in {} extents, the largest {}. A row is the free extents from its length up to twice that: their bytes and number.{}",
        size(&figures["bytes"]),
        number(&figures["extents"]),
        size(&figures["largest_bytes"]),
        match free.get("btrfs") {
            Some(_) => " Free extents of the block groups for data, and runs that no block group has.",
            None => "",
        },
    );
    let warnings: Vec<String> = free["warnings"].as_array().into_iter().flatten().map(text).collect();
    Some(
        context! { chart => chart, csv => free_csv(buckets), caption => caption, warnings => warnings, groups => block_groups(&free["btrfs"]), areas => allocation_areas(&free["areas"]) },
    )
}
