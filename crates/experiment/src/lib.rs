//! Plans become arms and cells, cells become results, and a journal makes a killed run resumable.

pub mod journal;
pub mod observer;
pub mod plan;
