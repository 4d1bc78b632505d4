//! The one error of the room.

/// Why an experiment could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The garden, or the load on it, says no.
    #[error(transparent)]
    Trial(#[from] senesce_trials::Error),
    /// The garden says no.
    #[error(transparent)]
    Garden(#[from] senesce_garden::Error),
    /// The simulation refuses what it was given.
    #[error(transparent)]
    Sim(#[from] senesce_sim::Error),
    /// A client only read, and a drive was written: the trace has no place for that.
    #[error(
        "drive {} wrote {} blocks from {} on while a client only read; what is dirty should be written by a consistency point before reads are collected",
        .0.drive, .0.blocks, .0.block
    )]
    WrittenByRead(senesce_sim::storage::Chain),
    /// Something that there is not.
    #[error("{what}")]
    Unknown {
        /// What, and what there is.
        what: String,
    },
}

/// What this room gives.
pub type Result<T> = std::result::Result<T, Error>;
