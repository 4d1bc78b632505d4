//! Reading profiles, with errors that say what is wrong with which number.

use super::format::{AgingProfile, PROFILE_FORMAT};

/// Fractions may miss 1, and their weights, by this much: they are printed with a few digits.
const FRACTION_TOLERANCE: f64 = 1e-6;
/// A profile without weights is taken at its fractions with this resolution.
const WEIGHT_SCALE: f64 = 1e12;
/// The deepest path that is made: names of up to 12 bytes must stay below the kernel's 4096.
const DEEPEST: u64 = 250;

/// A profile cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileProblem {
    /// The text is not a profile.
    #[error("not a profile: {problem}")]
    Syntax {
        /// Where and what.
        problem: String,
    },
    /// Written for another version of the format.
    #[error("format {found:?}; this program reads {PROFILE_FORMAT:?}")]
    Version {
        /// What its `format` says.
        found: String,
    },
    /// A list that must not be empty is.
    #[error("{list} is empty: a distribution needs at least one bin")]
    Empty {
        /// Which list.
        list: &'static str,
    },
    /// Two lists that go together have different lengths.
    #[error("{list} has {found} entries, and {other} has {expected}")]
    Lengths {
        /// Which list.
        list: &'static str,
        /// How long it is.
        found: usize,
        /// Which other.
        other: &'static str,
        /// How long that is.
        expected: usize,
    },
    /// A bin has less than nothing, or no number.
    #[error("{list}[{index}] is {value}: a bin cannot hold a negative share")]
    Negative {
        /// Which list.
        list: &'static str,
        /// Which entry.
        index: usize,
        /// What it is.
        value: f64,
    },
    /// Bins must rise.
    #[error("{list}[{index}] is {value}: not above the one before it ({before})")]
    NotRising {
        /// Which list.
        list: &'static str,
        /// Which entry.
        index: usize,
        /// What it is.
        value: f64,
        /// What the one before it is.
        before: f64,
    },
    /// Shares that are not shares of one whole.
    #[error("{list} sums to {sum}, not to 1")]
    Sum {
        /// Which list.
        list: &'static str,
        /// Its sum.
        sum: f64,
    },
    /// Nobody is in any bin.
    #[error("{list} are all 0: no file belongs anywhere")]
    Nobody {
        /// Which list.
        list: &'static str,
    },
    /// A fraction is not its weight's.
    #[error("{list}[{index}] is {fraction}, but the weights give {expected}")]
    Disagree {
        /// Which list.
        list: &'static str,
        /// Which entry.
        index: usize,
        /// What it is.
        fraction: f64,
        /// What the weights say.
        expected: f64,
    },
    /// A text that would reach a terminal as commands.
    #[error("{key} has a control character ({character:?})")]
    Control {
        /// Which.
        key: &'static str,
        /// The first of them.
        character: char,
    },
    /// Ages are in a unit that is unknown.
    #[error(
        "age.unit = {found:?}: known are seconds, minutes, hours, days, and unknown for hours that are only assumed"
    )]
    Unit {
        /// What it is.
        found: String,
    },
    /// A value is out of its range.
    #[error("{key} = {value}: {problem}")]
    Range {
        /// Which.
        key: &'static str,
        /// What it is.
        value: f64,
        /// What its range is.
        problem: &'static str,
    },
}

impl AgingProfile {
    /// Takes a text as a profile: checked, with what may be left out filled in.
    pub fn parse(text: &str) -> Result<Self, ProfileProblem> {
        // The version first: a key of a later version must not be called a misspelling.
        let table = text.parse::<toml::Table>().map_err(syntax)?;
        match table.get("format").and_then(|format| format.as_str()) {
            Some(PROFILE_FORMAT) => {}
            found => return Err(ProfileProblem::Version { found: found.unwrap_or("(none)").to_owned() }),
        }
        toml::from_str::<Self>(text).map_err(syntax)?.checked()
    }

