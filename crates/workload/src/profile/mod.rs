//! Profile-driven aging: a volume is made as full, and its files as large, as deep and as old, as a surveyed one.
//!
//! An [`AgingProfile`] says what share of the files has which size, lies how deep and has lived for which part of the
//! file system's life. [`ProfileAging`] turns one into steps: *rapid aging* creates files until the fullness is reached;
//! *stable aging* deletes and creates until the ages are those of the profile; at the end every file's time of
//! modification is set to its age. Files keep arriving in the profile's proportions, and the space that is used is held by
//! asking the file system, so that what is reached is what was asked.
//!
//! Two [`Schedule`]s lead there. `classic` tosses fair coins and lets time advance by one tick per operation, as published
//! (Kadekodi, Nagarajan, Ganger: Geriatrix, USENIX ATC 2018): the youngest files then dictate how many operations a life
//! has, often 25 to 3,000 per file. `virtual` follows the same rule in virtual time, with fewer births where they leave
//! nothing behind.
//!
//! What it is not: a model of *why* files die. Sizes, depths and ages are drawn independently, as in the surveys.

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
mod filling;
mod format;
mod moves;
mod options;
mod picture;
mod population;
mod settling;
mod stable;
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
pub use picture::{draw_difference, draw_profile};
