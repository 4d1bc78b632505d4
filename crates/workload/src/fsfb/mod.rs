//! FSFB, the free-space fragmentation benchmark (Conway et al., HotStorage 2019). It keeps a volume
//! nearly full and replaces its files in rounds.
//!
//! Set-up creates files of uniform size in a random tree until `fill_percent` of the volume is
//! used. A round deletes files, chosen uniformly, until `replace_percent` of the bytes are deleted.
//! It then creates the same number of bytes in one new directory at a random free place. The
//! counted step creates that directory and its files, and ends with a sync.
//!
//! Feedback holds the fullness 0.05% of the capacity above the target. After set-up the fullness
//! never drops below the target, except between the deletion and the creation of a round. A lack of
//! space never ends the workload. It removes the unfinished file and tries again. If a volume
//! cannot be filled to the target, the workload keeps the fullness that it reached, and the label
//! of a step says so.
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
//! It differs from the published script, whose fsync had no file, whose generator had no seed, and
//! which ran every 50th round twice.

mod contents;
mod files;
mod options;
mod pending_step;
mod tree;
mod workload;

#[cfg(test)]
mod tests;

pub use contents::{PRINTABLE, PrintableContents, printable_content};
pub use options::{FsfbOptions, Sizes};
pub use workload::Fsfb;
