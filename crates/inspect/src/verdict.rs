//! The verdict: a summary of one or two sentences.

use senesce_core::numbers::{count, three_digits};
use senesce_probe::score::FreeSpaceWarning;
use senesce_volume::MediumKind;

use crate::{
    figures::{DeviceCosts, Inspection},
    judge::{AGED, Grade, Judged, NOTICEABLE_SECONDS},
};

/// The verdict on an inspection, for the device that stores the tree.
pub(crate) fn compute_verdict(inspection: &Inspection) -> String {
    let tree = &inspection.tree;
    let partial = inspection.gaps.in_words(tree.files);
    let found = if tree.not_looked_at > 0 { " that was found" } else { "" };
    let Some(cost) = inspection.costs.first().filter(|_| tree.files > 0) else {
        return format!("{partial}Nothing to judge: there is no file{found}.");
    };
    if tree.content_bytes == 0 {
        let empty = if tree.files == 1 { "the only file".to_owned() } else { format!("each of {}", files(tree.files)) };
        return format!("{partial}Nothing to read: {empty}{found} is empty.");
    }
    let what = match (tree.files, tree.not_looked_at) {
        (1, 0) => "the only file".to_owned(),
        (all, 0) => format!("all {}", files(all)),
        (some, _) => format!("the {} found", files(some)),
    };
    let mut text = format!("{partial}{}", judge(&inspection.judged, &inspection.costs, &what));
    if has_noticeable_loss(cost) {
        text.push_str(&attribute(inspection, cost));
    }
    if let Some(free) = &inspection.free_space {
        // Free extents below the natural transfer size are not serious enough for the verdict.
        let is_grave = |finding: &FreeSpaceWarning| !matches!(finding, FreeSpaceWarning::BelowNaturalTransfer { .. });
        let grave = free.findings.iter().zip(&free.warnings).filter(|(finding, _)| is_grave(finding));
        let grave: Vec<&str> = grave.map(|(_, text)| text.as_str()).collect();
        if !grave.is_empty() {
            text.push_str(&format!(" Free space: {}.", grave.join("; ")));
        }
    }
    text.push_str(inspection.gaps.without_metadata());
    text
}

/// Grade, device, seconds and ratio. For an unknown device, both models with their grades.
fn judge(judged: &Judged, costs: &[DeviceCosts], what: &str) -> String {
    let device = &judged.device;
    let costs = &costs[..device.judged_as.len().min(costs.len())];
    let described = device.description.as_deref().unwrap_or("device");
    let describe = |cost: &DeviceCosts| {
        let of = &cost.seconds;
        format!(
            "{} ({}), {}× as long as a fresh copy ({})",
            seconds(of.as_it_lies),
            cost.device,
            three_digits(cost.slowdown),
            seconds(of.fresh_copy)
        )
    };
    let small = format!("; a loss below {NOTICEABLE_SECONDS:.0} s is not worth a cure");
    if device.kind != Some(MediumKind::Unknown) {
        let name = match judged.grade {
            Grade::Negligible => "Not noticeably aged".to_owned(),
            grade => capitalize(grade.words()),
        };
        let on = device.description.as_ref().map(|device| format!(" on this {device}")).unwrap_or_default();
        let small = if judged.grade == Grade::Negligible { small.as_str() } else { "" };
        let time = costs.first().map(describe).unwrap_or_default();
        return format!("{name}{on}: reading {what} cold would take {time}{small}.");
    }
    let models = device.judged_as.join(" and ");
    let times: Vec<String> = costs.iter().map(describe).collect();
    if judged.grade != Grade::Undecided {
        let small = if judged.grade == Grade::Negligible { small.as_str() } else { "" };
        let name = capitalize(judged.grade.words());
        return format!(
            "{name} on an unknown device ({described}), judged as {models}: reading {what} cold would take {}{small}.",
            times.join(", or ")
        );
    }
    let each: Vec<String> = judged
        .judgements
        .iter()
        .zip(&times)
        .map(|(judgement, time)| format!("{time}: {}", judgement.grade.words()))
        .collect();
    format!(
        "Unknown device ({described}), judged as {models}: reading {what} cold would take {}. Name its model \
         with `--device`.",
        each.join("; or ")
    )
}

