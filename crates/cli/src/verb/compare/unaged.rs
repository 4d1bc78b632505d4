//! Finds volumes that two runs share only in the state before aging.
//!
//! Two runs are compared at the last checkpoint that both have. If that is 0, the figures are of
//! the state before aging, and say nothing about aging.

use std::collections::BTreeSet;

use senesce_store::{Results, Role};

use super::{Row, figures::Missing};

/// A message names at most this number of volumes.
const NAMED: usize = 5;

/// The aged volumes that are compared at checkpoint 0 only, although one of the runs has a later
/// cell of them, valid or not. The reasons contain `name_a` and `name_b` as the names of the runs.
pub(in crate::verb) fn find_unaged(
    rows: &[Row],
    (a, name_a): (&Results, &str),
    (b, name_b): (&Results, &str),
) -> Vec<Missing> {
    let last = |results: &Results, arm: &str, role: Role, is_valid: bool| {
        let cells = results.cells.iter().filter(|cell| cell.key.arm == arm && cell.key.role == role);
        cells.filter(|cell| cell.valid || !is_valid).map(|cell| cell.key.pulls).max().unwrap_or(0)
    };
    let compared = |arm: &str, role: Role| {
        let of_volume = |row: &&Row| matches!(row.of.as_slice(), [name, of, _] if name == arm && of == role.name());
        rows.iter().filter(of_volume).filter_map(|row| row.of.last()?.parse::<u64>().ok()).max()
    };
    let arms: BTreeSet<&str> = rows.iter().filter_map(|row| row.of.first()).map(String::as_str).collect();
    let volumes = arms.into_iter().flat_map(|arm| [Role::Full, Role::Empty].map(|role| (arm, role)));
    let unaged = volumes.filter(|(arm, role)| compared(arm, *role) == Some(0)).filter_map(|(arm, role)| {
        let later = last(a, arm, role, false).max(last(b, arm, role, false));
        let valid = |results| last(results, arm, role, true);
        let reason = format!("the last valid checkpoint is {} in {name_a} and {} in {name_b}", valid(a), valid(b));
        (later > 0).then(|| Missing::new(&[arm, role.name(), &later.to_string()], reason))
    });
    unaged.collect()
}

/// Adds the volumes of `unaged` to `missing`, except those that it already names.
pub(in crate::verb) fn add_unaged(missing: &mut Vec<Missing>, unaged: Vec<Missing>) {
    for found in unaged {
        if !missing.iter().any(|known| known.of().get(..2) == found.of().get(..2)) {
            missing.push(found);
        }
    }
}

/// States that the aging of these volumes is not compared. `None` if there are none.
pub(in crate::verb) fn unaged_note(unaged: &[Missing]) -> Option<String> {
    let volume = |missing: &Missing| missing.of().iter().take(2).cloned().collect::<Vec<_>>().join(" ");
    let mut names: Vec<String> = unaged.iter().take(NAMED).map(volume).collect();
    if unaged.len() > NAMED {
        names.push(format!("{} more", unaged.len() - NAMED));
    }
    (!names.is_empty()).then(|| format!("Only checkpoint 0 is common: {}; aging is not compared.", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use senesce_core::{Seed, statistics::compute_comparison};
    use senesce_store::{CellKey, CellRow};

    use super::*;
    use crate::verb::compare::figures::Kind;

    fn results(cells: &[(Role, u64, bool)]) -> Results {
        let cell = |&(role, pulls, valid): &(Role, u64, bool)| {
            let key = CellKey { arm: "ext4".to_owned(), file_system: "ext4".to_owned(), role, pulls };
            CellRow { valid, ..CellRow::without_figures(key, "") }
        };
        Results { cells: cells.iter().map(cell).collect(), ..Results::default() }
    }

    fn row(role: &str, pulls: &str) -> Row {
        Row {
            of: ["ext4", role, pulls].map(str::to_owned).to_vec(),
            figure: "requests".to_owned(),
            kind: Kind::Counted,
            more_is_better: false,
            figures_a: vec![1.0],
            figures_b: vec![1.0],
            comparison: compute_comparison(&[1.0], &[1.0], Seed(1)),
            outcome: None,
            judgement: None,
        }
    }

    #[test]
    fn volume_common_at_checkpoint_0_only_is_not_aged() {
        let first = [(Role::Full, 0, true), (Role::Empty, 0, true)];
        let whole = [(Role::Full, 0, true), (Role::Full, 400, true), (Role::Empty, 0, true), (Role::Empty, 400, true)];
        let failed = [(Role::Full, 0, true), (Role::Full, 400, false)];
        let found = |rows: &[Row], a: &[(Role, u64, bool)], b: &[(Role, u64, bool)]| {
            let unaged = find_unaged(rows, (&results(a), "A"), (&results(b), "B"));
            unaged.iter().map(Missing::to_string).collect::<Vec<_>>()
        };
        let of_first = [row("full", "0"), row("empty", "0"), row("unaged", "0")];
        let expected = ["ext4 full 400", "ext4 empty 400"];
        assert_eq!(
            found(&of_first, &first, &whole),
            expected.map(|of| format!("{of}: the last valid checkpoint is 0 in A and 400 in B"))
        );
        assert_eq!(found(&of_first[..1], &failed, &whole).len(), 1, "an invalid cell of A");
        assert_eq!(found(&of_first, &first, &first), [""; 0], "runs without a step");
        assert_eq!(found(&[row("full", "400")], &whole, &whole), [""; 0]);
        assert_eq!(found(&[row("full", "0"), row("full", "400")], &whole, &whole), [""; 0], "--all");
        assert_eq!(found(&[row("unaged", "0")], &first, &whole), [""; 0]);
    }

    #[test]
    fn note_names_volumes_and_missing_ones_are_added_once() {
        let unaged = || vec![Missing::new(&["ext4", "full", "400"], "x"), Missing::new(&["ext4", "empty", "400"], "x")];
        assert_eq!(unaged_note(&[]), None);
        assert_eq!(
            unaged_note(&unaged()).unwrap(),
            "Only checkpoint 0 is common: ext4 full, ext4 empty; aging is not compared."
        );
        let mut missing = vec![Missing::new(&["ext4", "full", "200"], "B did not measure it")];
        add_unaged(&mut missing, unaged());
        assert_eq!(missing.len(), 2);
    }
}
