//! Sizes of volumes: from the plan, or computed from the history.

use std::path::Path;

use senesce_core::Bytes;
use senesce_store::Role;

use crate::{
    Error,
    plan::{AutoSize, Edition, Plan, VolumePlan, WorkloadKind},
    source::{MadeSource, Source, collect_peak},
    volumes::{check_images, minimum_size},
};

/// Copies that an automatic full volume can hold.
const COPIES: u64 = 8;
/// The size of an automatic empty volume in full volumes, as in the paper (5 and 50 GiB).
const EMPTY_TO_FULL: u64 = 10;
/// The size of an automatic volume for a single repository in first states, because pulls make it
/// grow.
const SINGLE_TO_CLONE: u64 = 8;
/// A block of a disk in virtual time.
const BLOCK_BYTES: u64 = 4096;
/// The full volume of FSFB, as in the paper.
const FSFB_FULL: Bytes = Bytes(5 * Bytes::GIB);
/// The full volume of profile-driven aging.
const PROFILE_FULL: Bytes = Bytes(Bytes::GIB);
/// The smallest automatic volume.
const LEAST: Bytes = Bytes(320 * Bytes::MIB);
/// The largest automatic volume for repetitions of a log, because sparse images have limits.
const MOST: Bytes = Bytes(8 * 1024 * Bytes::GIB);
/// The largest clone of a history with an automatic start. Eight of them fill the smallest full
/// volume.
pub(crate) const AUTO_CLONE_BYTES: u64 = 32 * Bytes::MIB;
/// The largest size of a plan in estimates, bytes. Larger ones count as this, so products of sizes
/// stay below 2^64.
const MOST_CLONE_BYTES: u64 = 1 << 50;
/// Metadata of a volume in percent of its data, a generous estimate.
const METADATA_PERCENT: u64 = 10;

/// The sizes of the volumes, and the expected use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes that the first state of the tree (one copy) occupies.
    pub clone_bytes: u64,
    /// Contents of its files, bytes. Every volume must be able to hold them.
    pub content_bytes: u64,
    /// The full volume.
    pub full: Bytes,
    /// The empty volume.
    pub empty: Bytes,
    /// The unaged volume.
    pub unaged: Bytes,
    /// The maximum space of the images of an arm, with snapshots.
    pub needed_bytes: u64,
}

impl Sizes {
    /// Computes the sizes that the plan does not set.
    ///
    /// Errors: those of [`Source::first_state`], and an image that is too small for its file system
    /// or for the first state.
    pub(crate) fn plan(plan: &Plan, source: &Source) -> Result<Self, Error> {
        let first = source.first_state()?;
        let clone_bytes = first.occupied_bytes.min(MOST_CLONE_BYTES) * (100 + METADATA_PERCENT) / 100;
        let sizes = Self { content_bytes: first.content_bytes, ..Self::from_clone_bytes(plan, clone_bytes) };
        check_images(plan, &sizes)?;
        Ok(sizes)
    }

    fn from_clone_bytes(plan: &Plan, clone_bytes: u64) -> Self {
        let least = LEAST.max(minimum_size(plan)).0;
        let round = |bytes: u64| Bytes(bytes.clamp(least, u64::MAX / 2).next_multiple_of(Bytes::MIB));
        let given = |role| match plan.volume(role) {
            // Disks have whole blocks of 4 KiB, and 1GB has not.
            VolumePlan::Size(AutoSize::Given(bytes)) => Some(Bytes(bytes.0 / BLOCK_BYTES * BLOCK_BYTES)),
            _ => None,
        };
        let workload = &plan.workload;
        let full = given(Role::Full).unwrap_or_else(|| match (workload.kind, workload.edition) {
            (WorkloadKind::Fsfb, _) => FSFB_FULL,
            (WorkloadKind::Profile, _) => PROFILE_FULL,
            (WorkloadKind::History, Edition::FullDiskPaper) => {
                round(COPIES * clone_bytes * 100 / workload.fill_percent)
            }
            (WorkloadKind::History, Edition::FullDiskCode) => {
                let held = workload.copies.saturating_mul(clone_bytes).saturating_mul(5) / 4;
                round(held.saturating_add(workload.keep_free.0.0))
            }
            _ => Bytes(0),
        });
        let more = workload.replay.as_ref().map_or(0, |table| table.repetitions_that_stay().saturating_sub(1));
        let automatic = match plan.fills_volume() {
            false => round(SINGLE_TO_CLONE.saturating_add(more).saturating_mul(clone_bytes).min(MOST.0)),
            true => Bytes(full.0.saturating_mul(EMPTY_TO_FULL)),
        };
        let empty = given(Role::Empty).unwrap_or(automatic);
        let unaged = given(Role::Unaged).unwrap_or(automatic);
        // If the full volume is filled, the data on every volume has at most its size. Otherwise it
        // has at most the size of the smaller volume.
        let smaller = if full.0 > 0 { full.min(empty) } else { empty };
        let one = match plan.fills_volume() {
            true => full.0,
            false => more.saturating_add(3).saturating_mul(clone_bytes).min(smaller.0),
        };
        let aged = if plan.has_full() { 2 } else { 1 };
        let copies = aged * (1 + u64::from(plan.measure.snapshots)) + 1;
        Self {
            clone_bytes,
            content_bytes: 0,
            full,
            empty,
            unaged,
            needed_bytes: one.saturating_mul(copies).saturating_mul(21) / 20,
        }
    }

