//! Names of the part files.

use crate::CellKey;
use crate::schema::TableRow;

pub(crate) const SUFFIX: &str = ".parquet";

/// A cell as a file name: arm, role and pulls, in that order; unusual bytes of the arm are
/// percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartName(String);

impl PartName {
    pub(crate) fn of(key: &CellKey) -> Self {
        let mut name = String::new();
        for byte in key.arm.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte as char),
                _ => name.push_str(&format!("%{byte:02x}")),
            }
        }
        Self(format!("{name}.{}.{:08}", key.role.name(), key.pulls))
    }

    pub(crate) fn file_name(&self, generation: u64) -> String {
        format!("{}.g{generation}{SUFFIX}", self.0)
    }

    /// Parses the name and generation of a part file; none for any other file.
    pub(crate) fn parse(file_name: &str) -> Option<(Self, u64)> {
        let (name, generation) = file_name.strip_suffix(SUFFIX)?.rsplit_once(".g")?;
        Some((Self(name.to_owned()), generation.parse().ok()?))
    }
}

/// The cell of a row.
pub(crate) fn part_key(row: &impl TableRow) -> PartName {
    PartName::of(row.key().expect("rows of tables of cells have a key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn names_are_distinct_and_safe() {
        let key = |arm: &str, pulls| CellKey { arm: arm.into(), file_system: "x".into(), role: Role::Full, pulls };
        let odd = PartName::of(&key("../a b.full.00000001", 7));
        assert_eq!(odd.file_name(3), "%2e%2e%2fa%20b%2efull%2e00000001.full.00000007.g3.parquet");
        assert_eq!(PartName::parse(&odd.file_name(3)), Some((odd, 3)));
        assert_eq!(PartName::parse("x.full.00000001.g1.parquet.new"), None);
    }
}
