//! Published experiments with the garden as code: a load, an aggregate in memory, and what its drives are asked for.
//!
//! Everything here is structure: chains, parity reads, relocations, redirects, space, what objects cost. There are no seconds; what the structure costs
//! on drives is another room's question. The blocks are real, with their trailers, maps and parity; only the clients' payload
//! says little, so that [`CompactDevice`](senesce_block::CompactDevice) keeps it in little memory. It is read back and compared.
//!
//! - [`Setup`] says what the aggregate is, [`LoadKind`] what clients do; a [`Trial`] does it and gives a [`Series`] of [`Point`]s,
//!   one for each consistency point.
//! - [`Experiment`] is a published one: it runs trials and holds [`Figure`]s against the published numbers.
//!
//! Deterministic: the same set-up, load and seed give the same series on every machine.

mod error;
mod experiments;
mod facts;
mod figure;
mod load;
mod packed;
mod rig;
mod series;
mod setup;
mod trial;
mod twin;

pub use error::{Error, Result};
pub use experiments::{Experiment, LONG_DAYS, LONG_TURNOVERS, Outcome, Plateau, Stage, find_experiment};
pub use facts::{Fact, tell_count, tell_gardening};
pub use figure::{Claim, Figure, Quote, TOLERANCE, Verdict, render_figures};
pub use load::{Load, LoadKind, Oltp, Request, Runs, Streams, UNIT_RATE, Way, exponential, mixed_size};
pub use packed::{Kind, PAGE, PackedRig};
pub use rig::Rig;
pub use series::{Chain, Point, Series};
pub use setup::{FlashTier, Rotation, Scale, Setup};
pub use trial::{CleaningPolicy, Trial};
