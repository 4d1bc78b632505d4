//! The client side.

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use senesce_core::Clock;
use serde::Serialize;

use super::{
    MOST_REPLY_BYTES, Reply,
    line::{self, Timely},
    server::at,
};
use crate::{Failure, Response, Task};

/// How often to check for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A connection to a server.
#[derive(Debug)]
pub struct Client(UnixStream);

/// The outcome of a request.
pub type Answer = Result<Response, Failure>;

impl Client {
    /// Connects to the socket `name` in a directory. `None`: there is no socket, or its server is
    /// dead.
    pub fn connect(dir: &Path, name: &str) -> io::Result<Option<Self>> {
        let opened = match File::open(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match UnixStream::connect(at(&opened, name)) {
            Ok(stream) => Ok(Some(Self(stream))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a request that needs no work, and waits at most this long for the answer.
    ///
    /// Errors: the server is gone or stopped, or its answer is malformed.
    pub fn ask_within(self, longest: Duration, clock: &dyn Clock, request: &impl Serialize) -> io::Result<Answer> {
        self.send(request)?;
        let timely = Timely { stream: &self.0, clock, since: clock.now(), longest };
        match line::read(&mut BufReader::new(timely), MOST_REPLY_BYTES)? {
            Some(Reply::Done(response)) => Ok(Ok(*response)),
            Some(Reply::Failed(failure)) => Ok(Err(failure)),
            _ => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server ended without an answer")),
        }
    }

    fn send(&self, request: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        (&self.0).write_all(&line)
    }

    /// Sends a request and waits for the answer. If the task is cancelled, it asks the server to
    /// end early. The answer then covers the work until that point.
    ///
    /// Errors: the server is gone, or its answer is malformed.
    pub fn ask(self, request: &impl Serialize, task: &mut dyn Task) -> io::Result<Answer> {
        self.send(request)?;
        self.0.set_read_timeout(Some(POLL_INTERVAL))?;
        let mut replies = BufReader::new(Patient { stream: &self.0, task, is_cancelled: false });
        loop {
            match line::read(&mut replies, MOST_REPLY_BYTES)? {
                None => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server ended without an answer")),
                Some(Reply::Progress { what, unit, done, of }) => {
                    replies.get_mut().task.progress(&what, &unit, done, of);
                }
                Some(Reply::Done(response)) => return Ok(Ok(*response)),
                Some(Reply::Failed(failure)) => return Ok(Err(failure)),
            }
        }
    }
}

/// Waits for bytes without a limit, and regularly checks for cancellation.
struct Patient<'a> {
    stream: &'a UnixStream,
    task: &'a mut dyn Task,
    is_cancelled: bool,
}

impl Read for Patient<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(out) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                done => return done,
            }
            if !self.is_cancelled && self.task.is_cancelled() {
                self.is_cancelled = true;
                self.stream.shutdown(std::net::Shutdown::Write)?;
            }
        }
    }
}
