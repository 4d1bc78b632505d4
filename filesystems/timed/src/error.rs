//! The error type of the crate.

/// The reasons why an experiment fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the garden, or of the load on it.
    #[error(transparent)]
    Trial(#[from] senesce_trials::Error),
    /// An error of the garden.
    #[error(transparent)]
    Garden(#[from] senesce_garden::Error),
    /// The simulation refuses its input.
    #[error(transparent)]
    Sim(#[from] senesce_sim::Error),
    /// A drive was written while a client only read, which a trace cannot express.
    #[error(
        "drive {} wrote {} blocks from {} on while a client only read; what is dirty should be written by a consistency point before reads are collected",
        .0.drive, .0.blocks, .0.block
    )]
    WrittenByRead(senesce_sim::storage::Chain),
    /// A name is unknown.
    #[error("{what}")]
    Unknown {
        /// The name, and the known ones.
        what: String,
    },
}

/// The result type of the crate.
pub type Result<T> = std::result::Result<T, Error>;
