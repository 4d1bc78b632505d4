//! The `senesce-fs` program as users and `senesce` call it.
//!
//! Its verbs are tested through `senesce fs`, in the tests of the laboratory's command line.

mod handed_over;
mod nightly;
mod reproduce;
mod rig;
