//! Escapes foreign text and filters streams.
//!
//! For any bytes, no character that controls a terminal, misleads a reader or breaks XML passes.
//! JSON keeps its value. The result does not depend on how a stream is split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use senesce_core::{Printable, TerminalFilter, is_hazard};

fn filter(pieces: &[&[u8]]) -> String {
    let (mut filter, mut out) = (TerminalFilter::default(), Vec::new());
    pieces.iter().for_each(|piece| filter.filter(piece, &mut out));
    filter.finish(&mut out);
    String::from_utf8(out).expect("the filter writes UTF-8")
}

fuzz_target!(|input: &[u8]| {
    let Some((&at, bytes)) = input.split_first() else { return };
    let shown = Printable::new(bytes).to_string();
    assert!(!shown.chars().any(is_hazard), "{shown:?}");
    assert_eq!(Printable::new(&shown).to_string(), shown);
    let lines = Printable::lines(bytes).to_string();
    assert!(lines.chars().all(|character| !is_hazard(character) || matches!(character, '\n' | '\t')), "{lines:?}");

    let (first, second) = bytes.split_at(usize::from(at).min(bytes.len()));
    let filtered = filter(&[bytes]);
    assert_eq!(filter(&[first, second]), filtered);
    assert!(
        filtered.replace("\r\n", "\n").chars().all(|character| !is_hazard(character) || matches!(character, '\n' | '\t')),
        "{filtered:?}"
    );
    assert_eq!(filter(&[lines.as_bytes()]), lines);

    // A string of JSON is the same string after the filter.
    if let Ok(text) = str::from_utf8(bytes) {
        let document = serde_json::to_string(text).expect("a text is JSON");
        let value: String = serde_json::from_str(&filter(&[document.as_bytes()])).expect("it is still JSON");
        assert_eq!(value, text);
    }
});
