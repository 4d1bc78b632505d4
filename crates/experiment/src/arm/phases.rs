//! Measures the seconds of each phase of an arm, from one checkpoint to the next.

use senesce_core::{Clock, Nanos};
use senesce_store::Role;

use crate::observer::{Event, Observer, Phase};

/// Forwards events to an observer, and times the phases that they announce.
pub(crate) struct PhaseTimer<'a> {
    observer: &'a mut dyn Observer,
    clock: &'a dyn Clock,
    current: (String, Option<Role>),
    began: Nanos,
    done: Vec<Phase>,
}

/// The phase outside of checkpoints.
const AGING: &str = "aging";

impl<'a> PhaseTimer<'a> {
    /// Starts with the phase `aging`.
    pub fn new(observer: &'a mut dyn Observer, clock: &'a dyn Clock) -> Self {
        Self { observer, clock, current: (AGING.to_owned(), None), began: clock.now(), done: Vec::new() }
    }

    /// Forwards an event. [`Event::Doing`] stops the current phase and starts the next.
    pub fn on_event(&mut self, event: &Event) {
        if let Event::Doing { what, role, .. } = event {
            self.change_to(what, *role);
        }
        self.observer.on_event(event);
    }

    /// Stops the current phase and starts the phase `aging`.
    pub fn start_aging(&mut self) {
        self.change_to(AGING, None);
    }

    /// Stops the current phase and starts the phase `aging`. Returns all phases since the last
    /// call, in the order of their first start. A phase that started several times occurs once,
    /// with the sum of its seconds.
    pub fn take(&mut self) -> Vec<Phase> {
        self.start_aging();
        std::mem::take(&mut self.done)
    }

    fn change_to(&mut self, what: &str, role: Option<Role>) {
        let now = self.clock.now();
        let seconds = now.since(self.began).as_secs_f64();
        let (what, role) = std::mem::replace(&mut self.current, (what.to_owned(), role));
        match self.done.iter_mut().find(|phase| phase.what == what && phase.role == role) {
            Some(phase) => phase.seconds += seconds,
            None => self.done.push(Phase { what, role, seconds }),
        }
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::ManualClock;

    use super::*;

    fn doing(what: &str, role: Role) -> Event {
        Event::Doing { arm: "ext4".into(), what: what.into(), role: Some(role) }
    }

    #[test]
    fn steps_after_mkfs_are_aging() {
        let (clock, mut observer) = (ManualClock::default(), ());
        let mut timer = PhaseTimer::new(&mut observer, &clock);
        timer.on_event(&doing("mkfs", Role::Full));
        clock.set(Nanos(3_000_000_000));
        timer.start_aging();
        clock.set(Nanos(33_000_000_000));
        let phases: Vec<_> = timer.take().into_iter().map(|phase| (phase.what, phase.seconds)).collect();
        assert_eq!(phases, [("aging".to_owned(), 30.0), ("mkfs".to_owned(), 3.0)]);
    }

    #[test]
    fn a_repeated_phase_has_the_sum_of_its_seconds() {
        let (clock, mut observer) = (ManualClock::default(), ());
        let at = |seconds: u64| clock.set(Nanos(seconds * 1_000_000_000));
        at(5);
        let mut timer = PhaseTimer::new(&mut observer, &clock);
        for (seconds, event) in [
            (7, doing("grep test", Role::Full)),
            (10, doing("grep test", Role::Empty)),
            (20, doing("grep test", Role::Full)),
            (50, doing("hashing", Role::Full)),
        ] {
            at(seconds);
            timer.on_event(&event);
        }
        at(51);
        let phase = |what: &str, role, seconds| Phase { what: what.into(), role, seconds };
        let (full, empty) = (Some(Role::Full), Some(Role::Empty));
        assert_eq!(
            timer.take(),
            [
                phase("aging", None, 2.0),
                phase("grep test", full, 33.0),
                phase("grep test", empty, 10.0),
                phase("hashing", full, 1.0),
            ]
        );
        at(60);
        assert_eq!(timer.take(), [phase("aging", None, 9.0)], "the checkpoint's phases are taken once");
    }
}
