//! Virtual time: the arrivals of requests at the modelled device, and their completions. Pure.
//!
//! Requests are served one by one, in the order in which the server reads them. The n-th request
//! arrives at
//!
//! - [`Pace::Device`]: the completion of the previous one. Only the device needs time, so the clock
//!   depends only on the sequence of requests: the same sequence gives the same nanosecond on any
//!   machine.
//! - [`Pace::Think`]: that completion, plus the real time between the previous answer and its own
//!   arrival, in which programs and the file system computed.
//! - [`Pace::RealTime`]: the real time since the first request, or the completion of the previous
//!   one, whichever is later. The server delays the answer until the real clock reaches the
//!   completion.
//!
//! The device never sees two requests at once. For a disk with one arm that is a queue served in
//! order. For an SSD it is queue depth 1: the model is parallel within a request, not between
//! requests. Modelled times of SSDs under parallel load are therefore upper bounds. The request log
//! can be replayed at other depths ([`senesce_device::compute_cost`]).
//!
//! Sectors are those of the disk. A small disk is the first, fastest and narrowest part of the
//! modelled device, with the short seeks of such a part.

use senesce_core::{BlockOp, BlockRequest, Nanos, SECTOR_BYTES};
use senesce_device::{DeviceModel, Totals as DeviceTotals};
use serde::{Deserialize, Serialize};

/// The source of the progress of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Only the device.
    #[default]
    Device,
    /// The device, and the real time between an answer and the next request.
    Think,
    /// Virtual time is real time: answers are delayed until they are due.
    RealTime,
}

/// Sums over the requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpTotals {
    /// Number of requests.
    pub requests: u64,
    /// Bytes moved or discarded.
    pub bytes: u64,
    /// Model time from arrival to completion, nanoseconds.
    pub busy_ns: u64,
}

/// Virtual time by cause. The parts add up to the elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Reads.
    pub read: OpTotals,
    /// Writes.
    pub write: OpTotals,
    /// Discards.
    pub discard: OpTotals,
    /// Flushes of the device's cache.
    pub flush: OpTotals,
    /// Nanoseconds without a request; 0 under [`Pace::Device`].
    pub idle_ns: u64,
    /// Requests that moved data and did not start where the previous one ended.
    pub discontinuities: u64,
}

impl Totals {
    fn of(&mut self, op: BlockOp) -> &mut OpTotals {
        match op {
            BlockOp::Read => &mut self.read,
            BlockOp::Write => &mut self.write,
            BlockOp::Discard => &mut self.discard,
            BlockOp::Flush => &mut self.flush,
        }
    }

    /// The virtual time that they add up to.
    pub fn elapsed(&self) -> Nanos {
        let ops = [self.read, self.write, self.discard, self.flush];
        Nanos(ops.iter().map(|op| op.busy_ns).sum::<u64>() + self.idle_ns)
    }

    fn add(&mut self, request: &BlockRequest, idle: u64, busy: u64, jumps: bool) {
        let op = self.of(request.op);
        op.requests += 1;
        op.bytes += request.bytes();
        op.busy_ns += busy;
        self.idle_ns += idle;
        self.discontinuities += u64::from(jumps);
    }
}

/// A named interval of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name; empty before the first mark.
    pub name: String,
    /// Virtual time at its start, nanoseconds.
    pub began_ns: u64,
    /// Its sums so far, by kind of request.
    pub totals: Totals,
    /// The same time by the activity of the device, from the model's own accounting.
    pub device: DeviceTotals,
}

/// A request that the model served; `request.issued` is its arrival in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The request.
    pub request: BlockRequest,
    /// Its completion, in virtual time.
    pub completed: Nanos,
}

/// A modelled device with its own clock.
pub struct VirtualClock {
    model: Box<dyn DeviceModel>,
    pace: Pace,
    now: u64,
    /// Virtual time at which the model's clock was zero.
    origin: u64,
    /// Real time of the last answer; under [`Pace::RealTime`], the real time of virtual time zero.
    anchor: Option<u64>,
    head: u64,
    totals: Totals,
    phase: Phase,
    /// The model's accounting at the last mark.
    marked: DeviceTotals,
}

impl VirtualClock {
    /// A device at virtual time zero.
    pub fn new(model: Box<dyn DeviceModel>, pace: Pace) -> Self {
        let marked = model.totals();
        let (totals, phase) = (Totals::default(), Phase::default());
        Self { model, pace, now: 0, origin: 0, anchor: None, head: 0, totals, phase, marked }
    }

