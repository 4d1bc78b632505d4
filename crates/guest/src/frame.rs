//! What launcher and init exchange over the serial line: one byte of kind, four bytes of length,
//! the contents.

use std::io::{self, Read, Write};

/// The longest contents, bytes. Init sends output in pieces of at most this size.
pub(crate) const MOST_BYTES: usize = 16 << 10;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Init has prepared the machine: the kernel's release. The command starts next.
    Ready(String),
    /// The command wrote this on stdout.
    Stdout(Vec<u8>),
    /// The command wrote this on stderr.
    Stderr(Vec<u8>),
    /// Init lives.
    Heartbeat,
    /// The command exited with this code: 128 plus the signal if a signal ended it.
    Exit(u8),
    /// The machine could not be prepared.
    Failed(String),
    /// To init: pass this signal to the command.
    Signal(u8),
}

impl Frame {
    fn parts(&self) -> (u8, &[u8]) {
        match self {
            Frame::Ready(text) => (b'R', text.as_bytes()),
            Frame::Stdout(bytes) => (b'O', bytes),
            Frame::Stderr(bytes) => (b'E', bytes),
            Frame::Heartbeat => (b'H', &[]),
            Frame::Exit(code) => (b'X', std::slice::from_ref(code)),
            Frame::Failed(text) => (b'F', text.as_bytes()),
            Frame::Signal(number) => (b'S', std::slice::from_ref(number)),
        }
    }

    /// Writes the frame with one call, so that frames of several threads cannot mix below a lock.
    pub(crate) fn write(&self, mut to: impl Write) -> io::Result<()> {
        let (kind, contents) = self.parts();
        let contents = &contents[..contents.len().min(MOST_BYTES)];
        let mut bytes = Vec::with_capacity(contents.len() + 5);
        bytes.push(kind);
        bytes.extend((contents.len() as u32).to_le_bytes());
        bytes.extend(contents);
        to.write_all(&bytes)
    }

    /// Reads one frame; `None` at the end of the line. Errors: an unknown kind, a length above
    /// [`MOST_BYTES`].
    pub(crate) fn read(mut from: impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; 5];
        if from.read(&mut head[..1])? == 0 {
            return Ok(None);
        }
        from.read_exact(&mut head[1..])?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the serial line carries {what}"));
        if length > MOST_BYTES {
            return Err(wrong("a frame that is too long"));
        }
        let mut contents = vec![0; length];
        from.read_exact(&mut contents)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(match (head[0], contents.as_slice()) {
            (b'R', _) => Frame::Ready(text(contents)),
            (b'O', _) => Frame::Stdout(contents),
            (b'E', _) => Frame::Stderr(contents),
            (b'H', []) => Frame::Heartbeat,
            (b'X', [code]) => Frame::Exit(*code),
            (b'F', _) => Frame::Failed(text(contents)),
            (b'S', [number]) => Frame::Signal(*number),
            _ => return Err(wrong("an unknown frame")),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back() {
        let frames = [
            Frame::Ready("6.1".into()),
            Frame::Stdout(vec![0, 10, 13, 255]),
            Frame::Stderr(vec![]),
            Frame::Heartbeat,
            Frame::Exit(143),
            Frame::Failed("no".into()),
            Frame::Signal(15),
        ];
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes).unwrap());
        let mut from = &bytes[..];
        for frame in frames {
            assert_eq!(Frame::read(&mut from).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(from).unwrap(), None);
    }

    #[test]
    fn damaged_lines_are_errors() {
        for bad in [&b"Q\0\0\0\0"[..], b"O\xff\xff\xff\xff", b"X\x02\0\0\0ab", b"O\x05\0\0\0ab", b"O\0"] {
            assert!(Frame::read(bad).is_err(), "{bad:?}");
        }
    }
}
