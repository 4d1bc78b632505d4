//! The one error of the room.

/// Why a device cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A description names no device that could exist.
    #[error("device {device}: {key}: {problem}")]
    Absurd {
        /// The device's name.
        device: String,
        /// Which constant.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}
