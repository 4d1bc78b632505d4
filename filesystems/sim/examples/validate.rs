//! Compares stations with queueing theory, with large numbers of customers. Prints the table of
//! docs/results/simulation.md.
//!
//! `cargo run -p senesce-sim --example validate` simulates each row until its mean is known within
//! 1.5% (95% interval), or until 400 million customers were served. It fails if a mean deviates
//! more than 2% from theory.

use std::process::ExitCode;

use senesce_core::{Nanos, Seed};
use senesce_sim::{Arrivals, Discipline, Distribution, Error, QueueSetup, compute_queue, queueing_formulas::*};

const MOST: u64 = 400_000_000;

type Theory = fn(f64, Distribution) -> f64;

fn main() -> Result<ExitCode, Error> {
    let exponential = Distribution::Exponential(Nanos(1_000_000));
    let exact = Distribution::Exact(Nanos(1_000_000));
    let (first, second) = (Nanos(500_000), Nanos(5_500_000));
    let varied = Distribution::HyperExponential { first_per_mille: 900, first, second };
    let pareto = Distribution::Pareto { alpha_per_mille: 1500, least: Nanos(400_000), most: Nanos(20_000_000) };
    let general: Theory = |load, service| compute_wait_mg1(load, service.moments());
    let rows: [(&str, u32, Distribution, Theory); 7] = [
        ("M/M/1", 1, exponential, |load, service| compute_wait_mmc(1, load, service.mean())),
        ("M/M/2", 2, exponential, |load, service| compute_wait_mmc(2, load, service.mean())),
        ("M/M/8", 8, exponential, |load, service| compute_wait_mmc(8, load, service.mean())),
        ("M/M/20", 20, exponential, |load, service| compute_wait_mmc(20, load, service.mean())),
        ("M/D/1", 1, exact, general),
        ("M/H2/1", 1, varied, general),
        ("M/Pareto/1", 1, pareto, general),
    ];
    println!(
        "| station | load | customers | mean wait, ms | theory | error | 95% interval |\n|---|---|---|---|---|---|---|"
    );
    let mut within = true;
    for (name, channels, service, theory) in rows {
        for load in [0.3, 0.5, 0.7, 0.9] {
            within &= row(name, channels, load, service, theory(load, service))?;
        }
    }
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(name: &str, channels: u32, load: f64, service: Distribution, theory: f64) -> Result<bool, Error> {
    let between = Nanos((service.mean() / load / f64::from(channels)).round() as u64);
    // If almost no customer waits, the mean wait comes from very few customers; the mean response
    // is compared instead.
    let rare = compute_erlang_c(channels, load) < 0.01;
    let mut customers = 2_000_000;
    loop {
        let setup = QueueSetup {
            arrivals: Arrivals::Open(Distribution::Exponential(between)),
            service,
            channels,
            discipline: Discipline::FIFO,
            background_per_mille: 0,
            warm_up: 50_000,
            customers,
        };
        let figures = compute_queue(&setup, Seed(1))?;
        let (want, got) = if rare { (theory + service.mean(), figures.response) } else { (theory, figures.wait) };
        let percent = |part: f64| part / want * 100.0;
        let half_width = percent(got.half_width.unwrap_or(f64::INFINITY));
        if half_width > 1.5 && customers < MOST {
            customers = (customers * 2).min(MOST);
            continue;
        }
        let (error, shown) = (percent(got.mean - want), if rare { " (response)" } else { "" });
        println!(
            "| {name} | {load} | {}M | {:.4}{shown} | {:.4} | {error:+.2}% | ±{half_width:.2}% |",
            customers / 1_000_000,
            got.mean / 1e6,
            want / 1e6
        );
        return Ok(error.abs() <= 2.0);
    }
}
