//! When a mount makes changes durable: soon after the first change, and never while nothing
//! changes.

use std::time::{Duration, Instant};

use senesce_fuse::Alarm;

/// A change waits this long at most before its commit starts. The rest of the promised second is
/// for the device.
pub(super) const SYNC: Duration = Duration::from_millis(800);

/// The two timers of a mount: for the next sync, and for the next checkpoint or consistency point.
///
/// Each starts with the first change after the last time, so that a mount without changes has no
/// timer.
#[derive(Debug)]
pub(super) struct Due {
    sync_at: Option<Instant>,
    point_at: Option<Instant>,
    /// How long a change waits at most for a checkpoint or consistency point.
    pub every: Duration,
}

impl Due {
    /// The first checkpoint is due also without changes: opening may have replayed something.
    pub fn new(every: Duration, now: Instant) -> Self {
        Self { sync_at: None, point_at: Some(now + every), every }
    }

    /// Starts the timers if something changed.
    pub fn observe(&mut self, alarm: &Alarm, now: Instant) {
        if alarm.is_changed() {
            self.sync_at.get_or_insert(now + SYNC);
            self.point_at.get_or_insert(now + self.every);
        }
    }

    /// Whether it is time to sync. If so, the alarm's flag is taken: the caller syncs now, and
    /// later changes start the timer again.
    pub fn take_sync(&mut self, alarm: &Alarm, now: Instant) -> bool {
        let is_due = self.sync_at.is_some_and(|at| at <= now);
        if is_due {
            self.sync_at = None;
            alarm.take_change();
        }
        is_due
    }

    /// Whether it is time for a checkpoint or consistency point. If so, its timer stops.
    pub fn take_point(&mut self, now: Instant) -> bool {
        self.point_at.take_if(|at| *at <= now).is_some()
    }

    /// The sync failed, or left something: it is due again.
    pub fn sync_again(&mut self, now: Instant) {
        self.sync_at.get_or_insert(now + SYNC);
    }

    /// The checkpoint failed, or left something: it is due again.
    pub fn point_again(&mut self, now: Instant) {
        self.point_at.get_or_insert(now + self.every);
    }

    /// How long nothing is due; `None` until something changes. A change up to now counts, so the
    /// holder may sleep that long.
    pub fn left(&mut self, alarm: &Alarm, now: Instant) -> Option<Duration> {
        self.observe(alarm, now);
        let next = [self.sync_at, self.point_at].into_iter().flatten().min();
        next.map(|next| next.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_run_only_after_a_change() {
        let (alarm, begin) = (Alarm::of_this_thread(), Instant::now());
        let mut due = Due::new(10 * SYNC, begin);
        let later = begin + 10 * SYNC;
        assert!(due.take_point(later), "opening may have replayed something");
        due.observe(&alarm, later);
        assert_eq!(due.left(&alarm, later), None, "a clean mount has no timer");
        assert!(!due.take_sync(&alarm, later + 100 * SYNC) && !due.take_point(later + 100 * SYNC));

        alarm.note_change();
        due.observe(&alarm, later);
        assert_eq!(due.left(&alarm, later), Some(SYNC));
        assert!(!due.take_sync(&alarm, later + SYNC / 2));
        due.observe(&alarm, later + SYNC / 2);
        assert_eq!(due.left(&alarm, later + SYNC / 2), Some(SYNC / 2), "more changes do not delay it");
        assert!(due.take_sync(&alarm, later + SYNC));
        assert!(!alarm.is_changed() && !due.take_sync(&alarm, later + SYNC));
        assert_eq!(due.left(&alarm, later + SYNC), Some(9 * SYNC), "the checkpoint is still due");
        assert!(due.take_point(later + 10 * SYNC));
        assert_eq!(due.left(&alarm, later + 10 * SYNC), None);
        due.sync_again(later);
        due.point_again(later);
        assert_eq!(due.left(&alarm, later), Some(SYNC));
    }
}
