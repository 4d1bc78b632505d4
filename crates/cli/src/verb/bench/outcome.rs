//! What the figures say: aged against unaged, and the file systems against each other.

use senesce_core::statistics::{Change, Comparison, Ranking, Row, SURE_BELOW, Spread};
use senesce_report::three_digits;

use crate::table::{render_table, tell_p};

/// The unit of times, as the outcome of a benchmark has it.
pub const SECONDS: &str = "wall seconds";

/// The headline, the findings, the table and the ranking as text. `what` names the command.
pub fn render(what: &str, rows: &[Row], ranking: Option<&Ranking>, unit: &str, is_more_better: bool) -> String {
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
    let mut text = find(rows, unit, is_more_better).join("\n");
    text.push_str(&format!("\n\n{what}\nmedians, {unit}\n{}", render_table(&lines)));
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
    text.push_str(&(order_changes(ranking).join("\n") + "\n"));
    text
}

/// The sentences about a benchmark: the headline, then the finding about each of several volumes.
pub fn find(rows: &[Row], unit: &str, is_more_better: bool) -> Vec<String> {
    let each = rows.iter().filter(|_| rows.len() > 1).filter_map(|row| finding(row, unit));
    [headline(rows, unit, is_more_better)].into_iter().chain(each).collect()
}

/// How aging changes the order of the volumes, as sentences.
pub fn order_changes(ranking: &Ranking) -> Vec<String> {
    if ranking.changes.is_empty() {
        return vec![
            match ranking.aged == ranking.unaged {
                true => "Aging does not change the order.",
                false => "No pair changes places; some are equal unaged or aged.",
            }
            .to_owned(),
        ];
    }
    let told = |p: Option<f64>| p.map_or("too few runs".to_owned(), |p| format!("p {p:.3}"));
    let change = |change: &Change| {
        format!(
            "The order changes: {} is better unaged ({}), {} is better aged ({}){}.",
            change.better_unaged,
            told(change.p_unaged),
            change.better_aged,
            told(change.p_aged),
            if change.is_sure { "" } else { "; chance may explain it" }
        )
    };
    ranking.changes.iter().map(change).collect()
}

fn range(low: f64, high: f64) -> String {
    format!("{}..{}", three_digits(low), three_digits(high))
}

/// The volume that aging costs most, or the finding about the only one. Without fresh copies: the
/// best volume and the worst.
fn headline(rows: &[Row], unit: &str, is_more_better: bool) -> String {
    let cost = |ratio: f64| if is_more_better { 1.0 / ratio } else { ratio };
    let compared = || rows.iter().filter_map(|row| Some((row, row.comparison.as_ref()?)));
    let is_sure = |(_, comparison): &(&Row, &Comparison)| comparison.p().is_some_and(|p| p < SURE_BELOW);
    let has_few = compared().any(|(_, comparison)| !comparison.is_enough());
    let costs_more = |pair: &(&Row, &Comparison)| cost(pair.1.ratio) > 1.0;
    let worst = compared()
        .filter(|pair| costs_more(pair) && (has_few || is_sure(pair)))
        .max_by(|(_, a), (_, b)| cost(a.ratio).total_cmp(&cost(b.ratio)));
    match (rows, worst) {
        ([only], _) if only.comparison.is_some() => finding(only, unit).unwrap_or_default(),
        (_, Some((row, comparison))) => {
            let chance = if is_sure(&(row, comparison)) { "" } else { " (chance may explain it)" };
            format!("Aging costs most on {}: aged, it {}{chance}.", row.name, of_unaged(comparison.ratio, unit))
        }
        _ if has_few => "Too few runs to show a cost of aging.".to_owned(),
        _ if compared().next().is_some() => "No volume is worse aged than unaged beyond chance.".to_owned(),
        _ => without_twins(rows, unit, is_more_better),
    }
}

