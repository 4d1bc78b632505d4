//! The built-in profiles: eight published ones. Each file names its study.

use super::format::AgingProfile;

/// Names and texts, in the order of their names.
const BUILT_IN: [(&str, &str); 8] = [
    ("agrawal", include_str!("data/agrawal.toml")),
    ("dabre", include_str!("data/dabre.toml")),
    ("douceur", include_str!("data/douceur.toml")),
    ("grundman", include_str!("data/grundman.toml")),
    ("meyer", include_str!("data/meyer.toml")),
    ("pramod", include_str!("data/pramod.toml")),
    ("wang_lanl", include_str!("data/wang_lanl.toml")),
    ("wang_os", include_str!("data/wang_os.toml")),
];

/// Names and texts of the built-in profiles.
pub fn builtin_profiles() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.into_iter()
}

/// A built-in profile, by its name.
pub fn find_builtin(name: &str) -> Option<AgingProfile> {
    let (_, text) = BUILT_IN.into_iter().find(|(known, _)| *known == name)?;
    Some(AgingProfile::parse(text).expect("a test parses every built-in profile"))
}
