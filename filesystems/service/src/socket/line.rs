//! Lines of a bounded length.

use std::{
    io::{self, BufRead, ErrorKind, Read},
    os::unix::net::UnixStream,
    time::Duration,
};

use senesce_core::{Clock, Nanos};

use serde::de::DeserializeOwned;

/// Reads a line of JSON. `None`: the other side closed the connection before a line.
///
/// Errors: the line exceeds `most` bytes, has no end, or does not parse.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl BufRead, most: usize) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    from.take(most as u64 + 1).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => {
            let wrong = |error: serde_json::Error| io::Error::new(ErrorKind::InvalidData, error.to_string());
            serde_json::from_slice(&line).map(Some).map_err(wrong)
        }
        Some(_) if line.len() > most => {
            Err(io::Error::new(ErrorKind::InvalidData, format!("a line of more than {most} bytes")))
        }
        Some(_) => Err(io::Error::new(ErrorKind::UnexpectedEof, "a line without an end")),
    }
}

/// Reads a stream for a limited time. A socket's own timeout would restart with each byte.
pub(super) struct Timely<'a> {
    pub stream: &'a UnixStream,
    pub clock: &'a dyn Clock,
    pub since: Nanos,
    pub longest: Duration,
}

impl Read for Timely<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.longest.saturating_sub(Duration::from_nanos(self.clock.now().since(self.since).0));
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_line_is_refused() {
        use std::io::{BufReader, Write};
        let (one, mut other) = UnixStream::pair().unwrap();
        other.write_all(b"12\n").unwrap();
        let clock = senesce_core::ManualClock::default();
        clock.set(Nanos(7));
        let timely = Timely { stream: &one, clock: &clock, since: Nanos(2), longest: Duration::from_nanos(5) };
        assert_eq!(read::<u32>(&mut BufReader::new(timely), 10).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn lines_have_bounds_and_ends() {
        let read = |text: &str, most| read::<u32>(&mut text.as_bytes(), most).map_err(|error| error.to_string());
        assert_eq!(read("12\n34", 10), Ok(Some(12)));
        assert_eq!(read("", 10), Ok(None));
        assert_eq!(read("123456789\n", 10), Ok(Some(123_456_789)));
        assert_eq!(read("1234567890\n", 10), Ok(Some(1_234_567_890)));
        assert_eq!(read("00000000000\n", 10).unwrap_err(), "a line of more than 10 bytes");
        assert_eq!(read("12", 10).unwrap_err(), "a line without an end");
        read("twelve\n", 10).unwrap_err();
    }
}
