//! The whole in a sentence or two, for whoever reads nothing else.

use senesce_probe::score::FreeSpaceWarning;

use crate::figures::Inspection;

/// From this slowdown on a layout is no longer called young: real fresh copies, which no model packs as well as itself,
/// come to 1.15 on ext4, 1.20 to 1.26 on XFS and 1.27 to 1.34 on Btrfs.
const AGED: f64 = 1.5;
/// From these slowdowns on a layout is called so.
const NAMES: [(f64, &str); 4] = [(5.0, "Badly aged"), (2.0, "Aged"), (AGED, "Somewhat aged"), (0.0, "Young")];

/// The verdict on what was found, from its first device.
pub fn compute_verdict(inspection: &Inspection) -> String {
    let tree = &inspection.tree;
    let partial = partial(inspection);
    let found = if tree.not_looked_at > 0 { " that was found" } else { "" };
    let Some(cost) = inspection.costs.first().filter(|_| tree.files > 0) else {
        return format!("{partial}Nothing to judge: there is no file{found}.");
    };
    if tree.content_bytes == 0 {
        let empty = if tree.files == 1 { "the only file".to_owned() } else { format!("each of {}", files(tree.files)) };
        return format!("{partial}Nothing to read: {empty}{found} is empty.");
    }
    let name = NAMES.iter().find(|(least, _)| cost.slowdown >= *least).map_or("Young", |(_, name)| name);
    let seconds = |seconds: f64| if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") };
    let what = match (tree.files, tree.not_looked_at) {
        (1, 0) => "the only file".to_owned(),
        (all, 0) => format!("all {}", files(all)),
        (some, _) => format!("the {} found", files(some)),
    };
    let mut text = format!(
        "{partial}{name}: reading {what} cold would take {} ({}), {:.1}× as long as a fresh copy ({}).",
        seconds(cost.seconds.as_it_lies),
        cost.device,
        cost.slowdown,
        seconds(cost.seconds.fresh_copy),
    );
    if cost.slowdown >= AGED {
        let gain = |to: f64| (1.0 - to / cost.seconds.as_it_lies) * 100.0;
        let metadata =
            cost.metadata_share.map_or(String::new(), |share| format!(", {:.0}% in metadata", share * 100.0));
        text.push_str(&format!(
            " {:.0}% of the loss is within files, {:.0}% between neighbours{metadata}: defragmenting files would save {:.0}%, \
             a fresh copy {:.0}%.",
            cost.intrafile_share * 100.0,
            cost.interfile_share * 100.0,
            gain(cost.seconds.defragmented).max(0.0),
            gain(cost.seconds.fresh_copy),
        ));
    }
    if let Some(free) = &inspection.free_space {
        // That no free extent is as long as a disk would like is worth no place in the sentence.
        let is_grave = |finding: &FreeSpaceWarning| !matches!(finding, FreeSpaceWarning::BelowNaturalTransfer { .. });
        let grave = free.findings.iter().zip(&free.warnings).filter(|(finding, _)| is_grave(finding));
        let grave: Vec<&str> = grave.map(|(_, text)| text.as_str()).collect();
        if !grave.is_empty() {
            text.push_str(&format!(" Free space: {}.", grave.join("; ")));
        }
    }
    text
}

/// What of the whole is missing in all figures, as a sentence in front of them; empty if nothing is.
fn partial(inspection: &Inspection) -> String {
    let entries = match inspection.tree.not_looked_at {
        0 => None,
        1 => Some("for 1 entry could not be looked at".to_owned()),
        many => Some(format!("for {} entries could not be looked at", thousands(many))),
    };
    let is_without = inspection.costs.first().is_some_and(|cost| cost.metadata_seconds.is_none());
    let metadata = is_without.then(|| "without metadata, which could not be read".to_owned());
    let parts: Vec<String> = [entries, metadata].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("Partial, {}. ", parts.join(", and ")) }
}

fn files(count: u64) -> String {
    format!("{} {}", thousands(count), if count == 1 { "file" } else { "files" })
}

/// Digits in groups of three.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}
