//! Requests to the drives of an aggregate: in total, by medium and by drive.

use schemars::JsonSchema;
use senesce_garden::{AggregateReport, Chains, DriveCounts, DriveReport, Medium, RaidCounts};
use serde::Serialize;
use serde_json::Value;

/// The work of an aggregate since its opening, and the requests to its drives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Activity {
    #[serde(flatten)]
    counters: ActivityCounters,
    /// Requests to all data drives since opening.
    since_opening: AllDrives,
    /// Requests to all data drives in the last consistency point.
    last_consistency_point: AllDrives,
    /// Requests by medium, and requests to objects.
    media: Vec<MediumRequests>,
    /// Requests to each drive.
    drives: Vec<DriveRequests>,
}

/// Counters since opening.
#[derive(Debug, Serialize, JsonSchema)]
struct ActivityCounters {
    /// Consistency points.
    consistency_points: u64,
    /// Reads of volumes that needed the container map, because the pointer had an old place of the
    /// block.
    map_lookups: u64,
    /// Map lookups that found the block at another place.
    redirects: u64,
    /// Blocks of volumes that were moved.
    relocations: u64,
    /// Moved blocks that went from flash to disks.
    demotions: u64,
    /// Cleaned allocation areas: all their blocks in use were scheduled to move.
    areas_cleaned: u64,
    /// Stale pointers of volumes that were fixed.
    fix_ups: u64,
    /// Reads of files that continued where an earlier read stopped.
    sequential_reads: u64,
    /// Sequential reads that read more blocks than the client requested.
    read_aheads: u64,
    /// Blocks of read-aheads, including cached blocks.
    read_ahead_blocks: u64,
    /// Blocks of contents that were marked dirty only to change their places.
    fake_dirty_blocks: u64,
    /// Blocks that were rewritten under their VVBNs, including blocks of pointers.
    fake_dirty_writes: u64,
    /// Blocks that changed their places after a sequential read, because they were scattered.
    rewritten_after_read: u64,
    /// Sequential reads of scattered blocks without a rewrite, because processors or drives were
    /// busy, or because the consistency point had enough blocks.
    rewrites_put_off: u64,
}

/// Requests to all data drives.
#[derive(Debug, Serialize, JsonSchema)]
struct AllDrives {
    #[serde(flatten)]
    kinds: Kinds,
    /// Stripes that were written whole.
    full_stripes: u64,
    /// Stripes that were written in part.
    partial_stripes: u64,
}

/// Chains by kind.
#[derive(Debug, Serialize, JsonSchema)]
struct Kinds {
    #[serde(flatten)]
    transfers: Transfers,
    /// Reads to recompute parity.
    parity_read_chains: ChainCounts,
    /// Reads of the cleaner.
    cleaning_read_chains: ChainCounts,
}

/// Chains of writes and reads.
#[derive(Debug, Serialize, JsonSchema)]
struct Transfers {
    /// Writes.
    write_chains: ChainCounts,
    /// Reads.
    read_chains: ChainCounts,
}

/// Consecutive blocks that one request transfers.
#[derive(Debug, Serialize, JsonSchema)]
struct ChainCounts {
    /// Blocks.
    blocks: u64,
    /// Requests.
    requests: u64,
    /// Blocks for each request. `None` without requests.
    mean: Option<f64>,
}

/// Requests to the drives of a medium, or to objects.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum MediumRequests {
    /// Requests to drives. Like the totals, they omit writes to parity drives. They include reads
    /// of parity drives that recompute parity.
    Drives {
        /// `hdd` or `ssd`.
        medium: String,
        /// Since opening.
        since_opening: Kinds,
        /// In the last consistency point.
        last_consistency_point: Kinds,
    },
    /// Objects.
    Objects {
        /// `objects`.
        #[schemars(extend("const" = "objects"))]
        medium: &'static str,
        /// Since opening.
        since_opening: Transfers,
    },
}

