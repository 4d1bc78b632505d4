//! The run: processes the events of clients, processors, the log and drives in order.

use std::collections::{BTreeMap, VecDeque};

use senesce_core::{BlockOp, Nanos, Rng};

use super::{
    consistency_point::Running,
    consistency_point_steps::{PointWork, cut},
    drive::{Drive, Request},
    figures::{Accounts, StorageFigures},
    operation::Open,
    setup::{StorageLoad, StorageSetup},
    trace::{Chain, Trace},
};
use crate::{Arrivals, Class, CpuEvents, Discipline, Distribution, Error, EventQueue, Order, Station, Ticket};

/// Events of a run, for an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimEvent {
    /// An operation arrived: its number.
    Arrived(u64),
    /// An operation waits for space in the log: both halves wait for consistency points.
    Held(u64),
    /// An operation was answered.
    Answered(u64),
    /// A drive started a request.
    Request {
        /// The drive.
        drive: usize,
        /// Its operation.
        op: BlockOp,
        /// Its first block.
        block: u64,
        /// The number of blocks.
        blocks: u32,
    },
    /// A consistency point started: its number, counted from the start of the run.
    PointBegan(u64),
    /// A consistency point became durable.
    PointDone(u64),
}

/// Runs a trace on a system. The same trace, system and load give the same figures.
///
/// Errors: an invalid trace, system or description; a violation of Little's law at any station or
/// for the whole system. Cost: a few microseconds for each operation and chain.
pub fn compute_storage(setup: &StorageSetup, trace: &Trace, load: &StorageLoad) -> Result<StorageFigures, Error> {
    compute_storage_observed(setup, trace, load, &mut |_, _| {})
}

/// Runs the trace at each of several rates, in operations a second (Poisson), each on a new system.
pub fn compute_load_curve(
    setup: &StorageSetup,
    trace: &Trace,
    load: &StorageLoad,
    rates: &[u64],
) -> Result<Vec<StorageFigures>, Error> {
    let at = |rate: &u64| {
        let between = Nanos(1_000_000_000 / (*rate).max(1));
        let arrivals = Arrivals::Open(Distribution::Exponential(between));
        compute_storage(setup, trace, &StorageLoad { arrivals, ..*load })
    };
    rates.iter().map(at).collect()
}

/// The same, and reports every event to the observer, in order.
pub fn compute_storage_observed(
    setup: &StorageSetup,
    trace: &Trace,
    load: &StorageLoad,
    observer: &mut dyn FnMut(Nanos, SimEvent),
) -> Result<StorageFigures, Error> {
    setup.check()?;
    trace.check(setup.drives())?;
    if load.operations == 0 {
        return Err(Error::absurd("load", "0 operations have no figures; use at least 1".into()));
    }
    Run::new(setup, trace, load, observer)?.go()
}

/// The receiver of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Operation(u64),
    Step {
        group: usize,
        step: usize,
    },
    /// The thread that works before a point: it reads, and processes what it read.
    Scan,
    Scanned,
    Flush,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Arrival,
    Processor(Ticket, Owner),
    /// A record is transferred to the log.
    Log(Ticket, u64),
    /// The record is durable.
    Logged(u64),
    Drive(usize, Ticket, Owner),
}

pub(super) struct Run<'a> {
    pub setup: &'a StorageSetup,
    pub trace: &'a Trace,
    pub works: Vec<PointWork>,
    load: &'a StorageLoad,
    observer: &'a mut dyn FnMut(Nanos, SimEvent),
    events: EventQueue<Event>,
    rng: Rng,
    /// Jobs are nanoseconds.
    processors: Station<(Owner, u64)>,
    log: Station<u64>,
    drives: Vec<Drive<Owner>>,
    /// Drives that may start a request.
    touched: Vec<usize>,

    /// Number of operations that arrived, and the point and position of the next.
    came: u64,
    next: (u64, usize),
    pub open: BTreeMap<u64, Open<'a>>,
    /// Operations that wait for space in the log.
    pub held: VecDeque<u64>,
    /// Operations that wait for exclusive background work, and whether such work runs.
    pub kept_out: Vec<u64>,
    pub excluded: bool,
    /// Points do not wait for operations.
    pub goes_by_itself: bool,
    /// Durable consistency points.
    pub durable: u64,
    /// Operations in the log, for each point from the first that is not durable on.
    pub logged: VecDeque<u64>,
    pub running: Option<Running>,
    pub accounts: Accounts,
}

