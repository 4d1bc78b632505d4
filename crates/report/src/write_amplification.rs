//! Write amplification: the bytes written to the device for each byte of content.

use std::collections::{BTreeMap, BTreeSet};

use senesce_store::{CellKey, Results, Role};

/// Cells and bytes written to the device for each byte of content. Arms of the git binary have
/// none: its writes are not counted.
pub(crate) fn amplified<'r>(
    results: &'r Results,
    valid: &BTreeSet<&CellKey>,
) -> impl Iterator<Item = (&'r CellKey, f64)> {
    let rows = results.aging.iter().filter(|row| valid.contains(&row.key) && row.written_bytes > 0);
    rows.filter_map(|row| Some((&row.key, row.device_written_bytes? as f64 / row.written_bytes as f64)))
}

/// The write amplification of all steps of each volume together.
pub(crate) fn amplification_of_all(results: &Results, valid: &BTreeSet<&CellKey>) -> BTreeMap<(String, Role), f64> {
    // If a step is invalid or was not counted, its volume has no sum.
    let mut sums: BTreeMap<(String, Role), Option<(u64, u64)>> = BTreeMap::new();
    for row in &results.aging {
        let sum = sums.entry((row.key.arm.clone(), row.key.role)).or_insert(Some((0, 0)));
        let written = row.device_written_bytes.filter(|_| valid.contains(&row.key));
        *sum = sum.zip(written).map(|((device, content), written)| (device + written, content + row.written_bytes));
    }
    let ratio = |(key, sum): (_, Option<(u64, u64)>)| {
        sum.filter(|(_, content)| *content > 0).map(|(device, content)| (key, device as f64 / content as f64))
    };
    sums.into_iter().filter_map(ratio).collect()
}
