//! Renders results as one self-contained HTML report, as SVG, PNG, PDF and CSV, and as a summary
//! for a terminal.
//!
//! This crate reads results and arranges them. It computes medians, spreads and ratios, and no
//! other figures. Charts are drawn as SVG here, once: the HTML holds the same drawings as the files
//! for papers, and its script only adds tooltips and toggles. The same results give the same bytes.

mod arm_colour;
mod arm_order;
mod arm_slowdowns;
mod baseline;
mod bench;
mod campaign;
mod captions;
mod chart;
mod columns;
mod convergence;
mod csv;
mod cure_headline;
mod cures;
mod devices;
mod equivalence;
mod error;
mod figures;
mod film;
mod format;
mod headline;
mod html;
mod inspection;
mod inspection_bars;
mod inspection_map;
mod inspection_screen;
mod inspection_verdict;
mod latex;
mod methods;
mod model;
mod noise;
mod own_cost;
mod page;
mod panels;
mod panels_layout;
mod panels_lines;
mod panels_map;
mod panels_measured;
mod panels_modelled;
mod panels_space;
#[cfg(feature = "png-pdf")]
mod pdf;
#[cfg(feature = "png-pdf")]
mod pdf_font;
mod plans;
mod predictions;
mod published;
#[cfg_attr(not(feature = "png-pdf"), path = "no_renderer.rs")]
mod renderer;
mod reproduction;
mod reproduction_strip;
mod sheet;
mod shelf;
mod slowdown;
mod sparkline;
mod spread;
mod suite;
mod summary;
mod transfer;
mod tree;
mod warnings;
mod workload;
mod write_amplification;

pub use baseline::{Baseline, Unlike};
pub use bench::{BenchOptions, render_bench};
pub use campaign::{MissingTask, PlannedTasks, merged_tasks, render_campaign, tell_missing_tasks};
pub use devices::{device_place, planned_devices};
pub use equivalence::equivalence_table;
pub use error::Error;
pub use figures::{DrawnFigures, Figures, draw_figures, render_figures};
pub use html::{ReportOptions, render_report};
pub use inspection::{InspectionOptions, render_inspection};
pub use inspection_map::{MapColour, render_inspection_map};
pub use inspection_screen::inspection_screen;
pub use predictions::{PredictedGain, render_predictions_svg};
pub use reproduction::{render_reproduction, render_reproduction_svg};
pub use senesce_core::numbers::{count, three_digits};
pub use sparkline::sparklines;
pub use suite::{SuiteOptions, render_suite, suite_headline};
pub use summary::summary_table;
pub use transfer::{TransferOptions, render_transfer, render_transfer_svg};
pub use tree::{TreeOptions, render_tree, render_tree_svg, tree_screen};
