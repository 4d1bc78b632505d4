//! Writes the docs' picture of experiment E1 from the charts of the kept run: `cargo run -p
//! senesce-report --example reproduction_picture` in the project's directory.

use senesce_report::render_reproduction_svg;

const KEPT: &str = "golden/reproduction-eighth-E1.json";
const PICTURE: &str = "docs/images/garden-reproduce.svg";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let part = serde_json::from_str(&std::fs::read_to_string(KEPT)?)?;
    std::fs::write(PICTURE, render_reproduction_svg(&part))?;
    Ok(())
}