    /// The profile with weights, fractions and relative ages filled in, if everything in it goes together.
    pub fn checked(mut self) -> Result<Self, ProfileProblem> {
        self.check_texts()?;
        let (size, depth, age) = (&mut self.size, &mut self.depth, &mut self.age);
        check_bins("size", size.values.len(), &mut size.weights, &mut size.fractions)?;
        check_bins("depth", depth.values.len(), &mut depth.weights, &mut depth.fractions)?;
        check_bins("age", age.upper.len(), &mut age.weights, &mut age.fractions)?;
        rising("size.values", size.values.iter().map(|&value| value as f64))?;
        rising("depth.values", depth.values.iter().map(|&value| value as f64))?;
        if let Some(&wrong) = age.upper.iter().find(|upper| !upper.is_finite() || **upper <= 0.0) {
            return Err(range("age.upper", wrong, "ages are positive numbers"));
        }
        rising("age.upper", age.upper.iter().copied())?;
        if let Some(&largest) = size.values.last().filter(|&&largest| i64::try_from(largest).is_err()) {
            return Err(range("size.values", largest as f64, "a file cannot be that large"));
        }
        if let Some(&deepest) = depth.values.last().filter(|&&deepest| deepest > DEEPEST) {
            return Err(range("depth.values", deepest as f64, "paths of more than 250 components are not made"));
        }
        if depth.subdirs.is_empty() {
            depth.subdirs = vec![1; depth.values.len()];
        }
        same_length("depth.subdirs", depth.subdirs.len(), "depth.values", depth.values.len())?;
        let life = *age.upper.last().expect("it was just checked not to be empty");
        if age.upper_relative.is_empty() {
            age.upper_relative = age.upper.iter().map(|upper| upper / life).collect();
        }
        same_length("age.upper_relative", age.upper_relative.len(), "age.upper", age.upper.len())?;
        rising("age.upper_relative", age.upper_relative.iter().copied())?;
        for (index, (&relative, upper)) in age.upper_relative.iter().zip(&age.upper).enumerate() {
            let expected = upper / life;
            if (relative - expected).abs() > FRACTION_TOLERANCE {
                return Err(ProfileProblem::Disagree {
                    list: "age.upper_relative",
                    index,
                    fraction: relative,
                    expected,
                });
            }
        }
        if let Some(fullness) = self.fullness.filter(|fullness| !(0.0..=1.0).contains(fullness)) {
            return Err(range("fullness", fullness, "is a share of the capacity, 0 to 1"));
        }
        Ok(self)
    }

    /// What is printed for readers, and the unit that gives ages their meaning.
    fn check_texts(&self) -> Result<(), ProfileProblem> {
        let source = self.source.iter().flat_map(|source| {
            [("source.study", &source.study), ("source.via", &source.via)].map(|(key, text)| (key, text.as_str()))
        });
        let notes = self.notes.iter().map(|note| ("notes", note.as_str()));
        let own = [("name", self.name.as_str()), ("description", &self.description)];
        for (key, text) in own.into_iter().chain(notes).chain(source) {
            let is_command = |&c: &char| c.is_control() && (key == "name" || !matches!(c, '\n' | '\t'));
            if let Some(character) = text.chars().find(is_command) {
                return Err(ProfileProblem::Control { key, character });
            }
        }
        match self.age.unit.as_str() {
            "seconds" | "minutes" | "hours" | "days" | "unknown" => Ok(()),
            found => Err(ProfileProblem::Unit { found: found.to_owned() }),
        }
    }
}

fn syntax(error: toml::de::Error) -> ProfileProblem {
    ProfileProblem::Syntax { problem: error.to_string().trim_end().to_owned() }
}

fn range(key: &'static str, value: f64, problem: &'static str) -> ProfileProblem {
    ProfileProblem::Range { key, value, problem }
}

/// Names of a distribution's lists, for messages.
fn lists(of: &str) -> (&'static str, &'static str, &'static str) {
    match of {
        "size" => ("size.values", "size.weights", "size.fractions"),
        "depth" => ("depth.values", "depth.weights", "depth.fractions"),
        _ => ("age.upper", "age.weights", "age.fractions"),
    }
}

