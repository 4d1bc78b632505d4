//! The runner: a load on an aggregate, with a consistency point after as many blocks as the set-up says.

use std::ops::Range;

use senesce_garden::{AggregateReport, Cleaning, FixUp, Gardening};
use serde::{Deserialize, Serialize};

use crate::{Load, LoadKind, Point, Request, Result, Rig, Rotation, Series, Setup, Way, tell_gardening};

/// How areas are cleaned during a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleaningPolicy {
    /// Not at all.
    Off,
    /// With the garden's defaults.
    Default,
    /// The same, and where there are SSDs and disks also the areas of disks.
    DisksToo,
    /// With the garden's defaults, and all pointers are put right before each consistency point, so that no read is redirected. That
    /// shows what redirects cost; no published figure is held against it.
    AllRight,
    /// With the garden's defaults, but for the quota: a hundred blocks may be moved for each that is written. That shows
    /// what the quota costs and saves; no published figure is held against it.
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
    /// What clients did since the last point.
    running: Point,
    last: AggregateReport,
}

impl Trial {
    /// Makes the aggregate and writes the whole file once, in order. That is not part of the series.
    pub fn new(setup: Setup, load: LoadKind) -> Result<Self> {
        let rig = Rig::new(&setup)?;
        Self::on(setup, load, rig)
    }

    /// The same on an aggregate whose file is empty.
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

    /// What the aggregate is.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What clients do.
    pub fn load(&self) -> LoadKind {
        self.kind
    }

    /// Clients do something else from now on, from its beginning.
    pub fn set_load(&mut self, kind: LoadKind) {
        self.kind = kind;
        self.load = Load::new(kind, self.rig.blocks(), self.setup.seed());
    }

    /// How the aggregate is gardened, in words.
    pub fn tell_gardening(&self) -> String {
        tell_gardening(&self.rig.garden().gardening())
    }

    /// The aggregate and its file.
    pub fn rig(&mut self) -> &mut Rig {
        &mut self.rig
    }

    /// Cleans areas continuously from now on, or no more, where there are SSDs and disks those of SSDs; pointers to old places are put right when they are read.
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

    /// What has been counted.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Goes on until clients have written as many thousandths of a turnover more, to the end of a point.
    pub fn run(&mut self, turnover_thousandths: u64) -> Result<()> {
        let wanted = self.series.turnover * turnover_thousandths / 1000;
        let mut written = 0;
        while written < wanted {
            written += self.run_point()?;
        }
        Ok(())
    }

    /// Goes on to the end of the next point; says how many blocks clients wrote.
    pub fn run_point(&mut self) -> Result<u64> {
        self.run_point_watched(&mut |_| {})
    }

    /// The same, and tells of each operation when it has been done, in order. What drives are asked for after the last one
    /// is the consistency point's.
    pub fn run_point_watched(&mut self, watch: &mut dyn FnMut(&Request)) -> Result<u64> {
        while self.running.client_blocks < self.setup.blocks_per_point() {
            let request = self.load.next_request();
            self.serve(&request)?;
            watch(&request);
        }
        if self.rig.garden().gardening().fix_up == FixUp::Scan {
            // It ends early where there is no space, and goes on there the next time.
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

    /// What is read for a request: in order, all that is read ahead with it. What is in memory already costs no drive anything.
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