    /// Serves a request that arrived at `real` on the machine's clock. [`Pace::Device`] ignores
    /// `real`.
    pub fn serve(&mut self, op: BlockOp, sector: u64, sectors: u32, real: Nanos) -> Served {
        let arrival = self.arrival(real.0);
        let request = BlockRequest { issued: Nanos(arrival), op, sector, sectors };
        // A model that completes a request before its arrival must not turn time back.
        let on_model = Nanos(arrival - self.origin);
        let served = self.model.serve(&BlockRequest { issued: on_model, ..request }, on_model);
        let completed = (self.origin + served.0).max(arrival);
        let moves = matches!(op, BlockOp::Read | BlockOp::Write);
        let jumps = moves && sector != self.head;
        if moves {
            self.head = request.end();
        }
        for totals in [&mut self.totals, &mut self.phase.totals] {
            totals.add(&request, arrival - self.now, completed - arrival, jumps);
        }
        self.now = completed;
        Served { request, completed: Nanos(completed) }
    }

    fn arrival(&mut self, real: u64) -> u64 {
        match self.pace {
            Pace::Device => self.now,
            Pace::Think => self.now + self.anchor.map_or(0, |answered| real.saturating_sub(answered)),
            Pace::RealTime => self.now.max(real.saturating_sub(*self.anchor.get_or_insert(real))),
        }
    }

    /// Call before each answer, with the current real time. Returns how long to delay the answer.
    pub fn answer(&mut self, real: Nanos) -> Nanos {
        match self.pace {
            Pace::Device => Nanos(0),
            Pace::Think => {
                self.anchor = Some(real.0);
                Nanos(0)
            }
            Pace::RealTime => {
                let due = self.anchor.map_or(0, |zero| zero.saturating_add(self.now));
                Nanos(due.saturating_sub(real.0))
            }
        }
    }

    /// Whether the clock uses real time.
    pub fn needs_real_time(&self) -> bool {
        self.pace != Pace::Device
    }

    /// Makes the device cold: it drops the contents of its own memory. Needs no virtual time.
    ///
    /// An idle disk also continues from its first angle and its first cylinder. Otherwise the time
    /// of the same reads would depend on all earlier requests, by up to a turn.
    pub fn drop_device_cache(&mut self) {
        self.model.drop_device_cache();
        if self.model.restart_clock() {
            self.origin = self.now;
            self.head = 0;
        }
    }

    /// The completion of the last request.
    pub fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    /// The sums since virtual time zero.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        Phase { device: self.model.totals().since(&self.marked), ..self.phase.clone() }
    }

    /// The model's accounting of all requests.
    pub fn device_totals(&self) -> DeviceTotals {
        self.model.totals()
    }

    /// Ends the phase and starts another; returns the ended one.
    pub fn mark(&mut self, name: String) -> Phase {
        let ended = self.phase();
        self.phase = Phase { name, began_ns: self.now, ..Phase::default() };
        self.marked = self.model.totals();
        ended
    }

    /// The model's name, for axes and records.
    pub fn device(&self) -> &str {
        self.model.name()
    }
}

