//! Names of volumes, snapshots and files: bytes with a readable and a JSON form.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor},
};

/// A name or a path in a volume. In JSON it is a string, or a list of bytes if it is not UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub Vec<u8>);

/// The length of the longest path in a request.
const MOST_BYTES: usize = 4096;

impl Name {
    /// For JSON documents for people: bytes that are not UTF-8 are replaced.
    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl fmt::Display for Name {
    /// Escapes control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in String::from_utf8_lossy(&self.0).chars() {
            if letter.is_control() { write!(f, "{}", letter.escape_default()) } else { write!(f, "{letter}") }?;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A name or a path; a list of its bytes if it is not UTF-8.",
            "type": ["string", "array"],
            "items": { "type": "integer", "minimum": 0, "maximum": 255 },
        })
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => self.0.serialize(serializer), // a string cannot represent these bytes
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Bytes)
    }
}

struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name of {MOST_BYTES} bytes at most")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
        if text.len() > MOST_BYTES {
            return Err(E::invalid_length(text.len(), &self));
        }
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Name, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            if bytes.len() == MOST_BYTES {
                return Err(A::Error::invalid_length(MOST_BYTES + 1, &self));
            }
            bytes.push(byte);
        }
        Ok(Name(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn all_names_survive_json() {
        for bytes in [&b""[..], b"main", "w\u{f6}rter\n".as_bytes(), b"\xff\x00a"] {
            let name = Name::from(bytes);
            let text = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<Name>(&text).unwrap(), name, "{text}");
        }
        assert_eq!(Name::from("a\u{1b}[2Jb").to_string(), "a\\u{1b}[2Jb");
    }

    #[test]
    fn long_and_foreign_names_are_refused() {
        let long = format!("\"{}\"", "a".repeat(4097));
        let list = format!("[{}1]", "1,".repeat(4096));
        for text in [&long[..], &list, "[256]", "[-1]", "1", "null", "{}"] {
            assert!(serde_json::from_str::<Name>(text).is_err(), "{text:.40}");
        }
    }
}
