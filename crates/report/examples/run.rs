//! Writes the page and the figures of a run, without the rest of the program: `cargo run -p
//! senesce-report --example run -- RUN DIR [BASELINE]`.

use std::{env, error::Error, fs, path::Path};

use senesce_report::{Baseline, ReportOptions, render_figures, render_report};
use senesce_store::{ResultStore, Results};

fn read(run: &str) -> Result<Results, Box<dyn Error>> {
    Ok(ResultStore::open_read_only(&Path::new(run).join("results"))?.read_all()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let run = arguments.next().ok_or("name a run")?;
    let dir = arguments.next().ok_or("name a directory")?;
    let baseline = arguments
        .next()
        .map(|name| Ok::<_, Box<dyn Error>>(Baseline { results: read(&name)?, name, unlike: Vec::new() }))
        .transpose()?;
    fs::create_dir_all(&dir)?;
    let results = read(&run)?;
    let options = ReportOptions { baseline, ..ReportOptions::default() };
    fs::write(Path::new(&dir).join("report.html"), render_report(&results, &options)?)?;
    render_figures(&results, &Path::new(&dir).join("figures"))?;
    Ok(())
}
