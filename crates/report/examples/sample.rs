//! Writes the results, the report and the figures of a made-up run into the directory given: `cargo
//! run --example sample -- DIR`.

#[path = "../tests/common/mod.rs"]
mod common;

use senesce_report::{ReportOptions, render_figures, render_report, summary_table};
use senesce_store::{CellResults, ResultStore};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).ok_or("name a directory")?);
    std::fs::create_dir_all(&dir)?;
    let results = common::results();
    let mut store = ResultStore::create(&dir.join("results"), &results.run.run_name)?;
    store.put_run_info(&results.run)?;
    store.put_circumstances(&results.circumstances)?;
    for cell in &results.cells {
        store.append_cell(&CellResults {
            cell: cell.clone(),
            grep: results.grep.iter().filter(|row| row.key == cell.key).cloned().collect(),
            load: results.load.iter().filter(|row| row.key == cell.key).cloned().collect(),
            layout: results.layout.iter().find(|row| row.key == cell.key).cloned(),
            modelled: results.modelled.iter().filter(|row| row.key == cell.key).cloned().collect(),
            trace: results.trace.iter().filter(|row| row.key == cell.key).cloned().collect(),
            trace_buckets: results.trace_buckets.iter().filter(|row| row.key == cell.key).cloned().collect(),
            map: results.maps.iter().filter(|row| row.key == cell.key).cloned().collect(),
            free_space: results.free_space.iter().filter(|row| row.key == cell.key).cloned().collect(),
            aging: results.aging.iter().find(|row| row.key == cell.key).cloned(),
            latency: results.latency.iter().filter(|row| row.key == cell.key).cloned().collect(),
            steps: results.steps.iter().filter(|row| row.key == cell.key).cloned().collect(),
            cures: results.cures.iter().filter(|row| row.key == cell.key).cloned().collect(),
        })?;
    }
    store.compact()?;
    let results = store.read_all()?;
    std::fs::write(dir.join("report.html"), render_report(&results, &ReportOptions::default())?)?;
    let figures = render_figures(&results, &dir.join("figures"))?;
    println!("{}{} files {:?}", summary_table(&results), figures.files.len(), figures.warnings);
    Ok(())
}
