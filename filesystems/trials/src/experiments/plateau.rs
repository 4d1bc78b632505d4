//! The age at which experiment E4 is measured.

use crate::{CleaningPolicy, Result, Scale, Series, Trial};

/// The number of turnovers without cleaning until the write chain is level, by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plateau {
    turnovers: u64,
}

impl Plateau {
    /// The rule in words.
    pub const RULE: &str = "The paper ages until the metrics are level, and does not define level. The rule here: the first turnover whose write \
         chain is at least 95 % of that of the turnover before; 30 turnovers at most.";
    /// Turnovers after the plateau that are compared, with and without cleaning.
    pub const AFTER: u64 = 5;
    const MOST: u64 = 30;
    const LEVEL: f64 = 0.95;

    /// Ages an aggregate without cleaning until the rule holds.
    pub fn find(trial: &mut Trial, scale: Scale) -> Result<Self> {
        trial.set_cleaning(CleaningPolicy::Off);
        let mut turnovers = 0;
        while turnovers < Self::MOST * scale.turnover_percent.min(100) / 100 + 1 {
            trial.run(10 * scale.turnover_percent)?;
            turnovers += 1;
            if Self::last_step(&Self::chains(trial.series())) >= Self::LEVEL {
                break;
            }
        }
        Ok(Self { turnovers })
    }

    /// Ages another aggregate for the same number of turnovers.
    pub fn reach(self, trial: &mut Trial, scale: Scale) -> Result<()> {
        trial.set_cleaning(CleaningPolicy::Off);
        (0..self.turnovers).try_for_each(|_| trial.run(10 * scale.turnover_percent))
    }

    /// The write chain of each turnover.
    pub fn chains(series: &Series) -> Vec<f64> {
        series.turnovers().iter().map(|turnover| turnover.write_chain()).collect()
    }

    /// The ratio of the last chain to the one before; NaN if there are fewer than two.
    pub fn last_step(chains: &[f64]) -> f64 {
        match chains {
            [.., before, last] => last / before,
            _ => f64::NAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_needs_two_turnovers() {
        assert!(Plateau::last_step(&[3.0]).is_nan());
        assert_eq!(Plateau::last_step(&[9.0, 4.0, 3.0]), 0.75);
    }
}
