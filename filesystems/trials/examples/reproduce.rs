//! Prints the tables of a published experiment.
//!
//! ```text
//! cargo run --release -p senesce-trials --example reproduce -- \
//!     EXPERIMENT [SCALE] [PERCENT] [--json]
//! ```
//!
//! `SCALE` is `small`, `eighth`, `quarter`, `full` or `AREAS/AREAS_PER_POINT`; `PERCENT` is a
//! percentage of the turnovers.

use senesce_trials::{Experiment, Outcome, Scale, render_figures};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let mut words = words.iter();
    let experiment: Experiment = words.next().ok_or("which experiment? E1 to E5, E9 to E12 or E14")?.parse()?;
    let mut scale: Scale = words.next().map_or(Ok(Scale::SMALL), |word| word.parse())?;
    if let Some(percent) = words.next() {
        scale.turnover_percent = percent.parse()?;
    }
    let outcome = experiment.run(scale)?;
    if flags.iter().any(|flag| flag == "--json") {
        println!("{}", serde_json::to_string(&outcome)?);
    } else {
        print(&outcome);
    }
    Ok(())
}

fn print(outcome: &Outcome) {
    let Outcome { experiment, scale, .. } = outcome;
    println!(
        "{experiment}: {}; {} areas, {} for each consistency point",
        experiment.title(),
        scale.areas,
        scale.areas_per_point
    );
    for stage in &outcome.stages {
        println!(
            "\n{}: {} blocks of a file, {} on data drives",
            stage.name, stage.series.turnover, stage.series.blocks
        );
        println!(
            "{:>8} {:>7} {:>11} {:>6} {:>10} {:>12} {:>7} {:>8} {:>9} {:>6} {:>7} {:>6}",
            "turnover",
            "points",
            "write chain",
            "disks",
            "read chain",
            "parity reads",
            "whole %",
            "written",
            "redirects",
            "moved",
            "ready %",
            "used %"
        );
        for (turnover, point) in (1..).zip(stage.series.turnovers()) {
            println!(
                "{turnover:>8} {:>7} {:>11.2} {:>6.2} {:>10.2} {:>12.3} {:>7.1} {:>8.2} {:>9} {:>6.2} {:>7.1} {:>6.1}",
                point.points,
                point.write_chain(),
                point.disk_write_chain(),
                point.read_chain(),
                point.parity_reads_per_block(),
                100.0 * point.full_stripe_share(),
                point.written_per_client_block(),
                point.redirects,
                point.relocations_per_client_block(),
                100.0 * point.ready_area_share(),
                100.0 * point.used as f64 / stage.series.blocks as f64,
            );
        }
    }
    print!("\n{}", render_figures(&outcome.figures, &outcome.notes));
}
