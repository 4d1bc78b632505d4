//! Stations against queueing theory.
//!
//! If a second of simulation gives the mean within 1.5%, it must be within 2% of theory. Otherwise
//! (high loads, variable services) it must agree within its own interval. The example `validate`,
//! which runs each night, serves more customers, so that all rows must agree within 2%.
//! docs/results/simulation.md has its table. If almost no customer waits (20 channels at half load:
//! one in 270), the test compares the mean response, not the mean wait.

use senesce_core::{Nanos, Seed};
use senesce_sim::{
    Arrivals, Discipline, Distribution, Favour, Order, QueueFigures, QueueSetup, compute_queue, queueing_formulas::*,
};

const SERVICE: f64 = 1e6;
const EXPONENTIAL: Distribution = Distribution::Exponential(Nanos(1_000_000));
const LOADS: [f64; 4] = [0.3, 0.5, 0.7, 0.9];

fn setup(channels: u32, load: f64, service: Distribution, customers: u64) -> QueueSetup {
    let between = service.mean() / load / f64::from(channels);
    QueueSetup {
        arrivals: Arrivals::Open(Distribution::Exponential(Nanos(between.round() as u64))),
        service,
        channels,
        discipline: Discipline::FIFO,
        background_per_mille: 0,
        warm_up: 20_000,
        customers,
    }
}

#[track_caller]
fn assert_within(what: &str, got: f64, want: f64, percent: f64) {
    let error = (got / want - 1.0) * 100.0;
    assert!(error.abs() <= percent, "{what}: {got} is {error:.2}% off {want}");
}

/// `thousands` is the number of customers at each load. The first `known` loads have enough to be
/// within 2%.
fn hold(
    name: &str,
    channels: u32,
    service: Distribution,
    (thousands, known): ([u64; 4], usize),
    theory: impl Fn(f64) -> f64,
) {
    for (at, (load, thousands)) in LOADS.into_iter().zip(thousands).enumerate() {
        let figures = compute_queue(&setup(channels, load, service, 1000 * thousands), Seed(1)).unwrap();
        let (want, mean) = (theory(load), service.mean());
        let what = format!("{name} at {load}");
        let (got, row) = match compute_erlang_c(channels, load) < 0.01 {
            true => (want + mean, figures.response),
            false => (want, figures.wait),
        };
        let half_width = row.half_width.unwrap();
        assert!(half_width < 0.1 * got, "{what}: the mean is known to {half_width} of {got} only");
        let interval = 100.0 * half_width / got;
        println!("{what}: {:+.2}%, known within {interval:.2}%", (row.mean / got - 1.0) * 100.0);
        if at < known {
            assert!(interval <= 1.5, "{what}: {thousands} thousand customers are too few, known within {interval}%");
            assert_within(&what, row.mean, got, 2.0);
        } else {
            // With these few means, none exceeds its 95% interval by more than half.
            assert_within(&what, row.mean, got, f64::max(2.0, 1.5 * interval));
        }
        assert_within(&what, figures.station.utilisation, load, 1.0);
        holds_little(&figures, f64::from(channels) * load / mean);
    }
}

/// Every run checks the exact form of Little's law; this is the usual one, with the requested rate.
fn holds_little(figures: &QueueFigures, rate: f64) {
    assert_within("customers there", figures.station.there, rate * figures.response.mean, 1.0);
    assert_within("customers waiting", figures.station.waiting + 1.0, 1.0 + rate * figures.wait.mean, 1.0);
}

#[test]
fn one_channel_with_exponential_services() {
    hold("M/M/1", 1, EXPONENTIAL, ([600, 800, 1600, 1500], 3), |load| compute_wait_mmc(1, load, SERVICE));
}

#[test]
fn two_channels() {
    hold("M/M/2", 2, EXPONENTIAL, ([1200, 1200, 2000, 1500], 3), |load| compute_wait_mmc(2, load, SERVICE));
}

#[test]
fn eight_channels() {
    hold("M/M/8", 8, EXPONENTIAL, ([400, 400, 400, 1500], 1), |load| compute_wait_mmc(8, load, SERVICE));
}

