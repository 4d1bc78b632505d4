//! The figures of a run.

use senesce_core::Nanos;
use serde::{Deserialize, Serialize};

use super::setup::StorageSetup;
use crate::{
    BatchMeans, Class, CpuEvents, CpuOrigin, Error, Histogram, Interval, Level, Spans, SsdCounts, StationFigures,
};

/// A run that answers less than this share of the offered load is overloaded: its latencies grow
/// with its length.
const KEPT_UP: f64 = 0.98;

/// Processors kept busy by one kind of event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreUse {
    /// The kind.
    pub event: String,
    /// Cores for operations.
    pub client: f64,
    /// Cores for consistency points.
    pub background: f64,
}

/// Figures of flash.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlashFigures {
    /// Sum over all SSDs.
    pub counts: SsdCounts,
    /// Blocks programmed / blocks written; none without writes.
    pub write_amplification: Option<f64>,
    /// Busy dies / dies, mean over time and drives.
    pub die_utilisation: f64,
}

/// Figures of a run, all of a *model*; spans in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageFigures {
    /// The profile of processors.
    pub profile: String,
    /// The source of its times. With assumed times no figure of this run is a result.
    pub origin: CpuOrigin,
    /// The observed time, ns.
    pub time: u64,
    /// External operations a second; none for a fixed number of clients.
    pub offered_per_second: Option<f64>,
    /// Answered operations a second.
    pub per_second: f64,
    /// Whether the offered load was answered. If not, latencies only reflect the length of the run.
    pub kept_up: bool,
    /// From arrival to answer.
    pub latency: Spans,
    /// Its mean, with its interval.
    pub latency_mean: Interval,
    /// Latency of operations that read.
    pub reads: Spans,
    /// Latency of operations that write.
    pub writes: Spans,
    /// Waiting times of the operations that waited for space in the log.
    pub held: Spans,
    /// Operations in the system, mean over time.
    pub there: f64,
    /// Processors.
    pub processors: StationFigures,
    /// The use of the processors by kind of event.
    pub cores: Vec<CoreUse>,
    /// The log.
    pub log: StationFigures,
    /// Each drive.
    pub drives: Vec<StationFigures>,
    /// The share of the time in which a drive was busy, mean over the drives of each group.
    pub group_busy: Vec<f64>,
    /// SSDs, if there are any.
    pub flash: Option<FlashFigures>,
    /// Durations of consistency points, from start to durability.
    pub points: Spans,
}

/// The counters of a running simulation.
#[derive(Debug)]
pub(super) struct Accounts {
    pub from: Nanos,
    pub there: Level,
    pub answered: u64,
    pub held: Histogram,
    pub points: Histogram,
    latency: Histogram,
    kinds: [Histogram; 2],
    means: BatchMeans,
    /// Sum of the times of answered operations in the system, since `from`.
    there_sum: u128,
    events: [CpuEvents; 2],
}

type DriveFigures = (usize, (StationFigures, Option<(SsdCounts, f64)>));

impl Accounts {
    pub fn new() -> Self {
        Self {
            from: Nanos(0),
            there: Level::default(),
            answered: 0,
            held: Histogram::default(),
            points: Histogram::default(),
            latency: Histogram::default(),
            kinds: Default::default(),
            means: BatchMeans::new(),
            there_sum: 0,
            events: Default::default(),
        }
    }

    pub fn answer(&mut self, now: Nanos, arrived: Nanos, write: bool) {
        self.there.fall(now);
        self.answered += 1;
        let latency = now.since(arrived);
        self.there_sum += u128::from(now.since(arrived.max(self.from)).0);
        self.latency.add(latency);
        self.kinds[usize::from(write)].add(latency);
        self.means.add(latency.0);
    }

    pub fn charge(&mut self, class: Class, events: &CpuEvents) {
        let account = &mut self.events[class as usize];
        *account = account.plus(events);
    }

    /// Discards earlier figures.
    pub fn restart(&mut self, now: Nanos) {
        let (mut there, answered) = (self.there, self.answered);
        there.restart(now);
        *self = Self { from: now, there, answered, ..Self::new() };
    }

    pub fn figures(
        &self,
        now: Nanos,
        setup: &StorageSetup,
        offered: Option<f64>,
        open: impl Iterator<Item = Nanos>,
        (processors, log, drives): (StationFigures, StationFigures, Vec<DriveFigures>),
    ) -> Result<StorageFigures, Error> {
        let present: u128 = open.map(|arrived| u128::from(now.since(arrived.max(self.from)).0)).sum();
        let (there, area) = (self.there_sum + present, self.there.area(now));
        if there != area {
            return Err(Error::Little { station: "system".into(), there, area });
        }
        let time = now.since(self.from).0.max(1);
        let per_second = self.latency.count() as f64 * 1e9 / time as f64;
        let latency = self.latency.spans();
        Ok(StorageFigures {
            profile: setup.cpu.name.clone(),
            origin: setup.cpu.origin,
            time,
            offered_per_second: offered,
            per_second,
            kept_up: offered.is_none_or(|offered| per_second >= KEPT_UP * offered),
            latency,
            latency_mean: self.means.interval(),
            reads: self.kinds[0].spans(),
            writes: self.kinds[1].spans(),
            held: self.held.spans(),
            there: self.there.mean(now),
            processors,
            cores: self.cores(&setup.cpu.times, time),
            log,
            group_busy: (0..setup.groups.len()).map(|group| mean_busy(&drives, group)).collect(),
            flash: flash(&drives),
            drives: drives.into_iter().map(|(_, (figures, _))| figures).collect(),
            points: self.points.spans(),
        })
    }

    fn cores(&self, times: &CpuEvents, time: u64) -> Vec<CoreUse> {
        let [client, background] = self.events.map(|events| events.list());
        let cores = |count: u64, each: u64| count as f64 * each as f64 / time as f64;
        let use_of = |(index, (event, each)): (usize, (&'static str, u64))| CoreUse {
            event: event.to_owned(),
            client: cores(client[index].1, each),
            background: cores(background[index].1, each),
        };
        times.list().into_iter().enumerate().map(use_of).collect()
    }
}

fn mean_busy(drives: &[DriveFigures], group: usize) -> f64 {
    let busy: Vec<f64> =
        drives.iter().filter(|(of, _)| *of == group).map(|(_, (figures, _))| figures.share_busy).collect();
    busy.iter().sum::<f64>() / busy.len().max(1) as f64
}

fn flash(drives: &[DriveFigures]) -> Option<FlashFigures> {
    let flash: Vec<(SsdCounts, f64)> = drives.iter().filter_map(|(_, (_, flash))| *flash).collect();
    if flash.is_empty() {
        return None;
    }
    let counts = flash.iter().fold(SsdCounts::default(), |sum, (counts, _)| sum.plus(counts));
    let die_utilisation = flash.iter().map(|(_, busy)| busy).sum::<f64>() / flash.len() as f64;
    Some(FlashFigures { counts, write_amplification: counts.write_amplification(), die_utilisation })
}
