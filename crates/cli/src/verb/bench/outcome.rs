//! What the figures say: aged against unaged, and the file systems against each other.

use senesce_core::statistics::{Comparison, Ranking, Row, SURE_BELOW, Spread};
use senesce_report::three_digits;

use crate::table::{render_table, tell_p};

/// The unit of times, as the outcome of a benchmark has it.
pub const SECONDS: &str = "wall seconds";

/// The finding, the table and the ranking as text.
pub fn render(rows: &[Row], ranking: Option<&Ranking>, unit: &str) -> String {
    let mut lines = vec![["", "aged", "95%", "unaged", "95%", "aged/unaged", "95%", "p"].map(str::to_owned).to_vec()];
    for row in rows {
        let median = |spread: &Spread| format!("{} (n={})", three_digits(spread.median), spread.count);
        let interval = |spread: &Spread| match spread.count {
            1 => "unknown".to_owned(),
            _ => range(spread.interval_low, spread.interval_high),
        };
        let mut line = vec![row.name.clone(), median(&row.aged), interval(&row.aged)];
        line.extend(row.unaged.iter().flat_map(|spread| [median(spread), interval(spread)]));
        if let Some(comparison) = &row.comparison {
            line.push(three_digits(comparison.ratio));
            line.push(match comparison.a.count.min(comparison.b.count) {
                1 => "unknown".to_owned(),
                _ => range(comparison.ratio_low, comparison.ratio_high),
            });
            line.push(tell_p(comparison));
        }
        lines.push(line);
    }
    let few = rows.iter().filter_map(|row| row.comparison.as_ref()).any(|comparison| !comparison.is_enough());
    if rows.iter().all(|row| row.unaged.is_none()) {
        lines.iter_mut().for_each(|line| line.truncate(3));
    }
    let mut text: String = rows.iter().filter_map(|row| finding(row, unit)).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("medians, {unit}\n{}", render_table(&lines)));
    if few {
        text.push_str(
            "p needs at least four runs on each side; with fewer, a difference cannot be distinguished from chance.\n",
        );
    }
    let Some(ranking) = ranking else { return text };
    text.push_str(&format!("\n{:>4}  {:<20} {:<20}\n", "rank", "unaged", "aged"));
    for (at, (unaged, aged)) in ranking.unaged.iter().zip(&ranking.aged).enumerate() {
        text.push_str(format!("{:>4}  {unaged:<20} {aged:<20}", at + 1).trim_end());
        text.push('\n');
    }
    if ranking.changes.is_empty() {
        text.push_str(match ranking.aged == ranking.unaged {
            true => "Aging does not change the order.\n",
            false => "No pair changes places; some are equal unaged or aged.\n",
        });
    }
    let told = |p: Option<f64>| p.map_or("too few runs".to_owned(), |p| format!("p {p:.3}"));
    for change in &ranking.changes {
        text.push_str(&format!(
            "The order changes: {} is better unaged ({}), {} is better aged ({}){}.\n",
            change.better_unaged,
            told(change.p_unaged),
            change.better_aged,
            told(change.p_aged),
            if change.is_sure { "" } else { "; chance may explain it" }
        ));
    }
    text
}

fn range(low: f64, high: f64) -> String {
    format!("{}..{}", three_digits(low), three_digits(high))
}

/// The finding about a volume in a sentence. `None` without an unaged twin.
fn finding(row: &Row, unit: &str) -> Option<String> {
    let comparison: &Comparison = row.comparison.as_ref()?;
    let (name, ratio) = (&row.name, three_digits(comparison.ratio));
    let interval = format!("95%: {} to {}", three_digits(comparison.ratio_low), three_digits(comparison.ratio_high));
    let (aged, unaged) = (comparison.b.count, comparison.a.count);
    let runs = match (aged, unaged) {
        (1, 1) => "one run each".to_owned(),
        _ if aged == unaged => format!("{aged} runs each"),
        _ => format!("{aged} runs aged, {unaged} unaged"),
    };
    let verb = if unit == SECONDS {
        format!("takes {ratio} times as long as")
    } else {
        format!("has {ratio} times the figure of")
    };
    Some(match comparison.p() {
        Some(p) if p >= SURE_BELOW => format!("{name}: no difference is shown ({interval}; {runs}).\n"),
        Some(_) => format!("{name}: aged {verb} unaged ({interval}; {runs}).\n"),
        None => format!("{name}: aged {verb} unaged ({runs}: chance may explain it).\n"),
    })
}

#[cfg(test)]
mod tests {
    use senesce_core::statistics::{Figures, compute_ranking, compute_rows};

    use super::*;

    #[test]
    fn few_figures_are_never_sure() {
        let few =
            |name: &str, aged: f64, unaged: f64| Figures { name: name.into(), aged: vec![aged], unaged: vec![unaged] };
        let all = [few("ext4", 4.0, 1.0), few("xfs", 2.0, 1.5)];
        let rows = compute_rows(&all);
        let ranking = compute_ranking(&all, &rows, false);
        let text = render(&rows, ranking.as_ref(), SECONDS);
        assert!(text.contains("too few runs") && text.contains("chance may explain it"), "{text}");
        assert!(!text.contains("no difference is shown"), "{text}");
    }

    #[test]
    fn a_difference_within_the_noise_is_called_none() {
        let figures = |name: &str, aged: [f64; 5]| Figures {
            name: name.into(),
            aged: aged.to_vec(),
            unaged: vec![3.0, 3.3, 3.1, 5.2, 3.2],
        };
        let rows =
            compute_rows(&[figures("ext4", [3.05, 3.15, 4.9, 3.0, 3.4]), figures("xfs", [9.0, 9.1, 9.2, 9.3, 9.4])]);
        let text = render(&rows, None, SECONDS);
        assert!(text.starts_with("ext4: no difference is shown (95%: "), "{text}");
        let finding = text.lines().nth(1).unwrap();
        assert!(finding.starts_with("xfs: aged takes 2.87 times as long as unaged (95%: "), "{text}");
        assert!(finding.ends_with("; 5 runs each)."), "{text}");
        assert!(render(&rows, None, "commits").contains("xfs: aged has 2.87 times the figure of unaged"));
    }
}