    /// The size of a role's volume.
    pub fn size(&self, role: Role) -> Bytes {
        match role {
            Role::Full | Role::CuredFull => self.full,
            Role::Empty | Role::CuredEmpty => self.empty,
            Role::Unaged => self.unaged,
        }
    }

    /// Space that must be free before the first image of an arm is made: enough for all of them.
    pub(crate) fn needed(&self, role: Role) -> Bytes {
        match role {
            Role::Unaged => Bytes(self.clone_bytes),
            _ => Bytes(self.needed_bytes),
        }
    }
}

/// Bytes that the plan's workload has after its set-up, or its log at its peak. 0 if the history
/// decides.
///
/// Errors: a parameter out of its range, a log that cannot be opened.
pub fn planned_bytes(plan: &Plan) -> Result<Bytes, Error> {
    if let Some(replay) = &plan.workload.replay {
        return collect_peak(Path::new(&replay.log));
    }
    Ok(Bytes(MadeSource::open(plan)?.map_or(0, |made| made.first_state_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(edition: &str, volumes: &str) -> Plan {
        let text = format!(
            "format = \"senesce-plan/1\"\nname = \"t\"\n[history]\nrepo = \"/r\"\npulls = 9\n[workload]\n\
             edition = \"{edition}\"\n[volumes]\n{volumes}\n[[file_system]]\nkind = \"ext4\"\n"
        );
        Plan::parse(Path::new("p"), &text).unwrap()
    }

    #[test]
    fn an_automatic_full_volume_holds_eight_copies_at_its_filling() {
        let sizes = Sizes::from_clone_bytes(&plan("full-disk-paper", ""), 300 * Bytes::MIB);
        assert_eq!(sizes.full, Bytes(3200 * Bytes::MIB)); // 8 * 300 / 0.75
        assert_eq!(sizes.empty, Bytes(32_000 * Bytes::MIB));
        // Two aged volumes, their snapshots and a twin, each as large as the full one, and 5% more.
        assert_eq!(sizes.needed_bytes, 5 * sizes.full.0 * 21 / 20);
    }

    #[test]
    fn the_largest_plan_figures_do_not_overflow() {
        let edges = ["full = \"15728640TiB\"\nempty = \"15728640TiB\"", ""];
        for (edition, volumes) in ["full-disk-paper", "full-disk-code"].into_iter().zip(edges) {
            let mut plan = plan(edition, volumes);
            plan.workload.copies = u64::MAX;
            let sizes = Sizes::from_clone_bytes(&plan, MOST_CLONE_BYTES * 110 / 100);
            assert!(sizes.full.0 > 1 << 50 && sizes.empty >= sizes.full && sizes.needed_bytes > 1 << 50, "{sizes:?}");
        }
    }

    #[test]
    fn repetitions_of_a_log_all_fit() {
        let plan = |table: &str, volumes: &str| {
            let text = format!(
                "format = \"senesce-plan/1\"\nname = \"t\"\n[workload]\nkind = \"replay\"\n[workload.replay]\nlog = \"l\"\n\
                 {table}\n[volumes]\n{volumes}\n[[file_system]]\nkind = \"ext4\"\n"
            );
            Plan::parse(Path::new("p"), &text).unwrap()
        };
        let sizes = |table, volumes| Sizes::from_clone_bytes(&plan(table, volumes), 100 * Bytes::MIB);
        assert_eq!(sizes("", "").empty, Bytes(800 * Bytes::MIB));
        assert_eq!(sizes("repeat = 40", "").empty, Bytes(4700 * Bytes::MIB));
        assert_eq!(sizes("repeat = 40\nkeep = 3", "").empty, Bytes(1000 * Bytes::MIB));
        assert_eq!(sizes("repeat = 9000000000000000000", "").empty, MOST);
        // No volume holds more than the full one: two aged ones, their snapshots, and a twin.
        let needed = sizes("repeat = 40", "full = \"1GiB\"").needed_bytes;
        assert_eq!(needed, 5 * Bytes::GIB * 21 / 20);
    }

    #[test]
    fn small_histories_get_the_smallest_volume() {
        let sizes = Sizes::from_clone_bytes(&plan("single", "empty = \"2GiB\""), 1000);
        assert_eq!((sizes.empty, sizes.unaged), (Bytes(2 * Bytes::GIB), LEAST));
    }
}
