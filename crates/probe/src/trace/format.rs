//! The kernel's own description of an event's fields: the file `format` of each event.

use crate::Error;

/// The position of a field in an event's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The first byte.
    pub offset: usize,
    /// The size, bytes.
    pub size: usize,
}

impl Field {
    /// The field's bytes; none if the event is too short.
    pub fn bytes(self, event: &[u8]) -> Option<&[u8]> {
        event.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The field as an unsigned little-endian number; none if the event is too short, or for more
    /// than 8 bytes.
    pub fn unsigned(self, event: &[u8]) -> Option<u64> {
        let bytes = self.bytes(event)?;
        let mut number = [0; 8];
        number.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }
}

/// An event's number and fields, from its `format` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Its name, such as `block_rq_issue`.
    pub name: String,
    /// The number at the start of its records.
    pub id: u64,
    fields: Vec<(String, Field)>,
}

impl EventFormat {
    /// Parses a `format` file: `name:`, `ID:` and one line for each field. The rest of the file is
    /// only for printing.
    ///
    /// Errors: no name or number, or a field without position. The message names the line.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (mut name, mut id, mut fields) = (None, None, Vec::new());
        for (index, line) in text.lines().enumerate() {
            let bad = |problem: String| bad_line(index, problem);
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = Some(rest.trim().parse().map_err(|_| bad(format!("the ID {rest:?} is not a number")))?);
            } else if line.trim_start().starts_with("field:") {
                fields.push(parse_field(line).map_err(bad)?);
            }
        }
        let end = text.lines().count();
        let name = name.ok_or_else(|| bad_line(end, "there is no line \"name:\"".to_owned()))?;
        let id = id.ok_or_else(|| bad_line(end, "there is no line \"ID:\"".to_owned()))?;
        Ok(Self { name, id, fields })
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

fn bad_line(index: usize, problem: String) -> Error {
    Error::BadFormat { format: "description of a trace event", unit: "line", position: index as u64 + 1, problem }
}

/// Parses the field lines of a text such as `header_page`.
pub(super) fn parse_fields(text: &str) -> Result<Vec<(String, Field)>, Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("field:"));
    lines.map(|(index, line)| parse_field(line).map_err(|problem| bad_line(index, problem))).collect()
}

/// Parses a line such as `field:unsigned int nr_sector;<tab>offset:24;<tab>size:4;<tab>signed:0;`.
fn parse_field(line: &str) -> Result<(String, Field), String> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next().and_then(|part| part.strip_prefix("field:")).unwrap_or_default();
    // The name is the last word, without the brackets of an array.
    let word = declaration.split_whitespace().next_back().unwrap_or_default();
    let name = word.split('[').next().unwrap_or_default();
    if name.is_empty() {
        return Err(format!("the field {declaration:?} has no name"));
    }
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.trim().parse().ok(),
            Some(("size", number)) => size = number.trim().parse().ok(),
            _ => {}
        }
    }
    match (offset, size) {
        (Some(offset), Some(size)) => Ok((name.to_owned(), Field { offset, size })),
        _ => Err(format!("the field {name} has no offset and size")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ISSUE: &str = include_str!("../../../../golden/probe/block_rq_issue.format");

    #[test]
    fn the_kernels_description_is_parsed() {
        let format = EventFormat::parse(ISSUE).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("block_rq_issue", 2104));
        assert_eq!(format.field("sector"), Some(Field { offset: 16, size: 8 }));
        assert_eq!(format.field("rwbs"), Some(Field { offset: 34, size: 10 }));
        assert_eq!(format.field("common_pid"), Some(Field { offset: 4, size: 4 }));
        assert_eq!(format.field("nonsense"), None);
    }

    #[test]
    fn errors_name_their_line() {
        let text = |line: &str| format!("name: x\nID: 3\n{line}\n");
        for (line, part) in
            [("\tfield:int a;\toffset:x;\tsize:4;", "field a"), ("\tfield:;\toffset:0;\tsize:4;", "no name")]
        {
            let error = EventFormat::parse(&text(line)).unwrap_err().to_string();
            assert!(error.contains("line 3") && error.contains(part), "{error}");
        }
        assert!(EventFormat::parse("name: x\n").unwrap_err().to_string().contains("ID:"));
    }

    #[test]
    fn fields_beyond_the_event_are_none() {
        let field = Field { offset: 2, size: 2 };
        assert_eq!(field.unsigned(&[0, 0, 1, 2]), Some(0x201));
        assert_eq!(field.unsigned(&[0, 0, 1]), None);
        assert_eq!(Field { offset: usize::MAX, size: 2 }.unsigned(&[0; 8]), None);
        assert_eq!(Field { offset: 0, size: 9 }.unsigned(&[0; 16]), None);
    }

    proptest! {
        #[test]
        fn any_text_parses_without_panic(text in "(name:|ID:|field:|int a;|offset:|size:|[0-9]{1,3}|[;\t\n ])*") {
            let _ = EventFormat::parse(&text);
        }
    }
}
