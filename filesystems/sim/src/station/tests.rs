//! The order of service, and the consistency of the accounting.

use proptest::prelude::*;
use senesce_core::{Rng, Seed};

use super::*;

fn serve_all(station: &mut Station<usize>, service: u64) -> Vec<usize> {
    let (mut now, mut served) = (Nanos(100), Vec::new());
    while let Some((ticket, job)) = station.start(now) {
        now.0 += service;
        station.finish(now, ticket);
        served.push(job);
    }
    served
}

#[test]
fn sweeps_wrap_around_and_serve_overdue_first() {
    let order = Order::Sweep { overdue: Nanos(1000) };
    let mut station = Station::new("disk", 1, Discipline { order, favour: None });
    let places = [500, 100, 900, 300];
    let came = Nanos(100);
    places.iter().enumerate().for_each(|(job, &place)| station.arrive(came, Class::Client, place, job));
    assert_eq!(serve_all(&mut station, 10), [1, 3, 0, 2]);
    // The arm is at 900 now.
    [950, 100, 800].iter().zip(4..).for_each(|(&place, job)| station.arrive(Nanos(140), Class::Client, place, job));
    let (ticket, job) = station.start(Nanos(140)).unwrap();
    assert_eq!(job, 4);
    station.finish(Nanos(1140), ticket);
    // Both have waited for 1,000 ns; the first arrival goes first, at any position.
    assert_eq!(station.start(Nanos(1140)).unwrap().1, 5);
}

#[test]
fn clients_go_first_until_background_ages() {
    let favour = Favour { patience: Nanos(50), clients_between: 3 };
    let mut station = Station::new("cpu", 1, Discipline { order: Order::Arrival, favour: Some(favour) });
    (0..3).for_each(|job| station.arrive(Nanos(100), Class::Background, 0, job));
    (10..20).for_each(|job| station.arrive(Nanos(100), Class::Client, 0, job));
    // Aged after 50 ns, which is 5 services.
    assert_eq!(serve_all(&mut station, 10), [10, 11, 12, 13, 14, 0, 15, 16, 17, 1, 18, 19, 2]);
}

/// One service: its class, and the number of each class that waited before it.
fn turns(favour: Favour, load: &[(bool, u8)], services: u64) -> Vec<(Class, u64, u64, Nanos, Nanos)> {
    let mut station = Station::new("any", 1, Discipline { order: Order::Arrival, favour: Some(favour) });
    let (mut now, mut turns, mut waiting) = (Nanos(0), Vec::new(), [0u64; 2]);
    let mut load = load.iter();
    loop {
        // Some customers arrive during each service.
        let mut came = false;
        for &(client, count) in load.by_ref().take(2) {
            came = true;
            let class = if client { Class::Client } else { Class::Background };
            (0..count).for_each(|_| station.arrive(now, class, 0, ()));
            waiting[class as usize] += u64::from(count);
        }
        let Some((ticket, ())) = station.start(now) else {
            if came {
                continue;
            }
            station.figures(now).unwrap();
            return turns;
        };
        turns.push((ticket.class, waiting[0], waiting[1], ticket.arrived, now));
        waiting[ticket.class as usize] -= 1;
        now.0 += services;
        station.finish(now, ticket);
    }
}

proptest! {
    #[test]
    fn classes_do_not_starve_and_delays_are_bounded(
        load in prop::collection::vec((any::<bool>(), 0u8..6), 0..120),
        patience in 0u64..500,
        clients_between in 1u32..6,
    ) {
        let favour = Favour { patience: Nanos(patience), clients_between };
        let turns = turns(favour, &load, 10);
        let mut clients_in_a_row = 0;
        let mut last_background: Option<usize> = None;
        for (index, &(class, clients, background, arrived, now)) in turns.iter().enumerate() {
            match class {
                Class::Client => {
                    clients_in_a_row += 1;
                    // Customers of a class are served by arrival: the next one is that of the next
                    // service.
                    if background > 0
                        && let Some(&(_, _, _, came, _)) = turns[index..].iter().find(|turn| turn.0 == Class::Background)
                        && now.since(came).0 >= patience
                    {
                        prop_assert!(clients_in_a_row <= clients_between, "{} turns", clients_in_a_row);
                    }
                }
                Class::Background => {
                    if clients > 0 {
                        prop_assert!(now.since(arrived).0 >= patience, "work that is not aged passed a client");
                        if let Some(before) = last_background {
                            prop_assert!(index - before > clients_between as usize);
                        }
                    }
                    last_background = Some(index);
                    clients_in_a_row = 0;
                }
            }
        }
    }

    #[test]
    fn the_accounting_is_always_consistent(seed: u64, channels in 1u32..4, favour: bool, sweep: bool) {
        let mut rng = Rng::for_purpose(Seed(seed), "station");
        let favour = favour.then_some(Favour { patience: Nanos(20), clients_between: 2 });
        let order = if sweep { Order::Sweep { overdue: Nanos(300) } } else { Order::Arrival };
        let mut station = Station::new("any", channels, Discipline { order, favour });
        let (mut now, mut served, mut came, mut ended) = (Nanos(0), Vec::new(), 0u64, 0u64);
        for _ in 0..300 {
            now.0 += rng.below(20);
            match rng.below(7) {
                0..3 => {
                    station.arrive(now, Class::ALL[rng.below(2) as usize], rng.below(50), came);
                    came += 1;
                }
                3..5 => served.extend(station.start(now)),
                5 if !served.is_empty() => {
                    let (ticket, _) = served.swap_remove(rng.below(served.len() as u64) as usize);
                    station.finish(now, ticket);
                    ended += 1;
                }
                6 if rng.chance(1, 20) => station.restart(now),
                _ => {}
            }
            prop_assert!(served.len() <= channels as usize);
            prop_assert_eq!(station.waiting(), came - ended - served.len() as u64);
            let figures = station.figures(now).unwrap();
            prop_assert!(figures.utilisation <= 1.0 + 1e-12 && figures.share_busy <= 1.0);
        }
    }
}

#[test]
fn a_ticket_finished_twice_is_an_error() {
    let mut station = Station::new("any", 2, Discipline::FIFO);
    station.arrive(Nanos(0), Class::Client, 0, ());
    station.arrive(Nanos(5), Class::Client, 0, ());
    let (first, ()) = station.start(Nanos(5)).unwrap();
    let _second = station.start(Nanos(5)).unwrap();
    station.finish(Nanos(10), first);
    assert!(station.figures(Nanos(10)).is_ok());
    station.finish(Nanos(20), first);
    assert!(matches!(station.figures(Nanos(20)), Err(Error::Little { .. })));
}
