//! Fakes behind the same traits, and oracles. A dev-dependency only.
