//! The error type of the crate.

/// The reason why a device cannot be described, or a figure cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A description is not of the format.
    #[error("device description: {problem}")]
    Malformed {
        /// The error of the parser, with the position.
        problem: String,
    },
    /// A description is of a format that this version does not support.
    #[error("device {device}: format {found:?} is not known; this version reads {known:?}")]
    Format {
        /// The device's name.
        device: String,
        /// The format of the description.
        found: String,
        /// The supported format.
        known: &'static str,
    },
    /// A description has a constant that its kind of device does not have.
    #[error("device {device}: a device of kind {kind} has no constant {key:?}; it has {known}")]
    UnknownKey {
        /// The device's name.
        device: String,
        /// `hdd` or `ssd`.
        kind: &'static str,
        /// The constant.
        key: String,
        /// The constants of this kind, separated by commas.
        known: String,
    },
    /// A description lacks a constant.
    #[error("device {device}: {key} is missing: {meaning}, in {unit}")]
    MissingKey {
        /// The device's name.
        device: String,
        /// The constant.
        key: &'static str,
        /// Its meaning.
        meaning: &'static str,
        /// Its unit.
        unit: &'static str,
    },
    /// A description is of an impossible device.
    #[error("device {device}: {key}: {problem}")]
    Absurd {
        /// The device's name.
        device: String,
        /// The constant.
        key: String,
        /// The fault, with the number and the possible values.
        problem: String,
    },
    /// A figure cannot be computed from the input.
    #[error("{figure}: {problem}")]
    NotComputable {
        /// The figure.
        figure: &'static str,
        /// The missing or wrong input, with the number.
        problem: String,
    },
}
