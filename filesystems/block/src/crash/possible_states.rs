//! The possible states after a loss of power.
//!
//! A device has all writes before its last flush. Of each later write it has any part: a subset of
//! the writes, each cut at any multiple of 512 bytes. Until the next flush the set of unflushed
//! writes only grows, and its subsets include those of every earlier moment. So subsets are
//! generated once, before the flush.

use std::{fmt, ops::Range};

use senesce_core::{Rng, SECTOR_BYTES, Seed};

use super::recording::{Event, Recording};
use crate::{BlockDevice, MemoryDevice};

/// The number of states to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPlan {
    /// Up to this number of unflushed writes, all subsets are generated.
    pub exhaustive_up_to: usize,
    /// The number of random states before each flush: subsets if there are more writes than that,
    /// and subsets with one torn write.
    pub samples: usize,
    /// For each write, the number of cuts at sectors within it (at most all), with all earlier
    /// writes.
    pub tears: usize,
    /// The seed of the random choices.
    pub seed: Seed,
}

impl Default for CrashPlan {
    /// All subsets of up to 12 writes, else 64 random ones; 8 cuts of each write.
    fn default() -> Self {
        Self { exhaustive_up_to: 12, samples: 64, tears: 8, seed: Seed(0) }
    }
}

/// The state after one loss of power.
#[derive(Debug)]
pub struct Crash {
    /// The number of earlier events.
    pub events: usize,
    /// The last mark before it.
    pub mark: Option<u64>,
    /// The events whose writes are lost, counted from 0.
    pub lost: Vec<usize>,
    /// The event whose write is torn, and the bytes that are kept.
    pub torn: Option<(usize, u64)>,
    /// The devices in this state, in order.
    pub devices: Vec<MemoryDevice>,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "power lost after {} events", self.events)?;
        if let Some(mark) = self.mark {
            write!(f, " (mark {mark})")?;
        }
        if !self.lost.is_empty() {
            write!(f, ", lost: {:?}", self.lost)?;
        }
        match self.torn {
            Some((event, kept)) => write!(f, ", event {event} torn after {kept} bytes"),
            None => Ok(()),
        }
    }
}

impl Recording {
    /// Passes every state of the plan to `check`: after each write the complete one, and its cuts;
    /// before each flush, and at the end, the subsets. The same recording and plan give the same
    /// states in the same order.
    ///
    /// Cost: a fork of all devices for each state, and the unflushed writes.
    pub fn for_each_crash(&self, plan: &CrashPlan, mut check: impl FnMut(Crash)) {
        let state = self.state();
        let mut walk = Walk {
            events: &state.events,
            durable: state.start.iter().map(MemoryDevice::fork).collect(),
            pending: Vec::new(),
            mark: None,
        };
        check(walk.crash(0, &[], None));
        for (at, event) in state.events.iter().enumerate() {
            match *event {
                Event::Mark(number) => walk.mark = Some(number),
                Event::Write { offset, ref data, .. } => {
                    walk.pending.push(at);
                    check(walk.crash(at + 1, &[], None));
                    let mut rng = Rng::for_purpose(plan.seed, &format!("tear {at}"));
                    for kept in choose(tears(offset, data.len() as u64), plan.tears, &mut rng) {
                        check(walk.crash(at + 1, &[], Some((at, kept))));
                    }
                }
                Event::Discard { .. } => walk.pending.push(at),
                Event::Flush { device } => {
                    if walk.pending.iter().any(|&event| walk.device(event) == device) {
                        walk.subsets(at, plan, &mut check);
                    }
                    walk.settle(device);
                }
                Event::Settle { device } => {
                    walk.subsets(at, plan, &mut check);
                    walk.settle_write(at - 1, device);
                }
            }
        }
        walk.subsets(state.events.len(), plan, &mut check);
    }
}

/// The lengths at which a write may be cut.
fn tears(offset: u64, len: u64) -> Vec<u64> {
    let first = (offset / SECTOR_BYTES + 1) * SECTOR_BYTES;
    (first..offset + len).step_by(SECTOR_BYTES as usize).map(|end| end - offset).collect()
}

/// All values, or `most` random ones.
fn choose(mut all: Vec<u64>, most: usize, rng: &mut Rng) -> Vec<u64> {
    if all.len() > most {
        rng.shuffle(&mut all);
        all.truncate(most);
        all.sort_unstable();
    }
    all
}

struct Walk<'a> {
    events: &'a [Event],
    /// The durable contents.
    durable: Vec<MemoryDevice>,
    /// Writes and discards that are not durable, in order.
    pending: Vec<usize>,
    mark: Option<u64>,
}

