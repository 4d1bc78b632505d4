//! An inspection on one screen of a terminal.

use senesce_core::Printable;
use serde_json::Value as Json;

use crate::{
    devices::short,
    format::{bytes, count, figure, score as format_score, seconds as format_seconds},
    inspection::{share_of_loss, without_empty_ends},
    inspection_verdict::{order_hint, slow_best_order},
};

/// The key for the reason why `senesce defrag` refuses the file system. Absent if it does not.
pub(crate) const DEFRAG_REFUSAL: &str = "defrag_refusal";
/// A file that loses less is not listed: its loss is that of one seek of a disk, or of a few.
const LEAST_LOSS_SECONDS: f64 = 0.1;
/// Width of the longest bar.
const BAR: usize = 24;

/// The inspection (JSON of schema `senesce-inspect/2`) as text.
pub fn inspection_screen(inspection: &Json) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    let target = &inspection["target"];
    let tree = &inspection["tree"];
    let layout = &tree["layout"];
    let device = target["device"].as_str().map(|device| format!(" on {}", Printable::new(device))).unwrap_or_default();
    line(&format!(
        "{}  {}{device}, {} of {} in use, {}, read {}",
        words(&target["path"]),
        words(&target["file_system"]),
        size(&target["used_bytes"]),
        size(&target["capacity_bytes"]),
        many(&tree["files"], "file"),
        words(&target["read"]),
    ));
    line(&format!("\n{}\n", words(&inspection["verdict"])));
    if let Some(hint) = order_hint(inspection) {
        line(&format!("{hint}\n"));
    }
    line(&format!(
        "{:<22} {:>11}  {:>8}  {:>10}  {:>10}  {:>12}  {:>9}  {:>5}  {:>7}  {:>8}",
        "cold read (models)",
        "now",
        "slowdown",
        "fresh copy",
        "best order",
        "defragmented",
        "s/GiB",
        "files",
        "between",
        "metadata"
    ));
    for cost in list(&inspection["costs"]) {
        line(&format!(
            "{:<22} {:>11}  {:>8}  {:>10}  {:>10}  {:>12}  {:>9}  {:>5}  {:>7}  {:>8}",
            words(&cost["device"]),
            seconds(&cost["seconds"]["as_it_lies"]),
            times(&cost["slowdown"]),
            seconds(&cost["seconds"]["fresh_copy"]),
            seconds(&cost["seconds"]["best_order"]),
            seconds(&cost["seconds"]["defragmented"]),
            float(&cost["seconds_per_gib"]["as_it_lies"]),
            share_of_loss(cost, "intrafile_share", percent),
            share_of_loss(cost, "interfile_share", percent),
            share_of_loss(cost, "metadata_share", percent),
        ));
    }
    if let Some(reason) = slow_best_order(inspection) {
        line(&reason);
    }
    line(&read_ahead(target));
    if let Some(problem) = inspection[DEFRAG_REFUSAL].as_str() {
        line(&format!("`senesce defrag` cannot move files here: {}", Printable::new(problem)));
    }
    if let Some(advice) = defrag_advice(&inspection["defrag"]) {
        line(&advice);
    }
    line(&format!(
        "\nlayout score {} · extents per file {} · fragmented {} of {} with extents · next file adjacent {}",
        score(&layout["layout_score"]),
        float(&layout["extents_per_file"]),
        number(&layout["fragmented_files"]),
        many(&layout["files"], "file"),
        percent(&layout["adjacent_files_share"]),
    ));
    line(&lengths_and_distances(layout));
    let special: Vec<String> = ["shared", "encoded", "inline", "preallocated", "delayed", "sparse_files"]
        .iter()
        .filter(|key| tree["special"][**key].as_u64().is_some_and(|count| count > 0))
        .map(|key| format!("{} {}", number(&tree["special"][*key]), key.replace('_', " ")))
        .collect();
    if !special.is_empty() {
        line(&format!("not counted as plain data: {}", special.join(" · ")));
    }
    free_space(&inspection["free_space"], &mut line);
    losers(inspection, "worst_directories", ("worst directories", 0.0), &mut line);
    let loses = |loser: &Json| has_lost(loser, LEAST_LOSS_SECONDS);
    match (list(&inspection["worst_files"]).next(), list(&inspection["worst_files"]).any(loses)) {
        (None, _) => {}
        (Some(_), true) => losers(inspection, "worst_files", ("worst files", LEAST_LOSS_SECONDS), &mut line),
        (Some(_), false) => line("\nworst files: no file loses 100 ms or more (model)"),
    }
    for warning in list(&inspection["warnings"]) {
        line(&format!("warning: {}", words(warning)));
    }
    text
}

