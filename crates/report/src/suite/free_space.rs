//! The table of free space of a suite's volumes: its share in free extents of each size.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use serde_json::Value as Json;

use super::{class, list, text};
use crate::format::{bytes, count};

/// Columns from the smallest to the largest size that any volume has; none if no volume reports its
/// free space.
pub(super) fn table(results: &Json, classes: &BTreeMap<String, String>) -> Option<Value> {
    let buckets = |state: &Json| -> Vec<(u32, f64)> {
        let of = |bucket: &Json| Some((bucket["bucket_bytes"].as_u64()?.checked_ilog2()?, bucket["bytes"].as_f64()?));
        list(&state["free_space"]["buckets"]).filter_map(of).collect()
    };
    let states = &results["states"];
    let powers: Vec<u32> = list(states).flat_map(buckets).map(|(power, _)| power).collect();
    let (first, last) = (*powers.iter().min()?, *powers.iter().max()?);
    let mut before = String::new();
    let row = |state: &Json| {
        let (name, found) = (text(&state["file_system"]), buckets(state));
        let (is_first, total) = (name != before, found.iter().map(|(_, bytes)| bytes).sum::<f64>());
        let cells = (first..=last).map(|power| {
            let held = found.iter().filter(|(other, _)| *other == power).map(|(_, bytes)| bytes).sum::<f64>();
            let percent = if total > 0.0 { 100.0 * held / total } else { 0.0 };
            let shown = match percent {
                0.0 => String::new(),
                small if small < 0.5 => "<1".to_owned(),
                share => format!("{share:.0}"),
            };
            // Ink must stay readable on a full cell.
            context! { share => format!("{:.1}", percent * 0.6), text => shown }
        });
        let free = &state["free_space"];
        let value = context! {
            file_system => if is_first { name.as_str() } else { "" },
            first => is_first,
            class => class(classes, &name),
            state => text(&state["state"]),
            extents => free["extents"].as_u64().map_or("–".to_owned(), count),
            mean => free["mean_bytes"].as_f64().map_or("–".to_owned(), bytes),
            cells => cells.collect::<Vec<_>>(),
        };
        before = name;
        value
    };
    Some(context! {
        buckets => (first..=last).map(|power| bytes((1u64 << power) as f64)).collect::<Vec<_>>(),
        rows => list(states).map(row).collect::<Vec<_>>(),
    })
}
