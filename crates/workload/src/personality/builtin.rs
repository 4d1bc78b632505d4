//! The built-in personalities: those Filebench workloads that published studies ran on fresh and
//! aged file systems.

use super::Personality;

/// Names and texts.
const BUILT_IN: [(&str, &str); 4] = [
    ("varmail", include_str!("data/varmail.toml")),
    ("fileserver", include_str!("data/fileserver.toml")),
    ("webserver", include_str!("data/webserver.toml")),
    ("oltp", include_str!("data/oltp.toml")),
];

/// Names and texts of the built-in personalities.
pub fn builtin_personalities() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.into_iter()
}

/// A built-in personality, by its name.
pub fn find_personality(name: &str) -> Option<Personality> {
    let (_, text) = BUILT_IN.into_iter().find(|(known, _)| *known == name)?;
    Some(toml::from_str(text).expect("a test parses every built-in personality"))
}
