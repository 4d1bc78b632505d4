//! The actions of a plan, for `--dry-run`.

use std::{collections::BTreeSet, path::Path};

use senesce_core::Bytes;
use senesce_volume::FileSystemKind;

use crate::{
    Error, World,
    plan::{Arm, Backend, Edition, Plan, PlannedCell, ReadAt, VolumePlan, WorkloadKind},
    prepare::{Place, Prepared, prepare},
    run::check_new,
    sizing::Sizes,
};

/// An expanded plan.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The arms, in order.
    pub arms: Vec<Arm>,
    /// The maximum of pulls of each arm.
    pub pulls: u64,
    /// The checkpoints of all arms, as numbers of pulls. Those before a cure are checkpoints of its
    /// arm only. The ones after a cure have the same numbers, and are not listed again.
    pub checkpoints: Vec<u64>,
    /// Checkpoints after a cure, in all arms together.
    pub cured_checkpoints: u64,
    /// All cells of all arms.
    pub cells: Vec<PlannedCell>,
    /// Sizes of the volumes.
    pub sizes: Sizes,
    /// Space needed in the directory of the images. One arm runs at a time, and its images are
    /// removed at its end.
    pub disk_bytes: Bytes,
    /// The volumes, in words.
    pub volumes: Vec<String>,
    /// File systems whose arguments of mkfs were not tried.
    pub untried_mkfs: Vec<FileSystemKind>,
    /// The steps in words.
    pub steps: Vec<String>,
}

/// Expands a plan, and refuses everything that its run would refuse before the first volume. Opens
/// its history (a synthetic one is made, in `scratch`), and makes no volume.
///
/// `path` is the plan's path, for messages. `out` is the directory of the run. `force` is as in
/// [`Run::create`](crate::Run::create). Errors: those of the run. It does not check for root, or
/// properties of devices that only root can read.
pub fn preview(
    plan: &Plan,
    path: &Path,
    (out, scratch): (&Path, &Path),
    force: bool,
    world: &World,
) -> Result<Preview, Error> {
    check_new(out)?;
    // With absolute paths, as in a run.
    let here = std::fs::canonicalize(".").map_err(Error::io("look up", "."))?;
    let plan = &plan.clone().seen_from(&here);
    let volumes = std::path::absolute(out).map_err(Error::io("look up", out))?;
    let place = Place { plan: path, volumes: &volumes, spool: scratch, entries: &[], force };
    let Prepared { source, sizes, untried_mkfs, .. } = prepare(plan, &place, world)?;
    let pulls = source.pulls(plan);
    let arms = plan.arms();
    let volumes = plan.roles().iter().map(|&role| {
        let place = match plan.volume(role) {
            VolumePlan::Size(_) => match &plan.volumes.device {
                Some(device) if plan.volumes.real_time => {
                    format!("{device} of {}, modelled in real time", sizes.size(role))
                }
                Some(device) => format!("{device} of {}, modelled in virtual time", sizes.size(role)),
                None if plan.volumes.backend == Backend::Memory => {
                    format!("image in memory of {}", sizes.size(role))
                }
                None => format!("sparse image of {}", sizes.size(role)),
            },
            VolumePlan::Absent(_) => unreachable!("a role that is left out is no role"),
            VolumePlan::Place(place) => match (&place.device, &place.directory) {
                (Some(device), _) => format!("block device {device}: WILL BE FORMATTED"),
                (_, directory) => format!("directory {}", directory.as_deref().unwrap_or_default()),
            },
        };
        format!("{}: {place}", role.name())
    });
    let set_up = match plan.workload.edition {
        _ if plan.workload.kind == WorkloadKind::Fsfb => {
            let table = plan.workload.fsfb.clone().unwrap_or_default();
            format!("fill the full volume to {}% with files of random sizes in a random tree", table.fill_percent)
        }
        _ if plan.workload.kind == WorkloadKind::Profile => {
            let table = plan.workload.profile.clone().unwrap_or_default();
            format!(
                "create files of profile {} until the full volume is {}% full",
                table.profile, table.fullness_percent
            )
        }
        _ if plan.workload.kind == WorkloadKind::Replay => "apply the log up to its first counted step".to_owned(),
        _ if plan.workload.kind != WorkloadKind::History => "make the first state of the tree".to_owned(),
        Edition::Single => "clone the repository once (or make the trace's first tree)".to_owned(),
        Edition::FullDiskPaper => format!("clone copies until the full volume is {}% full", plan.workload.fill_percent),
        Edition::FullDiskCode => format!("clone {} copies", plan.workload.copies),
    };
    let measured = plan.roles().iter().map(|role| role.name()).collect::<Vec<_>>().join(", ");
    let runs = plan.measure.warmups + plan.measure.repetitions;
    let counts: BTreeSet<usize> = arms.iter().map(|arm| plan.checkpoints_of(arm, pulls).len()).collect();
    let checkpoints = counts.last().copied().unwrap_or(0);
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    let counts = counts.join(" or ");
    let read = match plan.measure.read_at {
        ReadAt::FirstAndLast if checkpoints > 2 => " at the first and the last",
        ReadAt::OnceBetween if checkpoints > 2 => " at the first and the last, 1 at the others",
        _ => "",
    };
    let traced = if plan.measure.trace { ", and one more that is traced" } else { "" };
    let mut steps = vec![
        "mkfs and mount the volumes; each verified".to_owned(),
        set_up,
        match plan.workload.kind {
            WorkloadKind::History => format!("{pulls} pulls at most, in turn over the copies"),
            kind => format!("{pulls} {} of {}", plan.step_unit(), kind.as_str()),
        },
        format!(
            "at each of {counts} checkpoints: measure {measured} ({runs} cold grep test(s) each{read}, in turn{traced})"
        ),
    ];
    steps.extend(arms.iter().filter_map(|arm| {
        let cure = arm.file_system.cure.as_ref()?;
        let steps = cure.steps(pulls);
        let when = match (cure.every, steps.as_slice()) {
            (Some(every), _) => format!("each {every} {}", plan.step_unit()),
            (None, [step]) if *step < pulls => format!("{step} {}", plan.step_unit()),
            _ => "the last step".to_owned(),
        };
        let more = match steps.len() {
            1 => "1 more checkpoint".to_owned(),
            number => format!("{number} more checkpoints"),
        };
        Some(format!("{}: after {when}, cure by {}, and measure again ({more})", arm.name, cure.by.name()))
    }));
    let checkpoints: BTreeSet<u64> = arms.iter().flat_map(|arm| plan.checkpoints_of(arm, pulls)).collect();
    let cured = arms.iter().filter_map(|arm| Some(arm.file_system.cure.as_ref()?.steps(pulls).len() as u64));
    Ok(Preview {
        checkpoints: checkpoints.into_iter().collect(),
        cured_checkpoints: cured.sum(),
        cells: arms.iter().flat_map(|arm| plan.cells(arm, pulls)).collect(),
        disk_bytes: Bytes(sizes.needed_bytes).rounded_up(),
        volumes: volumes.collect(),
        untried_mkfs,
        arms,
        pulls,
        sizes,
        steps,
    })
}
