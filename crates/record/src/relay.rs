//! Support for O_TMPFILE, which fuser lacks: a relay between the kernel and fuser's session changes
//! one kind of message.
//!
//! fuser 0.18 rejects FUSE_TMPFILE as an unknown request. The request equals FUSE_CREATE except for
//! the opcode and the name `/` ([`NAMELESS`]), which no program can request. The answers are equal.
//! The relay changes the opcode. It costs two thread switches per request. Replace it by
//! `Session::run` when a release of fuser has `Filesystem::tmpfile`.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixDatagram,
    },
    thread,
};

use fuser::{Config, Filesystem, Session};
use rustix::io::Errno;

/// The name in the request that creates a file without a name.
pub(crate) const NAMELESS: &str = "/";

/// The largest relayed write. With its headers it must fit into the buffer of a socket (usually 208
/// KiB), which the kernel allocates as one piece.
pub(crate) const LARGEST_WRITE: u32 = 128 << 10;
/// Space for the headers of a request and names; the kernel requires at least 8 KiB.
const BESIDE: usize = 16 << 10;

// linux/fuse.h: a request starts with its length (u32), opcode (u32) and number (u64); its header
// has 40 bytes. An answer starts with its length (u32), an error (i32) and the number of its
// request (u64).
const CREATE: u32 = 35;
const INIT: u32 = 26;
const DESTROY: u32 = 38;
const TMPFILE: u32 = 51;
const OPCODE: std::ops::Range<usize> = 4..8;
/// Number of the relay's own requests: the kernel counts in even numbers from 0.
const OWN: u64 = u64::MAX;

/// Serves a mounted session until the mount is gone. `filesystem` sees O_TMPFILE as a creation of
/// [`NAMELESS`].
///
/// Calls `at_end` when it stops serving, before it unmounts a mount that is left.
///
/// Errors: sockets or threads cannot be created; the errors of [`Session::run`].
pub(crate) fn run<F: Filesystem>(
    mounted: Session<F>,
    filesystem: F,
    config: &Config,
    at_end: impl FnOnce(),
) -> io::Result<()> {
    let kernel = mounted.as_fd().try_clone_to_owned()?;
    let (here, there) = UnixDatagram::pair()?;
    // The first session has already initialized the kernel's connection. This one waits for an INIT
    // too; its answer is unused.
    let greeting = [7u32, 31, LARGEST_WRITE, 0, 0].map(u32::to_ne_bytes).concat();
    here.send(&request(INIT, &[&greeting[..], &[0; 44]].concat()))?;
    let session = Session::from_fd(filesystem, OwnedFd::from(there), config.acl, config.clone())?;
    here.recv(&mut [0; 256])?;
    let (requests, answers) = (File::from(kernel.try_clone()?), File::from(kernel));
    let (incoming, both) = (here.try_clone()?, here.try_clone()?);
    let down = thread::Builder::new().name("relay-requests".to_owned());
    let down = down.spawn(move || relay_requests(requests, &incoming))?;
    let up = thread::Builder::new().name("relay-answers".to_owned());
    let up = up.spawn(move || relay_answers(&here, answers))?;
    let served = session.run();
    // Both threads see the end now. The reader of the kernel's requests ends with the mount.
    let _ = both.shutdown(Shutdown::Both);
    let _ = up.join();
    at_end();
    drop(mounted);
    let _ = down.join();
    served
}

fn request(opcode: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 40];
    out[..4].copy_from_slice(&(40 + body.len() as u32).to_ne_bytes());
    out[OPCODE].copy_from_slice(&opcode.to_ne_bytes());
    out[8..16].copy_from_slice(&OWN.to_ne_bytes());
    out.extend_from_slice(body);
    out
}

/// Relays requests from the kernel to the session. When the mount ends it sends DESTROY; it also
/// ends with the session.
fn relay_requests(mut kernel: File, session: &UnixDatagram) {
    let mut buffer = vec![0; LARGEST_WRITE as usize + BESIDE];
    loop {
        let length = match kernel.read(&mut buffer) {
            Ok(length) => length,
            // The request was withdrawn before it was read, or the read was interrupted.
            Err(error) if is(&error, &[Errno::NOENT, Errno::INTR, Errno::AGAIN]) => continue,
            Err(_) => {
                pass_on(session, &request(DESTROY, &[]));
                return;
            }
        };
        if buffer[OPCODE] == TMPFILE.to_ne_bytes() {
            buffer[OPCODE].copy_from_slice(&CREATE.to_ne_bytes());
        }
        if !pass_on(session, &buffer[..length]) {
            // Clients that wait for an answer get an error when the session ends.
            pass_on(session, &request(DESTROY, &[]));
            return;
        }
    }
}

/// Sends a message, and retries while memory is short. Returns whether it was sent.
fn pass_on(to: &UnixDatagram, message: &[u8]) -> bool {
    loop {
        match to.send(message) {
            Ok(_) => return true,
            Err(error) if is(&error, &[Errno::NOBUFS, Errno::NOMEM, Errno::INTR]) => thread::yield_now(),
            Err(_) => return false,
        }
    }
}

/// Relays answers from the session to the kernel, until the session has answered DESTROY.
fn relay_answers(session: &UnixDatagram, mut kernel: File) {
    let mut buffer = vec![0; LARGEST_WRITE as usize + BESIDE];
    while let Ok(length) = session.recv(&mut buffer) {
        // An empty or short message: the session has ended.
        if length < 16 || buffer[8..16] == OWN.to_ne_bytes() {
            return;
        }
        // If the client is gone, the kernel rejects the answer.
        let _ = kernel.write(&buffer[..length]);
    }
}

fn is(error: &io::Error, known: &[Errno]) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| known.contains(&errno))
}