impl Walk<'_> {
    fn device(&self, event: usize) -> usize {
        match self.events[event] {
            Event::Write { device, .. }
            | Event::Discard { device, .. }
            | Event::Flush { device }
            | Event::Settle { device } => device,
            Event::Mark(_) => usize::MAX,
        }
    }

    /// Makes all pending events of a device durable.
    fn settle(&mut self, device: usize) {
        let (settled, pending) = self.pending.iter().partition(|&&event| self.device(event) == device);
        self.pending = pending;
        let settled: Vec<usize> = settled;
        for event in settled {
            self.apply(event, &self.durable, u64::MAX);
        }
    }

    /// Makes a write durable, with pending writes to the same range. Other pending events stay
    /// pending.
    fn settle_write(&mut self, write: usize, device: usize) {
        let range = self.range(write);
        let is_settled = |&&event: &&usize| {
            let other = self.range(event);
            self.device(event) == device && other.start < range.end && range.start < other.end
        };
        let settled: Vec<usize> = self.pending.iter().filter(is_settled).copied().collect();
        self.pending.retain(|event| !settled.contains(event));
        for event in settled {
            self.apply(event, &self.durable, u64::MAX);
        }
    }

    /// The byte range of a write or discard.
    fn range(&self, event: usize) -> Range<u64> {
        match &self.events[event] {
            Event::Write { offset, data, .. } => *offset..offset + data.len() as u64,
            Event::Discard { offset, len, .. } => *offset..offset + len,
            Event::Flush { .. } | Event::Settle { .. } | Event::Mark(_) => 0..0,
        }
    }

    /// Applies an event; of a write only the first `keep` bytes.
    fn apply(&self, event: usize, devices: &[MemoryDevice], keep: u64) {
        let done = match &self.events[event] {
            Event::Write { device, offset, data } => {
                let kept = keep.min(data.len() as u64) as usize;
                devices[*device].write_at(*offset, &data[..kept])
            }
            Event::Discard { device, offset, len } => devices[*device].discard(*offset, *len),
            Event::Flush { .. } | Event::Settle { .. } | Event::Mark(_) => Ok(()),
        };
        done.expect("what was recorded fits on the device");
    }

    /// The state in which the events of `lost` are lost and one write is torn.
    fn crash(&self, events: usize, lost: &[usize], torn: Option<(usize, u64)>) -> Crash {
        let devices: Vec<MemoryDevice> = self.durable.iter().map(MemoryDevice::fork).collect();
        for &event in self.pending.iter().filter(|event| !lost.contains(event)) {
            let keep = torn.filter(|torn| torn.0 == event).map_or(u64::MAX, |torn| torn.1);
            self.apply(event, &devices, keep);
        }
        Crash { events, mark: self.mark, lost: lost.to_vec(), torn, devices }
    }

    /// Passes subsets of the pending events: all except the complete one, or samples.
    fn subsets(&self, events: usize, plan: &CrashPlan, check: &mut impl FnMut(Crash)) {
        let pending = self.pending.len();
        let mut rng = Rng::for_purpose(plan.seed, &format!("subsets {events}"));
        let exhaustive = pending <= plan.exhaustive_up_to.min(20);
        if exhaustive {
            for mask in 1u64..1 << pending {
                let lost = (0..pending).filter(|bit| mask >> bit & 1 == 1).map(|bit| self.pending[bit]);
                check(self.crash(events, &lost.collect::<Vec<_>>(), None));
            }
        } else {
            check(self.crash(events, &self.pending, None));
        }
        for _ in 0..if pending == 0 { 0 } else { plan.samples } {
            // Few lost, half, or nearly all.
            let eighths = [1, 4, 7][rng.below(3) as usize];
            let lost: Vec<usize> = self.pending.iter().copied().filter(|_| rng.chance(eighths, 8)).collect();
            let torn = self.draw_tear(&lost, &mut rng);
            if torn.is_some() || !exhaustive {
                check(self.crash(events, &lost, torn));
            }
        }
    }

    /// A random write that is not lost, and its cut; `None` if it is within a sector.
    fn draw_tear(&self, lost: &[usize], rng: &mut Rng) -> Option<(usize, u64)> {
        let kept: Vec<usize> = self.pending.iter().copied().filter(|event| !lost.contains(event)).collect();
        let event = *kept.get(rng.below(kept.len().max(1) as u64) as usize)?;
        let Event::Write { offset, data, .. } = &self.events[event] else { return None };
        let ends = tears(*offset, data.len() as u64);
        let end = *ends.get(rng.below(ends.len().max(1) as u64) as usize)?;
        Some((event, end))
    }
}
