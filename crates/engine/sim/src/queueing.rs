//! One station with customers from outside, or with a fixed number of them: what queueing theory has formulas for.

use senesce_core::{Nanos, Rng, Seed};
use serde::{Deserialize, Serialize};

use crate::{
    BatchMeans, Class, Discipline, Distribution, Error, EventQueue, Interval, Station, StationFigures, Ticket,
};

/// Where customers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// From outside, however many are there already; so long after each other.
    Open(Distribution),
    /// A fixed number; each comes again after it has been served and has thought for a while.
    Closed {
        /// How many.
        customers: u32,
        /// How long each thinks.
        think: Distribution,
    },
}

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSetup {
    /// Where customers come from.
    pub arrivals: Arrivals,
    /// How long each is served.
    pub service: Distribution,
    /// How many are served at a time.
    pub channels: u32,
    /// Who is next.
    pub discipline: Discipline,
    /// How many of 1000 customers are background work.
    pub background_per_mille: u32,
    /// Customers who are served before figures are taken.
    pub warm_up: u64,
    /// Customers who are served after that.
    pub customers: u64,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueFigures {
    /// The station's figures.
    pub station: StationFigures,
    /// Waits, ns, and how sure their mean is.
    pub wait: Interval,
    /// Waits and services together, ns.
    pub response: Interval,
}

enum Event {
    Arrival,
    Departure(Ticket),
}

/// Simulates a station. Same seed, same figures.
///
/// Errors: no channels, no customers; Little's law broken, which is checked in every run. Cost: some 150 ns for each
/// customer.
pub fn compute_queue(setup: &QueueSetup, seed: Seed) -> Result<QueueFigures, Error> {
    if setup.channels == 0 || setup.customers == 0 {
        let problem = format!("{} channels and {} customers; at least 1 of both", setup.channels, setup.customers);
        return Err(Error::absurd("station", problem));
    }
    let stream = |purpose| Rng::for_purpose(seed, purpose);
    let (mut coming, mut serving, mut choosing) = (stream("arrivals"), stream("services"), stream("classes"));
    let mut events = EventQueue::new();
    let mut station = Station::new("station", setup.channels, setup.discipline);
    let (first, think) = match setup.arrivals {
        Arrivals::Open(between) => (1, between),
        Arrivals::Closed { customers, think } => (customers, think),
    };
    for _ in 0..first {
        events.schedule(think.draw(&mut coming), Event::Arrival);
    }
    let (mut waits, mut responses, mut served) = (BatchMeans::new(), BatchMeans::new(), 0u64);
    while let Some((now, event)) = events.take() {
        match event {
            Event::Arrival => {
                let background =
                    setup.background_per_mille > 0 && choosing.chance(u64::from(setup.background_per_mille), 1000);
                station.arrive(now, if background { Class::Background } else { Class::Client }, 0, ());
                if let Arrivals::Open(between) = setup.arrivals {
                    events.schedule(after(now, between.draw(&mut coming)), Event::Arrival);
                }
            }
            Event::Departure(ticket) => {
                station.finish(now, ticket);
                served += 1;
                if served == setup.warm_up {
                    station.restart(now);
                } else if served > setup.warm_up {
                    responses.add(now.since(ticket.arrived).0);
                    waits.add(ticket.started.since(ticket.arrived).0);
                }
                if served == setup.warm_up + setup.customers {
                    let station = station.figures(now)?;
                    return Ok(QueueFigures { station, wait: waits.interval(), response: responses.interval() });
                }
                if let Arrivals::Closed { think, .. } = setup.arrivals {
                    events.schedule(after(now, think.draw(&mut coming)), Event::Arrival);
                }
            }
        }
        while let Some((ticket, ())) = station.start(now) {
            events.schedule(after(now, setup.service.draw(&mut serving)), Event::Departure(ticket));
        }
    }
    Err(Error::absurd("station", "nobody comes any more".into()))
}

fn after(now: Nanos, span: Nanos) -> Nanos {
    Nanos(now.0 + span.0)
}
