//! The waiting customers, and the choice of the next one.

use std::collections::{BTreeMap, VecDeque};

use senesce_core::Nanos;

use super::{Class, Discipline, Order};

/// The waiting customers of a station.
#[derive(Clone, Debug)]
pub(super) struct Lines<J> {
    discipline: Discipline,
    /// By class; without favour all customers are in the first line.
    lines: [Line<J>; 2],
    /// Clients served since the last background customer.
    client_turns: u32,
    /// The end position of the last request.
    place: u64,
    came: u64,
}

/// The waiting customers of one class.
#[derive(Clone, Debug)]
enum Line<J> {
    Arrival(VecDeque<(Nanos, Class, J)>),
    Sweep {
        overdue: Nanos,
        by_place: BTreeMap<(u64, u64), (Nanos, Class, J)>,
        /// Arrival time and position of each, by its number.
        by_number: BTreeMap<u64, (Nanos, u64)>,
    },
}

impl<J> Lines<J> {
    pub fn new(discipline: Discipline) -> Self {
        let line = || match discipline.order {
            Order::Arrival => Line::Arrival(VecDeque::new()),
            Order::Sweep { overdue } => Line::Sweep { overdue, by_place: BTreeMap::new(), by_number: BTreeMap::new() },
        };
        Self { discipline, lines: [line(), line()], client_turns: 0, place: 0, came: 0 }
    }

    pub fn push(&mut self, now: Nanos, class: Class, place: u64, job: J) {
        let line = if self.discipline.favour.is_some() { class as usize } else { 0 };
        let number = self.came;
        self.came += 1;
        match &mut self.lines[line] {
            Line::Arrival(line) => line.push_back((now, class, job)),
            Line::Sweep { by_place, by_number, .. } => {
                by_place.insert((place, number), (now, class, job));
                by_number.insert(number, (now, place));
            }
        }
    }

    pub fn pop(&mut self, now: Nanos) -> Option<(Class, Nanos, J)> {
        let line = self.next_line(now)?;
        let (arrived, class, job) = self.lines[line].pop(now, &mut self.place)?;
        match class {
            Class::Client => self.client_turns = self.client_turns.saturating_add(1),
            Class::Background => self.client_turns = 0,
        }
        Some((class, arrived, job))
    }

    /// The arrival times of the waiting customers.
    pub fn arrivals(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.lines.iter().flat_map(Line::arrivals)
    }

    fn next_line(&self, now: Nanos) -> Option<usize> {
        let oldest = [self.lines[0].oldest(), self.lines[1].oldest()];
        match (oldest, self.discipline.favour) {
            ([None, None], _) => None,
            ([Some(_), None], _) => Some(0),
            ([None, Some(_)], _) => Some(1),
            ([Some(_), Some(background)], Some(favour)) => {
                let aged = now.since(background) >= favour.patience;
                Some(usize::from(aged && self.client_turns >= favour.clients_between))
            }
            ([Some(_), Some(_)], None) => Some(0),
        }
    }
}

impl<J> Line<J> {
    /// The arrival time of the customer that has waited longest.
    fn oldest(&self) -> Option<Nanos> {
        match self {
            Line::Arrival(line) => line.front().map(|&(arrived, ..)| arrived),
            Line::Sweep { by_number, .. } => by_number.first_key_value().map(|(_, &(arrived, _))| arrived),
        }
    }

    fn arrivals(&self) -> Box<dyn Iterator<Item = Nanos> + '_> {
        match self {
            Line::Arrival(line) => Box::new(line.iter().map(|&(arrived, ..)| arrived)),
            Line::Sweep { by_place, .. } => Box::new(by_place.values().map(|&(arrived, ..)| arrived)),
        }
    }

    fn pop(&mut self, now: Nanos, at: &mut u64) -> Option<(Nanos, Class, J)> {
        match self {
            Line::Arrival(line) => line.pop_front(),
            Line::Sweep { overdue, by_place, by_number } => {
                let (&number, &(arrived, place)) = by_number.first_key_value()?;
                let next = match now.since(arrived) >= *overdue {
                    true => (place, number),
                    false => *by_place.range((*at, 0)..).chain(by_place.iter()).next()?.0,
                };
                by_number.remove(&next.1);
                *at = next.0;
                by_place.remove(&next)
            }
        }
    }
}
