//! Requests to a garden in memory, and the control socket as clients and strangers use it.

mod requests;
mod socket;
