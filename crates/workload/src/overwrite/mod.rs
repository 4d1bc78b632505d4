//! Reads and overwrites of large existing files: a database under an OLTP load, random overwrites,
//! sequential streams.
//!
//! These are the loads of Kesavan et al. (FAST 2019), on files of a mounted file system. The files
//! do not grow. On file systems that do not overwrite in place, the location of blocks ages. The
//! latency of each operation can be measured. A counted step is a round of `operations` requests
//! with a sync at its end.
//!
//! [`Pattern::Oltp`] is similar to SPC-1 (but not an SPC result): three files with 45, 45 and 10%
//! of the space, and eight streams. The sum of independent Poisson streams is a Poisson stream.
//! Each of its arrivals belongs to a stream with a fixed probability. A round runs as fast as
//! possible, so only this order is kept.
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
//! Mixed sizes are 1, 2, 4, 8 or 16 blocks of 4 KiB with weights 10, 6, 5, 2, 2. Sequential reads
//! start in [20%, 60%) of their file and run for 10% of it before they restart. The writes start in
//! [0, 70%) and run for 30%.

mod oltp;
mod options;
mod request;
mod walk;
mod workload;

#[cfg(test)]
mod tests;

pub use options::{OverwriteOptions, Pattern, Space};
pub use workload::Overwrite;
