//! The table of faults that are still allowed: `KIND PLACE COUNT` in each line. `cargo xtask tidy --shrink` lowers counts and
//! never raises one.

use std::collections::BTreeMap;

/// Faults of each kind in each place.
pub type Counts = BTreeMap<(String, String), usize>;

/// Reads a table.
///
/// # Errors
///
/// A line that is not `KIND PLACE COUNT`, or that repeats a place.
pub fn parse(table: &str) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    for (number, line) in table.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [kind, place, count] = fields[..] else { anyhow::bail!("line {}: not KIND PLACE COUNT", number + 1) };
        let known = counts.insert((kind.to_owned(), place.to_owned()), count.parse()?);
        anyhow::ensure!(known.is_none(), "line {}: {kind} {place} is there twice", number + 1);
    }
    Ok(counts)
}

/// The allowance after shrinking: the lower one of both counts; places without faults are left out.
pub fn shrink(allowed: &Counts, found: &Counts) -> Counts {
    let lower = |(key, allowed): (&(String, String), &usize)| {
        let now = found.get(key).copied().unwrap_or(0).min(*allowed);
        (now > 0).then(|| (key.clone(), now))
    };
    allowed.iter().filter_map(lower).collect()
}

/// Writes a table after the comment lines of the old one.
pub fn render(old: &str, counts: &Counts) -> String {
    let comment = old.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n"));
    comment.chain(counts.iter().map(|((kind, place), count)| format!("{kind} {place} {count}\n"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_only_shrinks() {
        let allowed = parse("# why\nwords docs/a.md 3\nwords docs/b.md 2\nwidth crates/c 5\n").unwrap();
        let found = parse("words docs/a.md 7\nwidth crates/c 4\nwords docs/new.md 1\n").unwrap();
        let after = render("# why\n", &shrink(&allowed, &found));
        assert_eq!(after, "# why\nwidth crates/c 4\nwords docs/a.md 3\n");
    }

    #[test]
    fn a_damaged_table_is_refused() {
        assert!(parse("words docs/a.md\n").is_err());
        assert!(parse("words docs/a.md 1\nwords docs/a.md 1\n").is_err());
    }
}
