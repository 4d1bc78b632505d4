//! Writes the report and the figures of a made-up run into the directory given: `cargo run --example sample -- DIR`.

#[path = "../tests/common/mod.rs"]
mod common;

use senesce_report::{ReportOptions, render_figures, render_report, summary_table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).ok_or("name a directory")?);
    std::fs::create_dir_all(&dir)?;
    let results = common::results();
    std::fs::write(dir.join("report.html"), render_report(&results, &ReportOptions::default())?)?;
    let figures = render_figures(&results, &dir.join("figures"))?;
    println!("{}{} files {:?}", summary_table(&results), figures.files.len(), figures.warnings);
    Ok(())
}
