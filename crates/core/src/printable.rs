//! Makes untrusted text safe to show: file names, messages of other programs.
//!
//! A terminal executes control characters. Characters that are invisible, or that reverse the order
//! of others, mislead a reader. This module shows both kinds as escapes: `\n`, `\x1b`, `\u{202e}`.
//! A byte that is not UTF-8 is shown as `\xff`.
//!
//! A backslash stays as it is, so that escaping is idempotent: text may pass several layers.
//! Escaping therefore cannot be reversed. Machine-readable output (JSON, logs) has the exact text.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    fmt,
    ops::RangeInclusive,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::RelPath;

/// Characters outside ASCII that are escaped, in ascending order.
///
/// These are the C1 controls, the line and paragraph separators, the noncharacters U+FFFE and
/// U+FFFF (XML forbids them), and the default-ignorable characters of Unicode: bidirectional
/// controls, zero-width characters, fillers, tags. Variation selectors U+FE00..U+FE0F are not
/// listed: they occur in the usual spelling of emoji.
const HAZARDS: &[RangeInclusive<char>] = &[
    '\u{80}'..='\u{9f}',
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{fffe}'..='\u{ffff}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Whether a character is unsafe to show.
///
/// Such a character controls a terminal, misleads a reader or is forbidden in XML. Newline and tab
/// are unsafe, too; [`Printable::lines`] and [`TerminalFilter`] do not escape them.
pub fn is_hazard(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    HAZARDS.iter().any(|range| range.contains(&character))
}

/// Text that may hold any bytes.
pub trait AnyText {
    /// The bytes of the text, in UTF-8 where they can be converted.
    fn text_bytes(&self) -> &[u8];
}

macro_rules! any_text {
    ($($kind:ty: |$text:ident| $bytes:expr;)*) => {
        $(impl AnyText for $kind {
            fn text_bytes(&self) -> &[u8] {
                let $text = self;
                $bytes
            }
        })*
    };
}

any_text! {
    str: |text| text.as_bytes();
    String: |text| text.as_bytes();
    [u8]: |bytes| bytes;
    Vec<u8>: |bytes| bytes;
    OsStr: |text| text.as_bytes();
    OsString: |text| text.as_os_str().as_bytes();
    Path: |path| path.as_os_str().as_bytes();
    PathBuf: |path| path.as_os_str().as_bytes();
    RelPath: |path| path.as_bytes();
}

impl<const N: usize> AnyText for [u8; N] {
    fn text_bytes(&self) -> &[u8] {
        self
    }
}

impl<T: AnyText + ?Sized> AnyText for &T {
    fn text_bytes(&self) -> &[u8] {
        (**self).text_bytes()
    }
}

impl<T: AnyText + ToOwned + ?Sized> AnyText for Cow<'_, T> {
    fn text_bytes(&self) -> &[u8] {
        (**self).text_bytes()
    }
}

/// Text whose hazards are escaped when it is displayed.
///
/// ```
/// use senesce_core::Printable;
/// assert_eq!(Printable::new("a\u{1b}[2J\n\u{202e}b").to_string(), r"a\x1b[2J\n\u{202e}b");
/// assert_eq!(Printable::new(b"caf\xe9").to_string(), r"caf\xe9");
/// assert_eq!(Printable::lines("two\nlines\r").to_string(), "two\nlines\\r");
/// ```
#[derive(Clone, Copy)]
pub struct Printable<'a> {
    bytes: &'a [u8],
    keeps_lines: bool,
}

impl<'a> Printable<'a> {
    /// Text for one line: newlines and tabs are escaped, too.
    pub fn new(text: &'a (impl AnyText + ?Sized)) -> Self {
        Self { bytes: text.text_bytes(), keeps_lines: false }
    }

    /// Text of several lines: newlines and tabs stay as they are.
    pub fn lines(text: &'a (impl AnyText + ?Sized)) -> Self {
        Self { bytes: text.text_bytes(), keeps_lines: true }
    }