/// What `senesce defrag` would do. `None` if it is not known.
fn defrag_advice(advice: &Json) -> Option<String> {
    let what = match advice["worth"].as_str()? {
        "yes" => "worth it",
        "undecided" => "worth it on some kinds of disk",
        _ => return Some("senesce defrag: not worth it".to_owned()),
    };
    Some(format!(
        "senesce defrag: {what}: {} and {} to write, {} -> {} on {}, pays back after {} reads",
        many(&advice["files"], "file"),
        size(&advice["moved_bytes"]),
        seconds(&advice["now_seconds"]),
        seconds(&advice["after_seconds"]),
        words(&advice["device"]),
        float(&advice["reads_to_pay_back"]),
    ))
}

/// The modelled readahead, its source, and the device's own setting if it differs.
fn read_ahead(target: &Json) -> String {
    let modelled = target["read_ahead_kib"].as_u64();
    let from = match target["read_ahead_asked_for"].as_bool() {
        Some(true) => "requested",
        _ => "the kernel's default",
    };
    let own = target["device_read_ahead_kib"].as_u64().filter(|own| Some(*own) != modelled);
    let own = own.map(|own| format!("; the device has {own} KiB set: --read-ahead-kib {own}")).unwrap_or_default();
    format!("readahead modelled: {} KiB ({from}{own})", number(&target["read_ahead_kib"]))
}

/// The share of short extents, the share that huge pages could map, and the distance to the next
/// file.
fn lengths_and_distances(layout: &Json) -> String {
    /// Blocks of distances.
    const BLOCK_BYTES: f64 = 4096.0;
    let (short, aligned) = (&layout["short_extents"], &layout["aligned"]);
    let share = match (aligned["aligned_pieces"].as_f64(), aligned["pieces"].as_f64()) {
        (Some(lie_so), Some(pieces)) if pieces > 0.0 => {
            format!("{:.0}% of {}", lie_so / pieces * 100.0, many(&aligned["pieces"], "piece"))
        }
        _ => "–".to_owned(),
    };
    let distance = layout["interfile_distance_mean_blocks"].as_f64();
    format!(
        "extents below {} (natural transfer size) {} of {} · aligned 2 MiB {share} · mean way to \
         the next file {}",
        size(&short["natural_transfer_bytes"]),
        number(&short["extents"]),
        number(&layout["extents"]),
        distance.map_or("–".to_owned(), |blocks| bytes(blocks * BLOCK_BYTES)),
    )
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
    for bucket in without_empty_ends(figures["buckets"].as_array().map_or(&[], Vec::as_slice)) {
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
    for group in list(&free["areas"]) {
        allocation_areas(group, line);
    }
    for warning in list(&free["warnings"]) {
        line(&format!("  ahead: {}", words(warning)));
    }
}

/// The free space of the allocation areas of a RAID group, as one bar of ten letters, the fullest
/// areas first.
fn allocation_areas(group: &Json, line: &mut impl FnMut(&str)) {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let tenths: Vec<u64> = list(&group["by_tenths"]).map(|count| count.as_u64().unwrap_or(0)).collect();
    let most = tenths.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: u64| match count {
        0 => '·',
        count => HEIGHTS[(count * 7 / most) as usize],
    };
    line(&format!(
        "  {} of {} in RAID group {}, by free tenths {}: free in the fullest {}, in the emptiest {}",
        many(&group["areas"], "allocation area"),
        size(&group["bytes"]),
        number(&group["group"]),
        tenths.iter().map(|&count| height(count)).collect::<String>(),
        size(&group["fullest_bytes"]),
        size(&group["emptiest_bytes"]),
    ));
}

fn has_lost(loser: &Json, least_seconds: f64) -> bool {
    loser["lost_seconds"].as_f64().is_some_and(|lost| lost >= least_seconds)
}

/// A table of those that lose at least `least` seconds.
fn losers(inspection: &Json, key: &str, (heading, least): (&str, f64), line: &mut impl FnMut(&str)) {
    let found: Vec<&Json> = list(&inspection[key]).filter(|loser| has_lost(loser, least)).collect();
    if found.is_empty() {
        return;
    }
    let device = words(&inspection["costs"][0]["device"]);
    line(&format!("\n{heading}: time lost on {} (model)\n", short(&device)));
    let paths: Vec<String> = found.iter().map(|loser| path_of(&inspection["target"], loser)).collect();
    let width = paths.iter().map(|path| path.chars().count()).max().unwrap_or(0);
    // The path comes early: narrow terminals show the first columns.
    line(&format!(
        "{:>11}  {:>8}  {:<width$}  {:>9}  {:>7}  {:>7}  {:>5}",
        "lost", "slowdown", "path", "read", "files", "extents", "score"
    ));
    for (loser, path) in found.into_iter().zip(paths) {
        line(&format!(
            "{:>11}  {:>8}  {path:<width$}  {:>9}  {:>7}  {:>7}  {:>5}",
            seconds(&loser["lost_seconds"]),
            times(&loser["slowdown"]),
            size(&loser["bytes"]),
            number(&loser["files"]),
            number(&loser["extents"]),
            score(&loser["layout_score"]),
        ));
    }
}

/// The path of a directory or file for a reader: absolute in a mounted file system, so that it can
/// be copied; else from the root of the file system.
pub(crate) fn path_of(target: &Json, loser: &Json) -> String {
    let path = loser["path"].as_str().unwrap_or_default();
    let path = match target["path"].as_str().filter(|_| target["mount_point"].is_string()) {
        Some(root) => format!("{}/{path}", root.trim_end_matches('/')),
        None if path.is_empty() => "(the root)".to_owned(),
        None => path.to_owned(),
    };
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { &path };
    Printable::new(path).to_string()
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

/// A text of the inspection on one line. Paths and names come from the inspected file system.
fn words(value: &Json) -> String {
    value.as_str().map_or("–".to_owned(), |text| Printable::new(text).to_string())
}

fn number(value: &Json) -> String {
    value.as_u64().map_or("–".to_owned(), count)
}

/// A count with its noun, in the singular for one.
fn many(value: &Json, what: &str) -> String {
    let plural = if value.as_u64() == Some(1) { "" } else { "s" };
    format!("{} {what}{plural}", number(value))
}

fn float(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), figure)
}

