//! What a plan would do: `--dry-run`.

use std::path::Path;

use senesce_core::Bytes;

use crate::{
    Error,
    plan::{Arm, Edition, Plan, PlannedCell, VolumePlan, WorkloadKind},
    sizing::Sizes,
    source::Source,
};

/// A plan, expanded.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The arms, in order.
    pub arms: Vec<Arm>,
    /// Pulls of each arm, at most.
    pub pulls: u64,
    /// Checkpoints of each arm, as numbers of pulls.
    pub checkpoints: Vec<u64>,
    /// All cells of all arms.
    pub cells: Vec<PlannedCell>,
    /// Sizes of the volumes.
    pub sizes: Sizes,
    /// Space that is needed where the images lie; one arm runs at a time, and its images go when it ends.
    pub disk_bytes: Bytes,
    /// The volumes, in words.
    pub volumes: Vec<String>,
    /// What the steps are, in words.
    pub steps: Vec<String>,
}

/// Expands a plan. Opens its history (a synthetic one is made, in `scratch`); makes no volume.
pub fn preview(plan: &Plan, scratch: &Path) -> Result<Preview, Error> {
    let source = Source::open(plan, scratch)?;
    let sizes = Sizes::plan(plan, &source)?;
    let pulls = source.pulls(plan);
    let arms = plan.arms();
    let volumes = plan.roles().iter().map(|&role| {
        let place = match plan.volume(role) {
            VolumePlan::Size(_) => match &plan.volumes.device {
                Some(device) if plan.volumes.real_time => {
                    format!("{device} of {}, modelled in real time", sizes.size(role))
                }
                Some(device) => format!("{device} of {}, modelled in virtual time", sizes.size(role)),
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
        _ if plan.workload.kind == WorkloadKind::Replay => {
            "make what the log holds before its first counted step".to_owned()
        }
        _ if plan.workload.kind != WorkloadKind::History => "make the first state of the tree".to_owned(),
        Edition::Single => "clone the repository once (or make the trace's first tree)".to_owned(),
        Edition::FullDiskPaper => format!("clone copies until the full volume is {}% full", plan.workload.fill_percent),
        Edition::FullDiskCode => format!("clone {} copies", plan.workload.copies),
    };
    let measured = plan.roles().iter().map(|role| role.name()).collect::<Vec<_>>().join(", ");
    let runs = plan.measure.warmups + plan.measure.repetitions;
    let traced = if plan.measure.trace { ", and one more that is traced" } else { "" };
    let steps = vec![
        "mkfs and mount the volumes; each verified".to_owned(),
        set_up,
        match plan.workload.kind {
            WorkloadKind::History => format!("{pulls} pulls at most, in turn over the copies"),
            kind => format!("{pulls} {} of {}", plan.step_unit(), kind.as_str()),
        },
        format!(
            "at each of {} checkpoints: measure {measured} ({runs} cold grep test(s) each, in turn{traced})",
            plan.checkpoints(pulls).len()
        ),
    ];
    Ok(Preview {
        checkpoints: plan.checkpoints(pulls),
        cells: arms.iter().flat_map(|arm| plan.cells(arm, pulls)).collect(),
        disk_bytes: Bytes(sizes.needed_bytes),
        volumes: volumes.collect(),
        arms,
        pulls,
        sizes,
        steps,
    })
}
