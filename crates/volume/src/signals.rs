//! SIGINT, SIGTERM and SIGHUP: the first requests an orderly exit, the second releases everything
//! and exits, the third exits at once.
//!
//! No signal interrupts a call that waits in the kernel, such as the last write of an unmount. The
//! process exits when the call returns.
//!
//! An adapter: it starts threads, and exits the process on the second signal.

use std::{
    sync::{
        Mutex, Once, OnceLock, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{Error, Result, resources::release_everything};

/// The first signal, or 0.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Threads that the first signal wakes.
static WAITING: Mutex<Vec<Thread>> = Mutex::new(Vec::new());

/// Prints that the exit takes long.
static NOTICE: OnceLock<fn()> = OnceLock::new();

/// If an orderly exit takes longer, the process prints a notice.
const SLOW_END: Duration = Duration::from_secs(1);

/// Installs handlers, so that the three signals no longer kill the process. The first signal sets
/// [`interrupted`], which long loops poll. The second releases everything that every
/// [`Custodian`](crate::Custodian) of the process holds, and exits with 128 + its number. The third
/// exits at once and leaves the rest to [`clean`](crate::clean).
///
/// A second call does nothing. Errors: the handlers cannot be installed.
pub fn install_signal_cleanup() -> Result<()> {
    static ONCE: Once = Once::new();
    static FAILURE: OnceLock<i32> = OnceLock::new();
    let failed = |errno: Option<i32>| {
        let _ = FAILURE.set(errno.unwrap_or(0));
    };
    ONCE.call_once(|| {
        let mut signals = match Signals::new([SIGINT, SIGTERM, SIGHUP]) {
            Ok(signals) => signals,
            Err(error) => return failed(error.raw_os_error()),
        };
        let watch = move || {
            for (count, signal) in signals.forever().enumerate() {
                let end = move || std::process::exit(128 + signal);
                match count {
                    0 => {
                        FIRST.store(signal, Ordering::SeqCst);
                        WAITING.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Thread::unpark);
                        let notice = || {
                            thread::sleep(SLOW_END);
                            NOTICE.get().inspect(|notice| notice());
                        };
                        // Without this thread there is no notice, and the process still exits.
                        let _ = thread::Builder::new().name("slow-end".to_owned()).spawn(notice);
                    }
                    1 => {
                        let release = move || {
                            release_everything();
                            end()
                        };
                        if thread::Builder::new().name("release".to_owned()).spawn(release).is_err() {
                            end();
                        }
                    }
                    _ => end(),
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("signals".to_owned()).spawn(watch) {
            failed(error.raw_os_error());
        }
    });
    match FAILURE.get() {
        None => Ok(()),
        Some(&errno) => Err(Error::Io {
            operation: "install handlers of",
            path: "SIGINT, SIGTERM, SIGHUP".into(),
            source: std::io::Error::from_raw_os_error(errno),
        }),
    }
}

/// Makes the first signal [unpark](Thread::unpark) the calling thread, so that it need not poll
/// [`interrupted`].
pub fn wake_on_signal() {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = thread::current();
    if waiting.iter().all(|known| known.id() != own.id()) {
        waiting.push(own);
    }
    // The signal may have come while it was not in the list.
    if is_interrupted() {
        thread::current().unpark();
    }
}

/// Calls `notice` if the process still runs a second after the first signal. Only the first call
/// has an effect.
pub fn notice_slow_end(notice: fn()) {
    let _ = NOTICE.set(notice);
}

/// The signal that requested an exit, if there was one.
pub fn interrupted() -> Option<i32> {
    Some(FIRST.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// Whether a signal requested an exit: a [`senesce_core::Stop`].
pub fn is_interrupted() -> bool {
    interrupted().is_some()
}

/// As [`interrupted`], as an error for loops that use `?`.
pub fn check_interrupted(operation: &'static str) -> Result<()> {
    interrupted().map_or(Ok(()), |signal| Err(Error::Interrupted { operation, signal }))
}
