//! The runner: a load on an aggregate, with a consistency point after the configured number of
//! blocks.

use std::ops::Range;

use senesce_garden::{AggregateReport, Cleaning, FixUp, Gardening};
use serde::{Deserialize, Serialize};

use crate::{Load, LoadKind, Point, Request, Result, Rig, Rotation, Series, Setup, Way, tell_gardening};

/// The policy of cleaning during a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleaningPolicy {
    /// No cleaning.
    Off,
    /// The garden's defaults.
    Default,
    /// The same, and in an aggregate with SSDs and disks also the areas of disks.
    DisksToo,
    /// The garden's defaults, and all stale pointers are corrected before each consistency point,
    /// so that no read is redirected. This shows the cost of redirects; no published figure is
    /// compared with it.
    AllRight,
    /// The garden's defaults, but with a quota of a hundred moved blocks for each written block.
    /// This shows the cost and the savings of the quota; no published figure is compared with it.
    Unlimited,
}

const UNLIMITED_PERCENT: u64 = 10_000;

/// A load on an aggregate.
pub struct Trial {
    setup: Setup,
    rig: Rig,
    kind: LoadKind,
    load: Load,
    series: Series,
    /// Blocks that clients wrote since the last snapshot.
    since_snapshot: u64,
    /// The counts of clients since the last point.
    running: Point,
    last: AggregateReport,
}

impl Trial {
    /// Makes the aggregate and writes the whole file once, in order. The series does not include
    /// that.
    pub fn new(setup: Setup, load: LoadKind) -> Result<Self> {
        let rig = Rig::new(&setup)?;
        Self::on(setup, load, rig)
    }

    /// Does the same on an aggregate whose file is empty.
    pub fn on(setup: Setup, kind: LoadKind, mut rig: Rig) -> Result<Self> {
        let per_point = setup.blocks_per_point();
        for first in (0..rig.blocks()).step_by(per_point as usize) {
            rig.write(first..rig.blocks().min(first + per_point))?;
            rig.garden().consistency_point()?;
        }
        let load = Load::new(kind, rig.blocks(), setup.seed());
        let last = rig.garden().report();
        let series = Series { blocks: last.blocks, turnover: rig.blocks(), points: Vec::new() };
        Ok(Self { setup, rig, kind, load, series, since_snapshot: 0, running: Point::default(), last })
    }

    /// The set-up of the aggregate.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The load of the clients.
    pub fn load(&self) -> LoadKind {
        self.kind
    }

    /// Replaces the load; the new one starts from its first operation.
    pub fn set_load(&mut self, kind: LoadKind) {
        self.kind = kind;
        self.load = Load::new(kind, self.rig.blocks(), self.setup.seed());
    }

    /// The gardening of the aggregate, in words.
    pub fn tell_gardening(&self) -> String {
        tell_gardening(&self.rig.garden().gardening())
    }

    /// The aggregate and its file.
    pub fn rig(&mut self) -> &mut Rig {
        &mut self.rig
    }

    /// Sets the policy of cleaning from now on. With SSDs and disks only areas of SSDs are cleaned,
    /// except under `DisksToo`. With cleaning, reads correct stale pointers.
    pub fn set_cleaning(&mut self, cleaning: CleaningPolicy) {
        let demotion = self.rig.garden().gardening().demotion;
        let none = Gardening { demotion, ..Gardening::default() };
        let with = |cleaning| Gardening { cleaning: Some(cleaning), fix_up: FixUp::OnRead, ..none };
        let gardening = match cleaning {
            CleaningPolicy::Off => none,
            CleaningPolicy::Default => with(Cleaning::default()),
            CleaningPolicy::DisksToo => with(Cleaning { disks_too: true, ..Cleaning::default() }),
            CleaningPolicy::AllRight => Gardening { fix_up: FixUp::Scan, ..with(Cleaning::default()) },
            CleaningPolicy::Unlimited => with(Cleaning { quota_percent: UNLIMITED_PERCENT, ..Cleaning::default() }),
        };
        self.rig.garden().set_gardening(gardening);
    }

    /// The counts so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Runs until clients have written this many thousandths of a turnover more, to the end of a
    /// point.
    pub fn run(&mut self, turnover_thousandths: u64) -> Result<()> {
        let wanted = self.series.turnover * turnover_thousandths / 1000;
        let mut written = 0;
        while written < wanted {
            written += self.run_point()?;
        }
        Ok(())
    }

    /// Runs to the end of the next point. Returns the number of blocks that clients wrote.
    pub fn run_point(&mut self) -> Result<u64> {
        self.run_point_watched(&mut |_| {})
    }

    /// Does the same, and calls `watch` after each operation, in order. Requests to drives after
    /// the last call belong to the consistency point.
    pub fn run_point_watched(&mut self, watch: &mut dyn FnMut(&Request)) -> Result<u64> {
        while self.running.client_blocks < self.setup.blocks_per_point() {
            let request = self.load.next_request();
            self.serve(&request)?;
            watch(&request);
        }
        if self.rig.garden().gardening().fix_up == FixUp::Scan {
            // Without space the step stops early; the next one continues there.
            self.rig.garden().fix_up_step(Rig::VOLUME, u64::MAX)?;
        }
        self.rig.garden().consistency_point()?;
        if let Some(Rotation { every_percent, kept }) = self.setup.snapshots {
            self.since_snapshot += self.running.client_blocks;
            if self.since_snapshot * 100 >= self.rig.blocks() * every_percent {
                self.rig.rotate_snapshots(kept)?;
                self.since_snapshot = 0;
            }
        }
        let now = self.rig.garden().report();
        let mut point = std::mem::take(&mut self.running);
        point.note(&now, &self.last);
        self.last = now;
        self.series.points.push(point);
        Ok(point.client_blocks)
    }

    fn serve(&mut self, request: &Request) -> Result<()> {
        let count = request.blocks.end - request.blocks.start;
        if request.is_read {
            self.running.client_reads += 1;
            self.running.client_blocks_read += count;
            return self.rig.read(self.with_ahead(request));
        }
        self.running.client_writes += 1;
        self.running.client_blocks += count;
        self.rig.write(request.blocks.clone())
    }

    /// The blocks to read for a request. A sequential request includes its read-ahead. Blocks in
    /// memory cost no request to a drive.
    fn with_ahead(&self, request: &Request) -> Range<u64> {
        let Range { start, end } = request.blocks;
        match request.way {
            Way::Random => start..end,
            Way::Sequential => {
                let unit = self.setup.read_ahead;
                start / unit * unit..end.next_multiple_of(unit).min(self.rig.blocks())
            }
        }
    }
}
