//! What the figures say: aged against unaged, and the file systems against each other.

use senesce_core::{
    Seed,
    statistics::{Comparison, Spread, compute_comparison, compute_mann_whitney, compute_spread},
};
use serde::Serialize;

use crate::table::{ENOUGH_FIGURES, is_enough, render_table, tell_p};

/// A difference whose probability under chance is below this is told as one.
const SURE_BELOW: f64 = 0.05;

/// The figures of one named volume.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub name: String,
    pub aged: Vec<f64>,
    /// Empty if no twin was asked for.
    pub unaged: Vec<f64>,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub aged: Spread,
    pub unaged: Option<Spread>,
    /// Aged against unaged (`b` against `a`).
    pub comparison: Option<Comparison>,
}

/// The file systems in order, the best first.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    pub aged: Vec<String>,
    pub unaged: Vec<String>,
    /// Pairs whose order is another one aged than unaged.
    pub changes: Vec<Change>,
}

/// A pair that changes its order.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub better_unaged: String,
    pub better_aged: String,
    /// Of the Mann-Whitney test between the two, unaged and aged; none if there are too few figures.
    pub p_unaged: Option<f64>,
    pub p_aged: Option<f64>,
    /// Whether chance explains neither order.
    pub is_sure: bool,
}

/// The table. Out: no row for figures that make none.
pub fn compute_rows(all: &[Figures]) -> Vec<Row> {
    let row = |figures: &Figures| {
        Some(Row {
            name: figures.name.clone(),
            aged: compute_spread(&figures.aged, Seed(1))?,
            unaged: compute_spread(&figures.unaged, Seed(1)),
            comparison: compute_comparison(&figures.unaged, &figures.aged, Seed(1)),
        })
    };
    all.iter().filter_map(row).collect()
}

/// The order by medians. Out: none for fewer than two, or without twins.
pub fn compute_ranking(all: &[Figures], rows: &[Row], is_more_better: bool) -> Option<Ranking> {
    if rows.len() < 2 || rows.len() != all.len() || rows.iter().any(|row| row.unaged.is_none()) {
        return None;
    }
    let cost = |median: f64| if is_more_better { -median } else { median };
    let aged = |at: usize| cost(rows[at].aged.median);
    let unaged = |at: usize| cost(rows[at].unaged.as_ref().map_or(f64::NAN, |spread| spread.median));
    let order = |key: &dyn Fn(usize) -> f64| {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        order.into_iter().map(|at| rows[at].name.clone()).collect()
    };
    let mut changes = Vec::new();
    for better in 0..rows.len() {
        for other in (0..rows.len()).filter(|&other| unaged(better) < unaged(other) && aged(better) > aged(other)) {
            let p = |a: &[f64], b: &[f64]| {
                let is_enough = a.len().min(b.len()) as u64 >= ENOUGH_FIGURES;
                compute_mann_whitney(a, b).filter(|_| is_enough).map(|test| test.p)
            };
            let p_unaged = p(&all[better].unaged, &all[other].unaged);
            let p_aged = p(&all[better].aged, &all[other].aged);
            changes.push(Change {
                better_unaged: rows[better].name.clone(),
                better_aged: rows[other].name.clone(),
                p_unaged,
                p_aged,
                is_sure: [p_unaged, p_aged].iter().all(|p| p.is_some_and(|p| p < SURE_BELOW)),
            });
        }
    }
    Some(Ranking { aged: order(&aged), unaged: order(&unaged), changes })
}

/// The table and the ranking as text.
pub fn render(rows: &[Row], ranking: Option<&Ranking>, unit: &str) -> String {
    let mut lines = vec![["", "aged", "95%", "unaged", "95%", "aged/unaged", "95%", "p"].map(str::to_owned).to_vec()];
    for row in rows {
        let median = |spread: &Spread| format!("{:.4} (n={})", spread.median, spread.count);
        let interval = |spread: &Spread| match spread.count {
            1 => "unknown".to_owned(),
            _ => format!("{:.4}..{:.4}", spread.interval_low, spread.interval_high),
        };
        let mut line = vec![row.name.clone(), median(&row.aged), interval(&row.aged)];
        line.extend(row.unaged.iter().flat_map(|spread| [median(spread), interval(spread)]));
        if let Some(comparison) = &row.comparison {
            line.push(format!("{:.3}", comparison.ratio));
            line.push(match comparison.a.count.min(comparison.b.count) {
                1 => "unknown".to_owned(),
                _ => format!("{:.3}..{:.3}", comparison.ratio_low, comparison.ratio_high),
            });
            line.push(tell_p(comparison));
        }
        lines.push(line);
    }
    let few = rows.iter().filter_map(|row| row.comparison.as_ref()).any(|comparison| !is_enough(comparison));
    if rows.iter().all(|row| row.unaged.is_none()) {
        lines.iter_mut().for_each(|line| line.truncate(3));
    }
    let mut text = format!("medians, {unit}\n{}", render_table(&lines));
    if few {
        text.push_str("p is given from four runs on each side; with fewer, a difference cannot be told from chance.\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, aged: f64, unaged: f64) -> Figures {
        let around = |middle: f64| [0.98, 0.99, 1.0, 1.01, 1.02].map(|factor| middle * factor).to_vec();
        Figures { name: name.to_owned(), aged: around(aged), unaged: around(unaged) }
    }

    #[test]
    fn a_pair_that_changes_places_is_told_with_its_certainty() {
        let all = [figures("ext4", 4.0, 1.0), figures("xfs", 2.0, 1.5), figures("btrfs", 8.0, 3.0)];
        let rows = compute_rows(&all);
        assert!((rows[0].comparison.as_ref().unwrap().ratio - 4.0).abs() < 1e-9);
        let ranking = compute_ranking(&all, &rows, false).unwrap();
        assert_eq!(
            (ranking.unaged, ranking.aged),
            (
                ["ext4", "xfs", "btrfs"].map(str::to_owned).to_vec(),
                ["xfs", "ext4", "btrfs"].map(str::to_owned).to_vec()
            )
        );
        assert_eq!(ranking.changes.len(), 1);
        assert!(ranking.changes[0].is_sure && ranking.changes[0].better_aged == "xfs");
        // The same figures as rates: all turns round, and the same pair changes.
        let ranking = compute_ranking(&all, &rows, true).unwrap();
        assert_eq!(ranking.unaged, ["btrfs", "xfs", "ext4"]);
        assert_eq!((ranking.changes.len(), &*ranking.changes[0].better_aged), (1, "ext4"));
    }

    #[test]
    fn few_figures_are_never_sure_and_one_volume_has_no_rank() {
        let few =
            |name: &str, aged: f64, unaged: f64| Figures { name: name.into(), aged: vec![aged], unaged: vec![unaged] };
        let all = [few("ext4", 4.0, 1.0), few("xfs", 2.0, 1.5)];
        let rows = compute_rows(&all);
        let ranking = compute_ranking(&all, &rows, false).unwrap();
        assert!(!ranking.changes[0].is_sure);
        let text = render(&rows, Some(&ranking), "seconds");
        assert!(text.contains("too few runs") && text.contains("chance may explain it"), "{text}");
        assert!(compute_ranking(&all[..1], &rows[..1], false).is_none());
        let alone =
            [Figures { unaged: Vec::new(), ..all[0].clone() }, Figures { unaged: Vec::new(), ..all[1].clone() }];
        let rows = compute_rows(&alone);
        assert!(rows.len() == 2 && compute_ranking(&alone, &rows, false).is_none());
    }
}
