//! Shows how the fill of the aggregate was calibrated: the write chain without cleaning in each
//! turnover, for each load and several fills.
//!
//! ```text
//! cargo run --release -p senesce-trials --example fill -- \
//!     [random|oltp] [scale] [turnovers] [fill in thousandths ...]
//! ```

use senesce_trials::{CleaningPolicy, LoadKind, Scale, Setup, Trial};

/// The default fills, in thousandths of all blocks.
const FILLS: [u64; 5] = [765, 700, 650, 620, 600];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let load = match words.first().map(String::as_str) {
        None | Some("random") => LoadKind::Random,
        Some("oltp") => LoadKind::Oltp { units: 1 },
        Some(other) => return Err(format!("no load {other:?}; there are random and oltp").into()),
    };
    let scale: Scale = words.get(1).map_or(Ok(Scale::SMALL), |word| word.parse())?;
    let turnovers: u64 = words.get(2).map_or(Ok(3), |word| word.parse())?;
    let fills: Vec<u64> = words.iter().skip(3).map(|word| word.parse()).collect::<Result<_, _>>()?;
    for fill in if fills.is_empty() { FILLS.to_vec() } else { fills } {
        let mut trial = Trial::new(Setup { fill, ..Setup::published(scale) }, load)?;
        trial.set_cleaning(CleaningPolicy::Off);
        trial.run(turnovers * 1000)?;
        let chains: Vec<String> =
            trial.series().turnovers().iter().map(|turnover| format!("{:.2}", turnover.write_chain())).collect();
        println!("fill {fill}: {}", chains.join(" "));
    }
    Ok(())
}
