//! The two microbenchmarks of FAST 2017: files in pieces ([`Intrafile`]), and files in the wrong order ([`Interfile`]).
//!
//! *Intrafile*: a few files grow in turn by a little, each append pushed to the device, so that their blocks interleave.
//! *Interfile*: small files are copied to a fresh volume in an order that is more and more shuffled against the order in
//! which they are read. What neither is: a workload that anybody has; each shows one kind of fragmentation alone.

mod interfile;
mod intrafile;

#[cfg(test)]
mod tests;

pub use interfile::{Interfile, InterfileOptions, compute_order};
pub use intrafile::{Intrafile, IntrafileOptions, Push};
