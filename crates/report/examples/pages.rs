//! Writes pages of made-up data, to look at: `cargo run -p senesce-report --example pages -- DIR`.

use std::{env, error::Error, fs, path::Path};

use senesce_report::{InspectionOptions, SuiteOptions, render_inspection, render_reproduction, render_suite};

#[path = "../tests/common/inspection.rs"]
mod inspection_sample;
#[path = "../tests/common/reproduction.rs"]
mod reproduction_sample;
#[path = "../tests/common/suite.rs"]
mod suite_sample;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = env::args().nth(1).ok_or("name a directory")?;
    let pages = [
        ("inspection", render_inspection(&inspection_sample::inspection(), &InspectionOptions::default())?),
        ("reproduction", render_reproduction(&reproduction_sample::reproduction())?),
        ("suite", render_suite(&suite_sample::suite(), &SuiteOptions::default())?),
    ];
    for (name, page) in pages {
        fs::write(Path::new(&dir).join(format!("{name}.html")), page)?;
    }
    Ok(())
}
