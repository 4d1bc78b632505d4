//! Lists of names in messages, and the word for nothing.

/// The value of a circumstance that a machine does not have. It is recorded, so that a comparison
/// with a machine that has it finds the difference.
pub const NONE: &str = "none";

/// `a`, `a and b`, `a, b and c`.
pub fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The names that are shown of `all` names, then `7 more` for the others.
pub fn with_more(shown: impl IntoIterator<Item = String>, all: usize) -> Vec<String> {
    let mut names: Vec<String> = shown.into_iter().collect();
    if let more @ 1.. = all.saturating_sub(names.len()) {
        names.push(format!("{} more", crate::numbers::count(more as u64)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_counted() {
        let names = |count: usize| (0..count).map(|name| name.to_string());
        assert_eq!(with_more(names(3).take(2), 3), ["0", "1", "1 more"]);
        assert_eq!(with_more(names(2), 2), ["0", "1"]);
        assert_eq!(with_more(names(0), 0), [""; 0]);
        assert_eq!(with_more(names(1), 1_500), ["0", "1,499 more"]);
        assert_eq!(list(&with_more(names(2), 9)), "0, 1 and 7 more");
    }

    #[test]
    fn last_name_follows_and() {
        assert_eq!(
            [&[][..], &["a"], &["a", "b"], &["a", "b", "c"]]
                .map(|names| list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())),
            ["", "a", "a and b", "a, b and c"]
        );
    }
}
