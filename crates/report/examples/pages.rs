//! Writes pages for a look in a browser: `cargo run -p senesce-report --example pages -- DIR`.
//!
//! The data are made up. `DIR KIND FILE` makes the page of a kept result instead: `suite` of the
//! `results.json` of a suite, `reproduction` of the `table.json` of `garden reproduce`,
//! `inspection` of the output of `inspect --json`.

use std::{env, error::Error, fs, path::Path};

use senesce_report::{InspectionOptions, SuiteOptions, render_inspection, render_reproduction, render_suite};

#[path = "../tests/common/inspection.rs"]
mod inspection_sample;
#[path = "../tests/common/reproduction.rs"]
mod reproduction_sample;
#[path = "../tests/common/suite.rs"]
mod suite_sample;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let dir = arguments.next().ok_or("name a directory")?;
    let write = |name: &str, page: String| fs::write(Path::new(&dir).join(format!("{name}.html")), page);
    if let Some(kind) = arguments.next() {
        let kept = serde_json::from_str(&fs::read_to_string(arguments.next().ok_or("name a file")?)?)?;
        let page = match kind.as_str() {
            "suite" => render_suite(&kept, &SuiteOptions::default())?,
            "reproduction" => render_reproduction(&kept)?,
            "inspection" => render_inspection(&kept, &InspectionOptions::default())?,
            _ => return Err("the kind is inspection, suite or reproduction".into()),
        };
        return Ok(write(&kind, page)?);
    }
    write("inspection", render_inspection(&inspection_sample::inspection(), &InspectionOptions::default())?)?;
    write("reproduction", render_reproduction(&reproduction_sample::reproduction())?)?;
    write("suite", render_suite(&suite_sample::suite(), &SuiteOptions::default())?)?;
    Ok(())
}
