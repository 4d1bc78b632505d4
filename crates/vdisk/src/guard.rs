//! The guard process: it prevents that any process waits for a server that will not answer.
//!
//! It is a separate process, because a stuck server cannot check itself and the parent may be dead.
//! It aborts the FUSE connection (every waiting and later request fails with an error) and detaches
//! the mount in two cases:
//!
//! - The server is dead. The kernel aborts the connection itself when the last descriptor of the
//!   connection closes, but a process stuck in the kernel keeps it open.
//! - The server makes no progress, on no processor, for the stall time while requests wait for it:
//!   it is stopped, or deadlocked. It is then killed.

use std::{thread, time::Duration};

use crate::{
    Error, Result,
    config::{GuardConfig, PROTOCOL_VERSION, mount_source},
    host::{self, Connection, ProcessRef},
    protocol::Event,
    serve::say,
};

/// The interval at which the guard polls the server.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The name that the FUSE library gives the thread that serves requests. Other threads may run
/// while this one is stuck.
const SERVING_THREAD: &str = "fuser-0";

/// Watches until the server is dead.
pub(crate) fn watch(config: &GuardConfig) -> Result<()> {
    let notes = host::harden();
    let connection = Connection::open(config.connection)?;
    // A guard that cannot see the server is worse than none, because users rely on it.
    connection.waiting()?;
    // The thread may still be starting.
    let seen = (0..100).any(|attempt| {
        thread::sleep(Duration::from_millis(if attempt == 0 { 0 } else { 50 }));
        config.server.progress(SERVING_THREAD).is_some() || !config.server.is_alive()
    });
    if !seen {
        let problem = format!("the server's thread {SERVING_THREAD:?} cannot be seen");
        return Err(Error::NotStarted { role: "guard", problem });
    }
    let process = ProcessRef::of(std::process::id())?;
    say(&Event::Ready { version: PROTOCOL_VERSION, process, connection: connection.number(), notes });
    let mut stall = Stall::default();
    let limit = Duration::from_secs(config.stall_seconds.into());
    while config.server.is_alive() {
        let waits = connection.waiting().is_ok_and(|waiting| waiting > 0);
        if stall.look(waits, config.server.progress(SERVING_THREAD)) >= limit {
            connection.abort()?;
            config.server.kill()?;
            break;
        }
        thread::sleep(POLL_INTERVAL);
    }
    // After an orderly end both calls do nothing: the connection and the mount are gone.
    let _ = connection.abort();
    host::unmount(&mount_source(&config.name), true)?;
    Ok(())
}

/// The time for which requests have waited without progress of the server.
#[derive(Debug, Default)]
struct Stall {
    steps: Option<u64>,
    looks: u32,
}

impl Stall {
    /// Records one poll, after [`POLL_INTERVAL`]. In: whether requests wait, and the server's
    /// progress counter.
    fn look(&mut self, waits: bool, steps: Option<u64>) -> Duration {
        let idle = waits && steps.is_some() && steps == self.steps;
        self.steps = steps;
        self.looks = if idle { self.looks + 1 } else { 0 };
        POLL_INTERVAL * self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_without_progress_are_stalls() {
        let mut stall = Stall::default();
        assert_eq!(stall.look(true, Some(5)), Duration::ZERO, "the first poll has no earlier one");
        assert_eq!(stall.look(true, Some(5)), POLL_INTERVAL);
        assert_eq!(stall.look(true, Some(5)), POLL_INTERVAL * 2);
        assert_eq!(stall.look(true, Some(6)), Duration::ZERO, "it works");
        assert_eq!(stall.look(true, Some(6)), POLL_INTERVAL);
        assert_eq!(stall.look(false, Some(6)), Duration::ZERO, "no request waits");
        stall.look(true, None);
        assert_eq!(stall.look(true, None), Duration::ZERO, "what cannot be seen is not held against it");
    }
}
