//! The one error of the room.

/// Why something cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// What is to be simulated makes no sense.
    #[error("{what}: {problem}")]
    Absurd {
        /// Which part of it.
        what: &'static str,
        /// What is wrong, with the number and what would be possible.
        problem: String,
    },
    /// A station's accounts contradict each other: a fault of the simulation, whose figures must not be used.
    #[error(
        "{station}: Little's law does not hold: customers were there for {there} ns by their tickets and {area} ns by \
         the count of who is there; this is a fault of the simulation"
    )]
    Little {
        /// The station.
        station: String,
        /// Sum over customers of the time each was there, ns.
        there: u128,
        /// Integral over time of the number of customers, ns.
        area: u128,
    },
    /// A device cannot be described.
    #[error(transparent)]
    Device(#[from] senesce_device::Error),
}

impl Error {
    /// An [`Error::Absurd`].
    pub(crate) fn absurd(what: &'static str, problem: String) -> Self {
        Error::Absurd { what, problem }
    }
}
