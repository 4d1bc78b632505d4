//! Types that all crates share: units, paths, extents, the seeded generator, the clock, statistics
//! of repeated figures.
//!
//! This crate depends on no other crate of the project and does no I/O of its own.
//!
//! ```
//! use senesce_core::{Bytes, Rng, Seed};
//! let size: Bytes = "5GiB".parse().unwrap();
//! assert_eq!(size.to_string(), "5 GiB");
//! let mut a = Rng::for_purpose(Seed(7), "sizes");
//! let mut b = Rng::for_purpose(Seed(7), "sizes");
//! assert_eq!(a.below(1000), b.below(1000));
//! ```

mod block;
mod clock;
mod extent;
pub mod input;
mod mounts;
pub mod names;
pub mod numbers;
mod panics;
mod path;
mod printable;
mod rng;
pub mod statistics;
mod stop;
mod units;
pub mod verdict;

pub use block::{BlockOp, BlockRequest, SECTOR_BYTES};
pub use clock::{Clock, ManualClock};
pub use extent::{Extent, Space};
pub use mounts::{lists_source, unescape_field};
pub use panics::{catch_panic, is_caught_panic, panic_text};
pub use path::{PathError, RelPath};
pub use printable::{AnyText, Printable, TerminalFilter, is_hazard};
pub use rng::{Rng, Seed};
pub use stop::{Stop, StopFn, never};
pub use units::{Bytes, Nanos, ParseBytesError};