impl<'a> Run<'a> {
    fn new(
        setup: &'a StorageSetup,
        trace: &'a Trace,
        load: &'a StorageLoad,
        observer: &'a mut dyn FnMut(Nanos, SimEvent),
    ) -> Result<Self, Error> {
        let groups =
            setup.groups.iter().enumerate().flat_map(|(group, drives)| (0..drives.count).map(move |_| (group, drives)));
        let drives = groups.enumerate().map(|(number, (group, drives))| Drive::new(group, number, drives, setup));
        let mut drives = drives.collect::<Result<Vec<_>, Error>>()?;
        trace.before.iter().for_each(|chain| drives[chain.drive as usize].prime(chain.block, chain.blocks));
        Ok(Self {
            setup,
            trace,
            works: trace.points.iter().map(|point| cut(point, setup)).collect(),
            load,
            observer,
            events: EventQueue::new(),
            rng: Rng::for_purpose(load.seed, "operations"),
            processors: Station::new(
                "processors",
                setup.cores,
                Discipline { order: Order::Arrival, favour: Some(setup.favour) },
            ),
            log: Station::new("log", 1, Discipline::FIFO),
            drives,
            touched: Vec::new(),
            came: 0,
            next: (0, 0),
            open: BTreeMap::new(),
            held: VecDeque::new(),
            kept_out: Vec::new(),
            excluded: false,
            goes_by_itself: trace.goes_by_itself(&setup.cpu),
            durable: 0,
            logged: VecDeque::new(),
            running: None,
            accounts: Accounts::new(),
        })
    }

    fn go(mut self) -> Result<StorageFigures, Error> {
        let first = match self.load.arrivals {
            Arrivals::Open(_) => 1,
            Arrivals::Closed { customers, .. } => customers,
        };
        (0..first).for_each(|_| self.schedule_arrival(Nanos(0)));
        if self.goes_by_itself {
            self.start_checkpoint(Nanos(0));
            self.start_all(Nanos(0));
        }
        while let Some((now, event)) = self.events.take() {
            match event {
                Event::Arrival => self.arrive(now),
                Event::Processor(ticket, owner) => {
                    self.processors.finish(now, ticket);
                    self.tell(now, owner);
                }
                Event::Log(ticket, number) => {
                    self.log.finish(now, ticket);
                    self.events.schedule(Nanos(now.0 + self.setup.log.latency.0), Event::Logged(number));
                }
                Event::Logged(number) => self.logged(now, number),
                Event::Drive(drive, ticket, owner) => {
                    self.drives[drive].finish(now, ticket);
                    self.touched.push(drive);
                    self.tell(now, owner);
                }
            }
            self.start_all(now);
            if self.accounts.answered == self.load.warm_up + self.load.operations {
                return self.figures(now);
            }
        }
        Err(Error::absurd("load", "no more operations arrive".into()))
    }

    fn schedule_arrival(&mut self, now: Nanos) {
        let (Arrivals::Open(span) | Arrivals::Closed { think: span, .. }) = self.load.arrivals;
        let at = Nanos(now.0 + span.draw(&mut self.rng).0);
        self.events.schedule(at, Event::Arrival);
    }

    fn arrive(&mut self, now: Nanos) {
        if let Arrivals::Open(_) = self.load.arrivals {
            self.schedule_arrival(now);
        }
        let (number, (point, place)) = (self.came, self.next);
        let operations = &self.trace.points[(point % self.trace.points.len() as u64) as usize].operations;
        self.came += 1;
        self.next = if place + 1 == operations.len() { (point + 1, 0) } else { (point, place + 1) };
        self.open.insert(number, Open::new(now, point, &operations[place]));
        self.accounts.there.rise(now);
        self.note(now, SimEvent::Arrived(number));
        if self.excluded {
            self.kept_out.push(number);
        } else {
            self.begin_operation(now, number);
        }
    }

