//! Parses and checks profiles. An error names the wrong number.

use super::format::{AgingProfile, PROFILE_FORMAT};

/// The largest deviation of fractions from their weights, and of their sum from 1: fractions are
/// printed with a few digits.
const FRACTION_TOLERANCE: f64 = 1e-6;
/// The weight of the fraction 1 in a profile without weights.
const WEIGHT_SCALE: f64 = 1e12;
/// The deepest allowed path: with names of up to 12 bytes it stays below the kernel's limit of
/// 4096.
const DEEPEST: u64 = 250;

/// A profile cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileProblem {
    /// The text is not a profile.
    #[error("not a profile: {problem}")]
    Syntax {
        /// The position and the fault.
        problem: String,
    },
    /// The profile has another version of the format.
    #[error("format {found:?}; this program reads {PROFILE_FORMAT:?}")]
    Version {
        /// Its `format`.
        found: String,
    },
    /// A list that must not be empty is empty.
    #[error("{list} is empty: a distribution needs at least one bin")]
    Empty {
        /// The list.
        list: &'static str,
    },
    /// Two lists that belong together have different lengths.
    #[error("{list} has {found} entries, and {other} has {expected}")]
    Lengths {
        /// The list.
        list: &'static str,
        /// Its length.
        found: usize,
        /// The other list.
        other: &'static str,
        /// The length of the other list.
        expected: usize,
    },
    /// A bin is negative or not a number.
    #[error("{list}[{index}] is {value}: a bin cannot hold a negative share")]
    Negative {
        /// The list.
        list: &'static str,
        /// The entry.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// Bins do not rise.
    #[error("{list}[{index}] is {value}: not above the one before it ({before})")]
    NotRising {
        /// The list.
        list: &'static str,
        /// The entry.
        index: usize,
        /// Its value.
        value: f64,
        /// The value before it.
        before: f64,
    },
    /// Shares do not sum to 1.
    #[error("{list} sums to {sum}, not to 1")]
    Sum {
        /// The list.
        list: &'static str,
        /// Its sum.
        sum: f64,
    },
    /// All bins are empty.
    #[error("{list} are all 0: no file belongs anywhere")]
    Nobody {
        /// The list.
        list: &'static str,
    },
    /// A fraction does not match its weight.
    #[error("{list}[{index}] is {fraction}, but the weights give {expected}")]
    Disagree {
        /// The list.
        list: &'static str,
        /// The entry.
        index: usize,
        /// Its value.
        fraction: f64,
        /// The value that the weights give.
        expected: f64,
    },
    /// A text has a control character, which a terminal could execute.
    #[error("{key} has a control character ({character:?})")]
    Control {
        /// The key.
        key: &'static str,
        /// The first control character.
        character: char,
    },
    /// Ages have an unknown unit.
    #[error(
        "age.unit = {found:?}: known are seconds, minutes, hours, days, and unknown for hours that are only assumed"
    )]
    Unit {
        /// The unit.
        found: String,
    },
    /// A value is out of its range.
    #[error("{key} = {value}: {problem}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
        /// Its range.
        problem: &'static str,
    },
}

impl AgingProfile {
    /// Parses and checks a profile, and fills in optional parts.
    pub fn parse(text: &str) -> Result<Self, ProfileProblem> {
        // The version comes first: a key of a later version must not be reported as a misspelling.
        let table = text.parse::<toml::Table>().map_err(syntax)?;
        match table.get("format").and_then(|format| format.as_str()) {
            Some(PROFILE_FORMAT) => {}
            found => return Err(ProfileProblem::Version { found: found.unwrap_or("(none)").to_owned() }),
        }
        toml::from_str::<Self>(text).map_err(syntax)?.checked()
    }

    /// Checks the profile, and fills in weights, fractions and relative ages.
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
            return Err(range("depth.values", deepest as f64, "paths of more than 250 components are not supported"));
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

    /// Checks the texts for readers, and the unit of ages.
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

/// Checks weights and fractions of a distribution of `bins` bins. If one list is missing, it is
/// computed from the other.
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
    // NaN is not a share either.
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
        return Err(range(weights_list, f64::INFINITY, "their sum is too large"));
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
    fn meaningless_texts_units_and_ages_are_refused() {
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
