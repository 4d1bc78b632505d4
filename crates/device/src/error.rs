//! The one error of the room.

/// Why a device cannot be described, or a figure not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A description is not of the format.
    #[error("device description: {problem}")]
    Malformed {
        /// What the parser says, with the place.
        problem: String,
    },
    /// A description is of a format this version does not know.
    #[error("device {device}: format {found:?} is not known; this version reads {known:?}")]
    Format {
        /// The device's name.
        device: String,
        /// What the description says.
        found: String,
        /// What it should say.
        known: &'static str,
    },
    /// A description has a constant the kind of device does not have.
    #[error("device {device}: a device of kind {kind} has no constant {key:?}; it has {known}")]
    UnknownKey {
        /// The device's name.
        device: String,
        /// `hdd` or `ssd`.
        kind: &'static str,
        /// The constant.
        key: String,
        /// All that it has, parted by commas.
        known: String,
    },
    /// A description lacks a constant.
    #[error("device {device}: {key} is missing: {meaning}, in {unit}")]
    MissingKey {
        /// The device's name.
        device: String,
        /// The constant.
        key: &'static str,
        /// What it means.
        meaning: &'static str,
        /// The unit it is given in.
        unit: &'static str,
    },
    /// A description names no device that could exist.
    #[error("device {device}: {key}: {problem}")]
    Absurd {
        /// The device's name.
        device: String,
        /// Which constant.
        key: String,
        /// What is wrong with it, with the number and what would be possible.
        problem: String,
    },
    /// A figure cannot be computed from what was given.
    #[error("{figure}: {problem}")]
    NotComputable {
        /// The figure.
        figure: &'static str,
        /// What is missing or wrong, with the number.
        problem: String,
    },
}
