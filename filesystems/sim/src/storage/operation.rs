//! The course of an operation: processors, drives (again where pointers were stale), the log.

use senesce_core::{BlockOp, Nanos};

use super::{
    event_loop::{Owner, Run, SimEvent},
    trace::{Chain, Operation},
};
use crate::{Class, CpuEvents};

/// An operation that is not answered yet.
#[derive(Debug)]
pub(super) struct Open<'a> {
    pub arrived: Nanos,
    /// The consistency point it belongs to, counted from the start.
    pub point: u64,
    pub operation: &'a Operation,
    stage: Stage,
    /// Pending parts of the stage.
    pending: u32,
    held: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begun,
    /// The block of pointers with this number is read.
    Pointer(usize),
    Read,
    Checked,
    /// The block of a map with this number is read.
    Lookup(usize),
    ReadAgain,
    CheckedAgain,
}

impl<'a> Open<'a> {
    pub fn new(arrived: Nanos, point: u64, operation: &'a Operation) -> Self {
        Self { arrived, point, operation, stage: Stage::Begun, pending: 0, held: None }
    }
}

fn blocks(chains: &[Chain]) -> u64 {
    chains.iter().map(|chain| u64::from(chain.blocks)).sum()
}

impl Run<'_> {
    pub fn begin_operation(&mut self, now: Nanos, number: u64) {
        let Some(operation) = self.open.get(&number).map(|open| open.operation) else { return };
        let events = CpuEvents {
            front_end: 1,
            cache_hit: u64::from(operation.cache_hits),
            log_append: if operation.write { u64::from(operation.blocks) } else { 0 },
            chain_issue: (operation.pointers.len() + operation.reads.len()) as u64,
            ..CpuEvents::default()
        };
        self.compute_for(now, number, Stage::Begun, events);
    }

    pub fn part_of_operation_done(&mut self, now: Nanos, number: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        open.pending -= 1;
        if open.pending > 0 {
            return;
        }
        let (operation, stage) = (open.operation, open.stage);
        let Operation { pointers, reads, lookups, redirected, .. } = operation;
        match stage {
            Stage::Begun => self.read_pointers(now, number, 0),
            Stage::Pointer(done) => self.read_pointers(now, number, done + 1),
            Stage::Read => {
                let again = (lookups.len() + redirected.len()) as u64;
                let context_check = blocks(pointers) + blocks(reads);
                let map_lookup = blocks(redirected);
                let decompression = if redirected.is_empty() { u64::from(operation.decompressed) } else { 0 };
                let events =
                    CpuEvents { context_check, map_lookup, decompression, chain_issue: again, ..CpuEvents::default() };
                self.compute_for(now, number, Stage::Checked, events);
            }
            Stage::Checked => self.read_again(now, number, 0),
            Stage::Lookup(done) => self.read_again(now, number, done + 1),
            Stage::ReadAgain => {
                let context_check = blocks(lookups) + blocks(redirected);
                let decompression = u64::from(operation.decompressed);
                let events = CpuEvents { context_check, decompression, ..CpuEvents::default() };
                self.compute_for(now, number, Stage::CheckedAgain, events);
            }
            Stage::CheckedAgain => self.end_operation(now, number, operation),
        }
    }

    /// Reads blocks of pointers one after the other, since each has the location of the next. Then
    /// all chains are read at once.
    fn read_pointers(&mut self, now: Nanos, number: u64, next: usize) {
        let Some(operation) = self.open.get(&number).map(|open| open.operation) else { return };
        if let Some(pointer) = operation.pointers.get(next) {
            self.read_for(now, number, Stage::Pointer(next), std::slice::from_ref(pointer));
        } else if !operation.reads.is_empty() {
            self.read_for(now, number, Stage::Read, &operation.reads);
        } else if !operation.pointers.is_empty() {
            let events = CpuEvents { context_check: blocks(&operation.pointers), ..CpuEvents::default() };
            self.compute_for(now, number, Stage::Checked, events);
        } else {
            self.end_operation(now, number, operation);
        }
    }

    /// Reads blocks of the container map one after the other, then the redirected chains.
    fn read_again(&mut self, now: Nanos, number: u64, next: usize) {
        let Some(operation) = self.open.get(&number).map(|open| open.operation) else { return };
        if let Some(lookup) = operation.lookups.get(next) {
            self.read_for(now, number, Stage::Lookup(next), std::slice::from_ref(lookup));
        } else if !operation.redirected.is_empty() {
            self.read_for(now, number, Stage::ReadAgain, &operation.redirected);
        } else {
            self.end_operation(now, number, operation);
        }
    }

    fn end_operation(&mut self, now: Nanos, number: u64, operation: &Operation) {
        if operation.write { self.append_or_hold(now, number) } else { self.answer(now, number) }
    }

    /// Appends the record, or holds the operation. The log has two halves, so it accepts only
    /// operations of the current point and of the one before.
    fn append_or_hold(&mut self, now: Nanos, number: u64) {
        let Some(open) = self.open.get_mut(&number) else { return };
        if open.point < self.durable + 2 {
            self.append(now, number);
        } else {
            open.held = Some(now);
            self.held.push_back(number);
            self.note(now, SimEvent::Held(number));
        }
    }

    /// Continues operations that wait for the log, as far as it has space.
    pub fn release(&mut self, now: Nanos) {
        for number in std::mem::take(&mut self.held) {
            match self.open.get_mut(&number) {
                Some(open) if open.point < self.durable + 2 => {
                    if let Some(since) = open.held {
                        self.accounts.held.add(now.since(since));
                    }
                    self.append(now, number);
                }
                _ => self.held.push_back(number),
            }
        }
    }

    /// A record is durable: the client is answered, and its point may start.
    pub fn logged(&mut self, now: Nanos, number: u64) {
        let Some(open) = self.open.get(&number) else { return };
        let at = (open.point - self.durable) as usize;
        if at >= self.logged.len() {
            self.logged.resize(at + 1, 0);
        }
        self.logged[at] += 1;
        self.answer(now, number);
        self.start_checkpoint(now);
    }

    fn compute_for(&mut self, now: Nanos, number: u64, stage: Stage, events: CpuEvents) {
        // A job has at least 1 ns, so that an operation always continues from an event.
        let time = self.charge(Class::Client, &events).max(1);
        let pending = self.compute(now, Owner::Operation(number), time);
        self.enter(number, stage, pending);
    }

    fn read_for(&mut self, now: Nanos, number: u64, stage: Stage, chains: &[Chain]) {
        let pending = self.request(now, Owner::Operation(number), BlockOp::Read, chains);
        self.enter(number, stage, pending);
    }

    fn enter(&mut self, number: u64, stage: Stage, pending: u32) {
        if let Some(open) = self.open.get_mut(&number) {
            (open.stage, open.pending) = (stage, pending);
        }
    }
}