/// The sectors that contain `length` bytes from `offset`, in pieces of at most `u32::MAX` sectors;
/// none for zero bytes.
pub fn compute_sectors(offset: u64, length: u64) -> impl Iterator<Item = (u64, u32)> {
    let end = offset.saturating_add(length).div_ceil(SECTOR_BYTES);
    let mut at = if length == 0 { end } else { offset / SECTOR_BYTES };
    std::iter::from_fn(move || {
        let sectors = u32::try_from(end - at).unwrap_or(u32::MAX);
        (sectors > 0).then(|| {
            at += u64::from(sectors);
            (at - u64::from(sectors), sectors)
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::PlainDisk;

    fn clock(pace: Pace) -> VirtualClock {
        VirtualClock::new(Box::new(PlainDisk::default()), pace)
    }

    #[test]
    fn reads_of_a_cold_disk_take_the_same_time_after_any_history() {
        let seconds = |history: &[(BlockOp, u64)]| {
            let mut disk = VirtualClock::new(crate::model::find_device("hdd-7200").unwrap(), Pace::Device);
            for &(op, sector) in history {
                disk.serve(op, sector, 8, Nanos(0));
            }
            disk.drop_device_cache();
            let began = disk.now();
            for n in 0..200 {
                disk.serve(BlockOp::Read, n * n * 977 % 1_000_000, 8, Nanos(0));
            }
            disk.now().since(began)
        };
        let new = seconds(&[]);
        assert_eq!(seconds(&[(BlockOp::Read, 123_456), (BlockOp::Read, 77)]), new);
        assert_eq!(seconds(&[(BlockOp::Write, 9_999), (BlockOp::Flush, 0)]), new);
    }

    #[test]
    fn only_the_device_advances_time() {
        let mut disk = clock(Pace::Device);
        // 100 us, and 8 sectors at 100 MB/s: 40.96 us. The head starts at sector 0.
        let first = disk.serve(BlockOp::Read, 0, 8, Nanos(5));
        assert_eq!((first.request.issued, first.completed), (Nanos(0), Nanos(140_960)));
        disk.answer(Nanos(1_000_000_000));
        // The next one is adjacent: no seek. The third jumps: 8 ms more.
        let second = disk.serve(BlockOp::Write, 8, 8, Nanos(2_000_000_000));
        assert_eq!((second.request.issued, second.completed), (Nanos(140_960), Nanos(281_920)));
        assert_eq!(disk.serve(BlockOp::Read, 1000, 8, Nanos(0)).completed, Nanos(281_920 + 8_140_960));
        assert_eq!(disk.totals().discontinuities, 1);
        assert_eq!(disk.totals().idle_ns, 0);
    }

    #[test]
    fn think_time_counts_from_answer_to_request() {
        let mut disk = clock(Pace::Think);
        disk.serve(BlockOp::Read, 0, 8, Nanos(70));
        assert_eq!(disk.answer(Nanos(1_000)), Nanos(0));
        let next = disk.serve(BlockOp::Read, 8, 8, Nanos(1_500));
        assert_eq!(next.request.issued, Nanos(140_960 + 500));
        assert_eq!(disk.totals().idle_ns, 500);
    }

    #[test]
    fn real_time_delays_answers_until_due() {
        let mut disk = clock(Pace::RealTime);
        disk.serve(BlockOp::Read, 0, 8, Nanos(1_000));
        // Virtual 140,960 is real 141,960.
        assert_eq!(disk.answer(Nanos(2_000)), Nanos(139_960));
        // The answer was late and the program paused: virtual time follows real time.
        let next = disk.serve(BlockOp::Read, 8, 8, Nanos(201_000));
        assert_eq!(next.request.issued, Nanos(200_000));
        assert_eq!(disk.answer(Nanos(400_000)), Nanos(0), "a machine too slow for the device is not waited for");
    }

    #[test]
    fn a_mark_separates_the_totals() {
        let mut disk = clock(Pace::Device);
        disk.serve(BlockOp::Write, 0, 8, Nanos(0));
        let before = disk.mark("read".to_owned());
        disk.serve(BlockOp::Read, 8, 16, Nanos(0));
        assert_eq!((before.totals.write.bytes, before.totals.read.bytes), (4096, 0));
        assert_eq!((disk.phase().totals.read.bytes, disk.phase().began_ns), (8192, 140_960));
        assert_eq!(disk.totals().elapsed(), disk.now());
    }

    #[test]
    fn byte_ranges_map_to_their_sectors() {
        assert_eq!(compute_sectors(0, 0).count(), 0);
        assert_eq!(compute_sectors(100, 0).count(), 0);
        assert_eq!(compute_sectors(511, 2).collect::<Vec<_>>(), [(0, 2)]);
        assert_eq!(compute_sectors(4096, 4096).collect::<Vec<_>>(), [(8, 8)]);
        let most = u64::from(u32::MAX);
        assert_eq!(compute_sectors(0, (most + 3) * 512).collect::<Vec<_>>(), [(0, u32::MAX), (most, 3)]);
    }

    proptest! {
        #[test]
        fn causes_sum_to_the_time_at_every_pace(
            pace in prop_oneof![Just(Pace::Device), Just(Pace::Think), Just(Pace::RealTime)],
            steps in prop::collection::vec((0u64..10_000, 0u32..100, 0u64..1_000_000, 0u64..1_000_000, 0u8..4), 0..50),
        ) {
            let mut disk = clock(pace);
            let (mut real, mut last) = (0, Nanos(0));
            for (sector, sectors, pause, work, op) in steps {
                let op = [BlockOp::Read, BlockOp::Write, BlockOp::Discard, BlockOp::Flush][usize::from(op)];
                real += pause;
                let served = disk.serve(op, sector, sectors, Nanos(real));
                prop_assert!(served.request.issued >= last && served.completed >= served.request.issued);
                last = served.completed;
                real += work;
                real += disk.answer(Nanos(real)).0;
                if pace == Pace::RealTime {
                    prop_assert!(real >= disk.now().0, "answered before it was due");
                }
            }
            prop_assert_eq!(disk.totals().elapsed(), disk.now());
        }
    }
}
