//! The requests to the drives, for each consistency point.

use senesce_garden::{AggregateReport, Chains, DriveReport, Medium};
use serde::{Deserialize, Serialize};

/// Blocks, and the requests that transferred them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Blocks.
    pub blocks: u64,
    /// Requests.
    pub requests: u64,
}

impl Chain {
    /// Mean blocks of a request; 0 without requests.
    pub fn mean(self) -> f64 {
        ratio(self.blocks, self.requests)
    }

    fn since(now: Chains, before: Chains) -> Self {
        Self { blocks: now.blocks - before.blocks, requests: now.requests - before.requests }
    }

    fn minus(self, part: Self) -> Self {
        Self { blocks: self.blocks - part.blocks, requests: self.requests - part.requests }
    }

    fn plus(self, other: Self) -> Self {
        Self { blocks: self.blocks + other.blocks, requests: self.requests + other.requests }
    }
}

/// The counts from the end of one consistency point to the end of another. The counts of drives
/// include metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The number of the last consistency point.
    pub cp: u64,
    /// The number of consistency points.
    pub points: u64,
    /// Write operations of clients.
    pub client_writes: u64,
    /// Blocks that clients wrote.
    pub client_blocks: u64,
    /// Read operations of clients.
    pub client_reads: u64,
    /// Blocks that clients read, without those read ahead.
    pub client_blocks_read: u64,
    /// Writes of data drives.
    pub writes: Chain,
    /// The part of these on disks with SSDs before them; zero without SSDs.
    pub disk_writes: Chain,
    /// The part of `parity_reads` on these disks.
    pub disk_parity_reads: Chain,
    /// Reads of contents from data drives.
    pub reads: Chain,
    /// Reads for the computation of parity.
    pub parity_reads: Chain,
    /// Reads that move blocks out of areas under cleaning.
    pub cleaning_reads: Chain,
    /// Stripes written whole.
    pub full_stripes: u64,
    /// Stripes written in part.
    pub partial_stripes: u64,
    /// Reads whose block was not at the location of its pointer.
    pub redirects: u64,
    /// Corrected stale pointers.
    pub fix_ups: u64,
    /// Relocated blocks of volumes.
    pub relocations: u64,
    /// The part of these from SSDs to disks.
    pub demotions: u64,
    /// Blocks rewritten together after they were read.
    pub rewritten: u64,
    /// Relocated blocks of the aggregate's metadata.
    pub metadata_relocations: u64,
    /// Allocated areas that were empty.
    pub ready_areas: u64,
    /// Allocated areas that were not empty.
    pub other_areas: u64,
    /// Blocks in use at the end.
    pub used: u64,
}

impl Point {
    /// Mean blocks of a write chain.
    pub fn write_chain(&self) -> f64 {
        self.writes.mean()
    }

    /// Mean blocks of a write chain of disks that have SSDs before them.
    pub fn disk_write_chain(&self) -> f64 {
        self.disk_writes.mean()
    }

    /// Mean blocks of a write chain of SSDs in an aggregate of both media.
    pub fn flash_write_chain(&self) -> f64 {
        self.writes.minus(self.disk_writes).mean()
    }

    /// Blocks that such SSDs read for parity, for each block that clients wrote.
    pub fn flash_parity_reads_per_client_block(&self) -> f64 {
        ratio(self.parity_reads.minus(self.disk_parity_reads).blocks, self.client_blocks)
    }

    /// Mean blocks of a read chain.
    pub fn read_chain(&self) -> f64 {
        self.reads.mean()
    }

    /// Mean blocks of all chains that data drives read: for clients, for cleaning, and for parity.
    pub fn all_read_chain(&self) -> f64 {
        self.reads.plus(self.cleaning_reads).plus(self.parity_reads).mean()
    }

    /// Blocks read for parity, for each block written.
    pub fn parity_reads_per_block(&self) -> f64 {
        ratio(self.parity_reads.blocks, self.writes.blocks)
    }

    /// Blocks read for parity, for each block that clients wrote.
    pub fn parity_reads_per_client_block(&self) -> f64 {
        ratio(self.parity_reads.blocks, self.client_blocks)
    }

    /// Blocks moved, for each block that clients wrote.
    pub fn relocations_per_client_block(&self) -> f64 {
        ratio(self.relocations + self.metadata_relocations, self.client_blocks)
    }

    /// Blocks that went from SSDs to disks, for each block that clients wrote.
    pub fn demotions_per_client_block(&self) -> f64 {
        ratio(self.demotions, self.client_blocks)
    }

    /// The share of empty areas among all allocated areas.
    pub fn ready_area_share(&self) -> f64 {
        ratio(self.ready_areas, self.ready_areas + self.other_areas)
    }

    /// Blocks that data drives wrote, for each block that clients wrote.
    pub fn written_per_client_block(&self) -> f64 {
        ratio(self.writes.blocks, self.client_blocks)
    }

    /// The share of whole stripes among all stripes written.
    pub fn full_stripe_share(&self) -> f64 {
        ratio(self.full_stripes, self.full_stripes + self.partial_stripes)
    }

