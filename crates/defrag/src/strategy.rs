//! The ways to make a tree faster to read.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::Serialize;

/// The improvement of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Files that are read one after the other become adjacent.
    #[default]
    Order,
    /// Shattered ranges of large files become contiguous.
    Pieces,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Order, Self::Pieces];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Pieces => "pieces",
        }
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == text);
        found.ok_or_else(|| format!("{text:?} is no strategy: {}", names()))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
