//! SIGINT, SIGTERM and SIGHUP: the first asks for an orderly end, the second enforces one.
//!
//! An adapter: it starts a thread, and on the second signal ends the process.

use std::sync::{
    Once, OnceLock,
    atomic::{AtomicI32, Ordering},
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{Error, Result, custodian::release_everything};

/// The first signal that came; 0 for none.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// From now on the three signals no longer kill: the first sets [`interrupted`], which long loops look at; the second
/// releases everything every [`Custodian`](crate::Custodian) of the process holds, and exits with 128 + its number.
///
/// Calling it again does nothing. Errors: the handlers cannot be installed.
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
            for signal in signals.forever() {
                if FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                    release_everything();
                    std::process::exit(128 + signal);
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("signals".to_owned()).spawn(watch) {
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

/// The signal that asked for an end, if one did.
pub fn interrupted() -> Option<i32> {
    Some(FIRST.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// Whether a signal requested an end: a [`senesce_core::Stop`].
pub fn is_interrupted() -> bool {
    interrupted().is_some()
}

/// The same as an error, for loops that use `?`.
pub fn check_interrupted(operation: &'static str) -> Result<()> {
    interrupted().map_or(Ok(()), |signal| Err(Error::Interrupted { operation, signal }))
}