    /// Answers an operation.
    pub fn answer(&mut self, now: Nanos, number: u64) {
        let Some(open) = self.open.remove(&number) else { return };
        self.note(now, SimEvent::Answered(number));
        self.accounts.answer(now, open.arrived, open.operation.write);
        if let Arrivals::Closed { .. } = self.load.arrivals {
            self.schedule_arrival(now);
        }
        if self.accounts.answered == self.load.warm_up {
            self.accounts.restart(now);
            self.processors.restart(now);
            self.log.restart(now);
            self.drives.iter_mut().for_each(|drive| drive.restart(now));
        }
    }

    fn tell(&mut self, now: Nanos, owner: Owner) {
        match owner {
            Owner::Operation(number) => self.part_of_operation_done(now, number),
            Owner::Step { group, step } => self.part_of_step_done(now, group, step),
            Owner::Scan => self.scanned(now),
            Owner::Scanned => self.part_of_scan_done(now),
            Owner::Flush => self.flush_done(now),
        }
    }

    /// Starts every job whose server is free.
    fn start_all(&mut self, now: Nanos) {
        while let Some((ticket, (owner, time))) = self.processors.start(now) {
            self.events.schedule(Nanos(now.0 + time), Event::Processor(ticket, owner));
        }
        while let Some((ticket, number)) = self.log.start(now) {
            let blocks = self.open.get(&number).map_or(0, |open| open.operation.blocks);
            let time = u64::from(blocks) * 4096 * 1000 / u64::from(self.setup.log.rate);
            self.events.schedule(Nanos(now.0 + time), Event::Log(ticket, number));
        }
        while let Some(drive) = self.touched.pop() {
            while let Some((ticket, request, done)) = self.drives[drive].start(now) {
                let Request { op, block, blocks, owner } = request;
                self.note(now, SimEvent::Request { drive, op, block, blocks });
                self.events.schedule(done, Event::Drive(drive, ticket, owner));
            }
        }
    }

    pub fn note(&mut self, now: Nanos, happening: SimEvent) {
        (self.observer)(now, happening);
    }

    /// Adds work for a processor. A client's work is one job; background work is divided into
    /// turns. Returns the number of jobs.
    pub fn compute(&mut self, now: Nanos, owner: Owner, time: u64) -> u32 {
        let class = class_of(owner);
        let turn = if class == Class::Client { time.max(1) } else { self.setup.turn.0 };
        let jobs = time.div_ceil(turn);
        for job in 0..jobs {
            self.processors.arrive(now, class, 0, (owner, turn.min(time - job * turn)));
        }
        jobs as u32
    }

    /// Adds chains for drives. Returns the number of requests.
    pub fn request(&mut self, now: Nanos, owner: Owner, op: BlockOp, chains: &[Chain]) -> u32 {
        for &Chain { drive, block, blocks } in chains {
            let drive = drive as usize;
            self.drives[drive].arrive(now, class_of(owner), Request { op, block, blocks, owner });
            self.touched.push(drive);
        }
        chains.len() as u32
    }

    /// Adds a flush for each drive. Returns their number.
    pub fn request_flushes(&mut self, now: Nanos) -> u32 {
        let flush = |drive| Chain { drive, block: 0, blocks: 0 };
        let chains: Vec<Chain> = (0..self.drives.len() as u32).map(flush).collect();
        self.request(now, Owner::Flush, BlockOp::Flush, &chains)
    }

    pub fn append(&mut self, now: Nanos, number: u64) {
        self.log.arrive(now, Class::Client, 0, number);
    }

    pub fn charge(&mut self, class: Class, events: &CpuEvents) -> u64 {
        self.accounts.charge(class, events);
        self.setup.cpu.cost(events)
    }

    fn figures(&self, now: Nanos) -> Result<StorageFigures, Error> {
        let time = now.since(self.accounts.from);
        let drives = self.drives.iter().map(|drive| Ok((drive.group, drive.figures(now, time)?)));
        let offered = match self.load.arrivals {
            Arrivals::Open(between) => Some(1e9 / between.mean()),
            Arrivals::Closed { .. } => None,
        };
        let open = self.open.values().map(|open| open.arrived);
        let stations = (self.processors.figures(now)?, self.log.figures(now)?, drives.collect::<Result<_, Error>>()?);
        self.accounts.figures(now, self.setup, offered, open, stations)
    }
}

fn class_of(owner: Owner) -> Class {
    if let Owner::Operation(_) = owner { Class::Client } else { Class::Background }
}
