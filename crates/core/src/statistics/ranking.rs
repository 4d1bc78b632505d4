//! Ranks items under two conditions, such as file systems aged and unaged, and finds pairs whose
//! order changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Comparison, Spread, compute_comparison, compute_mann_whitney, compute_spread};
use crate::Seed;

/// A difference is reported if its probability by chance is below this.
pub const SURE_BELOW: f64 = 0.05;
/// With fewer figures on a side, no difference can be distinguished from chance.
pub const ENOUGH_FIGURES: u64 = 4;

/// The figures of one named volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Its name.
    pub name: String,
    /// The figures of the aged volume.
    pub aged: Vec<f64>,
    /// The figures of the unaged volume; empty if no twin was requested.
    pub unaged: Vec<f64>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The name of the volume.
    pub name: String,
    /// The spread of the aged figures.
    pub aged: Spread,
    /// The spread of the unaged figures; `None` if there are none.
    pub unaged: Option<Spread>,
    /// The comparison of the aged figures (`b`) with the unaged ones (`a`). `None` without unaged
    /// figures.
    pub comparison: Option<Comparison>,
}

/// The file systems in order, the best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// The order of the aged volumes.
    pub aged: Vec<String>,
    /// The order of the unaged volumes.
    pub unaged: Vec<String>,
    /// Pairs whose order is different aged and unaged.
    pub changes: Vec<Change>,
}

/// A pair whose order changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The better one of the unaged volumes.
    pub better_unaged: String,
    /// The better one of the aged volumes.
    pub better_aged: String,
    /// The p of the Mann-Whitney test between the two unaged volumes; `None` if there are too few
    /// figures.
    pub p_unaged: Option<f64>,
    /// The p of the Mann-Whitney test between the two aged volumes; `None` if there are too few
    /// figures.
    pub p_aged: Option<f64>,
    /// Whether both orders are unlikely by chance.
    pub is_sure: bool,
}

/// The table. Out: no row for figures without a spread.
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

/// The order by medians. Out: `None` for fewer than two rows, or without twins.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, aged: f64, unaged: f64) -> Figures {
        let around = |middle: f64| [0.98, 0.99, 1.0, 1.01, 1.02].map(|factor| middle * factor).to_vec();
        Figures { name: name.to_owned(), aged: around(aged), unaged: around(unaged) }
    }

    #[test]
    fn pair_that_changes_order_is_listed_with_certainty() {
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
        // The same figures as rates: the orders reverse, and the same pair changes.
        let ranking = compute_ranking(&all, &rows, true).unwrap();
        assert_eq!(ranking.unaged, ["btrfs", "xfs", "ext4"]);
        assert_eq!((ranking.changes.len(), &*ranking.changes[0].better_aged), (1, "ext4"));
    }

    #[test]
    fn few_figures_have_unsure_or_no_ranks() {
        let few =
            |name: &str, aged: f64, unaged: f64| Figures { name: name.into(), aged: vec![aged], unaged: vec![unaged] };
        let all = [few("ext4", 4.0, 1.0), few("xfs", 2.0, 1.5)];
        let rows = compute_rows(&all);
        let ranking = compute_ranking(&all, &rows, false).unwrap();
        assert!(!ranking.changes[0].is_sure);
        assert!(compute_ranking(&all[..1], &rows[..1], false).is_none());
        let alone =
            [Figures { unaged: Vec::new(), ..all[0].clone() }, Figures { unaged: Vec::new(), ..all[1].clone() }];
        let rows = compute_rows(&alone);
        assert!(rows.len() == 2 && compute_ranking(&alone, &rows, false).is_none());
    }
}
