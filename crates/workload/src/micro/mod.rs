//! The microbenchmarks: fragmented files ([`Intrafile`]), files out of order ([`Interfile`]), and
//! renamed directories ([`Renames`]). The first two are those of FAST 2017.
//!
//! *Intrafile*: a few files grow in turn by small appends. Each append is flushed to the device, so
//! that their blocks interleave. *Interfile*: small files are copied to a fresh volume. From copy
//! to copy, the copy order is more shuffled against the read order. *Renames*: directories exchange
//! their names, so that the read order differs from the write order. None of them is a realistic
//! workload: each isolates one kind of fragmentation.

mod interfile;
mod intrafile;
mod renames;
mod rounds;

#[cfg(test)]
mod tests;

pub use interfile::{Interfile, InterfileOptions, compute_order};
pub use intrafile::{Intrafile, IntrafileOptions, Push};
pub use renames::{Renames, RenamesOptions};
