//! The guard process: sees to it that nobody waits for a server that will not answer.
//!
//! A second process, since the first cannot judge itself, and since the parent may be gone. It ends the FUSE connection
//! (every waiting and coming request fails with an error) and detaches the mount when the server
//!
//! - is dead. The kernel does this itself when the last descriptor of the connection closes, which a process stuck in
//!   the kernel keeps open;
//! - does nothing, on no processor, for the stall time while requests wait for it: stopped, or deadlocked. It is
//!   killed then.

use std::{thread, time::Duration};

use crate::{
    Error, Result,
    config::{GuardConfig, PROTOCOL_VERSION, mount_source},
    host::{self, Connection, ProcessRef},
    protocol::Event,
    serve::say,
};

/// Between two looks at the server.
const LOOK: Duration = Duration::from_millis(250);

/// What the thread that serves requests is called by the FUSE library. Others may go on while this one is stuck.
const SERVING_THREAD: &str = "fuser-0";

/// Watches until the server is gone.
pub(crate) fn watch(config: &GuardConfig) -> Result<()> {
    let notes = host::harden();
    let connection = Connection::open(config.connection)?;
    // A guard that sees nothing would be worse than none: it would be relied on.
    connection.waiting()?;
    // The thread may be about to start.
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
        thread::sleep(LOOK);
    }
    // After an orderly end both find nothing: the connection is gone and so is the mount.
    let _ = connection.abort();
    host::unmount(&mount_source(&config.name), true)?;
    Ok(())
}

/// For how long requests have been waiting while the server did nothing.
#[derive(Debug, Default)]
struct Stall {
    steps: Option<u64>,
    looks: u32,
}

impl Stall {
    /// One look, after [`LOOK`]. In: whether requests wait, and the server's number of progress.
    fn look(&mut self, waits: bool, steps: Option<u64>) -> Duration {
        let idle = waits && steps.is_some() && steps == self.steps;
        self.steps = steps;
        self.looks = if idle { self.looks + 1 } else { 0 };
        LOOK * self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_without_any_progress_is_a_stall() {
        let mut stall = Stall::default();
        assert_eq!(stall.look(true, Some(5)), Duration::ZERO, "the first look knows no earlier one");
        assert_eq!(stall.look(true, Some(5)), LOOK);
        assert_eq!(stall.look(true, Some(5)), LOOK * 2);
        assert_eq!(stall.look(true, Some(6)), Duration::ZERO, "it works");
        assert_eq!(stall.look(true, Some(6)), LOOK);
        assert_eq!(stall.look(false, Some(6)), Duration::ZERO, "nobody waits");
        stall.look(true, None);
        assert_eq!(stall.look(true, None), Duration::ZERO, "what cannot be seen is not held against it");
    }
}
