//! Which figures a page shows at once, and under which heading the others are folded.

use crate::headline::why_folded;
use crate::model::Model;
use crate::panels::Figure;
use crate::panels_layout::NAME as COST_AND_LAYOUT;
use crate::panels_modelled::slowdown_name;

/// Figures of measured reading. They are folded if they show no difference.
const MEASURED: [&str; 2] = ["grep-cost", "slowdown"];
/// Further figures of wall time. They are folded if it is that of memory.
const WALL_TIMES: [&str; 2] = ["latency", "aging-speed"];
/// The headings of the folded figures, in their order, with the figures' names or their beginnings.
const SHELVES: [(&str, &[&str]); 6] = [
    ("Other devices and methods", &["modelled-"]),
    ("Layout and space", &["layout", "maps", "fullness", "free-space"]),
    ("Requests of a cold read", &["trace", "request-sizes", "seek-distances"]),
    ("Writing", &["write-cost", "write-amplification", "read-against-write"]),
    ("Measured on this machine", &["grep-cost", "slowdown", "latency", "aging-speed"]),
    ("The profile", &["convergence", "reached-profile"]),
];

/// A figure in its place on the page.
pub(crate) struct Placed {
    pub figure: Figure,
    /// The heading that it is folded under; none if it is shown.
    pub shelf: Option<&'static str>,
    /// Why its measurements mean little. `None`: they are usable.
    pub why: Option<&'static str>,
}

/// The figures in the order of the page: the decisive ones, then the folded ones by their headings.
///
/// Decisive figures are a cure, the slowdown on the first device of each arm (or else the measured
/// one), the layout beside the cost, and the convergence to a profile.
pub(crate) fn place(model: &Model, figures: Vec<Figure>) -> Vec<Placed> {
    let why = why_folded(model);
    let is_memory = model.is_wall_of_memory();
    let first_devices: Vec<String> = model.first_devices().into_iter().map(slowdown_name).collect();
    let main = figures.iter().map(|figure| figure.name.clone()).find(|name| name.starts_with("modelled-slowdown"));
    let placed = |figure: Figure| {
        let name = figure.name.as_str();
        let is_measured = MEASURED.contains(&name) || (is_memory && WALL_TIMES.contains(&name));
        let why = why.filter(|_| is_measured);
        let is_shown = match name {
            "cures" | "convergence" => true,
            "slowdown" => why.is_none(),
            name if name.starts_with(COST_AND_LAYOUT) => true,
            name => main.as_deref() == Some(name) || first_devices.iter().any(|first| first == name),
        };
        let shelf = SHELVES.iter().find(|(_, names)| names.iter().any(|known| name.starts_with(known)));
        Placed { shelf: shelf.filter(|_| !is_shown).map(|(heading, _)| *heading), why, figure }
    };
    let mut all: Vec<Placed> = figures.into_iter().map(placed).collect();
    all.sort_by_key(|placed| match placed.shelf {
        None => (0, usize::from(placed.figure.name != "cures")),
        Some(shelf) => (1, SHELVES.iter().position(|(heading, _)| *heading == shelf).unwrap_or(SHELVES.len())),
    });
    all
}
