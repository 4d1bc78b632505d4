//! The server side.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufReader, Write},
    os::{
        fd::AsRawFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::Scope,
    time::Duration,
};

use nix::sys::socket::{MsgFlags, Shutdown, getsockopt, recv, shutdown, sockopt::PeerCredentials};
use senesce_core::{Clock, Nanos};
use serde::de::DeserializeOwned;

use super::{
    MOST_CONNECTIONS, MOST_REQUEST_BYTES, Reply,
    line::{self, Timely},
};
use crate::{Failure, FailureKind, Response, Task};

/// The least time between two lines of progress.
const PROGRESS: Nanos = Nanos(200_000_000);
/// The time limit for a client to write its request, and to read each line of the reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// A socket that serves requests until it is stopped.
pub struct Server {
    listener: UnixListener,
    clock: Arc<dyn Clock>,
    is_stopped: AtomicBool,
    open: Mutex<Vec<Option<UnixStream>>>,
    closed: Condvar,
}

/// A connection whose request is being answered. It sends the reports of the work.
pub struct Connection {
    stream: UnixStream,
    clock: Arc<dyn Clock>,
    reported: Option<Nanos>,
    is_cancelled: bool,
}

impl Server {
    /// Binds a socket of mode 0600. No other user may be able to write `dir`.
    ///
    /// Errors: the name exists already.
    pub fn bind(dir: &Path, name: &str, clock: Arc<dyn Clock>) -> io::Result<Self> {
        // The address of a socket has at most 107 bytes; the path of the directory may be longer.
        let opened = File::open(dir)?;
        let path = at(&opened, name);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Self { listener, clock, is_stopped: AtomicBool::new(false), open: Mutex::default(), closed: Condvar::new() })
    }

    /// Serves each connection in its own thread until [`stop`](Self::stop). `answer` answers
    /// requests.
    pub fn serve<'scope, R, A>(&'scope self, scope: &'scope Scope<'scope, '_>, answer: &'scope A)
    where
        R: DeserializeOwned + 'static,
        A: Fn(R, &mut Connection) -> Result<Response, Failure> + Sync + 'scope,
    {
        while !self.is_stopped.load(SeqCst) {
            let slot = self.wait_for_slot();
            match self.listener.accept() {
                Ok((stream, _)) if is_permitted(&stream) => {
                    // Without a second handle, stopping would wait for this client.
                    let Ok(other) = stream.try_clone() else { continue };
                    self.slots()[slot] = Some(other);
                    if self.is_stopped.load(SeqCst) {
                        return;
                    }
                    let clock = self.clock.clone();
                    scope.spawn(move || {
                        talk(stream, clock, answer);
                        self.slots()[slot] = None;
                        self.closed.notify_one();
                    });
                }
                // Its user has no permission; the connection ends.
                Ok(_) => {}
                // The client is gone, or too many files are open.
                Err(_) => std::thread::sleep(Duration::from_millis(if self.is_stopped.load(SeqCst) { 0 } else { 50 })),
            }
        }
    }

    /// Ends [`serve`](Self::serve), and cancels running work.
    pub fn stop(&self) {
        self.is_stopped.store(true, SeqCst);
        // It may already be shut down.
        let _ = shutdown(self.listener.as_raw_fd(), Shutdown::Both);
        for stream in self.slots().iter().flatten() {
            // The client may be gone.
            let _ = stream.shutdown(std::net::Shutdown::Read);
        }
        self.closed.notify_all();
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Option<UnixStream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_slot(&self) -> usize {
        let mut slots = self.slots();
        loop {
            if let Some(free) = slots.iter().position(Option::is_none) {
                return free;
            }
            if slots.len() < MOST_CONNECTIONS {
                slots.push(None);
                return slots.len() - 1;
            }
            if self.is_stopped.load(SeqCst) {
                return 0;
            }
            slots = self.closed.wait(slots).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A short path to a name in an open directory, for directories with any path.
pub(super) fn at(dir: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}

/// Permits root and the user of this process. The kernel reports the user of the connection.
fn is_permitted(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| may_ask(peer.uid(), own))
}

fn may_ask(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}

fn talk<R: DeserializeOwned>(
    stream: UnixStream,
    clock: Arc<dyn Clock>,
    answer: &impl Fn(R, &mut Connection) -> Result<Response, Failure>,
) {
    let timely = Timely { stream: &stream, clock: clock.as_ref(), since: clock.now(), longest: PATIENCE };
    let request = line::read::<R>(&mut BufReader::new(timely), MOST_REQUEST_BYTES);
    let request = request.and_then(|request| stream.set_read_timeout(None).map(|()| request));
    let mut connection = Connection { stream, clock, reported: None, is_cancelled: false };
    let reply = match request {
        Ok(None) => return,
        // A panic prints its own message; other requests and the mount continue.
        Ok(Some(request)) => match catch_unwind(AssertUnwindSafe(|| answer(request, &mut connection))) {
            Ok(Ok(response)) => Reply::Done(Box::new(response)),
            Ok(Err(failure)) => Reply::Failed(failure),
            Err(_) => Reply::Failed(Failure {
                kind: FailureKind::Internal,
                chain: vec!["the server failed while it answered".to_owned()],
                hint: Some("its stderr says where; please report it".to_owned()),
            }),
        },
        Err(error) => Reply::Failed(Failure {
            kind: FailureKind::Usage,
            chain: vec!["the request cannot be read".to_owned(), error.to_string()],
            hint: Some("the server may be of another version of senesce".to_owned()),
        }),
    };
    connection.send(&reply);
}

impl Connection {
    /// Sends a line. If the client is gone, the work is cancelled.
    pub fn send(&mut self, reply: &Reply) {
        let sent = serde_json::to_vec(reply).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.stream.set_write_timeout(Some(PATIENCE))?;
            self.stream.write_all(&line)
        });
        self.is_cancelled |= sent.is_err();
    }
}

impl Task for Connection {
    fn progress(&mut self, what: &str, unit: &str, done: u64, of: u64) {
        let now = self.clock.now();
        if self.reported.is_none_or(|reported| now.since(reported) >= PROGRESS) {
            self.reported = Some(now);
            self.send(&Reply::Progress { what: what.to_owned(), unit: unit.to_owned(), done, of });
        }
    }

    fn is_cancelled(&mut self) -> bool {
        // Any result except "no data yet" cancels: a byte, the end, or an error.
        let read = recv(self.stream.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT);
        self.is_cancelled |= !matches!(read, Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR));
        self.is_cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_owner_may_ask() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert!(is_permitted(&one), "this process may ask itself");
        for (peer, own, may) in
            [(0, 0, true), (1000, 1000, true), (0, 1000, true), (1000, 0, false), (1001, 1000, false)]
        {
            assert_eq!(may_ask(peer, own), may, "{peer} asks {own}");
        }
    }
}