    fn escapes(&self, character: char) -> bool {
        is_hazard(character) && !(self.keeps_lines && matches!(character, '\n' | '\t'))
    }

    fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for chunk in self.bytes.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some(at) = rest.find(|character| self.escapes(character)) {
                let (safe, from) = rest.split_at(at);
                out.write_str(safe)?;
                let character = from.chars().next().expect("a character was found here");
                write_escape(character, out)?;
                rest = &from[character.len_utf8()..];
            }
            out.write_str(rest)?;
            for byte in chunk.invalid() {
                write!(out, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

fn write_escape(character: char, out: &mut impl fmt::Write) -> fmt::Result {
    match character {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        ascii if ascii.is_ascii() => write!(out, "\\x{:02x}", u32::from(ascii)),
        other => write!(out, "\\u{{{:x}}}", u32::from(other)),
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_none() && f.precision().is_none() {
            return self.write(f);
        }
        let mut text = String::new();
        self.write(&mut text)?;
        f.pad(&text)
    }
}

impl fmt::Debug for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Escapes every hazard in a stream that may be a terminal, except newline, tab and the line end
/// `\r\n` of CSV.
///
/// This is the last defence: callers that show a single value use [`Printable`] first. The filter
/// cannot separate values from the text around them, so it uses the escapes of JSON (`\u001b`,
/// `\u202e`). Inside a JSON string they mean the same character, so that a JSON document keeps its
/// exact value.
#[derive(Debug, Default)]
pub struct TerminalFilter {
    /// Bytes whose meaning depends on the next bytes: the start of a character, a carriage return.
    pending: Vec<u8>,
}

impl TerminalFilter {
    /// A filter at the start of a stream.
    pub const fn new() -> Self {
        Self { pending: Vec::new() }
    }

    /// Appends `bytes` with hazards escaped to `out`. A character or a line end may be split over
    /// two calls.
    pub fn filter(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            self.pending.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.pending);
            &joined
        };
        let (bytes, held) = bytes.split_at(bytes.len() - held_length(bytes));
        push_filtered(bytes, out);
        self.pending = held.to_vec();
    }

    /// Appends the incomplete character at the end of the stream, if there is one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        push_filtered(&std::mem::take(&mut self.pending), out);
    }
}

/// The number of bytes at the end whose meaning the next bytes may change.
fn held_length(bytes: &[u8]) -> usize {
    if bytes.ends_with(b"\r") {
        return 1;
    }
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    if is_start_of_character(last) { last.len() } else { 0 }
}

fn push_filtered(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(is_filtered) {
            let (safe, from) = rest.split_at(at);
            out.extend_from_slice(safe.as_bytes());
            if let Some(after) = from.strip_prefix("\r\n") {
                out.extend_from_slice(b"\r\n");
                rest = after;
                continue;
            }
            let character = from.chars().next().expect("a character was found here");
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
            rest = &from[character.len_utf8()..];
        }
        out.extend_from_slice(rest.as_bytes());
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
}

