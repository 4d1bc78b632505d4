//! Circumstances that differ between a run and an earlier one.

use std::fmt;

use senesce_core::names::with_more;

use crate::format::list;

/// The key of the seed.
const SEED: &str = "plan.seed";

/// A circumstance in which a run differs from an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unlike {
    /// Its group: `plan`, `machine`, `file system`, …
    pub group: String,
    /// Its key.
    pub key: String,
    /// Arms and volumes with these values. Empty if all that record the circumstance have them.
    pub of: Vec<String>,
    /// The value in the earlier run. `None` if that run does not record it.
    pub before: Option<String>,
    /// The value in this run. `None` if it does not record it.
    pub now: Option<String>,
}

impl Unlike {
    /// `1 → 7`.
    fn values(&self) -> String {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not recorded".to_owned());
        format!("{} → {}", shown(&self.before), shown(&self.now))
    }

    /// Whether it is input: seed, history or workload. Another seed or history alone changes the
    /// results. Options of mkfs and of the measurement are no input.
    fn is_input(&self) -> bool {
        let is_of = |table: &&str| self.key.starts_with(*table);
        self.key == SEED || ["history", "workload", "log", "trace"].iter().any(is_of)
    }
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.of.is_empty() { String::new() } else { format!(" ({})", self.of.join(", ")) };
        write!(f, "{}, {}{of}: {}", self.group, self.key, self.values())
    }
}

/// The input that differs, in words, the seed first. `None` if it is equal.
pub(super) fn input_words(unlike: &[Unlike]) -> Option<String> {
    const MOST: usize = 3;
    const LONGEST: usize = 40;
    let word = |unlike: &Unlike| {
        let (key, values) = (unlike.key.trim_start_matches("plan."), unlike.values());
        // Hashes and tables say nothing to a reader.
        let is_short = values.chars().count() <= LONGEST && !values.contains('{');
        if is_short { format!("{key} {values}") } else { key.to_owned() }
    };
    let mut input: Vec<&Unlike> = unlike.iter().filter(|unlike| unlike.is_input()).collect();
    input.sort_by_key(|unlike| unlike.key != SEED);
    let words = with_more(input.iter().take(MOST).map(|unlike| word(unlike)), input.len());
    (!words.is_empty()).then(|| list(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unlike(key: &str, before: &str, now: &str) -> Unlike {
        let (key, before, now) = (key.to_owned(), Some(before.to_owned()), Some(now.to_owned()));
        Unlike { group: "plan".to_owned(), key, of: Vec::new(), before, now }
    }

    #[test]
    fn seed_and_history_are_input_options_are_not() {
        let options = [unlike("plan.hash", "3a", "4b"), unlike("measure.every", "1", "2"), unlike("cpu", "a", "b")];
        assert_eq!(input_words(&options), None);
        let seed = [unlike("plan.hash", "3a", "4b"), unlike("plan.seed", "1", "7")];
        assert_eq!(input_words(&seed).as_deref(), Some("seed 1 → 7"));
        let table = [unlike("history", "{\"model\":1}", "{\"model\":2}")];
        assert_eq!(input_words(&table).as_deref(), Some("history"));
        let late = [unlike("history.first_commit", &"1".repeat(40), &"2".repeat(40)), unlike("plan.seed", "1", "7")];
        assert_eq!(input_words(&late).as_deref(), Some("seed 1 → 7 and history.first_commit"));
        let many: Vec<_> = ["a", "b", "c", "d"].map(|key| unlike(&format!("workload.{key}"), "1", "2")).into();
        assert_eq!(
            input_words(&many).as_deref(),
            Some("workload.a 1 → 2, workload.b 1 → 2, workload.c 1 → 2 and 1 more")
        );
    }

    #[test]
    fn values_with_separators_stay_whole() {
        let seed = Unlike { of: vec!["ext4 full".to_owned()], ..unlike("workload.path", "a: b (c)", "d") };
        assert_eq!(seed.to_string(), "plan, workload.path (ext4 full): a: b (c) → d");
        assert_eq!(input_words(&[seed]).as_deref(), Some("workload.path a: b (c) → d"));
        let new = Unlike { before: None, ..unlike("kernel", "", "6.1") };
        assert_eq!(new.to_string(), "plan, kernel: not recorded → 6.1");
    }
}
