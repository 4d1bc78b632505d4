//! Figures of modelled costs: the slowdowns on all devices, then the costs.

use crate::devices::{TRACED, VIRTUAL_TIME, short};
use crate::model::{Model, ROLES};
use crate::panels::{Figure, Variant};
use crate::panels_lines::{LEAST_SLOWDOWNS, LineFigure, line_figure};

/// Slowdown and cost on every device, in the order of the report.
pub(crate) fn modelled_figures(model: &Model) -> Vec<Figure> {
    let devices = model.devices();
    let slowdowns = devices.iter().map(|device| slowdown_figure(model, device));
    let costs = devices.iter().map(|device| cost_figure(model, device));
    slowdowns.chain(costs).collect()
}

fn slowdown_figure(model: &Model, device: &str) -> Figure {
    let slowdown = LineFigure {
        reference: Some((1.0, "fresh copy")),
        roles: &ROLES[..2],
        least: Some(LEAST_SLOWDOWNS),
        device: Some(device),
        is_ratio: true,
        ..LineFigure::of(&model.modelled_slowdown[device], "times a fresh copy (model)", "×")
    };
    line_figure(
        model,
        &slowdown_name(device),
        &format!("Modelled slowdown against a fresh copy: {}", title(model, device)),
        &slowdown,
        &[Variant::Shared, Variant::Own],
        &format!(
            "Modelled cost of reading the aged tree over that of a fresh copy of the same tree, at the same checkpoint. {}",
            method(model, device)
        ),
    )
}

fn cost_figure(model: &Model, device: &str) -> Figure {
    let cost = LineFigure {
        device: Some(device),
        ..LineFigure::of(&model.modelled[device], "seconds per GiB (model)", " s/GiB")
    };
    line_figure(
        model,
        &format!("modelled-cost-{}", slug(device)),
        &format!("Modelled cost of reading the tree: {}", title(model, device)),
        &cost,
        &[Variant::Shared, Variant::Own, Variant::Logarithmic],
        &format!("Time of a cold read of the whole tree, per GiB of allocated size. {}", method(model, device)),
    )
}

/// The name of the figure of slowdowns on a device.
pub(crate) fn slowdown_name(device: &str) -> String {
    format!("modelled-slowdown-{}", slug(device))
}

/// The device's name as it is part of a file name.
pub(crate) fn slug(device: &str) -> String {
    short(device).to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

/// Whether the volumes of the run were this device, in virtual time, too.
fn is_second_method(model: &Model, device: &str) -> bool {
    let name = device.trim_end_matches(TRACED);
    model.virtual_disk().is_some_and(|(disk, ..)| disk != device && disk.trim_end_matches(VIRTUAL_TIME) == name)
}

/// The device in titles of figures, with its method if it has two.
pub(crate) fn title(model: &Model, device: &str) -> String {
    let of_places = is_second_method(model, device) && !device.ends_with(TRACED);
    format!("{}{}", short(device), if of_places { ", from the places of blocks" } else { "" })
}

/// The source of the figures of a device. If the volumes were the same device, in virtual time,
/// also why its figures differ.
fn method(model: &Model, device: &str) -> String {
    let how = match (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED)) {
        (_, true) => {
            "A model, not a measurement: the time of the device for the traced requests of a cold grep test, metadata \
             included, one after the other."
        }
        (true, _) => {
            "A model, not a measurement: the volumes were such disks in virtual time, and a cold grep test takes as long \
             as its requests take there, metadata and readahead included."
        }
        _ => {
            "A model, not a measurement: the time of the device for a cold read, predicted from the places of files and, \
             if they could be read, of inodes and directories."
        }
    };
    let kind = |device: &str| (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED));
    let is_known =
        model.devices().iter().take_while(|other| **other != device).any(|other| kind(other) == kind(device));
    let how = if is_known { "Modelled as above, for this device." } else { how };
    match is_second_method(model, device) {
        true => format!(
            "{how} It is the second method for this disk: it needs no grep test, so every checkpoint has a figure. If the \
             two differ, the figure in virtual time counts."
        ),
        false => how.to_owned(),
    }
}
