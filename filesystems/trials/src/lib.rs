//! Published experiments with the garden as code: a load, an aggregate in memory, and the requests
//! to its drives.
//!
//! Everything here is structure: chains, parity reads, relocations, redirects, space, and the cost
//! of objects. There are no times; `senesce-timed` simulates the times of the same requests. The
//! blocks are real, with their trailers, maps and parity. Only the clients' payload is simple, so
//! that [`CompactDevice`](senesce_block::CompactDevice) needs little memory. Trials read it back
//! and compare it.
//!
//! - [`Setup`] describes the aggregate, [`LoadKind`] the load of the clients. A [`Trial`] runs the
//!   load and returns a [`Series`] with one [`Point`] for each consistency point.
//! - [`Experiment`] is a published experiment. It runs trials and compares [`Figure`]s with the
//!   published numbers.
//!
//! Deterministic: the same set-up, load and seed give the same series on every machine.

mod error;
mod experiments;
mod known_contents_fixture;
mod load;
mod packed;
mod published_figures;
mod request_series;
mod settings_text;
mod setup;
mod tiering_fixture;
mod trial;

pub use error::{Error, Result};
pub use experiments::{Experiment, LONG_DAYS, LONG_TURNOVERS, Outcome, Plateau, Stage, find_experiment};
pub use known_contents_fixture::Rig;
pub use load::{Load, LoadKind, Oltp, Request, Runs, Streams, UNIT_RATE, Way, exponential, mixed_size};
pub use packed::{Kind, PAGE, PackedRig};
pub use published_figures::{Figure, Quote, render_figures};
pub use request_series::{Chain, Point, Series};
pub use senesce_core::verdict::{Claim, TOLERANCE, Verdict};
pub use settings_text::{Fact, tell_count, tell_gardening};
pub use setup::{FlashTier, Rotation, Scale, Setup};
pub use trial::{CleaningPolicy, Trial};
