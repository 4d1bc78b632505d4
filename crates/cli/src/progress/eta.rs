//! The time that a run still needs, from the times of its steps and measurements so far.

use std::time::Instant;

use senesce_experiment::Event;

use super::format_eta;

/// Steps and measurements of an arm and of the arms after it, and the seconds that each kind needs.
///
/// The time between two events counts for the kind that the second event ends.
pub(super) struct Work {
    /// The unit of steps.
    pub(super) unit: &'static str,
    steps: Kind,
    cells: Kind,
    /// Arms that this process started, and all arms.
    arms: (u64, u64),
    last: Instant,
}

/// The units of one kind of work.
#[derive(Default)]
pub(super) struct Kind {
    /// Units that an earlier process did.
    from: u64,
    pub(super) done: u64,
    pub(super) of: u64,
    /// Units of the arms after this one.
    later: u64,
    /// Seconds for the units of this arm in this process.
    pub(super) seconds: f64,
    /// Units of the arms before this one in this process, and their seconds.
    before: (u64, f64),
}

impl Kind {
    /// Work of one arm, of which `done` units needed `seconds`.
    pub(super) fn at(done: u64, of: u64, seconds: f64) -> Self {
        Self { done, of, seconds, ..Self::default() }
    }

    /// The same kind of work in the next arm.
    fn of_arm(&self, from: u64, of: u64, later: u64) -> Self {
        Self { from, done: from, of, later, seconds: 0.0, before: self.in_all() }
    }

    /// Units that this process did, and their seconds.
    fn in_all(&self) -> (u64, f64) {
        (self.before.0 + self.done.saturating_sub(self.from), self.before.1 + self.seconds)
    }

    /// The seconds for the units that are left, also of later arms. `None`: no unit is done, so
    /// that the rate is unknown.
    ///
    /// This arm has its own rate as soon as it has one. The rate of the later arms is that of all
    /// units so far.
    pub(super) fn seconds_left(&self) -> Option<f64> {
        let rate = |(units, seconds): (u64, f64)| (units > 0).then(|| seconds / units as f64);
        let of_all = rate(self.in_all());
        let own = rate((self.done.saturating_sub(self.from), self.seconds)).or(of_all);
        let need = |units: u64, rate: Option<f64>| if units == 0 { Some(0.0) } else { Some(units as f64 * rate?) };
        Some(need(self.of.saturating_sub(self.done), own)? + need(self.later, of_all)?)
    }
}

impl Work {
    pub(super) fn new(now: Instant) -> Self {
        Self { unit: "steps", steps: Kind::default(), cells: Kind::default(), arms: (0, 0), last: now }
    }

    pub(super) fn count(&mut self, event: &Event, now: Instant) {
        let seconds = now.saturating_duration_since(self.last).as_secs_f64();
        match event {
            Event::ArmStarted {
                number,
                of,
                from_pulls,
                pulls,
                unit,
                from_cells,
                cells,
                later_pulls,
                later_cells,
                ..
            } => {
                self.unit = unit;
                self.steps = self.steps.of_arm(*from_pulls, *pulls, *later_pulls);
                self.cells = self.cells.of_arm(*from_cells, *cells, *later_cells);
                self.arms = (*number, *of);
            }
            Event::Step { pulls, .. } => {
                self.steps.done = *pulls;
                self.steps.seconds += seconds;
            }
            Event::CellDone { .. } => {
                self.cells.done += 1;
                self.cells.seconds += seconds;
            }
            _ => return,
        }
        self.last = now;
    }

    fn seconds_left(&self) -> Option<f64> {
        Some(self.steps.seconds_left()? + self.cells.seconds_left()?)
    }

    /// The part of the time of this process that is over, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        let over = self.steps.in_all().1 + self.cells.in_all().1;
        self.seconds_left().map_or(0.0, |left| if over + left > 0.0 { over / (over + left) } else { 0.0 })
    }

    /// `40/80 pulls, 3/9 measured, ETA of all arms 12 s`.
    pub(super) fn text(&self) -> String {
        let Self { unit, steps, cells, arms: (number, of), .. } = self;
        let eta = self.seconds_left().map_or("?".to_owned(), format_eta);
        let whose = if number < of { " of all arms" } else { "" };
        format!("{}/{} {unit}, {}/{} measured, ETA{whose} {eta}", steps.done, steps.of, cells.done, cells.of)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn eta_counts_steps_and_measurements_of_all_arms() {
        let start = Instant::now();
        let mut work = Work::new(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let key = |pulls| senesce_store::CellKey {
            arm: "a".into(),
            file_system: "ext4".into(),
            role: senesce_store::Role::Full,
            pulls,
        };
        let cell = |pulls| Event::CellDone { key: key(pulls), reason: String::new(), grep: None };
        let arm = |number, later_pulls, later_cells| Event::ArmStarted {
            arm: "a".to_owned(),
            number,
            of: 3,
            from_pulls: 0,
            pulls: 4,
            unit: "rounds",
            from_cells: 0,
            cells: 3,
            later_pulls,
            later_cells,
        };
        let zero = senesce_core::Bytes(0);
        let step = |pulls| Event::Step {
            arm: "a".into(),
            label: "s".to_owned(),
            pulls,
            capacity_bytes: zero,
            free_bytes: zero,
            no_space: false,
        };
        // The second of three arms was finished by an earlier process.
        work.count(&arm(1, 4, 3), at(0));
        work.count(&cell(0), at(10));
        assert_eq!(work.text(), "0/4 rounds, 1/3 measured, ETA of all arms ?");
        work.count(&step(2), at(50));
        // 2 + 4 rounds of 20 s and 2 + 3 measurements of 10 s are left.
        assert_eq!(work.text(), "2/4 rounds, 1/3 measured, ETA of all arms 2 min 50 s");
        assert!((work.share() - 50.0 / 220.0).abs() < 1e-9);
        work.count(&step(4), at(90));
        work.count(&cell(2), at(100));
        work.count(&cell(4), at(110));
        // The last arm first has the rates of the first one, and then its own.
        work.count(&arm(3, 0, 0), at(110));
        assert_eq!(work.text(), "0/4 rounds, 0/3 measured, ETA 1 min 50 s");
        work.count(&cell(0), at(115));
        assert_eq!(work.text(), "0/4 rounds, 1/3 measured, ETA 1 min 30 s");
    }
}
