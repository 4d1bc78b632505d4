//! Teaches fuser about O_TMPFILE: a relay between the kernel and fuser's session, which passes every message on as it is
//! but one.
//!
//! fuser 0.18 answers FUSE_TMPFILE with "no such request". The request is that of FUSE_CREATE with another number and the
//! name `/`, which no program can ask for ([`NAMELESS`]), and so is its answer: the relay changes the number. It costs two
//! changes of thread a request. To be deleted, for `Session::run` as it is, when a fuser that has `Filesystem::tmpfile`
//! is released.

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

/// The name that a file without a name is created with.
pub(crate) const NAMELESS: &str = "/";

/// The largest write that is relayed: with its headers it must fit into a socket's buffer (208 KiB as a rule), and the
/// kernel wants the memory in one piece.
pub(crate) const LARGEST_WRITE: u32 = 128 << 10;
/// The headers of a request and names; the kernel wants 8 KiB at least.
const BESIDE: usize = 16 << 10;

// linux/fuse.h. A request begins with its length (u32), its opcode (u32) and its number (u64), and has 40 bytes of header;
// an answer begins with its length (u32), an error (i32) and the number of its request (u64).
const CREATE: u32 = 35;
const INIT: u32 = 26;
const DESTROY: u32 = 38;
const TMPFILE: u32 = 51;
const OPCODE: std::ops::Range<usize> = 4..8;
/// Of the requests that the relay makes itself: the kernel counts from 0 in even numbers.
const OWN: u64 = u64::MAX;

/// Serves a mounted session until the mount is gone. `filesystem` sees O_TMPFILE as a creation of [`NAMELESS`].
///
/// Calls `at_end` when it serves no longer, before it unmounts what is still mounted.
///
/// Errors: no sockets or threads to be had; what [`Session::run`] says.
pub(crate) fn run<F: Filesystem>(
    mounted: Session<F>,
    filesystem: F,
    config: &Config,
    at_end: impl FnOnce(),
) -> io::Result<()> {
    let kernel = mounted.as_fd().try_clone_to_owned()?;
    let (here, there) = UnixDatagram::pair()?;
    // The kernel has been greeted; this session waits for a greeting as well. Nothing comes of what is said in it.
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
    // Both have seen the end, or see it now; who reads from the kernel ends with the mount.
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

/// From the kernel to the session. Ends with the mount, whose end the session is told, or with the session.
fn relay_requests(mut kernel: File, session: &UnixDatagram) {
    let mut buffer = vec![0; LARGEST_WRITE as usize + BESIDE];
    loop {
        let length = match kernel.read(&mut buffer) {
            Ok(length) => length,
            // Taken back before it was read, or disturbed.
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
            // Whoever waits for an answer gets an error when the session ends.
            pass_on(session, &request(DESTROY, &[]));
            return;
        }
    }
}

/// Sends a message, as often as there is no memory for it; whether it was sent.
fn pass_on(to: &UnixDatagram, message: &[u8]) -> bool {
    loop {
        match to.send(message) {
            Ok(_) => return true,
            Err(error) if is(&error, &[Errno::NOBUFS, Errno::NOMEM, Errno::INTR]) => thread::yield_now(),
            Err(_) => return false,
        }
    }
}

/// From the session to the kernel, until the session has answered that it ends.
fn relay_answers(session: &UnixDatagram, mut kernel: File) {
    let mut buffer = vec![0; LARGEST_WRITE as usize + BESIDE];
    while let Ok(length) = session.recv(&mut buffer) {
        // Nothing: the session is over.
        if length < 16 || buffer[8..16] == OWN.to_ne_bytes() {
            return;
        }
        // Who asked may be gone; the kernel then wants no answer.
        let _ = kernel.write(&buffer[..length]);
    }
}

fn is(error: &io::Error, known: &[Errno]) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| known.contains(&errno))
}
