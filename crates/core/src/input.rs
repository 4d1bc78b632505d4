//! Reads untrusted text with a limit, so that no file determines how much memory a reader
//! allocates.

use std::io::{BufRead, Error, ErrorKind, Read, Result};

/// The largest accepted plan, profile, personality or device description, bytes.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// Reads UTF-8 text to its end.
///
/// Errors: the input cannot be read, has more than `limit` bytes, or is not UTF-8.
/// Cost: memory for at most `limit` bytes; an endless input such as `/dev/zero` fails at the limit.
pub fn read_text(input: impl Read, limit: usize) -> Result<String> {
    String::from_utf8(read_bytes(input, limit)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "the text is not UTF-8"))
}

/// Reads an input to its end. Errors: the input cannot be read, or has more than `limit` bytes.
pub fn read_bytes(input: impl Read, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit { Err(too_long("the input", limit)) } else { Ok(bytes) }
}

/// Clears `line` and reads one line into it, with its newline if it has one. Returns its length, 0
/// at the end.
///
/// Errors: the input cannot be read; the line has more than `limit` bytes.
pub fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>, limit: usize) -> Result<usize> {
    line.clear();
    let length = input.take(limit as u64 + 1).read_until(b'\n', line)?;
    if length > limit { Err(too_long("the line", limit)) } else { Ok(length) }
}

fn too_long(what: &str, limit: usize) -> Error {
    Error::new(ErrorKind::InvalidData, format!("{what} has more than {limit} bytes, the limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_input_fails_at_the_limit() {
        let error = read_text(std::io::repeat(b'a'), 100).unwrap_err();
        assert_eq!(error.to_string(), "the input has more than 100 bytes, the limit");
        assert_eq!(read_text(&[b'a'; 100][..], 100).unwrap().len(), 100);
        assert!(read_text(&[b'a', 0xff][..], 100).is_err());
        let mut endless = std::io::BufReader::new(std::io::repeat(b'a'));
        let error = read_line(&mut endless, &mut Vec::new(), 100).unwrap_err();
        assert_eq!(error.to_string(), "the line has more than 100 bytes, the limit");
    }

    #[test]
    fn lines_are_returned_one_at_a_time() {
        let (mut input, mut line) = (&b"one\n\nlast"[..], Vec::new());
        let mut lines = Vec::new();
        while read_line(&mut input, &mut line, 5).unwrap() > 0 {
            lines.push(line.clone());
        }
        assert_eq!(lines, [&b"one\n"[..], b"\n", b"last"]);
    }
}
