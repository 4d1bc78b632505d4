//! Finds volumes of which two runs do not share the last state.
//!
//! Two runs are compared at the last checkpoint that both have. If a run has a later one, the
//! figures say nothing about the aging after the common one. If that is 0, they say nothing about
//! aging.

use std::collections::{BTreeMap, BTreeSet};

use senesce_core::names::{list, with_more};
use senesce_store::{Results, Role};

use super::{
    Row,
    figures::{LastCommon, Missing},
};

/// A message names at most this number of volumes.
const NAMED: usize = 5;

/// An aged volume that is compared before its last checkpoint.
pub(in crate::verb) struct Unfinished {
    /// The last common checkpoint.
    common: u64,
    /// The last checkpoint of any run, valid or not.
    last: u64,
    /// The last state, and the reason why it is not compared.
    missing: Missing,
}

/// The aged volumes of `rows` of which one of the runs has a later cell than the common ones, valid
/// or not. The reasons contain `name_a` and `name_b` as the names of the runs.
///
/// `common` is of all figures, not of the selected ones: a figure can be measured less often.
pub(in crate::verb) fn find_unfinished(
    rows: &[Row],
    common: &LastCommon,
    (a, name_a): (&Results, &str),
    (b, name_b): (&Results, &str),
) -> Vec<Unfinished> {
    let last = |results: &Results, arm: &str, role: Role, is_valid: bool| {
        let cells = results.cells.iter().filter(|cell| cell.key.arm == arm && cell.key.role == role);
        cells.filter(|cell| cell.valid || !is_valid).map(|cell| cell.key.pulls).max().unwrap_or(0)
    };
    let is_selected = |arm: &str, role: Role| {
        rows.iter().any(|row| matches!(row.of.as_slice(), [name, of, _] if name == arm && of == role.name()))
    };
    let arms: BTreeSet<&str> = rows.iter().filter_map(|row| row.of.first()).map(String::as_str).collect();
    let volumes = arms.into_iter().flat_map(|arm| [Role::Full, Role::Empty].map(|role| (arm, role)));
    let unfinished = volumes.filter(|(arm, role)| is_selected(arm, *role)).filter_map(|(arm, role)| {
        let common = *common.get(&(arm.to_owned(), role))?;
        let later = last(a, arm, role, false).max(last(b, arm, role, false));
        let (in_a, in_b) = (last(a, arm, role, true), last(b, arm, role, true));
        let reason = match in_a.min(in_b) > common {
            true => format!("{name_a} and {name_b} have no figure of it in common"),
            false => format!("the last valid checkpoint is {in_a} in {name_a} and {in_b} in {name_b}"),
        };
        let missing = || Missing::new(&[arm, role.name(), &later.to_string()], reason);
        (common < later).then(|| Unfinished { common, last: later, missing: missing() })
    });
    unfinished.collect()
}

/// Adds the volumes of `unfinished` to `missing`, except those that it already names.
pub(in crate::verb) fn add_unfinished(missing: &mut Vec<Missing>, unfinished: Vec<Unfinished>) {
    for Unfinished { missing: found, .. } in unfinished {
        if !missing.iter().any(|known| known.of().get(..2) == found.of().get(..2)) {
            missing.push(found);
        }
    }
}

/// States that the aging of these volumes is not compared, or not up to the end. One sentence for
/// each pair of checkpoints.
pub(in crate::verb) fn unfinished_notes(unfinished: &[Unfinished]) -> Vec<String> {
    let mut volumes: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
    for Unfinished { common, last, missing } in unfinished {
        // Without any common state of the aging, the last one does not matter.
        let last = if *common == 0 { 0 } else { *last };
        volumes.entry((*common, last)).or_default().push(missing.of().join(" "));
    }
    let note = |((common, last), volumes): ((u64, u64), Vec<String>)| {
        let volume = |of: &String| of.rsplit_once(' ').map_or(of.clone(), |(volume, _)| volume.to_owned());
        let names = list(&with_more(volumes.iter().take(NAMED).map(volume), volumes.len()));
        match common {
            0 => format!("Only checkpoint 0 is common: {names}; aging is not compared."),
            _ => format!("The last common checkpoint is {common} of {last}: {names}; later aging is not compared."),
        }
    };
    volumes.into_iter().map(note).collect()
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

    type Cells<'a> = &'a [(Role, u64, bool)];

    fn find(rows: &[Row], a: Cells<'_>, b: Cells<'_>) -> Vec<Unfinished> {
        let is_common = |cell: &&(Role, u64, bool)| cell.2 && b.contains(cell);
        let mut common = LastCommon::new();
        for (role, pulls, _) in a.iter().filter(is_common) {
            let last = common.entry(("ext4".to_owned(), *role)).or_default();
            *last = (*last).max(*pulls);
        }
        find_unfinished(rows, &common, (&results(a), "A"), (&results(b), "B"))
    }

    #[test]
    fn volume_without_its_last_state_is_found() {
        let first = [(Role::Full, 0, true), (Role::Empty, 0, true)];
        let whole = [(Role::Full, 0, true), (Role::Full, 400, true), (Role::Empty, 0, true), (Role::Empty, 400, true)];
        let failed = [(Role::Full, 0, true), (Role::Full, 400, false)];
        let found = |rows: &[Row], a: Cells<'_>, b: Cells<'_>| {
            find(rows, a, b).iter().map(|unfinished| unfinished.missing.to_string()).collect::<Vec<_>>()
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
        // A figure that was measured only in the first state says nothing about the others.
        assert_eq!(found(&[row("full", "0")], &whole, &whole), [""; 0], "--all --figure");
    }

    #[test]
    fn later_invalid_cells_end_the_comparison() {
        let both = [(Role::Full, 20, true), (Role::Full, 40, false), (Role::Full, 300, false)];
        let whole = [(Role::Full, 20, true), (Role::Full, 300, true)];
        for (a, b, valid) in [
            (&both[..], &both[..], "20 in A and 20"),
            (&both, &whole, "20 in A and 300"),
            (&whole, &both, "300 in A and 20"),
        ] {
            let found = find(&[row("full", "20")], a, b);
            assert_eq!(found.len(), 1);
            let expected = format!("ext4 full 300: the last valid checkpoint is {valid} in B");
            assert_eq!(found[0].missing.to_string(), expected);
            let note = "The last common checkpoint is 20 of 300: ext4 full; later aging is not compared.";
            assert_eq!(unfinished_notes(&found), [note]);
        }
    }

    #[test]
    fn note_names_volumes_and_missing_ones_are_added_once() {
        let unfinished = |role: &str, common, last: u64| {
            let missing = Missing::new(&["ext4", role, &last.to_string()], "x");
            Unfinished { common, last, missing }
        };
        assert_eq!(unfinished_notes(&[]), [""; 0]);
        let first = "Only checkpoint 0 is common: ext4 full and ext4 empty; aging is not compared.";
        assert_eq!(unfinished_notes(&[unfinished("full", 0, 400), unfinished("empty", 0, 200)]), [first]);
        assert_eq!(unfinished_notes(&[unfinished("full", 20, 400), unfinished("empty", 40, 400)]).len(), 2);
        let mut missing = vec![Missing::new(&["ext4", "full", "200"], "B did not measure it")];
        add_unfinished(&mut missing, vec![unfinished("full", 0, 400), unfinished("empty", 0, 400)]);
        assert_eq!(missing.len(), 2);
    }
}
