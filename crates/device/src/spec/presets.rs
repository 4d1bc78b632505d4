//! The devices that come with the program.

use super::DeviceSpec;
use crate::Error;

const TEXTS: [(&str, &str); 4] = [
    ("hdd-7200", include_str!("../../presets/hdd-7200.toml")),
    ("hdd-10k", include_str!("../../presets/hdd-10k.toml")),
    ("sata-ssd", include_str!("../../presets/sata-ssd.toml")),
    ("nvme", include_str!("../../presets/nvme.toml")),
];

/// The names of the devices that come with the program, and their descriptions as they are kept, comments included.
pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.into_iter()
}

/// The preset of that name; none if there is none (the names are those of [`presets`]).
pub fn find_preset(name: &str) -> Option<DeviceSpec> {
    let (_, text) = TEXTS.into_iter().find(|(known, _)| *known == name)?;
    let parsed: Result<DeviceSpec, Error> = DeviceSpec::parse(text);
    // That every preset parses, and under its own name, is a test.
    parsed.ok()
}