/// Weights and fractions of a distribution of `bins` bins: each filled in from the other, or held against it.
fn check_bins(of: &str, bins: usize, weights: &mut Vec<i64>, fractions: &mut Vec<f64>) -> Result<(), ProfileProblem> {
    let (values, weights_list, fractions_list) = lists(of);
    if bins == 0 {
        return Err(ProfileProblem::Empty { list: values });
    }
    if weights.is_empty() && fractions.is_empty() {
        return Err(ProfileProblem::Empty { list: weights_list });
    }
    if let Some((index, &value)) = weights.iter().enumerate().find(|(_, weight)| **weight < 0) {
        return Err(ProfileProblem::Negative { list: weights_list, index, value: value as f64 });
    }
    // NaN is no share either.
    if let Some((index, &value)) = fractions.iter().enumerate().find(|(_, value)| value.is_nan() || **value < 0.0) {
        return Err(ProfileProblem::Negative { list: fractions_list, index, value });
    }
    if !fractions.is_empty() {
        same_length(fractions_list, fractions.len(), values, bins)?;
        let sum: f64 = fractions.iter().sum();
        if (sum - 1.0).abs() > FRACTION_TOLERANCE {
            return Err(ProfileProblem::Sum { list: fractions_list, sum });
        }
    }
    if weights.is_empty() {
        *weights = fractions.iter().map(|fraction| (fraction * WEIGHT_SCALE).round() as i64).collect();
    }
    same_length(weights_list, weights.len(), values, bins)?;
    let Some(sum) = weights.iter().try_fold(0i64, |sum, &weight| sum.checked_add(weight)) else {
        return Err(range(weights_list, f64::INFINITY, "their sum is beyond what is counted"));
    };
    if sum == 0 {
        return Err(ProfileProblem::Nobody { list: weights_list });
    }
    let shares: Vec<f64> = weights.iter().map(|&weight| weight as f64 / sum as f64).collect();
    if fractions.is_empty() {
        *fractions = shares;
        return Ok(());
    }
    for (index, (&fraction, expected)) in fractions.iter().zip(shares).enumerate() {
        if (fraction - expected).abs() > FRACTION_TOLERANCE {
            return Err(ProfileProblem::Disagree { list: fractions_list, index, fraction, expected });
        }
    }
    Ok(())
}

fn same_length(list: &'static str, found: usize, other: &'static str, expected: usize) -> Result<(), ProfileProblem> {
    if found == expected { Ok(()) } else { Err(ProfileProblem::Lengths { list, found, other, expected }) }
}

fn rising(list: &'static str, values: impl Iterator<Item = f64>) -> Result<(), ProfileProblem> {
    let mut before = f64::NEG_INFINITY;
    for (index, value) in values.enumerate() {
        if value.is_nan() || value <= before {
            return Err(ProfileProblem::NotRising { list, index, value, before });
        }
        before = value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::find_builtin;

    #[test]
    fn texts_units_and_ages_that_mean_nothing_are_refused_with_what_is_wrong() {
        let good = find_builtin("agrawal").unwrap();
        let said = |change: fn(&mut AgingProfile)| {
            let mut profile = good.clone();
            change(&mut profile);
            profile.checked().unwrap_err().to_string()
        };
        assert_eq!(said(|profile| profile.name = "\u{1b}[2J".into()), "name has a control character ('\\u{1b}')");
        assert!(said(|profile| profile.notes.push("a\u{7}".into())).starts_with("notes has a control"));
        assert!(said(|profile| profile.age.unit = "fortnights".into()).contains("\"fortnights\": known are seconds"));
        let endless = said(|profile| *profile.age.upper.last_mut().unwrap() = f64::INFINITY);
        assert!(endless.starts_with("age.upper = inf"), "{endless}");
        let mut fine = good.clone();
        fine.description = "two\nlines".into();
        fine.checked().unwrap();
    }
}
