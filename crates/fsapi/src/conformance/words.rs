//! The words of stories.

use crate::Timestamp;

/// Splits a line into words; text in quotes is one word.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        let last = words.len() - 1;
        quoted ^= c == '"';
        match c {
            ' ' if !quoted && words[last].is_empty() => {}
            ' ' if !quoted => words.push(String::new()),
            c => words[last].push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

pub(super) fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word:?} is no number"))
}

pub(super) fn octal(word: &str) -> Result<u32, String> {
    u32::from_str_radix(word, 8).map_err(|_| format!("{word:?} is no octal number"))
}

/// `-` for none, `12`, `-12`, `12.000000034`.
pub(super) fn time(word: &str) -> Result<Option<Timestamp>, String> {
    if word == "-" {
        return Ok(None);
    }
    let (seconds, nanoseconds) = word.split_once('.').unwrap_or((word, "0"));
    let seconds = seconds.parse().map_err(|_| format!("{word:?} is no time"))?;
    Ok(Some(Timestamp { seconds, nanoseconds: number(nanoseconds)? as u32 }))
}

/// `"text"`, `x*100` for a hundred x, `0*100` for a hundred zeros, parts joined by `+`; other words
/// are text.
pub(super) fn bytes(word: &str) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    for part in word.split('+') {
        if let Some(text) = part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
            all.extend_from_slice(text.as_bytes());
        } else if let Some((byte, count)) = part.split_once('*') {
            let byte = if byte == "0" { 0 } else { byte.bytes().next().ok_or(format!("{part:?} is of no byte"))? };
            all.resize(all.len() + number(count)? as usize, byte);
        } else {
            all.extend_from_slice(part.as_bytes());
        }
    }
    Ok(all)
}

/// Bytes in the notation of stories: zeros, and runs of at least 8, by their number.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut text: Vec<u8> = Vec::new();
    let end_text = |text: &mut Vec<u8>, parts: &mut Vec<String>| {
        if !text.is_empty() {
            parts.push(format!("\"{}\"", text.escape_ascii()));
            text.clear();
        }
    };
    for run in bytes.chunk_by(|a, b| a == b) {
        match run[0] {
            0 => {
                end_text(&mut text, &mut parts);
                parts.push(format!("0*{}", run.len()));
            }
            byte if run.len() >= 8 => {
                end_text(&mut text, &mut parts);
                parts.push(format!("{}*{}", byte.escape_ascii(), run.len()));
            }
            _ => text.extend_from_slice(run),
        }
    }
    end_text(&mut text, &mut parts);
    if parts.is_empty() { "\"\"".to_owned() } else { parts.join("+") }
}
