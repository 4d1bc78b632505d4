//! Requests to a garden in memory, and the control socket under correct and malformed use.

mod requests;
mod socket;