#[test]
fn twenty_channels() {
    hold("M/M/20", 20, EXPONENTIAL, ([400, 400, 400, 1500], 2), |load| compute_wait_mmc(20, load, SERVICE));
}

#[test]
fn equal_services() {
    let service = Distribution::Exact(Nanos(1_000_000));
    hold("M/D/1", 1, service, ([400, 400, 800, 4000], 4), |load| compute_wait_mg1(load, service.moments()));
}

#[test]
fn services_that_vary_more() {
    // The variance is 3.6 times the square of the mean.
    let (first, second) = (Nanos(500_000), Nanos(5_500_000));
    let service = Distribution::HyperExponential { first_per_mille: 900, first, second };
    hold("M/H2/1", 1, service, ([1600, 2400, 400, 1500], 2), |load| compute_wait_mg1(load, service.moments()));
}

#[test]
fn services_of_which_a_few_are_long() {
    let service = Distribution::Pareto { alpha_per_mille: 1500, least: Nanos(400_000), most: Nanos(20_000_000) };
    hold("M/Pareto/1", 1, service, ([1400, 1800, 2800, 1500], 3), |load| compute_wait_mg1(load, service.moments()));
}

#[test]
fn responses_have_the_theoretical_distribution() {
    // M/M/1: a response is exponential with mean 1 / (1 - load).
    let figures = compute_queue(&setup(1, 0.7, EXPONENTIAL, 1_000_000), Seed(2)).unwrap();
    let responses = figures.station.responses[0];
    let mean = SERVICE / 0.3;
    for (got, share) in [(responses.p50, 0.5f64), (responses.p95, 0.95), (responses.p99, 0.99)] {
        assert_within("quantile", got as f64, -(1.0 - share).ln() * mean, 3.0);
    }
}

#[test]
fn client_priority_matches_theory() {
    let favour = Favour { patience: Nanos(u64::MAX), clients_between: 1 };
    let mut setup = setup(1, 0.8, EXPONENTIAL, 1_500_000);
    setup.discipline = Discipline { order: Order::Arrival, favour: Some(favour) };
    setup.background_per_mille = 500;
    let moments = EXPONENTIAL.moments();
    let strict = compute_queue(&setup, Seed(3)).unwrap();
    let (first, other) = compute_waits_priority(0.4, 0.4, moments);
    assert_within("clients", strict.station.waits[0].mean, first, 2.0);
    assert_within("background", strict.station.waits[1].mean, other, 3.0);
    // Aging reverts a part of that, and the mean over both classes stays.
    let favour = Favour { patience: Nanos(5_000_000), clients_between: 3 };
    setup.discipline.favour = Some(favour);
    let aging = compute_queue(&setup, Seed(3)).unwrap();
    assert!(aging.station.waits[0].mean > 1.1 * first && aging.station.waits[1].mean < 0.97 * other, "{aging:?}");
    assert_within("all", aging.wait.mean, compute_wait_mg1(0.8, moments), 2.0);
    assert!(aging.station.waits[1].max < strict.station.waits[1].max);
}

#[test]
fn closed_system_utilisation_matches_theory() {
    for customers in [1, 5, 20] {
        let think = Distribution::Exponential(Nanos(10_000_000));
        let arrivals = Arrivals::Closed { customers, think };
        let setup = QueueSetup { arrivals, ..setup(1, 0.5, EXPONENTIAL, 300_000) };
        let figures = compute_queue(&setup, Seed(4)).unwrap();
        let want = compute_closed_utilisation(customers, think.mean(), SERVICE);
        assert_within("utilisation", figures.station.utilisation, want, 1.0);
    }
}

#[test]
fn invalid_setups_are_refused() {
    for setup in [setup(1, 0.5, EXPONENTIAL, 0), QueueSetup { channels: 0, ..setup(1, 0.5, EXPONENTIAL, 1) }] {
        assert!(compute_queue(&setup, Seed(1)).unwrap_err().to_string().contains("at least 1"));
    }
}
