//! The methods paragraph of a paper, from the circumstances of a run.

use senesce_core::names::NONE;
use senesce_store::Role;

use crate::devices::{TRACED, VIRTUAL_TIME, short};
use crate::format::{bytes, list};
use crate::model::{Model, ROLES, words};
use crate::panels_modelled::title;
use crate::workload::{self, fact};

/// What was done and how it was measured, as paragraphs. A circumstance that the run did not record
/// is left out.
pub(crate) fn methods(model: &Model) -> Vec<String> {
    let paragraphs = [workload(model), volumes(model), measurement(model), statistics(model), citation(model)];
    paragraphs.into_iter().map(|sentences| sentences.join(" ")).filter(|text| !text.is_empty()).collect()
}

/// The values of a circumstance of a volume over all arms, each once.
fn of_volumes(model: &Model, name: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for row in model.results.circumstances.iter().filter(|row| !row.arm.is_empty()) {
        let is_it = row.key.split_once('.').is_some_and(|(_, key)| key == name);
        if is_it && !row.value.is_empty() && !values.contains(&row.value) {
            values.push(row.value.clone());
        }
    }
    values
}

/// The value of a circumstance of all volumes, if they have one that says something.
fn only(model: &Model, name: &str) -> Option<String> {
    match &of_volumes(model, name)[..] {
        [value] if value != NONE => Some(value.clone()),
        _ => None,
    }
}

fn of_volume(model: &Model, arm: &str, role: Role, name: &str) -> Option<String> {
    let key = format!("{}.{name}", role.name());
    model.results.circumstances.iter().find(|row| row.arm == arm && row.key == key).map(|row| row.value.clone())
}

/// `2026-11-30`. `None`: no calendar has this second.
fn day(unix_seconds: i64) -> Option<String> {
    let begun = jiff::Timestamp::from_second(unix_seconds).ok()?;
    Some(begun.strftime("%Y-%m-%d").to_string())
}

fn workload(model: &Model) -> Vec<String> {
    let run = &model.results.run;
    if model.arms.is_empty() {
        return Vec::new();
    }
    let plan = match (run.plan_name.as_str(), run.plan_hash.get(..12)) {
        ("", _) => String::new(),
        (name, Some(hash)) => format!(" by the plan {name} (BLAKE3 {hash})"),
        (name, None) => format!(" by the plan {name}"),
    };
    let mut sentences = vec![format!(
        "We aged {} with senesce {}{}.",
        list(&model.arms.iter().map(|(arm, _)| arm.clone()).collect::<Vec<_>>()),
        run.senesce_version,
        plan,
    )];
    if let Some(day) = fact(model, "run.begun_unix_seconds").and_then(|seconds| day(seconds.parse().ok()?)) {
        sentences.push(format!("The run started on {day} (UTC)."));
    }
    if let Some(sentence) = workload::sentence(model) {
        let seed = fact(model, "plan.seed").map_or(String::new(), |seed| format!("; seed {seed}"));
        let last = model.plans.up_to(&model.unit).map_or(String::new(), |last| format!(", {last}"));
        sentences.push(format!("{sentence}{last}{seed}."));
    }
    if let (Some(first), Some(last)) = (fact(model, "history.first_commit"), fact(model, "history.last_commit")) {
        sentences.push(format!("Its first commit is {first}, its last commit {last}."));
    }
    sentences
}

