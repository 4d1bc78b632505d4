//! One station with external arrivals or a fixed number of customers: the systems that queueing
//! theory has formulas for.

use senesce_core::{Nanos, Rng, Seed};
use serde::{Deserialize, Serialize};

use crate::{
    BatchMeans, Class, Discipline, Distribution, Error, EventQueue, Interval, Station, StationFigures, Ticket,
};

/// The source of customers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// External arrivals, independent of the number present, with these times between them.
    Open(Distribution),
    /// A fixed number of customers. Each returns after its service and a think time.
    Closed {
        /// The number of customers.
        customers: u32,
        /// The think time of each.
        think: Distribution,
    },
}

/// The simulated system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSetup {
    /// The source of customers.
    pub arrivals: Arrivals,
    /// The service time.
    pub service: Distribution,
    /// The number of servers.
    pub channels: u32,
    /// The choice of the next customer.
    pub discipline: Discipline,
    /// The share of customers that are background work, in thousandths.
    pub background_per_mille: u32,
    /// Customers served before figures are collected.
    pub warm_up: u64,
    /// Customers served after that.
    pub customers: u64,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueFigures {
    /// The station's figures.
    pub station: StationFigures,
    /// Waits, ns, with the interval of their mean.
    pub wait: Interval,
    /// Waits plus services, ns.
    pub response: Interval,
}

enum Event {
    Arrival,
    Departure(Ticket),
}

/// Simulates a station. The same seed gives the same figures.
///
/// Errors: no channels, no customers; a violation of Little's law, which every run checks. Cost:
/// about 150 ns for each customer.
pub fn compute_queue(setup: &QueueSetup, seed: Seed) -> Result<QueueFigures, Error> {
    if setup.channels == 0 || setup.customers == 0 {
        let problem = format!(
            "{} channels and {} customers are not possible; use at least 1 of each",
            setup.channels, setup.customers
        );
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
    Err(Error::absurd("station", "no more customers arrive".into()))
}

fn after(now: Nanos, span: Nanos) -> Nanos {
    Nanos(now.0 + span.0)
}
