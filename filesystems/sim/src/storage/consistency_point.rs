//! The course of a consistency point: the work of one thread before it, concurrent steps of each
//! group, and a flush.

use senesce_core::{BlockOp, Nanos};

use super::{
    consistency_point_steps::ScanPart,
    event_loop::{Owner, Run, SimEvent},
};
use crate::Class;

/// The consistency point that is being written.
#[derive(Debug)]
pub(super) struct Running {
    began: Nanos,
    /// Finished parts of the work before the steps.
    scanned: usize,
    /// The next step to start, of each group.
    next: Vec<usize>,
    /// Stage and pending parts of each started step.
    steps: Vec<Vec<(Stage, u32)>>,
    /// Steps that are not done.
    left: usize,
    flushes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Clean,
    Read,
    Parity,
    Write,
    Done,
}

impl Run<'_> {
    /// Starts the next point when all its operations are in the log and the previous point is
    /// durable. If no operation writes, it starts at once.
    pub fn start_checkpoint(&mut self, now: Nanos) {
        let work = (self.durable % self.works.len() as u64) as usize;
        let logged = self.logged.front().copied().unwrap_or(0);
        if self.running.is_some() || logged < self.works[work].writes.max(1) && !self.goes_by_itself {
            return;
        }
        let groups = &self.works[work].groups;
        self.running = Some(Running {
            began: now,
            scanned: 0,
            next: vec![0; groups.len()],
            steps: groups.iter().map(|_| Vec::new()).collect(),
            left: groups.iter().map(Vec::len).sum(),
            flushes: 0,
        });
        let events = self.works[work].events;
        self.note(now, SimEvent::PointBegan(self.durable));
        self.charge(Class::Background, &events);
        self.go_on_scanning(now);
    }

    /// Starts the next part of the work before the steps; after the last part the first steps
    /// start.
    fn go_on_scanning(&mut self, now: Nanos) {
        let work = (self.durable % self.works.len() as u64) as usize;
        let Some(running) = &self.running else { return };
        match self.works[work].scan.get(running.scanned).copied() {
            Some(ScanPart { chain, excludes, .. }) => {
                self.excluded |= excludes;
                match chain {
                    Some(chain) => {
                        self.request(now, Owner::Scan, BlockOp::Read, &[chain]);
                    }
                    None => self.scanned(now),
                }
            }
            None => {
                for group in 0..self.works[work].groups.len() {
                    (0..self.setup.window).for_each(|_| self.begin_step(now, group));
                }
            }
        }
    }

    /// A chain was read before the steps: charges its processor time.
    pub fn scanned(&mut self, now: Nanos) {
        let work = (self.durable % self.works.len() as u64) as usize;
        let Some(running) = &self.running else { return };
        if let Some(part) = self.works[work].scan.get(running.scanned).copied() {
            self.compute(now, Owner::Scanned, part.time.max(1));
        }
    }

    /// The processor time of that part is over.
    pub fn part_of_scan_done(&mut self, now: Nanos) {
        let work = (self.durable % self.works.len() as u64) as usize;
        if let Some(running) = &mut self.running {
            let releases = self.works[work].scan.get(running.scanned).is_some_and(|part| part.releases);
            running.scanned += 1;
            if releases {
                self.excluded = false;
                for number in std::mem::take(&mut self.kept_out) {
                    self.begin_operation(now, number);
                }
            }
        }
        self.go_on_scanning(now);
    }

    fn begin_step(&mut self, now: Nanos, group: usize) {
        let work = (self.durable % self.works.len() as u64) as usize;
        let Some(running) = &mut self.running else { return };
        let step = running.next[group];
        if step == self.works[work].groups[group].len() {
            return;
        }
        running.next[group] += 1;
        running.steps[group].push((Stage::Clean, 0));
        let time = self.works[work].groups[group][step].before;
        // A job has at least 1 ns, so that a step always continues from an event.
        let pending = self.compute(now, Owner::Step { group, step }, time.max(1));
        self.enter_step(group, step, Stage::Clean, pending);
    }

    pub fn part_of_step_done(&mut self, now: Nanos, group: usize, step: usize) {
        let Some(running) = &mut self.running else { return };
        let (stage, pending) = &mut running.steps[group][step];
        *pending -= 1;
        if *pending > 0 {
            return;
        }
        let mut stage = *stage;
        let work = (self.durable % self.works.len() as u64) as usize;
        let owner = Owner::Step { group, step };
        loop {
            let parts = &self.works[work].groups[group][step];
            let (next, pending) = match stage {
                Stage::Clean => {
                    let reads = parts.reads.clone();
                    (Stage::Read, self.request(now, owner, BlockOp::Read, &reads))
                }
                Stage::Read => {
                    let time = parts.between;
                    (Stage::Parity, self.compute(now, owner, time))
                }
                Stage::Parity => {
                    let writes = parts.writes.clone();
                    (Stage::Write, self.request(now, owner, BlockOp::Write, &writes))
                }
                Stage::Write | Stage::Done => return self.step_done(now, group, step),
            };
            self.enter_step(group, step, next, pending);
            if pending > 0 {
                return;
            }
            stage = next;
        }
    }

    fn enter_step(&mut self, group: usize, step: usize, stage: Stage, pending: u32) {
        if let Some(running) = &mut self.running {
            running.steps[group][step] = (stage, pending);
        }
    }

    fn step_done(&mut self, now: Nanos, group: usize, step: usize) {
        self.enter_step(group, step, Stage::Done, 0);
        self.begin_step(now, group);
        let Some(running) = &mut self.running else { return };
        running.left -= 1;
        if running.left == 0 {
            let flushes = self.request_flushes(now);
            if let Some(running) = &mut self.running {
                running.flushes = flushes;
            }
        }
    }

    pub fn flush_done(&mut self, now: Nanos) {
        let Some(running) = &mut self.running else { return };
        running.flushes -= 1;
        if running.flushes > 0 {
            return;
        }
        let began = running.began;
        self.running = None;
        self.accounts.points.add(now.since(began));
        self.note(now, SimEvent::PointDone(self.durable));
        self.durable += 1;
        self.logged.pop_front();
        self.release(now);
        self.start_checkpoint(now);
    }
}
