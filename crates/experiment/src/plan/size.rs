//! Sizes in plan files: a number of bytes, or a text such as `"5GiB"`, or `"auto"` if the size can
//! be computed.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use senesce_core::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub Bytes);

impl Size {
    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(Bytes(n * Bytes::MIB))
    }
}

/// A size, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoSize {
    /// Computed from the history and the edition.
    Auto,
    /// Set in the plan.
    Given(Bytes),
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Written {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer).map_err(|_| D::Error::custom("expected a size such as \"5GiB\""))? {
            Written::Number(bytes) => Ok(Self(Bytes(bytes))),
            Written::Text(text) => text.parse().map(Self).map_err(D::Error::custom),
        }
    }
}

impl<'de> Deserialize<'de> for AutoSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self::Given(Bytes(bytes))),
            Written::Text(text) if text == "auto" => Ok(Self::Auto),
            Written::Text(text) => text.parse().map(Self::Given).map_err(D::Error::custom),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0.0)
    }
}

impl Serialize for AutoSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Given(bytes) => serializer.serialize_u64(bytes.0),
        }
    }
}

/// The number of a commit, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// The newest commit that leaves enough commits to pull, and whose clone is so small that the
    /// smallest full volume holds eight. 0 if every clone is larger.
    Auto,
    /// This commit, from 0.
    Commit(u64),
}

impl Default for StartAt {
    fn default() -> Self {
        Self::Commit(0)
    }
}

impl<'de> Deserialize<'de> for StartAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = || D::Error::custom("expected the number of a commit, or \"auto\"");
        match Written::deserialize(deserializer).map_err(|_| expected())? {
            Written::Number(number) => Ok(Self::Commit(number)),
            Written::Text(text) if text == "auto" => Ok(Self::Auto),
            Written::Text(_) => Err(expected()),
        }
    }
}

impl Serialize for StartAt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Commit(number) => serializer.serialize_u64(*number),
        }
    }
}

impl JsonSchema for StartAt {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StartAt".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "\"auto\", or the number of a commit, from 0 (the oldest).",
            "anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 0}]
        })
    }
}

const SIZE_PATTERN: &str = "^[0-9]+ *([kKmMgGtT]([iI]?[bB])?|[bB])?$";

impl JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of bytes, or a text such as \"5GiB\". K and KiB are powers of 1024, KB is a power of 1000.",
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE_PATTERN}]
        })
    }
}

impl JsonSchema for AutoSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AutoSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "\"auto\", a number of bytes, or a text such as \"5GiB\". K and KiB are powers of 1024, KB is a power of 1000.",
            "anyOf": [
                {"const": "auto"},
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": SIZE_PATTERN}
            ]
        })
    }
}