/// Requests to a drive.
#[derive(Debug, Serialize, JsonSchema)]
struct DriveRequests {
    /// The number of the drive.
    drive: usize,
    /// Its RAID group.
    group: usize,
    /// `hdd` or `ssd`.
    medium: String,
    /// Whether it is a parity drive.
    parity: bool,
    /// Since opening.
    since_opening: Kinds,
    /// In the last consistency point.
    last_consistency_point: Kinds,
}

/// Chains and stripes since opening, and in the last consistency point, as JSON of [`Activity`].
pub fn report_chains(report: &AggregateReport) -> Value {
    serde_json::to_value(Activity::of(report)).expect("plain structures with text keys")
}

impl Activity {
    /// Computes the totals of all data drives, and the rows of each medium, of objects, and of each
    /// drive.
    pub(super) fn of(report: &AggregateReport) -> Self {
        let counts = &report.counts;
        let of_objects = MediumRequests::Objects {
            medium: "objects",
            since_opening: Transfers {
                write_chains: chains(Chains { blocks: counts.tiered, requests: counts.object_puts }),
                read_chains: chains(Chains { blocks: counts.cold_reads, requests: counts.object_gets }),
            },
        };
        let is_used = |medium: &Medium| report.groups.iter().any(|group| group.medium == *medium);
        let media = Medium::ALL.into_iter().filter(is_used);
        Self {
            counters: ActivityCounters {
                consistency_points: counts.consistency_points,
                map_lookups: counts.map_lookups,
                redirects: counts.redirects,
                relocations: counts.relocations,
                demotions: counts.demotions,
                areas_cleaned: counts.areas_cleaned,
                fix_ups: counts.fix_ups,
                sequential_reads: counts.sequential_reads,
                read_aheads: counts.read_aheads,
                read_ahead_blocks: counts.read_ahead_blocks,
                fake_dirty_blocks: counts.fake_dirty,
                fake_dirty_writes: counts.fake_writes,
                rewritten_after_read: counts.rewritten_after_read,
                rewrites_put_off: counts.rewrites_put_off,
            },
            since_opening: of_all(&report.raid),
            last_consistency_point: of_all(&report.raid_last_point),
            media: media.map(|medium| of_medium(report, medium)).chain([of_objects]).collect(),
            drives: report.drives.iter().enumerate().map(|drive| of_drive(report, drive)).collect(),
        }
    }
}

fn chains(chains: Chains) -> ChainCounts {
    ChainCounts { blocks: chains.blocks, requests: chains.requests, mean: chains.mean() }
}

fn kinds(counts: &DriveCounts) -> Kinds {
    Kinds {
        transfers: Transfers { write_chains: chains(counts.writes), read_chains: chains(counts.reads) },
        parity_read_chains: chains(counts.parity_reads),
        cleaning_read_chains: chains(counts.cleaning_reads),
    }
}

fn of_all(counts: &RaidCounts) -> AllDrives {
    let (full_stripes, partial_stripes) = (counts.full_stripes, counts.partial_stripes);
    AllDrives { kinds: kinds(&counts.data), full_stripes, partial_stripes }
}

/// The sum of the drives of a medium. Like the total, it omits writes to parity drives. It includes
/// their reads that recompute parity.
fn of_medium(report: &AggregateReport, medium: Medium) -> MediumRequests {
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
    MediumRequests::Drives {
        medium: medium.to_string(),
        since_opening: kinds(&sum(|drive| drive.counts)),
        last_consistency_point: kinds(&sum(|drive| drive.last_point)),
    }
}

fn plus(one: Chains, other: Chains) -> Chains {
    Chains { blocks: one.blocks + other.blocks, requests: one.requests + other.requests }
}

fn of_drive(report: &AggregateReport, (number, drive): (usize, &DriveReport)) -> DriveRequests {
    DriveRequests {
        drive: number,
        group: drive.group,
        medium: report.groups[drive.group].medium.to_string(),
        parity: drive.parity,
        since_opening: kinds(&drive.counts),
        last_consistency_point: kinds(&drive.last_point),
    }
}
