//! Profile-driven aging: it brings a volume to the fullness and the file sizes, depths and ages of
//! a surveyed one.
//!
//! An [`AgingProfile`] has the distributions of size, depth and age (relative to the file system's
//! life) over the files. [`ProfileAging`] turns it into steps. *Rapid aging* creates files until
//! the fullness is reached. *Stable aging* deletes and creates files until the ages match the
//! profile. At the end each file's time of modification is set to its age. New files keep the
//! profile's proportions, and feedback of the file system holds the used space.
//!
//! There are two [`Schedule`]s. `classic` tosses fair coins and advances time by one tick per
//! operation, as published (Kadekodi, Nagarajan, Ganger: Geriatrix, USENIX ATC 2018). The youngest
//! files then dictate the operations of a life, often 25 to 3,000 per file. `virtual` follows the
//! same rule in virtual time, with fewer births in periods of which almost nothing survives.
//!
//! It does not model *why* files are deleted. Sizes, depths and ages are drawn independently, as in
//! the surveys.

mod aging;
mod batch;
mod builtin;
mod captured;
mod check;
mod classic;
mod combine;
mod convergence;
mod directories;
mod distribution;
mod file_operations;
mod filling;
mod format;
mod options;
mod population;
mod settling;
mod stable;
mod text_chart;
mod virtual_time;

#[cfg(test)]
mod tests;

pub use aging::ProfileAging;
pub use builtin::{builtin_profiles, find_builtin};
pub use captured::{Captured, FoundFile, compute_profile};
pub use check::ProfileProblem;
pub use combine::{ProfileDifference, compute_difference, merge_profiles};
pub use convergence::{Bound, Convergence};
pub use distribution::{Deviation, apportion};
pub use format::{
    AgeDistribution, AgingProfile, DepthDistribution, ExtentDistribution, PROFILE_FORMAT, ProfileSource,
    SizeDistribution, SizeMeaning,
};
pub use options::{FileContent, ProfileOptions, Schedule, Sizes};
pub use text_chart::{draw_difference, draw_profile};
