//! FSFB, the free-space fragmentation benchmark (Conway et al., HotStorage 2019): a volume that is kept nearly full while
//! its files are replaced, a round at a time.
//!
//! Set-up: files of uniform size are dropped into a random tree until `fill_percent` of the volume is used. Then rounds:
//! files chosen uniformly are deleted until `replace_percent` of the bytes are gone, and one new directory at a random
//! free place is filled with as much. A counted step is the making of that directory, synchronised at its end.
//!
//! The fullness is held by feedback, 0.05% of the capacity above the target, and never falls below the target after
//! set-up, except between the deletion and the making within a round. No space never ends the workload: what did not fit is removed and tried again, and a volume
//! that cannot be filled as far as asked is kept as full as it gets; the label of a step says so.
//!
//! ```
//! use senesce_core::{Bytes, Seed};
//! use senesce_workload::{Feedback, Workload, fsfb::{Fsfb, FsfbOptions}};
//!
//! let mut fsfb = Fsfb::new(FsfbOptions::paper(Seed(1))).unwrap();
//! let feedback = Feedback { capacity: Bytes(5 << 30), free: Bytes(5 << 30), last: None };
//! let step = fsfb.next_step(&feedback).unwrap().unwrap();
//! assert!(step.label.starts_with("fill to 95%"));
//! ```
//!
//! What it is not: the published script, whose fsync had no file, whose generator had no seed, and which ran every 50th
//! round twice.

mod contents;
mod files;
mod flight;
mod options;
mod tree;
mod workload;

#[cfg(test)]
mod tests;

pub use contents::{PRINTABLE, PrintableContents, printable_content};
pub use options::{FsfbOptions, Sizes};
pub use workload::Fsfb;
