//! The table of circumstances, which grows during a run.

use senesce_store::{CircumstanceRow, ResultStore};

use crate::{Error, run::BEGUN_UNIX_SECONDS};

/// Adds rows. A row replaces one with the same arm and key, except the start time of the first
/// execution.
pub(crate) fn add_circumstances(store: &mut ResultStore, rows: Vec<CircumstanceRow>) -> Result<(), Error> {
    let mut all = store.read_circumstances()?;
    for row in rows {
        match all.iter_mut().find(|old| old.arm == row.arm && old.key == row.key) {
            Some(_) if row.key == BEGUN_UNIX_SECONDS => {}
            Some(old) => *old = row,
            None => all.push(row),
        }
    }
    all.sort_by(|a, b| (&a.arm, &a.key).cmp(&(&b.arm, &b.key)));
    Ok(store.put_circumstances(&all)?)
}