/// The best aged volume, and the worst.
fn without_twins(rows: &[Row], unit: &str, is_more_better: bool) -> String {
    let cost = |row: &&Row| if is_more_better { -row.aged.median } else { row.aged.median };
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let median = |row: &Row| three_digits(row.aged.median);
    match sorted.as_slice() {
        [best, .., worst] => {
            let ratio = three_digits(worst.aged.median / best.aged.median);
            let (best, a, worst, b) = (&best.name, median(best), &worst.name, median(worst));
            format!("Aged volumes: {best} is best, {worst} is worst: {a} and {b} {unit} ({ratio} times). {NO_TWINS}")
        }
        [only] => format!("{}: {} {unit}. {NO_TWINS}", only.name, median(only)),
        [] => String::new(),
    }
}

/// The limit of a benchmark of aged volumes alone.
const NO_TWINS: &str = "Fresh copies were not measured (use --unaged).";

/// The finding about a volume in a sentence. `None` without an unaged twin.
fn finding(row: &Row, unit: &str) -> Option<String> {
    let comparison: &Comparison = row.comparison.as_ref()?;
    let (name, verb) = (&row.name, of_unaged(comparison.ratio, unit));
    let interval = format!("95%: {} to {}", three_digits(comparison.ratio_low), three_digits(comparison.ratio_high));
    let (aged, unaged) = (comparison.b.count, comparison.a.count);
    let runs = match (aged, unaged) {
        (1, 1) => "one run each".to_owned(),
        _ if aged == unaged => format!("{aged} runs each"),
        _ => format!("{aged} runs aged, {unaged} unaged"),
    };
    Some(match comparison.p() {
        Some(p) if p >= SURE_BELOW => format!("{name}: no difference is shown ({interval}; {runs})."),
        Some(_) => format!("{name}: aged {verb} ({interval}; {runs})."),
        None => format!("{name}: aged {verb} ({runs}: chance may explain it)."),
    })
}

/// The ratio of aged to unaged as a predicate.
fn of_unaged(ratio: f64, unit: &str) -> String {
    let ratio = three_digits(ratio);
    match unit == SECONDS {
        true => format!("takes {ratio} times as long as unaged"),
        false => format!("has {ratio} times the figure of unaged"),
    }
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
        let text = render("tar", &rows, ranking.as_ref(), SECONDS, false);
        assert!(
            text.starts_with("Aging costs most on ext4: aged, it takes 4.00 times as long as unaged (chance"),
            "{text}"
        );
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
        let text = render("tar", &rows, None, SECONDS, false);
        assert!(text.starts_with("Aging costs most on xfs: aged, it takes 2.87 times as long as unaged.\n"), "{text}");
        assert!(text.contains("\next4: no difference is shown (95%: "), "{text}");
        let finding = text.lines().nth(2).unwrap();
        assert!(finding.starts_with("xfs: aged takes 2.87 times as long as unaged (95%: "), "{text}");
        assert!(finding.ends_with("; 5 runs each)."), "{text}");
        let rates = render("tar", &rows, None, "commits", true);
        assert!(rates.starts_with("No volume is worse aged than unaged beyond chance.\n"), "{rates}");
        assert!(rates.contains("xfs: aged has 2.87 times the figure of unaged"), "{rates}");
        let one = render("tar", &rows[1..], None, SECONDS, false);
        assert!(one.starts_with("xfs: aged takes 2.87 times") && one.matches("aged takes").count() == 1, "{one}");
    }

    #[test]
    fn headline_without_fresh_copies_names_best_and_worst() {
        let aged = |name: &str, figure: f64| Figures { name: name.into(), aged: vec![figure; 4], unaged: Vec::new() };
        let rows = compute_rows(&[aged("ext4", 3.0), aged("xfs", 2.0), aged("btrfs", 6.0)]);
        let start = |is_more_better| headline(&rows, SECONDS, is_more_better);
        assert!(
            start(false)
                .starts_with("Aged volumes: xfs is best, btrfs is worst: 2.00 and 6.00 wall seconds (3.00 times)")
        );
        assert!(start(true).starts_with("Aged volumes: btrfs is best, xfs is worst"));
        assert!(headline(&rows[..1], SECONDS, false).starts_with("ext4: 3.00 wall seconds. Fresh copies were not"));
    }
}