/// Names the causes of the loss, and the cure. Empty if the loss is too small to be split.
fn attribute(inspection: &Inspection, cost: &DeviceCosts) -> String {
    let (Some(within), Some(between)) = (cost.intrafile_share, cost.interfile_share) else { return String::new() };
    let gain = |to: f64| (1.0 - to / cost.seconds.as_it_lies) * 100.0;
    let metadata = cost.metadata_share.map_or(String::new(), |share| format!(", {:.0}% in metadata", share * 100.0));
    let on = match inspection.judged.device.judged_as.len() {
        0 | 1 => String::new(),
        _ => format!(" on {}", cost.device),
    };
    format!(
        " {:.0}% of the loss{on} is within files, {:.0}% between neighbours{metadata}: defragmenting files would save {:.0}%, \
         a fresh copy {:.0}%, the best order {:.0}%.",
        within * 100.0,
        between * 100.0,
        gain(cost.seconds.defragmented).max(0.0),
        gain(cost.seconds.fresh_copy).max(0.0),
        gain(cost.seconds.best_order).max(0.0),
    )
}

fn has_noticeable_loss(cost: &DeviceCosts) -> bool {
    cost.slowdown >= AGED && cost.seconds.as_it_lies - cost.seconds.fresh_copy >= NOTICEABLE_SECONDS
}

/// Three digits, as in the table, so that a ratio can be checked.
fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 0.9995 && short > 0.0 => format!("{} ms", three_digits(short * 1000.0)),
        long => format!("{} s", three_digits(long)),
    }
}

fn capitalize(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn files(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "file" } else { "files" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{
        Judge,
        tests::{cost, found},
    };

    fn tell(judge: Judge, costs: &[DeviceCosts]) -> String {
        super::judge(&judge.judge(costs, true), costs, "all 9 files")
    }

    #[test]
    fn verdict_names_device_and_grade() {
        let (hdd, nvme) = (cost("model: HDD", 85.0, 10.0), cost("model: NVMe", 3.2, 2.9));
        let found_nvme = tell(found(MediumKind::Nvme, "NVMe SSD nvme0n1"), &[nvme.clone(), hdd.clone()]);
        let expected = "Young on this NVMe SSD nvme0n1: reading all 9 files cold would take 3.20 s (model: NVMe), 1.10× as long as a \
                        fresh copy (2.90 s).";
        assert_eq!(found_nvme, expected);
        let unknown = tell(found(MediumKind::Unknown, "virtio disk vda"), &[hdd.clone(), nvme]);
        let expected = "Unknown device (virtio disk vda), judged as model: HDD and model: NVMe: reading all 9 files cold would \
                        take 85.0 s (model: HDD), 8.50× as long as a fresh copy (10.0 s): badly aged; or 3.20 s (model: NVMe), 1.10× \
                        as long as a fresh copy (2.90 s): young. Name its model with `--device`.";
        assert_eq!(unknown, expected);
        let named = tell(Judge::Named, &[hdd]);
        assert!(named.starts_with("Badly aged: reading all 9 files cold would take 85.0 s"), "{named}");
        let small = tell(found(MediumKind::Rotational, "hard disk sda"), &[cost("model: HDD", 0.045, 0.005)]);
        let expected = "Not noticeably aged on this hard disk sda: reading all 9 files cold would take 45.0 ms (model: HDD), \
                        9.00× as long as a fresh copy (5.00 ms); a loss below 1 s is not worth a cure.";
        assert_eq!(small, expected);
    }

    #[test]
    fn times_have_three_digits() {
        // "0.1 s, 1.3× as long as a fresh copy (0.1 s)" contradicts itself.
        assert_eq!([0.134, 0.103, 0.045].map(seconds), ["134 ms", "103 ms", "45.0 ms"]);
        assert_eq!([4.3, 12.34, 109.6, 12_345.4, 0.0].map(seconds), ["4.30 s", "12.3 s", "110 s", "12,345 s", "0 s"]);
    }
}
