//! Reads and overwrites of large files that exist: a database under an OLTP load, random overwrites, sequential streams.
//!
//! They are the loads of Kesavan et al. (FAST 2019), on files of a mounted file system. Nothing grows: what ages is the
//! place of blocks on file systems that do not overwrite in place, and what can be measured is the latency of each
//! operation. A counted step is a round of so many operations, synchronised at its end.
//!
//! [`Pattern::Oltp`] is like SPC-1 (and no SPC result): three files with 45, 45 and 10% of the space, eight streams.
//! Independent Poisson streams together are one, whose every arrival belongs to a stream with a fixed probability; since
//! a round is run as fast as it goes, only that order is kept.
//!
//! | stream | share | reads | pattern | size |
//! |---|---|---|---|---|
//! | 1-1 | .035 | 50% | uniform over file 1 | 4 KiB |
//! | 1-2 | .281 | 50% | walk in its [15%, 20%) | 4 KiB |
//! | 1-3 | .070 | all | sequential | mixed |
//! | 1-4 | .210 | 50% | walk in its [70%, 75%) | 4 KiB |
//! | 2-1 | .018 | 30% | uniform over file 2 | 4 KiB |
//! | 2-2 | .070 | 30% | walk in its [47%, 52%) | 4 KiB |
//! | 2-3 | .035 | all | sequential | mixed |
//! | 3-1 | .281 | none | sequential in file 3 | mixed |
//!
//! Mixed sizes are 1, 2, 4, 8 or 16 blocks of 4 KiB with weights 10, 6, 5, 2, 2. Sequential reads start in [20%, 60%) of
//! their file, run for 10% of it, and start anew; the writes start in [0, 70%) and run for 30%.

mod oltp;
mod options;
mod request;
mod walk;
mod workload;

#[cfg(test)]
mod tests;

pub use options::{OverwriteOptions, Pattern, Space};
pub use workload::Overwrite;
