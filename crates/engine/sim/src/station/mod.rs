//! A place where customers wait for one of some channels: processors, drives, the log.

mod line;

use senesce_core::Nanos;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    statistics::{Histogram, Level, Spans},
};
use line::Lines;

/// For whom work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Somebody waits for it.
    Client,
    /// Nobody waits for it: consistency points, cleaning.
    Background,
}

impl Class {
    /// Both, in the order in which figures stand.
    pub const ALL: [Class; 2] = [Class::Client, Class::Background];
}

/// In which order those of one class are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they came.
    Arrival,
    /// By place, as an arm sweeps: the next place from where the last one ended, and from the beginning again. One that has
    /// waited for `overdue` goes first.
    Sweep {
        /// How long one may be passed over.
        overdue: Nanos,
    },
}

/// By how much clients go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Favour {
    /// Background work that has waited for so long is *aged*.
    pub patience: Nanos,
    /// While clients wait, aged work takes one turn after so many of theirs, and work that is not aged none. So a client
    /// that finds n before it waits for at most 1 + n / `clients_between` turns that are not a client's, and aged work starts
    /// after at most `clients_between` others' turns, however many clients come.
    pub clients_between: u32,
}

/// Who is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discipline {
    /// The order within a class.
    pub order: Order,
    /// By how much clients go first; none if all are one line.
    pub favour: Option<Favour>,
}

impl Discipline {
    /// First come, first served.
    pub const FIFO: Discipline = Discipline { order: Order::Arrival, favour: None };
}

/// What a customer holds while it is served, and gives back at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// For whom.
    pub class: Class,
    /// When it came.
    pub arrived: Nanos,
    /// When its service began.
    pub started: Nanos,
}

/// Channels and those who wait for one.
///
/// It does not know how long a service takes: who calls [`Station::start`] does, and calls [`Station::finish`] at its end.
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
    /// Tickets of those who are served now: with those who wait, the other half of Little's law.
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
    /// Time of these figures, ns.
    pub time: u64,
    /// Channels.
    pub channels: u32,
    /// Busy channels / channels, mean over time.
    pub utilisation: f64,
    /// The share of the time in which at least one channel was busy.
    pub share_busy: f64,
    /// Those who wait, mean over time.
    pub waiting: f64,
    /// Those who wait or are served, mean over time.
    pub there: f64,
    /// From coming to the beginning of the service.
    pub waits: [Spans; 2],
    /// From coming to the end of the service.
    pub responses: [Spans; 2],
    /// Channels that each class kept busy, mean over time, counted at the end of each service.
    pub busy: [f64; 2],
}

impl<J> Station<J> {
    /// A station where nobody is. In: at least one channel.
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

    /// Somebody comes. `place` is where on a drive its work ends; it counts in a sweep only.
    pub fn arrive(&mut self, now: Nanos, class: Class, place: u64, job: J) {
        self.there.rise(now);
        self.waiting.rise(now);
        self.lines.push(now, class, place, job);
    }

    /// The next one's service begins, if somebody waits and a channel is free.
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

    /// A service ends.
    pub fn finish(&mut self, now: Nanos, ticket: Ticket) {
        self.busy.fall(now);
        self.there.fall(now);
        // A ticket that is not served is not found, and Little's law tells.
        if let Some(at) = self.served.iter().position(|served| *served == ticket) {
            self.served.swap_remove(at);
        }
        let arrived = ticket.arrived.max(self.from);
        let account = &mut self.classes[ticket.class as usize];
        account.responses.add(now.since(arrived));
        account.served += u128::from(now.since(ticket.started.max(self.from)).0);
    }

    /// Those who wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.value()
    }

    /// Forgets figures from before `now`: who is there counts as having come now.
    pub fn restart(&mut self, now: Nanos) {
        self.from = now;
        [&mut self.there, &mut self.waiting, &mut self.busy].into_iter().for_each(|level| level.restart(now));
        self.classes = Default::default();
    }

    /// The figures up to `now`.
    ///
    /// Errors: [`Error::Little`] if the time that customers were there, added up from their tickets, is not exactly the
    /// integral of how many there were.
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
