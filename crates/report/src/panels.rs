//! Which panels a figure has: one per arm (and volume), from the model.

use senesce_store::Role;

use crate::captions::Marks;
use crate::chart::{Draw, Frame};
use crate::convergence::{convergence_figure, reached_figure};
use crate::cures::cures_figure;
use crate::model::{Model, ROLES};
use crate::panels_layout::{cost_and_layout_figures, layout_figure};
use crate::panels_lines::{LEAST_SLOWDOWNS, LineFigure, ShownNoise, line_figure};
use crate::panels_map::map_figure;
use crate::panels_measured::{histogram_figures, latency_figure, step_figure, trace_figures, trade_figure};
use crate::panels_modelled::modelled_figures;
use crate::panels_space::free_space_figure;

/// One of a figure's drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// All panels share the y axis.
    Shared,
    /// Every panel has its own y axis.
    Own,
    /// All panels share a logarithmic y axis.
    Logarithmic,
    /// Shares instead of bytes.
    Shares,
    /// One of several quantities that are drawn in the same way.
    Choice {
        /// Its name in file names.
        name: &'static str,
        /// Its label on the button.
        label: &'static str,
    },
}

impl Variant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Shared => "shared",
            Variant::Own => "own",
            Variant::Logarithmic => "log",
            Variant::Shares => "shares",
            Variant::Choice { name, .. } => name,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Variant::Shared => "same scale",
            Variant::Own => "own scales",
            Variant::Logarithmic => "logarithmic",
            Variant::Shares => "shares",
            Variant::Choice { label, .. } => label,
        }
    }
}

/// The meaning of a figure's colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Legend {
    /// These volumes.
    Roles(Vec<Role>),
    /// The colours of these arms, each with its class, and the dashes of these volumes.
    Arms(Vec<(String, String)>, Vec<Role>),
    /// Parts of a profile, by colours of their own.
    Parts(Vec<String>),
    /// Sizes of free extents.
    Sizes,
    /// Places in the tree.
    Places,
}

/// A figure: its drawings, each a row of panels.
pub(crate) struct Figure {
    /// Stem of file names, and anchor in the page.
    pub name: String,
    pub title: String,
    /// The quantity, and how to read the drawing.
    pub caption: String,
    pub legend: Legend,
    /// The drawn data as CSV; empty if a table of the results has it.
    pub csv: String,
    /// Drawings; the first is the one shown first.
    pub variants: Vec<(Variant, Vec<Panel>)>,
}

impl Figure {
    /// The figure with `text` appended to its caption.
    fn with(mut self, more: &str) -> Self {
        self.caption.push_str(more);
        self
    }
}

/// One panel.
pub(crate) struct Panel {
    /// Text for screen readers.
    pub label: String,
    pub drawing: Box<dyn Draw>,
}

impl Panel {
    pub(crate) fn new(label: String, drawing: impl Draw + 'static) -> Self {
        Self { label, drawing: Box::new(drawing) }
    }

    /// The panel's elements for a page, and their height.
    pub(crate) fn page(&self) -> (String, f64) {
        let frame = Frame { plot: self.drawing.page_plot(), ..Frame::PAGE };
        (self.drawing.draw(&frame), self.drawing.height(&frame))
    }
}

/// Figures of wall time.
const WALL_TIMES: [&str; 5] = ["grep-cost", "slowdown", "write-cost", "latency", "aging-speed"];
/// The sentence about them if no request waited for a device.
const IN_MEMORY: &str = " The volumes were disks in virtual time, for which nothing waited: wall times are of memory and say nothing about the disk.";

/// The meaning of the reference line in panels of file systems that are mounted through FUSE.
const FLOOR: &str = " The thin line is the FUSE floor at the last checkpoint: the same test of the same tree from memory, \
    through the same FUSE adapter. The cost above it is that of the engine and its device.";

/// The meaning of the grey band in panels of measured costs and of their ratios.
const COST_BAND: &str =
    " The grey band is the range of the costs of the arm's fresh copies at all checkpoints of this run.";
const RATIO_BAND: &str = " A ratio inside the grey band shows no difference: the fresh copies of the arm alone vary that \
    much over the checkpoints of this run (the noise band).";

/// The class with the colour of a part of a profile. No arm and no volume has these colours.
pub(crate) fn part_class(at: usize) -> String {
    const COLOURS: usize = 4;
    format!("part-{}", at % COLOURS)
}

