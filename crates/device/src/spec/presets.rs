//! The built-in device descriptions.

use super::DeviceSpec;
use crate::Error;

const TEXTS: [(&str, &str); 4] = [
    ("hdd-7200", include_str!("../../presets/hdd-7200.toml")),
    ("hdd-10k", include_str!("../../presets/hdd-10k.toml")),
    ("sata-ssd", include_str!("../../presets/sata-ssd.toml")),
    ("nvme", include_str!("../../presets/nvme.toml")),
];

/// The names of the built-in devices, and their description files, with comments.
pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.into_iter()
}

/// The preset with this name. `None` if there is none; [`presets`] has the names.
pub fn find_preset(name: &str) -> Option<DeviceSpec> {
    let (_, text) = TEXTS.into_iter().find(|(known, _)| *known == name)?;
    let parsed: Result<DeviceSpec, Error> = DeviceSpec::parse(text);
    // A test checks that every preset parses under its own name.
    parsed.ok()
}