/// Whether more bytes can complete these to a character.
fn is_start_of_character(bytes: &[u8]) -> bool {
    !bytes.is_empty() && str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn is_filtered(character: char) -> bool {
    is_hazard(character) && !matches!(character, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_hazard_is_escaped() {
        let cases: &[(&[u8], &str)] = &[
            (b"\x1b]0;title\x07", r"\x1b]0;title\x07"),
            (b"a\nb\rc\td\0e\x7f", r"a\nb\rc\td\x00e\x7f"),
            ("\u{85}\u{9b}2J".as_bytes(), r"\u{85}\u{9b}2J"),
            (b"\x9b2J\xff\xed\xa0\x80", r"\x9b2J\xff\xed\xa0\x80"),
            ("\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}".as_bytes(), {
                r"\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}"
            }),
            ("\u{2028}\u{2029}\u{200b}\u{200d}\u{feff}\u{ad}".as_bytes(), {
                r"\u{2028}\u{2029}\u{200b}\u{200d}\u{feff}\u{ad}"
            }),
            ("\u{e0001}\u{e0041}\u{fffe}\u{ffff}".as_bytes(), r"\u{e0001}\u{e0041}\u{fffe}\u{ffff}"),
        ];
        for (bytes, shown) in cases {
            assert_eq!(Printable::new(*bytes).to_string(), *shown);
        }
    }

    #[test]
    fn usual_text_is_unchanged() {
        for text in ["a file, \"quoted\" \\ and more", "äöü 日本語 עברית العربية", "❤\u{fe0f} 😀", "\u{fffd}"]
        {
            assert_eq!(Printable::new(text).to_string(), text);
        }
    }

    #[test]
    fn every_type_of_text_is_accepted() {
        let path = PathBuf::from("a\u{7}");
        let shown = [
            Printable::new(&path).to_string(),
            Printable::new(path.as_path()).to_string(),
            Printable::new(path.as_os_str()).to_string(),
            Printable::new(&path.to_string_lossy()).to_string(),
            Printable::new("a\u{7}").to_string(),
            Printable::new(b"a\x07").to_string(),
            Printable::new(&RelPath::try_from("a\u{7}").unwrap()).to_string(),
        ];
        assert!(shown.iter().all(|shown| shown == r"a\x07"), "{shown:?}");
        assert_eq!(format!("{:>8}|", Printable::new(&path)), r"   a\x07|");
    }

    #[test]
    fn hazards_are_in_ascending_order() {
        assert!(HAZARDS.windows(2).all(|pair| pair[0].end() < pair[1].start()));
    }

    fn filtered(pieces: &[&[u8]]) -> String {
        let (mut filter, mut out) = (TerminalFilter::default(), Vec::new());
        pieces.iter().for_each(|piece| filter.filter(piece, &mut out));
        filter.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn filtered_json_keeps_its_value() {
        let text = "\u{7f}\u{9b}\u{202e}\u{e0041}";
        assert_eq!(filtered(&[text.as_bytes()]), r"\u007f\u009b\u202e\udb40\udc41");
        assert_eq!(filtered(&[b"{\n\t\"a\"\r\x1b[0m"]), "{\n\t\"a\"\\u000d\\u001b[0m");
    }

    #[test]
    fn csv_keeps_line_ends_removes_lone_returns() {
        assert_eq!(filtered(&[b"a,b\r\nc\r", b"\nd\re"]), "a,b\r\nc\r\nd\\u000de");
        assert_eq!(filtered(&[b"a\r"]), r"a\u000d");
    }

    #[test]
    fn incomplete_character_at_the_end_is_escaped() {
        assert_eq!(filtered(&[b"a\xe2\x80"]), r"a\xe2\x80");
        assert_eq!(filtered(&[b"a\xe2\x80", b"b"]), r"a\xe2\x80b");
    }

    /// Bytes of which many are hazards.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            any::<char>().prop_map(|character| character.to_string().into_bytes()),
            (0..HAZARDS.len()).prop_map(|at| HAZARDS[at].start().to_string().into_bytes()),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn printable_text_has_no_hazard_and_stays(bytes in bytes()) {
            let shown = Printable::new(&bytes).to_string();
            prop_assert!(!shown.chars().any(is_hazard), "{shown:?}");
            prop_assert_eq!(Printable::new(&shown).to_string(), &*shown);
            let lines = Printable::lines(&bytes).to_string();
            prop_assert_eq!(lines.replace('\n', "\\n").replace('\t', "\\t"), shown);
        }

        #[test]
        fn filter_keeps_printable_text_at_any_split(bytes in bytes(), at in 0..200_usize) {
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            let whole = filtered(&[&bytes]);
            prop_assert_eq!(filtered(&[first, second]), &*whole);
            let shown = whole.replace("\r\n", "\n");
            prop_assert!(shown.chars().all(|c| !is_hazard(c) || c == '\n' || c == '\t'), "{whole:?}");
            let shown = Printable::lines(&bytes).to_string();
            prop_assert_eq!(filtered(&[shown.as_bytes()]), shown);
        }
    }
}
