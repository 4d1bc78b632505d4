//! The errors of forecasts on kept runs, and the factors of their intervals.
//!
//! `cargo run -p senesce-core --example forecast_errors -- TABLE` prints a table as tab-separated
//! text: `factors`, `errors`, `dates`, `histories`. docs/results/forecast.md has them.

mod kept;
mod study;

use std::path::Path;

use study::Study;

fn main() -> Result<(), String> {
    let wanted = std::env::args().nth(1).ok_or("name a table: factors, errors, dates, histories")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/kept");
    let study = Study::of(kept::read_histories(&root)?);
    let lines = match wanted.as_str() {
        "factors" => study.factor_lines(),
        "errors" => study.error_lines(),
        "dates" => study.date_lines(),
        "histories" => study.history_lines(),
        _ => return Err(format!("there is no table {wanted:?}")),
    };
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use senesce_core::statistics::forecast::FACTORS;

    use super::*;

    #[test]
    fn factors_of_the_code_are_those_of_the_kept_runs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/kept");
        let study = Study::of(kept::read_histories(&root).unwrap());
        assert_eq!(study.factors(), FACTORS);
        // The aim is 95%. Histories of one plan are alike, so the share is not exact.
        let shares = study.factor_lines();
        for line in shares.iter().skip(1) {
            let covered: f64 = line.split('\t').nth(3).unwrap().parse().unwrap();
            assert!(covered >= 0.92, "{line}");
        }
    }
}
