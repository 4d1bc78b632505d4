//! Turns of work on the whole engine: one request at a time, and none during gardening by load.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use senesce_garden::{Garden, Positions};

use crate::{Error, Result, Task};

/// How often a waiting pass checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The current pass or turn. The engine keeps one position for each kind of such work.
#[derive(Debug, Default)]
pub struct Passes {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_pass: bool,
    is_gardening: bool,
}

/// The pass of a request, until it is dropped.
pub(crate) struct Pass<'a> {
    passes: &'a Passes,
    /// A garden, and the positions from which gardening by load continues.
    positions: Option<(&'a Garden, Positions)>,
}

/// A turn of gardening by load, until it is dropped.
pub struct Turn<'a>(&'a Passes);

impl Passes {
    /// Begins the pass of a request. Waits until a turn of gardening by load ends. The next turn
    /// starts after the pass.
    ///
    /// Errors: another pass is under way; the task is cancelled.
    pub(crate) fn begin(&self, task: &mut dyn Task) -> Result<Pass<'_>> {
        let mut state = self.state();
        if state.is_pass {
            return Err(Error::refused(
                "another scrub, clean, defrag, dedup or tier is under way here",
                Some("try again when it has ended"),
            ));
        }
        state.is_pass = true;
        let pass = Pass { passes: self, positions: None };
        while state.is_gardening {
            (state, _) = self.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            if state.is_gardening && task.is_cancelled() {
                drop(state); // dropping the pass locks it
                return Err(Error::refused("it was interrupted", None));
            }
        }
        Ok(pass)
    }

    /// Begins a turn of gardening by load. `None`: a pass is under way, or waits.
    pub fn begin_turn(&self) -> Option<Turn<'_>> {
        let mut state = self.state();
        if state.is_pass || state.is_gardening {
            return None;
        }
        state.is_gardening = true;
        Some(Turn(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Pass<'a> {
    /// Makes this a pass of a garden. It starts all positions at the beginning, and its end
    /// restores those of gardening by load.
    pub fn through(mut self, garden: &'a Garden) -> Self {
        self.positions = Some((garden, garden.exchange_positions(Positions::default())));
        self
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some((garden, positions)) = self.positions.take() {
            garden.exchange_positions(positions);
        }
        self.passes.state().is_pass = false;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().is_gardening = false;
        self.0.changed.notify_all();
    }
}
