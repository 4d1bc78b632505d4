//! A station, where customers wait for one of several channels: processors, drives, the log.

mod waiting_queue;

use senesce_core::Nanos;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    statistics::{Histogram, Level, Spans},
};
use waiting_queue::Lines;

/// The class of a customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A client waits for the result.
    Client,
    /// No client waits for the result: consistency points, cleaning.
    Background,
}

impl Class {
    /// Both classes, in the order of figures.
    pub const ALL: [Class; 2] = [Class::Client, Class::Background];
}

/// The order of service within a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By arrival.
    Arrival,
    /// By position, as an arm sweeps: the next position after the end of the last request, then
    /// again from the start. A request that has waited for `overdue` goes first.
    Sweep {
        /// The longest time that a request may be passed over.
        overdue: Nanos,
    },
}

/// The priority of clients over background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Favour {
    /// Background work that has waited for this time is *aged*.
    pub patience: Nanos,
    /// While clients wait, one aged background job is served after `clients_between` clients, and
    /// no job that is not aged. So a client with n clients before it waits for at most 1 + n /
    /// `clients_between` background jobs. Aged work starts after at most `clients_between` other
    /// services, even under any number of clients.
    pub clients_between: u32,
}

/// The rule that selects the next customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discipline {
    /// The order within a class.
    pub order: Order,
    /// The priority of clients; none if all customers are in one line.
    pub favour: Option<Favour>,
}

impl Discipline {
    /// First come, first served.
    pub const FIFO: Discipline = Discipline { order: Order::Arrival, favour: None };
}

/// The proof of a service in progress, returned at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The class of the customer.
    pub class: Class,
    /// The time of its arrival.
    pub arrived: Nanos,
    /// The start of its service.
    pub started: Nanos,
}

/// Channels, and the customers that wait for one.
///
/// A station does not know service times. The caller of [`Station::start`] knows them, and calls
/// [`Station::finish`] at the end.
#[derive(Clone, Debug)]
pub struct Station<J> {
    name: String,
    channels: u32,
    lines: Lines<J>,
    from: Nanos,
    there: Level,
    waiting: Level,
    busy: Level,
    classes: [ClassAccount; 2],
    /// Tickets of the services in progress. With the waiting customers they are the other half of
    /// Little's law.
    served: Vec<Ticket>,
}

#[derive(Clone, Debug, Default)]
struct ClassAccount {
    waits: Histogram,
    responses: Histogram,
    served: u128,
}

/// Figures of a station, and of each class (clients first).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationFigures {
    /// Its name.
    pub name: String,
    /// The observed time, ns.
    pub time: u64,
    /// Channels.
    pub channels: u32,
    /// Busy channels / channels, mean over time.
    pub utilisation: f64,
    /// The share of the time in which at least one channel was busy.
    pub share_busy: f64,
    /// Waiting customers, mean over time.
    pub waiting: f64,
    /// Customers that wait or are served, mean over time.
    pub there: f64,
    /// From arrival to the start of the service.
    pub waits: [Spans; 2],
    /// From arrival to the end of the service.
    pub responses: [Spans; 2],
    /// Channels kept busy by each class, mean over time, counted at the end of each service.
    pub busy: [f64; 2],
}

impl<J> Station<J> {
    /// An empty station. In: at least one channel.
    pub fn new(name: impl Into<String>, channels: u32, discipline: Discipline) -> Self {
        Self {
            name: name.into(),
            channels: channels.max(1),
            lines: Lines::new(discipline),
            from: Nanos(0),
            there: Level::default(),
            waiting: Level::default(),
            busy: Level::default(),
            classes: Default::default(),
            served: Vec::new(),
        }
    }

    /// Records an arrival. `place` is the end position of its work on a drive; only sweeps use it.
    pub fn arrive(&mut self, now: Nanos, class: Class, place: u64, job: J) {
        self.there.rise(now);
        self.waiting.rise(now);
        self.lines.push(now, class, place, job);
    }

    /// Starts the next service, if a customer waits and a channel is free.
    pub fn start(&mut self, now: Nanos) -> Option<(Ticket, J)> {
        if self.busy.value() >= u64::from(self.channels) {
            return None;
        }
        let (class, arrived, job) = self.lines.pop(now)?;
        self.waiting.fall(now);
        self.busy.rise(now);
        self.classes[class as usize].waits.add(now.since(arrived.max(self.from)));
        let ticket = Ticket { class, arrived, started: now };
        self.served.push(ticket);
        Some((ticket, job))
    }

    /// Ends a service.
    pub fn finish(&mut self, now: Nanos, ticket: Ticket) {
        self.busy.fall(now);
        self.there.fall(now);
        // A ticket that is not in service is not found; the check of Little's law then fails.
        if let Some(at) = self.served.iter().position(|served| *served == ticket) {
            self.served.swap_remove(at);
        }
        let arrived = ticket.arrived.max(self.from);
        let account = &mut self.classes[ticket.class as usize];
        account.responses.add(now.since(arrived));
        account.served += u128::from(now.since(ticket.started.max(self.from)).0);
    }

    /// The number of waiting customers.
    pub fn waiting(&self) -> u64 {
        self.waiting.value()
    }

    /// Discards the figures from before `now`; customers present count as arrivals at `now`.
    pub fn restart(&mut self, now: Nanos) {
        self.from = now;
        [&mut self.there, &mut self.waiting, &mut self.busy].into_iter().for_each(|level| level.restart(now));
        self.classes = Default::default();
    }

    /// The figures up to `now`.
    ///
    /// Errors: [`Error::Little`] if the sum of the times of customers in the station, from their
    /// tickets, is not exactly the integral of the number present.
    pub fn figures(&self, now: Nanos) -> Result<StationFigures, Error> {
        let ended: u128 = self.classes.iter().map(|account| account.responses.sum()).sum();
        let present = self.lines.arrivals().chain(self.served.iter().map(|ticket| ticket.arrived));
        let present: u128 = present.map(|arrived| u128::from(now.since(arrived.max(self.from)).0)).sum();
        let (there, area) = (ended + present, self.there.area(now));
        if there != area {
            return Err(Error::Little { station: self.name.clone(), there, area });
        }
        let time = now.since(self.from).0;
        let of_both = |figure: fn(&ClassAccount) -> Spans| [figure(&self.classes[0]), figure(&self.classes[1])];
        let busy = |account: &ClassAccount| if time == 0 { 0.0 } else { account.served as f64 / time as f64 };
        Ok(StationFigures {
            name: self.name.clone(),
            time,
            channels: self.channels,
            utilisation: self.busy.mean(now) / f64::from(self.channels),
            share_busy: self.busy.share_above_zero(now),
            waiting: self.waiting.mean(now),
            there: self.there.mean(now),
            waits: of_both(|account| account.waits.spans()),
            responses: of_both(|account| account.responses.spans()),
            busy: [busy(&self.classes[0]), busy(&self.classes[1])],
        })
    }
}

#[cfg(test)]
mod tests;
