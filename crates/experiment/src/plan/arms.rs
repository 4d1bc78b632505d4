//! The arms and cells of a plan, in their order.

use std::collections::BTreeSet;

use senesce_store::{CellKey, Role};

use super::{AutoSize, Edition, Engine, FileSystem, Plan, VolumePlan, WorkloadKind};

/// One file system under one variant of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Unique in the plan: the file system's name, then its differences from the others.
    pub name: String,
    /// The file system with its options.
    pub file_system: FileSystem,
    /// The program that issues the operations.
    pub engine: Engine,
    /// Whether git's automatic repacking is on.
    pub gc: bool,
}

/// A cell of the plan.
pub type PlannedCell = CellKey;

impl Plan {
    /// The arms in the order of their runs: by file system, then engine, then gc.
    pub fn arms(&self) -> Vec<Arm> {
        let mut arms = Vec::new();
        for file_system in &self.file_systems {
            for &engine in &self.workload.engine {
                for &gc in &self.workload.gc {
                    let mut name = file_system.name();
                    if engine == Engine::Git {
                        name.push_str("-git");
                    }
                    if gc {
                        name.push_str("-gc");
                    }
                    arms.push(Arm { name, file_system: file_system.clone(), engine, gc });
                }
            }
        }
        arms
    }

    /// The volumes of an arm, in the order of their measurement.
    pub fn roles(&self) -> &'static [Role] {
        let all: &[Role] = match self.has_full() {
            false => &[Role::Empty, Role::Unaged],
            true => &[Role::Full, Role::Empty, Role::Unaged],
        };
        match self.volumes.unaged {
            VolumePlan::Absent(_) => &all[..all.len() - 1],
            _ => all,
        }
    }

    /// Whether the workload fills a volume of any size.
    pub fn fills_volume(&self) -> bool {
        match self.workload.kind {
            WorkloadKind::History => self.workload.edition != Edition::Single,
            WorkloadKind::Fsfb | WorkloadKind::Profile => true,
            WorkloadKind::Mail
            | WorkloadKind::Intrafile
            | WorkloadKind::Interfile
            | WorkloadKind::Renames
            | WorkloadKind::Overwrite
            | WorkloadKind::Replay => false,
        }
    }

    /// Whether there is a full volume. A workload that fills a volume always has one. Another
    /// workload without history has one if the plan sets its size or place.
    pub fn has_full(&self) -> bool {
        let given = self.volumes.full != VolumePlan::Size(AutoSize::Auto);
        self.fills_volume() || (given && self.workload.kind != WorkloadKind::History)
    }

    /// The plan of a role's volume.
    pub fn volume(&self, role: Role) -> &VolumePlan {
        match role {
            Role::Full | Role::CuredFull => &self.volumes.full,
            Role::Empty | Role::CuredEmpty => &self.volumes.empty,
            Role::Unaged => &self.volumes.unaged,
        }
    }

    /// The checkpoints, as numbers of pulls, for `pulls` pulls: the start, every `measure.every`,
    /// the end.
    pub fn checkpoints(&self, pulls: u64) -> Vec<u64> {
        let mut at: Vec<u64> = (0..=pulls).step_by(self.measure.every as usize).collect();
        if at.last() != Some(&pulls) {
            at.push(pulls);
        }
        at
    }

    /// The checkpoints of an arm: the common ones, and those before its cures.
    pub fn checkpoints_of(&self, arm: &Arm, pulls: u64) -> BTreeSet<u64> {
        self.checkpoints(pulls).into_iter().chain(cure_steps(arm, pulls)).collect()
    }

    /// Every cell of an arm for `pulls` pulls.
    pub fn cells(&self, arm: &Arm, pulls: u64) -> Vec<PlannedCell> {
        let key = |role, pulls| {
            let file_system = arm.file_system.kind.as_str().to_owned();
            CellKey { arm: arm.name.clone(), file_system, role, pulls }
        };
        let cures = cure_steps(arm, pulls);
        let mut cells = Vec::new();
        for pulls in self.checkpoints_of(arm, pulls) {
            cells.extend(self.roles().iter().map(|&role| key(role, pulls)));
            if cures.contains(&pulls) {
                let aged = self.roles().iter().filter(|role| **role != Role::Unaged);
                cells.extend(aged.map(|role| key(role.cured(), pulls)));
            }
        }
        cells
    }
}

/// The steps of an arm that a cure follows.
fn cure_steps(arm: &Arm, pulls: u64) -> Vec<u64> {
    arm.file_system.cure.as_ref().map_or_else(Vec::new, |cure| cure.steps(pulls))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn lists_multiply_into_arms_and_cells() {
        let text = "format = \"senesce-plan/1\"\nname = \"t\"\n[history]\nrepo = \"/r\"\n[workload]\ngc = [false, true]\n\
                    engine = [\"native\", \"git\"]\n[measure]\nevery = 40\n[[file_system]]\nkind = \"ext4\"\n\
                    [[file_system]]\nkind = \"xfs\"\nname = \"xfs-small\"\n";
        let plan = Plan::parse(Path::new("p"), text).unwrap();
        let names: Vec<String> = plan.arms().into_iter().map(|arm| arm.name).collect();
        assert_eq!(
            names,
            [
                "ext4",
                "ext4-gc",
                "ext4-git",
                "ext4-git-gc",
                "xfs-small",
                "xfs-small-gc",
                "xfs-small-git",
                "xfs-small-git-gc"
            ]
        );
        assert_eq!(plan.checkpoints(100), [0, 40, 80, 100]);
        assert_eq!(plan.checkpoints(80), [0, 40, 80]);
        assert_eq!(plan.cells(&plan.arms()[0], 80).len(), 3 * 2);
    }

    #[test]
    fn a_cure_has_cells_before_and_after_it() {
        let cells = |cure: &str| {
            let text = format!(
                "format = \"senesce-plan/1\"\nname = \"t\"\n[history]\nrepo = \"/r\"\n[measure]\nevery = 40\n\
                 [[file_system]]\nkind = \"btrfs\"\ncure = {{ by = \"btrfs\"{cure} }}\n"
            );
            let plan = Plan::parse(Path::new("p"), &text).unwrap();
            let arm = &plan.arms()[0];
            assert_eq!(arm.name, "btrfs-btrfs");
            let cell = |cell: CellKey| (cell.pulls, cell.role);
            plan.cells(arm, 80).into_iter().map(cell).collect::<Vec<_>>()
        };
        use Role::{CuredEmpty, Empty, Unaged};
        let plain = [0, 40, 80].into_iter().flat_map(|pulls| [(pulls, Empty), (pulls, Unaged)]);
        let plain: Vec<_> = plain.collect();
        let end = [plain.clone(), vec![(80, CuredEmpty)]].concat();
        assert_eq!(cells(""), end);
        assert_eq!(cells(", at = \"end\""), end);
        let middle = [(50, Empty), (50, Unaged), (50, CuredEmpty)];
        assert_eq!(cells(", at = 50"), [&plain[..4], &middle, &plain[4..]].concat());
        let pulls: BTreeSet<u64> = cells(", at = 50").into_iter().map(|(pulls, _)| pulls).collect();
        assert_eq!(pulls, [0, 40, 50, 80].into());
        let every = [&plain[..4], &[(40, CuredEmpty)], &plain[4..], &[(80, CuredEmpty)]].concat();
        assert_eq!(cells(", every = 40"), every);
    }
}
