//! Requests to the drives of an aggregate: in total, by medium and by drive.

use senesce_garden::{AggregateReport, Chains, DriveCounts, DriveReport, Medium, RaidCounts};
use serde_json::{Value, json};

/// Chains and stripes since opening, and in the last consistency point. The totals cover all data
/// drives; further rows cover each medium, objects, and each drive.
pub fn report_chains(report: &AggregateReport) -> Value {
    let counts = &report.counts;
    let of_objects = json!({
        "medium": "objects",
        "since_opening": {
            "write_chains": chains(Chains { blocks: counts.tiered, requests: counts.object_puts }),
            "read_chains": chains(Chains { blocks: counts.cold_reads, requests: counts.object_gets }),
        },
    });
    let media = Medium::ALL.into_iter().filter(|medium| report.groups.iter().any(|group| group.medium == *medium));
    let media = media.map(|medium| of_medium(report, medium)).chain([of_objects]);
    json!({
        "consistency_points": counts.consistency_points,
        "map_lookups": counts.map_lookups,
        "redirects": counts.redirects,
        "relocations": counts.relocations,
        "demotions": counts.demotions,
        "areas_cleaned": counts.areas_cleaned,
        "fix_ups": counts.fix_ups,
        "sequential_reads": counts.sequential_reads,
        "read_aheads": counts.read_aheads,
        "read_ahead_blocks": counts.read_ahead_blocks,
        "fake_dirty_blocks": counts.fake_dirty,
        "fake_dirty_writes": counts.fake_writes,
        "rewritten_after_read": counts.rewritten_after_read,
        "rewrites_put_off": counts.rewrites_put_off,
        "since_opening": of_all(&report.raid),
        "last_consistency_point": of_all(&report.raid_last_point),
        "media": media.collect::<Vec<_>>(),
        "drives": report.drives.iter().enumerate().map(|drive| of_drive(report, drive)).collect::<Vec<_>>(),
    })
}

fn chains(chains: Chains) -> Value {
    json!({ "blocks": chains.blocks, "requests": chains.requests, "mean": chains.mean() })
}

fn kinds(counts: &DriveCounts) -> Value {
    json!({
        "write_chains": chains(counts.writes),
        "read_chains": chains(counts.reads),
        "parity_read_chains": chains(counts.parity_reads),
        "cleaning_read_chains": chains(counts.cleaning_reads),
    })
}

fn of_all(counts: &RaidCounts) -> Value {
    let mut shown = kinds(&counts.data);
    shown["full_stripes"] = counts.full_stripes.into();
    shown["partial_stripes"] = counts.partial_stripes.into();
    shown
}

/// The sum of the drives of a medium. Like the total, it omits writes to parity drives. It includes
/// their reads that recompute parity.
fn of_medium(report: &AggregateReport, medium: Medium) -> Value {
    let drives = || report.drives.iter().filter(|drive| report.groups[drive.group].medium == medium);
    let sum = |of: fn(&DriveReport) -> DriveCounts| {
        drives().fold(DriveCounts::default(), |sum, drive| {
            let own = of(drive);
            let parity_reads = plus(sum.parity_reads, own.parity_reads);
            if drive.parity {
                return DriveCounts { parity_reads, ..sum };
            }
            DriveCounts {
                reads: plus(sum.reads, own.reads),
                writes: plus(sum.writes, own.writes),
                cleaning_reads: plus(sum.cleaning_reads, own.cleaning_reads),
                parity_reads,
            }
        })
    };
    json!({
        "medium": medium.to_string(),
        "since_opening": kinds(&sum(|drive| drive.counts)),
        "last_consistency_point": kinds(&sum(|drive| drive.last_point)),
    })
}

fn plus(one: Chains, other: Chains) -> Chains {
    Chains { blocks: one.blocks + other.blocks, requests: one.requests + other.requests }
}

fn of_drive(report: &AggregateReport, (number, drive): (usize, &DriveReport)) -> Value {
    json!({
        "drive": number,
        "group": drive.group,
        "medium": report.groups[drive.group].medium.to_string(),
        "parity": drive.parity,
        "since_opening": kinds(&drive.counts),
        "last_consistency_point": kinds(&drive.last_point),
    })
}
