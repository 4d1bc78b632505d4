//! Prints the tables of a published experiment in time.
//!
//! ```text
//! cargo run --release -p senesce-timed --example in_time -- EXPERIMENT [SCALE] [PERCENT] [FLAGS]
//! ```
//!
//! `SCALE` is `small`, `eighth`, `quarter`, `full` or `AREAS/AREAS_PER_POINT`; `PERCENT` is a
//! percentage of the turnovers. The flags are `--measured` and `--json`.
//!
//! `... -- calibrate [SCALE] [PERCENT]` fits the table `paper20` to E4 without cleaning and prints
//! it.

use senesce_sim::CpuProfile;
use senesce_timed::{Experiment, MAXIMUM_PER_SECOND, Outcome, Run, calibrate};
use senesce_trials::{Scale, render_figures};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let mut words = words.iter();
    let what = words.next().ok_or("which experiment? E1, E3, E4, E5, E6, E7, E8, E10, E13, or calibrate")?;
    let mut scale: Scale = words.next().map_or(Ok(Scale::SMALL), |word| word.parse())?;
    if let Some(percent) = words.next() {
        scale.turnover_percent = percent.parse()?;
    }
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    if what == "calibrate" {
        return print_calibration(scale, has("--json"));
    }
    let profile = if has("--measured") { CpuProfile::measured() } else { CpuProfile::paper20() };
    let outcome = what.parse::<Experiment>()?.run(scale, &profile)?;
    if has("--json") {
        println!("{}", serde_json::to_string(&outcome)?);
    } else {
        print(&outcome);
    }
    Ok(())
}

fn print_calibration(scale: Scale, json: bool) -> Result<(), Box<dyn std::error::Error>> {
    let (setup, window) = Experiment::collect_for_calibration(scale)?;
    let found = calibrate(&setup, &window)?;
    if json {
        println!("{}", serde_json::to_string(&found)?);
        return Ok(());
    }
    println!(
        "E4 without cleaning, {} areas: all assumed times x {:.3} give {:.3} ms at {MAXIMUM_PER_SECOND} operations a second",
        scale.areas,
        found.factor_per_mille as f64 / 1000.0,
        found.latency / 1e6
    );
    for (event, time) in found.profile.times.list() {
        println!("{event:>14} {time:>8} ns");
    }
    Ok(())
}

fn print(outcome: &Outcome) {
    let Outcome { experiment, scale, profile, .. } = outcome;
    println!(
        "{experiment}: {}; {} areas, {} for each consistency point; processors: {} ({:?}). All times are a model's.",
        experiment.title(),
        scale.areas,
        scale.areas_per_point,
        profile.name,
        profile.origin
    );
    println!(
        "\n{:<17} {:>5} {:>7} {:>7} {:>7} {:>8} {:>7} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>7} {:>7} {:>6}",
        "stage",
        "turn",
        "w chain",
        "r chain",
        "parity",
        "load",
        "kept up",
        "mean ms",
        "p50",
        "p99",
        "reads",
        "cores",
        "clean",
        "drives %",
        "CP ms",
        "flash"
    );
    for stage in &outcome.stages {
        for Run { load, cleaning_cores, figures } in &stage.runs {
            let ms = |ns: u64| ns as f64 / 1e6;
            let cores: f64 = figures.cores.iter().map(|of| of.client + of.background).sum();
            let flash = figures.flash.and_then(|flash| flash.write_amplification);
            println!(
                "{:<17} {:>5.1} {:>7.2} {:>7.2} {:>7.3} {load:>8} {:>7} {:>7.3} {:>7.3} {:>6.2} {:>6.2} {cores:>6.2} {cleaning_cores:>6.2} {:>7.1} {:>7.1} {:>6}",
                stage.name,
                stage.turnovers,
                stage.counted.write_chain(),
                stage.counted.read_chain(),
                stage.counted.parity_reads_per_block(),
                if figures.kept_up { "yes" } else { "NO" },
                figures.latency.mean / 1e6,
                ms(figures.latency.p50),
                ms(figures.latency.p99),
                figures.reads.mean / 1e6,
                100.0 * figures.group_busy[0],
                figures.points.mean / 1e6,
                flash.filter(|_| stage.collection_is_meant).map_or("-".to_owned(), |of| format!("{of:.2}")),
            );
        }
    }
    print!("\n{}", render_figures(&outcome.figures, &outcome.notes));
    if let Some(counted) = &outcome.structure {
        print!("\nWhat was counted of the same aggregates:\n{}", render_figures(&counted.figures, &counted.notes));
    }
}