fn score(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), format_score)
}

fn size(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), bytes)
}

fn seconds(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), format_seconds)
}

fn percent(value: &Json) -> String {
    // A small negative share has no sign: -0% is no number.
    value.as_f64().map_or("–".to_owned(), |share| format!("{:.0}%", (share * 100.0).round() + 0.0))
}

fn times(value: &Json) -> String {
    value.as_f64().map_or("–".to_owned(), |times| format!("{}×", figure(times)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn allocation_areas_are_a_line_for_each_group() {
        let inspection = json!({ "free_space": {
            "figures": { "bytes": 4096, "extents": 1, "mean_bytes": 4096, "largest_bytes": 4096, "buckets": [] },
            "areas": [{
                "group": 1, "areas": 12, "bytes": 4 << 20, "emptiest_bytes": 4 << 20, "fullest_bytes": 0,
                "by_tenths": [8, 1, 0, 0, 0, 0, 0, 0, 0, 3],
            }],
        } });
        let expected = "  12 allocation areas of 4 MiB in RAID group 1, by free tenths █▁·······▃: free in the fullest 0 B, in \
                        the emptiest 4 MiB\n";
        let screen = inspection_screen(&inspection);
        assert!(screen.contains(expected), "{screen}");
    }

    #[test]
    fn paths_of_a_mount_are_absolute() {
        let of = |root: &str, path: &str| {
            let target = json!({ "path": root, "mount_point": "/" });
            path_of(&target, &json!({ "path": path }))
        };
        assert_eq!(of("/", "var/lib/dpkg/info"), "/var/lib/dpkg/info");
        assert_eq!([of("/usr/share", "doc"), of("/", ""), of("/srv", "")], ["/usr/share/doc", "/", "/srv"]);
        let image = |path: &str| path_of(&json!({ "path": "a.img", "mount_point": null }), &json!({ "path": path }));
        assert_eq!([image("d"), image("")], ["d", "(the root)"]);
    }

    #[test]
    fn first_columns_have_the_slowdown_and_the_path() {
        let loser = json!({ "path": "var/lib", "lost_seconds": 2.0, "slowdown": 3.0, "bytes": 9, "files": 1 });
        let target = json!({ "path": "/", "mount_point": "/" });
        let costs = json!([{ "device": "model: HDD", "slowdown": 4.5, "seconds": { "as_it_lies": 9.0 } }]);
        let screen = inspection_screen(&json!({ "target": target, "costs": costs, "worst_directories": [loser] }));
        for part in ["4.50×", "/var/lib"] {
            let line = screen.lines().find(|line| line.contains(part)).unwrap();
            assert!(line.find(part).unwrap() + part.len() < 60, "{line}");
        }
    }

    #[test]
    fn hostile_names_stay_on_their_line() {
        let name = "a\u{1b}]0;title\u{7}\u{1b}[2J\nverdict\r\u{202e}\0";
        let loser = json!({ "path": name, "lost_seconds": 1.0 });
        let plain = json!({ "path": "a", "lost_seconds": 1.0 });
        let inspection = |name: &str, loser: &Json| {
            json!({
                "target": { "path": name, "file_system": name, "device": name, "read": name },
                "verdict": name, "warnings": [name], "costs": [{ "device": name }],
                "worst_files": [loser], "worst_directories": [loser],
            })
        };
        let screen = inspection_screen(&inspection(name, &loser));
        assert!(!screen.chars().any(|character| character != '\n' && senesce_core::is_hazard(character)), "{screen}");
        assert_eq!(screen.lines().count(), inspection_screen(&inspection("a", &plain)).lines().count());
        assert!(screen.contains(r"a\x1b]0;title\x07\x1b[2J\nverdict\r\u{202e}\x00"), "{screen}");
    }

    #[test]
    fn files_that_lose_little_are_one_line() {
        let of = |lost: f64| {
            let loser = json!({ "path": "a/b", "lost_seconds": lost, "slowdown": 309.0 });
            inspection_screen(&json!({ "worst_files": [loser] }))
        };
        assert!(of(0.018).contains("\nworst files: no file loses 100 ms or more (model)\n"), "{}", of(0.018));
        assert!(of(0.1).contains("lost  slowdown  path"), "{}", of(0.1));
    }

    #[test]
    fn the_advice_is_a_line() {
        let screen = |advice: Json| inspection_screen(&json!({ "defrag": advice }));
        let worth = json!({
            "worth": "yes", "device": "model: HDD 7.2K", "files": 12_326, "moved_bytes": 83 << 20,
            "now_seconds": 33.1, "after_seconds": 1.1, "reads_to_pay_back": 1.07,
        });
        let line = "senesce defrag: worth it: 12,326 files and 83 MiB to write, 33.1 s -> 1.10 s on model: HDD 7.2K, \
                    pays back after 1.07 reads\n";
        let shown = screen(worth);
        assert!(shown.contains(line), "{shown}");
        assert!(screen(json!({ "worth": "no" })).contains("senesce defrag: not worth it\n"));
        assert!(!screen(Json::Null).contains("senesce defrag"));
    }

    #[test]
    fn a_small_loss_is_attributed_to_nothing() {
        let seconds = json!({ "as_it_lies": 10.1, "defragmented": 10.0, "best_order": 9.9, "fresh_copy": 10.0 });
        let screen = |within: Option<f64>| {
            inspection_screen(&json!({ "costs": [{
                "device": "model: X", "seconds": seconds, "intrafile_share": within, "metadata_share": 0.24,
            }] }))
        };
        assert!(screen(Some(0.76)).contains("24%"));
        assert!(!screen(None).contains("24%"));
    }

    #[test]
    fn screen_shows_lengths_distances_and_readahead() {
        let layout = json!({
            "extents": 70, "files": 1, "fragmented_files": 1,
            "short_extents": { "natural_transfer_bytes": 8 << 20, "extents": 42 },
            "aligned": { "pieces": 8, "aligned_pieces": 2 },
            "interfile_distance_mean_blocks": 512.0,
        });
        let mut inspection = json!({
            "target": { "read_ahead_kib": 128, "read_ahead_asked_for": false, "device_read_ahead_kib": 4096 },
            "tree": { "files": 1, "layout": layout },
        });
        let screen = inspection_screen(&inspection);
        for text in [
            "in use, 1 file, read",
            "fragmented 1 of 1 file with extents ·",
            "extents below 8 MiB (natural transfer size) 42 of 70",
            " 42 of 70 · aligned 2 MiB 25% of 8 pieces · mean way to the next file 2 MiB",
            "readahead modelled: 128 KiB (the kernel's default; the device has 4096 KiB set: --read-ahead-kib 4096)",
        ] {
            assert!(screen.contains(text), "{text}:\n{screen}");
        }
        inspection["target"]["device_read_ahead_kib"] = 128.into();
        assert!(inspection_screen(&inspection).contains("128 KiB (the kernel's default)\n"));
        inspection["target"]["read_ahead_asked_for"] = true.into();
        assert!(inspection_screen(&inspection).contains("128 KiB (requested)\n"));
    }
}