/// The figures that the results have data for, in the order of the report.
pub(crate) fn figures(model: &Model) -> Vec<Figure> {
    let aged = &ROLES[..2];
    let grep_cost = model.grep_cost();
    let memory = model.is_wall_of_memory();
    let line = LineFigure::of;
    let cost_label = if memory { "seconds per GiB (wall, memory)" } else { "seconds per GiB" };
    // Wall times of memory are compared with nothing.
    let shown_noise = |shown| if memory { ShownNoise::None } else { shown };
    let cost = LineFigure {
        with_floor: true,
        noise: shown_noise(ShownNoise::Costs),
        ..line(&grep_cost, cost_label, " s/GiB")
    };
    let floor = if model.fuse_floor.is_empty() { "" } else { FLOOR };
    let slowdown = LineFigure {
        reference: Some((1.0, "fresh copy")),
        noise: shown_noise(ShownNoise::Ratios),
        roles: aged,
        least: Some(LEAST_SLOWDOWNS),
        is_ratio: true,
        ..line(
            &model.slowdown,
            if memory { "times a fresh copy (wall, memory)" } else { "times the cost of a fresh copy" },
            "×",
        )
    };
    let (of_cost, of_ratio) = (Marks::of(model, &cost), Marks::of(model, &slowdown));
    let fullness = LineFigure {
        limit: Some(100.0),
        reference: model.asked_fullness().map(|percent| (percent, "requested")),
        ..line(&model.fullness, "% of the capacity", "%")
    };
    let amplification =
        LineFigure { roles: aged, ..line(&model.write_amplification, "bytes written for each byte of content", "×") };
    let speed = LineFigure { roles: aged, ..line(&model.aging_speed, "steps per second", " steps/s") };
    let (shared, own, log) = (Variant::Shared, Variant::Own, Variant::Logarithmic);
    let mut figures = vec![
        line_figure(
            model,
            "grep-cost",
            "Cost of reading the tree",
            &cost,
            &[shared, own, log],
            &format!(
                "Wall time of reading the whole tree with a cold cache, per GiB of allocated size.{}{}",
                of_cost.of_repetitions(),
                if of_cost.noise { COST_BAND } else { "" }
            ),
        )
        .with(floor),
        line_figure(
            model,
            "slowdown",
            "Slowdown against a fresh copy",
            &slowdown,
            &[shared, own],
            &format!(
                "Cost of reading the aged tree over that of the same tree copied to a fresh file system, at the same \
                 checkpoint{}.{}",
                if of_ratio.intervals { ": ratio of medians, with its bootstrap 95% interval" } else { "" },
                if of_ratio.noise { RATIO_BAND } else { "" }
            ),
        ),
        layout_figure(model),
        trace_figures(model),
        histogram_figures(model, "request-sizes"),
        histogram_figures(model, "seek-distances"),
        line_figure(
            model,
            "fullness",
            "Fullness",
            &fullness,
            &[shared, own],
            "The share of the capacity that users cannot fill at each checkpoint, by statfs: space in use, and space that \
             the file system reserves. Workloads that hold a fullness count it in this way, on the nearly full volume. The line “requested” \
             is the fullness that the plan requests for that volume.",
        ),
        free_space_figure(model),
        map_figure(model),
        step_figure(model),
        line_figure(
            model,
            "write-amplification",
            "Write amplification",
            &amplification,
            &[shared, own],
            "Bytes written to the block device for each byte of content, over the steps since the previous checkpoint and \
             the unmount after them; journals, logs and metadata are included. Below 1, files were deleted or rewritten \
             before they were on the device. The first checkpoint is the initial copy.",
        ),
        trade_figure(model),
        latency_figure(model),
        line_figure(
            model,
            "aging-speed",
            "Speed of aging",
            &speed,
            &[shared, own],
            "Steps per second of wall time since the previous checkpoint.",
        ),
        convergence_figure(model),
        reached_figure(model),
    ];
    // Models have no noise, so they come before wall times.
    let modelled = modelled_figures(model);
    let first = modelled.into_iter().chain([cures_figure(model)]).chain(cost_and_layout_figures(model));
    figures.splice(0..0, first);
    if model.is_wall_of_memory() {
        for figure in figures.iter_mut().filter(|figure| WALL_TIMES.contains(&figure.name.as_str())) {
            // On a disk in virtual time, the disk also determines the cost of writing.
            if figure.name != "write-cost" || model.steps.disk_seconds.is_empty() {
                figure.title.push_str(": wall time (in memory)");
            }
            figure.caption.push_str(IN_MEMORY);
        }
    }
    name_published(model, &mut figures);
    for figure in &mut figures {
        // An experiment without a full volume has none in its legends.
        if let Legend::Roles(roles) | Legend::Arms(_, roles) = &mut figure.legend {
            roles.retain(|role| model.results.cells.iter().any(|cell| cell.key.role == *role));
        }
    }
    figures.retain(|figure| figure.variants.iter().any(|(_, panels)| !panels.is_empty()));
    figures
}

/// Names the published figure that a drawing resembles: those of HotStorage 2019, for their two
/// workloads.
fn name_published(model: &Model, figures: &mut [Figure]) {
    let workload = |key: &str| model.circumstance(key).unwrap_or_default().trim_matches('"').to_owned();
    // For a disk in virtual time, the first figure has the relevant cost.
    let modelled = figures.iter().find(|figure| figure.name.starts_with("modelled-cost"));
    let modelled = modelled.filter(|_| model.virtual_disk().is_some()).map(|figure| figure.name.clone());
    let read = modelled.unwrap_or_else(|| "grep-cost".to_owned());
    let like: &[(&str, u32)] = match workload("workload.kind").as_str() {
        "fsfb" => &[(&read, 1), ("write-cost", 2)],
        "history" if workload("workload.edition").starts_with("full-disk") => &[(&read, 3), ("free-space", 4)],
        _ => &[],
    };
    for (name, number) in like {
        let Some(figure) = figures.iter_mut().find(|figure| figure.name == *name) else { continue };
        let with_sync = if *name == "write-cost" { " (with sync)" } else { "" };
        figure.caption.push_str(&format!(" As figure {number} of HotStorage 2019{with_sync}."));
    }
}
