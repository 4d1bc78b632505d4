//! The two microbenchmarks of FAST 2017: files in pieces ([`Intrafile`]), and files in the wrong order ([`Interfile`]); and directories that
//! are renamed into another order ([`Renames`]).
//!
//! *Intrafile*: a few files grow in turn by a little, each append pushed to the device, so that their blocks interleave.
//! *Interfile*: small files are copied to a fresh volume in an order that is more and more shuffled against the order in
//! which they are read. *Renames*: directories exchange their names, so that they are read in another order than they were written in. What
//! none of them is: a workload that anybody has; each shows one kind of fragmentation alone.

mod interfile;
mod intrafile;
mod renames;
mod rounds;

#[cfg(test)]
mod tests;

pub use interfile::{Interfile, InterfileOptions, compute_order};
pub use intrafile::{Intrafile, IntrafileOptions, Push};
pub use renames::{Renames, RenamesOptions};
