//! The figure of free space: bars of bytes by the size of free extents.

use crate::chart::{Bar, ByteUnit, StackPanel};
use crate::csv::Csv;
use crate::model::{Buckets, Model, ROLES, words};
use crate::panels::{Figure, Legend, Panel, Variant};

/// What counts as free space on Btrfs.
const OF_BTRFS: &str = " On Btrfs, only free space in block groups for data counts. Unallocated \
    space and block groups for metadata are left out, so the figure is less than the free space of Btrfs.";

pub(crate) fn free_space_figure(model: &Model) -> Figure {
    let total = |buckets: &Vec<(u64, u64)>| -> u64 { buckets.iter().map(|(_, bytes)| bytes).sum() };
    let most = |checkpoints: &Buckets| checkpoints.values().map(total).max().unwrap_or(0);
    let unit = ByteUnit::of(model.free_space.values().map(most));
    let is_btrfs = |(arm, kind): &(String, String)| {
        kind == "btrfs" && ROLES.iter().any(|role| model.free_space.contains_key(&(arm.clone(), *role)))
    };
    let draw = |variant: Variant| {
        let of_arms = model.arms.iter().flat_map(|(arm, _)| ROLES.map(|role| (arm.clone(), role)));
        let volumes = of_arms.filter_map(|key| model.free_space.get_key_value(&key));
        let panels = volumes.map(|((arm, role), checkpoints)| {
            // An invalid checkpoint keeps its place, so that the axis shows the gap.
            let mut checkpoints = checkpoints.clone();
            for (_, _, pulls) in model.invalid.keys().filter(|(of, volume, _)| of == arm && volume == role) {
                checkpoints.entry(*pulls).or_default();
            }
            let bars = checkpoints.iter().map(|(pulls, buckets)| Bar::compute(*pulls, buckets)).collect();
            let title = format!("{arm}, {}", words(*role));
            let panel = StackPanel {
                title: title.clone(),
                bars,
                x_unit: model.unit.clone(),
                x_label: model.x_title.clone(),
                shares: variant == Variant::Shares,
                unit,
            };
            Panel::new(format!("Free space, {title}"), panel)
        });
        (variant, panels.collect())
    };
    Figure {
        name: "free-space".to_owned(),
        title: "Free space by size of free extents".to_owned(),
        caption: format!(
            "Free bytes at every checkpoint, by the size of the free extents that hold them. Warm colours are small \
             extents. Bytes are in {} in all panels. Each panel has its own scale: the title of its y axis has the largest value.{}",
            unit.name,
            if model.arms.iter().any(is_btrfs) { OF_BTRFS } else { "" }
        ),
        legend: Legend::Sizes,
        csv: free_space_csv(model),
        variants: vec![draw(Variant::Own), draw(Variant::Shares)],
    }
}

fn free_space_csv(model: &Model) -> String {
    let mut csv = Csv::new(&["arm", "volume", "shown_as", "checkpoint", "least_extent_bytes", "bytes"]);
    for ((arm, role), checkpoints) in &model.free_space {
        for (pulls, buckets) in checkpoints {
            for (least, bytes) in buckets {
                let numbers = [*pulls, *least, *bytes].map(|number| number.to_string());
                csv.row(&[&[arm.clone(), role.name().to_owned(), words(*role).to_owned()], &numbers[..]].concat());
            }
        }
    }
    csv.finish()
}
