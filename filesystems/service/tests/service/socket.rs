//! The control socket.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Barrier, mpsc},
    thread,
};

use senesce_core::ManualClock;
use senesce_service::{
    Failure, FailureKind, NoTask, Request, Response, Serves, Task,
    socket::{Client, Connection, MOST_REQUEST_BYTES, Server},
};
use tempfile::TempDir;

const NAME: &str = "control.test";

/// A directory whose path is too long for the address of a socket.
fn long_dir(temp: &TempDir) -> PathBuf {
    let dir = temp.path().join("long".repeat(30)).join("path".repeat(30));
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Serves while `act` runs.
fn with_server<A>(answer: A, act: impl FnOnce(&Path))
where
    A: Fn(Request, &mut Connection) -> Result<Response, Failure> + Sync,
{
    let temp = tempfile::tempdir().unwrap();
    let dir = long_dir(&temp);
    let server = Server::bind(&dir, NAME, Arc::new(ManualClock::default())).unwrap();
    let (server, answer) = (&server, &answer);
    thread::scope(|scope| {
        scope.spawn(move || server.serve(scope, answer));
        struct Stop<'a>(&'a Server);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        let _stop = Stop(server);
        act(&dir);
    });
}

fn connect(dir: &Path) -> Client {
    Client::connect(dir, NAME).unwrap().unwrap()
}

fn ask(dir: &Path, request: &Request) -> Result<Response, Failure> {
    connect(dir).ask(request, &mut NoTask).unwrap()
}

fn served() -> Response {
    Response::Serves(Serves::default())
}

fn answer(request: Request, _: &mut Connection) -> Result<Response, Failure> {
    match request {
        Request::Serves => Ok(served()),
        Request::Figures => panic!("a bug of the server"),
        _ => Err(Failure { kind: FailureKind::Usage, chain: vec!["one".into(), "two".into()], hint: None }),
    }
}

/// The reply to a client that writes these bytes and closes its end.
fn write_raw(dir: &Path, bytes: &[u8]) -> String {
    let file = fs::File::open(dir).unwrap();
    let path = format!("/proc/self/fd/{}/{NAME}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let mut stream = UnixStream::connect(path).unwrap();
    // The server may have read enough.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply); // unread bytes reset the connection after the reply
    reply
}

#[test]
fn panic_affects_only_its_request() {
    with_server(answer, |dir| {
        let mode = fs::symlink_metadata(dir.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(Server::bind(dir, NAME, Arc::new(ManualClock::default())).is_err(), "the name is taken");
        for _ in 0..3 {
            assert_eq!(ask(dir, &Request::Serves), Ok(served()));
            let failure = ask(dir, &Request::Stat).unwrap_err();
            assert_eq!(
                (failure.kind, &failure.chain[..]),
                (FailureKind::Usage, &["one".to_owned(), "two".to_owned()][..])
            );
            assert_eq!(ask(dir, &Request::Figures).unwrap_err().kind, FailureKind::Internal);
        }
    });
}

#[test]
fn malformed_requests_do_no_harm() {
    with_server(answer, |dir| {
        let long = [&vec![b' '; MOST_REQUEST_BYTES + 100][..], b"\n"].concat();
        let deep = format!("{}\n", "[".repeat(MOST_REQUEST_BYTES - 2));
        for bytes in [&b"\xff\xfe\n"[..], b"{\n", b"{\"request\":\"serves\"", &long, deep.as_bytes(), b"\n", b"\0\0\0"]
        {
            let reply = write_raw(dir, bytes);
            assert!(reply.is_empty() || reply.contains("the request cannot be read"), "{reply}");
        }
        assert_eq!(write_raw(dir, b""), "");
        assert!(write_raw(dir, b"{\"request\":\"serves\"}\n").contains("serves"));
        // Clients that send nothing do not block others.
        let file = fs::File::open(dir).unwrap();
        let path = format!("/proc/self/fd/{}/{NAME}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let silent: Vec<UnixStream> = (0..10).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert_eq!(ask(dir, &Request::Serves), Ok(served()));
        drop(silent);
    });
}

#[test]
fn stopping_cancels_work_without_waiting_for_clients() {
    let (begun, has_begun) = mpsc::channel();
    let begun = std::sync::Mutex::new(begun);
    let wait = |_: Request, connection: &mut Connection| {
        begun.lock().unwrap().send(()).unwrap();
        while !connection.is_cancelled() {
            thread::yield_now();
        }
        Ok(served())
    };
    let mut client = None;
    with_server(wait, |dir| {
        let dir = dir.to_owned();
        client = Some(thread::spawn(move || ask(&dir, &Request::Stat)));
        has_begun.recv().unwrap();
    });
    assert_eq!(client.unwrap().join().unwrap(), Ok(served()));
}

/// Cancels when the work reports progress.
struct Until(bool);

impl Task for Until {
    fn progress(&mut self, what: &str, unit: &str, _: u64, of: u64) {
        assert_eq!((what, unit, of), ("work", "steps", 7));
        self.0 = true;
    }

    fn is_cancelled(&mut self) -> bool {
        self.0
    }
}

#[test]
fn cancelling_client_receives_the_partial_result() {
    let work = |_: Request, connection: &mut Connection| {
        assert!(!connection.is_cancelled());
        connection.progress("work", "steps", 1, 7);
        while !connection.is_cancelled() {
            thread::yield_now();
        }
        Ok(served())
    };
    with_server(work, |dir| {
        let answer = connect(dir).ask(&Request::Stat, &mut Until(false)).unwrap();
        assert_eq!(answer, Ok(served()));
        // A client that is gone cancels, too; otherwise the server would never stop.
        let file = fs::File::open(dir).unwrap();
        let path = format!("/proc/self/fd/{}/{NAME}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let mut gone = UnixStream::connect(path).unwrap();
        gone.write_all(b"{\"request\":\"stat\"}\n").unwrap();
        BufReader::new(&gone).read_line(&mut String::new()).unwrap();
    });
}

#[test]
fn many_clients_are_answered_at_once() {
    with_server(answer, |dir| {
        let barrier = Barrier::new(100);
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    barrier.wait();
                    assert_eq!(ask(dir, &Request::Serves), Ok(served()));
                });
            }
        });
    });
}

#[test]
fn dead_server_is_ignored() {
    let temp = tempfile::tempdir().unwrap();
    assert!(Client::connect(&temp.path().join("gone"), NAME).unwrap().is_none());
    assert!(Client::connect(temp.path(), NAME).unwrap().is_none());
    drop(Server::bind(temp.path(), NAME, Arc::new(ManualClock::default())).unwrap());
    assert!(temp.path().join(NAME).exists(), "as after a kill");
    assert!(Client::connect(temp.path(), NAME).unwrap().is_none());
}
