//! Figures of modelled costs: two for each device.

use crate::devices::{TRACED, VIRTUAL_TIME, short};
use crate::model::{Model, ROLES};
use crate::panels::{Figure, LineFigure, Variant, line_figure};

/// Cost and slowdown on every device, in the order of the report.
pub(crate) fn modelled_figures(model: &Model) -> Vec<Figure> {
    let (shared, own, log) = (Variant::Shared, Variant::Own, Variant::Logarithmic);
    let modelled = model.devices().into_iter().flat_map(|device| {
        let (costs, name) = (&model.modelled[device], short(device));
        let slug: String = name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let cost = LineFigure::of(costs, "seconds per GiB (model)", " s/GiB");
        let slowdown = LineFigure {
            reference: Some((1.0, "fresh copy")),
            roles: &ROLES[..2],
            from_zero: false,
            ..LineFigure::of(&model.modelled_slowdown[device], "times a fresh copy (model)", "×")
        };
        [
            line_figure(
                model,
                &format!("modelled-cost-{slug}"),
                &format!("Modelled cost of reading the tree: {name}"),
                &cost,
                &[shared, own, log],
                match (device.ends_with(VIRTUAL_TIME), device.ends_with(TRACED)) {
                    (_, true) => {
                        "A model, not a measurement: the time a described device takes for the read requests of a cold \
                         grep test that was traced, metadata included, one after the other."
                    }
                    (true, _) => {
                        "A model, not a measurement: the time a described device takes for the requests that the file \
                         system made in the cold grep test, metadata included. The volume was such a disk, in virtual \
                         time."
                    }
                    _ => {
                        "A model, not a measurement: the time a described device takes for the requests of a cold read \
                         of the whole tree, predicted from the places of its files and, if they could be read, of its inodes and \
                         directories."
                    }
                },
            ),
            line_figure(
                model,
                &format!("modelled-slowdown-{slug}"),
                &format!("Modelled slowdown against a fresh copy: {name}"),
                &slowdown,
                &[shared, own],
                "Modelled cost of the aged tree over that of the same tree copied to a fresh file system, at the same \
                 checkpoint.",
            ),
        ]
    });
    modelled.collect()
}