fn volumes(model: &Model) -> Vec<String> {
    let mut sentences = Vec::new();
    let has = |role: Role| model.results.cells.iter().any(|cell| cell.key.role == role);
    if has(Role::Unaged) {
        let aged: Vec<String> =
            ROLES[..2].iter().filter(|role| has(**role)).map(|role| words(*role).to_owned()).collect();
        sentences.push(format!(
            "At each checkpoint we compared the {} volume{} with a fresh copy of the same tree on a new file system.",
            list(&aged),
            if aged.len() == 1 { "" } else { "s" }
        ));
    }
    for (arm, _) in &model.arms {
        let sizes: Vec<String> = ROLES
            .iter()
            .filter_map(|role| {
                let size = of_volume(model, arm, *role, "device_bytes")?.parse::<f64>().ok()?;
                Some(format!("{} {}", words(*role), bytes(size)))
            })
            .collect();
        let options = ROLES.iter().find_map(|role| of_volume(model, arm, *role, "mount_options_asked"));
        let tool = ROLES.iter().find_map(|role| of_volume(model, arm, *role, "mkfs_version"));
        let parts = [
            (!sizes.is_empty()).then(|| format!("volumes: {}", sizes.join(", "))),
            tool.map(|tool| format!("made by {tool}")),
            options.map(|options| format!("mounted with {options}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            sentences.push(format!("{arm} ({}).", parts.join("; ")));
        }
    }
    let machine = [
        only(model, "distribution"),
        of_volumes(model, "kernel_release").first().map(|kernel| format!("Linux {kernel}")),
        only(model, "kernel_parameters").map(|words| format!("the kernel parameters {words}")),
        of_volumes(model, "cpu_model").first().map(|cpu| {
            let processors = of_volumes(model, "cpu_count").first().cloned().unwrap_or_default();
            format!("{processors} processors ({cpu})")
        }),
        of_volumes(model, "memory_bytes")
            .first()
            .and_then(|memory| Some(format!("{} of memory", bytes(memory.parse().ok()?)))),
        of_volumes(model, "device_scheduler").first().map(|scheduler| format!("scheduler {scheduler}")),
        of_volumes(model, "device_read_ahead_kib").first().map(|kib| format!("read-ahead {kib} KiB")),
    ];
    let machine: Vec<String> = machine.into_iter().flatten().collect();
    if !machine.is_empty() {
        let name = if only(model, "virtual_machine").is_none() { "machine" } else { "virtual machine" };
        sentences.push(format!("The {name} had {}.", list(&machine)));
    }
    sentences
}

fn measurement(model: &Model) -> Vec<String> {
    let mut sentences = Vec::new();
    let grep_cost = model.grep_cost();
    let counts = || grep_cost.values().flat_map(|line| line.values()).map(|cost| cost.count);
    if let Some((scanner, order, cache)) = &model.method {
        let times = match (counts().min(), counts().max()) {
            (_, Some(1)) => ", once for each cell".to_owned(),
            (Some(least), Some(most)) if least == most => format!(", {most} times in turn over the volumes"),
            (_, Some(most)) => format!(", up to {most} times in turn over the volumes"),
            _ => String::new(),
        };
        let clock = match (model.virtual_disk(), model.is_wall_of_memory()) {
            (Some((disk, ..)), true) => format!(
                "the time that a modelled {} needs for the requests of one cold read of the whole tree. This clock is virtual: \
                 it advances by the modelled time of each request, and the wall time of this machine does not count. The read \
                 is",
                short(disk).trim_end_matches(VIRTUAL_TIME)
            ),
            (Some((disk, ..)), false) => format!(
                "the wall time of one cold read of the whole tree, in which each request waits as long as a modelled {} needs \
                 for it. The read is",
                short(disk).trim_end_matches(VIRTUAL_TIME)
            ),
            (None, _) => {
                "the wall time of one cold read of the whole tree on this machine's device. The read is".to_owned()
            }
        };
        sentences.push(format!(
            "Reading cost is {clock} by the scanner {scanner} in the order {order}, with cold caches ({}){times}. Costs are \
             per GiB of allocated size.",
            cache.trim_end_matches(" (disk in virtual time)").replace('+', " and ")
        ));
        if let Some((disk, ..)) = model.virtual_disk().filter(|_| model.is_wall_of_memory()) {
            let disk = title(model, disk);
            sentences.push(format!("These are the costs of the headline, of the summary and of the figures “{disk}”."));
        }
    }
    let names = |is_wanted: fn(&str) -> bool| -> Vec<String> {
        let devices = model.devices().into_iter().filter(|device| is_wanted(device));
        devices.map(|device| title(model, device)).collect()
    };
    let quoted = |names: &[String]| list(&names.iter().map(|name| format!("“{name}”")).collect::<Vec<_>>());
    let predicted = names(|device| !device.ends_with(VIRTUAL_TIME) && !device.ends_with(TRACED));
    if !predicted.is_empty() {
        sentences.push(format!(
            "Costs in the figures {} are predicted from the places of files, inodes and directories; they are not measured.",
            quoted(&predicted)
        ));
    }
    let traced = names(|device| device.ends_with(TRACED));
    if !traced.is_empty() {
        let devices: Vec<String> = traced.iter().map(|name| name.trim_end_matches(TRACED).to_owned()).collect();
        sentences.push(format!(
            "Costs of traced requests are the modelled time of {} for the requests of one traced read.",
            list(&devices)
        ));
    }
    let (invalid, disturbed) = (model.invalid.len(), model.disturbed.len());
    if invalid + disturbed > 0 {
        let all = model.results.cells.len();
        sentences.push(format!("Of {all} cells {invalid} are invalid and left out; other work disturbed {disturbed}."));
    }
    sentences
}

fn statistics(model: &Model) -> Vec<String> {
    if model.grep.is_empty() && model.modelled.is_empty() {
        return Vec::new();
    }
    let most = model.grep_cost().values().flat_map(|line| line.values()).map(|cost| cost.count).max();
    if most.is_none_or(|most| most <= 1) {
        return vec![
            "Every cost is of one read, so no interval is known.".to_owned(),
            "A slowdown is the ratio of two costs at the same checkpoint.".to_owned(),
        ];
    }
    let mut sentences = vec![
        "Points are medians; bars are 95% intervals of the median by bootstrap.".to_owned(),
        "A slowdown is the ratio of two medians at the same checkpoint, with its bootstrap interval.".to_owned(),
    ];
    if !model.is_wall_of_memory() {
        sentences.push(
            "A measured slowdown counts as a difference if its interval excludes 1 and it exceeds the spread of the run's \
             own fresh copies."
                .to_owned(),
        );
    }
    sentences
}

/// The paper that describes the workload.
fn citation(model: &Model) -> Vec<String> {
    const FAST17: &str = "A. Conway et al., \"File Systems Fated for Senescence? Nonsense, Says Science!\", FAST 2017";
    const HOTSTORAGE19: &str = "A. Conway et al., \"Filesystem Aging: It's more Usage than Fullness\", HotStorage 2019";
    let text = |key: &str| fact(model, key).unwrap_or_default();
    let source = match text("workload.kind").as_str() {
        "history" if text("workload.edition").starts_with("full-disk") => HOTSTORAGE19,
        "fsfb" => HOTSTORAGE19,
        "history" | "mail" | "intrafile" | "interfile" => FAST17,
        "profile" => "S. Kadekodi et al., \"Geriatrix: Aging what you see and what you don't see\", USENIX ATC 2018",
        _ => return Vec::new(),
    };
    vec![format!("The workload follows {source}.")]
}

#[cfg(test)]
mod tests {
    use senesce_store::{CellKey, CellRow, CircumstanceRow, Results};

    use super::*;

    #[test]
    fn the_paragraph_holds_the_recorded_circumstances() {
        let mut results = Results::default();
        results.run.senesce_version = "1.2.3".to_owned();
        results.run.plan_name = "quick-start".to_owned();
        let fact = |arm: &str, key: &str, value: &str| CircumstanceRow {
            arm: arm.into(),
            key: key.into(),
            value: value.into(),
        };
        results.circumstances = vec![
            fact("", "workload.kind", "\"history\""),
            fact("", "workload.edition", "\"full-disk-paper\""),
            fact("", "plan.seed", "7"),
            fact("", "run.begun_unix_seconds", "1700000000"),
            fact("xfs", "full.kernel_release", "6.18"),
            fact("xfs", "full.distribution", "Debian 12"),
            fact("xfs", "full.virtual_machine", "QEMU"),
            fact("xfs", "full.device_bytes", "1048576"),
            fact("xfs", "full.mkfs_version", "mkfs.xfs version 6.1.0"),
        ];
        for role in ROLES {
            let key = CellKey { arm: "xfs".into(), file_system: "xfs".into(), role, pulls: 1000 };
            results.cells.push(CellRow {
                key,
                valid: true,
                reason: String::new(),
                tree_hash: String::new(),
                work_tree_hash: String::new(),
                files: 1,
                directories: 1,
                content_bytes: 1,
                capacity_bytes: 1,
                used_bytes: 1,
            });
        }
        let text = methods(&Model::compute(&results)).join(" ");
        for said in [
            "We aged xfs with senesce 1.2.3 by the plan quick-start",
            "The workload was git: copies of a repository filled the nearly full volume, and then pulled its later commits in \
             turn, up to 1,000 pulls; seed 7.",
            "we compared the nearly full and roomy volumes with a fresh copy",
            "xfs (volumes: nearly full 1 MiB; made by mkfs.xfs version 6.1.0).",
            "The run started on 2023-11-14 (UTC).",
            "The virtual machine had Debian 12 and Linux 6.18.",
            "HotStorage 2019",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(methods(&Model::compute(&Results::default())).is_empty(), "nothing is invented");
    }
}
