//! The error type of the crate.

/// The reasons why a simulation fails.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The input is not valid.
    #[error("{what}: {problem}")]
    Absurd {
        /// The part of the input.
        what: &'static str,
        /// Its fault, with the number and a possible value.
        problem: String,
    },
    /// The accounting of a station contradicts itself: a fault of the simulation, whose figures
    /// must not be used.
    #[error(
        "{station}: Little's law does not hold: customers were present for {there} ns by their tickets and {area} ns by \
         the count over time; this is a fault of the simulation"
    )]
    Little {
        /// The station.
        station: String,
        /// Sum over customers of the time in the station, ns.
        there: u128,
        /// Integral over time of the number of customers, ns.
        area: u128,
    },
    /// The description of a device is not valid.
    #[error(transparent)]
    Device(#[from] senesce_device::Error),
}

impl Error {
    /// An [`Error::Absurd`].
    pub(crate) fn absurd(what: &'static str, problem: String) -> Self {
        Error::Absurd { what, problem }
    }
}