    /// Adds the requests to drives between two reports.
    pub(crate) fn note(&mut self, now: &AggregateReport, before: &AggregateReport) {
        let (raid, earlier) = (&now.raid, &before.raid);
        self.cp = now.cp;
        self.points = now.counts.consistency_points - before.counts.consistency_points;
        self.writes = Chain::since(raid.data.writes, earlier.data.writes);
        let of_disks = |of: fn(&DriveReport) -> Chains| Chain::since(sum_of_disks(now, of), sum_of_disks(before, of));
        self.disk_writes = of_disks(|drive| drive.counts.writes);
        self.disk_parity_reads = of_disks(|drive| drive.counts.parity_reads);
        self.reads = Chain::since(raid.data.reads, earlier.data.reads);
        self.parity_reads = Chain::since(raid.data.parity_reads, earlier.data.parity_reads);
        self.cleaning_reads = Chain::since(raid.data.cleaning_reads, earlier.data.cleaning_reads);
        self.full_stripes = raid.full_stripes - earlier.full_stripes;
        self.partial_stripes = raid.partial_stripes - earlier.partial_stripes;
        let (counts, earlier) = (&now.counts, &before.counts);
        self.redirects = counts.redirects - earlier.redirects;
        self.fix_ups = counts.fix_ups - earlier.fix_ups;
        self.relocations = counts.relocations - earlier.relocations;
        self.demotions = counts.demotions - earlier.demotions;
        self.rewritten = counts.rewritten_after_read - earlier.rewritten_after_read;
        self.metadata_relocations = counts.metadata_relocations - earlier.metadata_relocations;
        self.ready_areas = counts.ready_areas_taken - earlier.ready_areas_taken;
        self.other_areas = counts.other_areas_taken - earlier.other_areas_taken;
        self.used = now.blocks - now.free;
    }

    /// The sum of this point and a later one.
    pub fn plus(self, later: Self) -> Self {
        Self {
            cp: later.cp,
            points: self.points + later.points,
            client_writes: self.client_writes + later.client_writes,
            client_blocks: self.client_blocks + later.client_blocks,
            client_reads: self.client_reads + later.client_reads,
            client_blocks_read: self.client_blocks_read + later.client_blocks_read,
            writes: self.writes.plus(later.writes),
            disk_writes: self.disk_writes.plus(later.disk_writes),
            disk_parity_reads: self.disk_parity_reads.plus(later.disk_parity_reads),
            reads: self.reads.plus(later.reads),
            parity_reads: self.parity_reads.plus(later.parity_reads),
            cleaning_reads: self.cleaning_reads.plus(later.cleaning_reads),
            full_stripes: self.full_stripes + later.full_stripes,
            partial_stripes: self.partial_stripes + later.partial_stripes,
            redirects: self.redirects + later.redirects,
            fix_ups: self.fix_ups + later.fix_ups,
            relocations: self.relocations + later.relocations,
            demotions: self.demotions + later.demotions,
            rewritten: self.rewritten + later.rewritten,
            metadata_relocations: self.metadata_relocations + later.metadata_relocations,
            ready_areas: self.ready_areas + later.ready_areas,
            other_areas: self.other_areas + later.other_areas,
            used: later.used,
        }
    }
}

/// The sum over disks that hold data, if there are SSDs as well.
fn sum_of_disks(report: &AggregateReport, of: fn(&DriveReport) -> Chains) -> Chains {
    let is_mixed = report.groups.iter().any(|group| group.medium == Medium::Ssd);
    let is_disk = |drive: &&DriveReport| is_mixed && !drive.parity && report.groups[drive.group].medium == Medium::Hdd;
    let disks = report.drives.iter().filter(is_disk).map(of);
    disks.fold(Chains::default(), |sum, own| Chains {
        blocks: sum.blocks + own.blocks,
        requests: sum.requests + own.requests,
    })
}

fn ratio(of: u64, to: u64) -> f64 {
    if to == 0 { 0.0 } else { of as f64 / to as f64 }
}

fn sum(points: &[Point]) -> Point {
    points.iter().fold(Point::default(), |sum, point| sum.plus(*point))
}

/// All points of a trial, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Blocks of all data drives.
    pub blocks: u64,
    /// Blocks of the file: the blocks of a turnover.
    pub turnover: u64,
    /// One for each consistency point of the runner.
    pub points: Vec<Point>,
}

impl Series {
    /// The sum of all points.
    pub fn sum(&self) -> Point {
        self.sum_from(0)
    }

    /// The sum of the points from index `first` on.
    pub fn sum_from(&self, first: usize) -> Point {
        sum(&self.points[first.min(self.points.len())..])
    }

    /// The last points that write a turnover together; all points if they write less.
    pub fn last_points(&self) -> &[Point] {
        let (mut first, mut written) = (self.points.len(), 0);
        while first > 0 && written < self.turnover {
            first -= 1;
            written += self.points[first].client_blocks;
        }
        &self.points[first..]
    }

    /// The sum of [`last_points`](Self::last_points).
    pub fn last_turnover(&self) -> Point {
        sum(self.last_points())
    }

    /// The sum for each turnover, in order. Each has the fewest points that write a turnover;
    /// points left at the end are dropped.
    pub fn turnovers(&self) -> Vec<Point> {
        let (mut turnovers, mut sum) = (Vec::new(), Point::default());
        for point in &self.points {
            sum = sum.plus(*point);
            if sum.client_blocks >= self.turnover {
                turnovers.push(std::mem::take(&mut sum));
            }
        }
        turnovers
    }
}
