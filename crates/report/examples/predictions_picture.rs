//! Draws the scatter plot of predicted gains for the docs from the kept table. Run `cargo run -p
//! senesce-report --example predictions_picture` in the directory of the project.

use senesce_report::{PredictedGain, render_predictions_svg};

const KEPT: &str = "docs/results/kept/cure-predictions/volumes.tsv";
const PICTURE: &str = "docs/images/cure-predictions.svg";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(KEPT)?;
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().ok_or("the table is empty")?;
    let column = |name: &str| head.iter().position(|cell| *cell == name).ok_or(format!("no column {name}"));
    let [name, predicted, reached] = ["file_system", "predicted_gain_seconds", "gain_seconds"].map(column);
    let (name, predicted, reached) = (name?, predicted?, reached?);
    let gain = |cells: Vec<&str>| {
        Ok::<_, Box<dyn std::error::Error>>(PredictedGain {
            file_system: cells[name].to_owned(),
            predicted_seconds: cells[predicted].parse()?,
            reached_seconds: cells[reached].parse()?,
        })
    };
    std::fs::write(PICTURE, render_predictions_svg(&lines.map(gain).collect::<Result<Vec<_>, _>>()?))?;
    Ok(())
}
