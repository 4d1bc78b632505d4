//! Breaks long silences of plain lines: a thread prints the current work if no other line came.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use senesce_core::Printable;

/// The longest silence.
const MOST_SILENCE: Duration = Duration::from_secs(10);

/// Prints plain lines, and the current work after each silence. Its drop stops the thread.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    started: Instant,
    state: Mutex<State>,
    is_over_changed: Condvar,
}

struct State {
    silence: Silence,
    is_over: bool,
}

/// The last line, and the current work with its start.
struct Silence {
    last: Instant,
    doing: Option<(String, Instant)>,
}

impl Silence {
    /// The line that is due, or else the time until one can be.
    fn due(&self, now: Instant) -> Result<String, Duration> {
        let over = now.saturating_duration_since(self.last);
        match &self.doing {
            Some((what, since)) if over >= MOST_SILENCE => {
                Ok(format!("{what}, {} s so far", now.saturating_duration_since(*since).as_secs()))
            }
            Some(_) => Err(MOST_SILENCE - over),
            None => Err(MOST_SILENCE),
        }
    }
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        let state = State { silence: Silence { last: now, doing: None }, is_over: false };
        let shared = Arc::new(Shared { started: now, state: Mutex::new(state), is_over_changed: Condvar::new() });
        let watched = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("progress".to_owned());
        // Without the thread only the silences are longer.
        let thread = thread.spawn(move || watched.watch()).ok();
        Self { shared, thread }
    }

    /// Sets the current work, which lines after a silence show.
    pub(super) fn set_doing(&self, what: String) {
        self.shared.lock().silence.doing = Some((what, Instant::now()));
    }

    /// Prints a line.
    pub(super) fn print(&self, text: &str) {
        self.shared.lock().silence.last = Instant::now();
        self.shared.print(text);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.is_over_changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has printed its message.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print(&self, text: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        eprintln!("[{seconds:>5.0} s] {}", Printable::new(text));
    }

    fn watch(&self) {
        let mut state = self.lock();
        while !state.is_over {
            let now = Instant::now();
            let wait = match state.silence.due(now) {
                Ok(line) => {
                    state.silence.last = now;
                    self.print(&line);
                    MOST_SILENCE
                }
                Err(wait) => wait,
            };
            state = self.is_over_changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_broken_with_the_current_work() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut silence = Silence { last: at(0), doing: None };
        assert_eq!(silence.due(at(60)), Err(MOST_SILENCE), "there is no work to name");
        silence.doing = Some(("ext4: mkfs on full".to_owned(), at(3)));
        assert_eq!(silence.due(at(4)), Err(Duration::from_secs(6)));
        assert_eq!(silence.due(at(25)), Ok("ext4: mkfs on full, 22 s so far".to_owned()));
        silence.last = at(25);
        assert_eq!(silence.due(at(34)), Err(Duration::from_secs(1)));
    }

    #[test]
    fn a_dropped_watch_stops_its_thread() {
        let watch = Watch::new(Instant::now());
        watch.set_doing("mkfs".to_owned());
        let shared = Arc::clone(&watch.shared);
        drop(watch);
        assert_eq!(Arc::strong_count(&shared), 1, "the thread still runs");
    }
}
