//! A number that changes over time, and its mean over time.

use senesce_core::Nanos;

/// The current number, and its integral over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    value: u64,
    since: Nanos,
    from: Nanos,
    area: u128,
    above_zero: u64,
}

impl Level {
    /// The current number.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Sets the number from `now` on; time must not go backwards.
    pub fn set(&mut self, now: Nanos, value: u64) {
        self.advance(now);
        self.value = value;
    }

    /// Adds one from `now` on.
    pub fn rise(&mut self, now: Nanos) {
        self.set(now, self.value + 1);
    }

    /// Subtracts one from `now` on; the number must not be 0.
    pub fn fall(&mut self, now: Nanos) {
        self.set(now, self.value - 1);
    }

    /// Discards the time before `now`; the number stays.
    pub fn restart(&mut self, now: Nanos) {
        *self = Self { value: self.value, since: now, from: now, area: 0, above_zero: 0 };
    }

    /// The integral up to `now`, ns.
    pub fn area(&self, now: Nanos) -> u128 {
        self.area + u128::from(self.value) * u128::from(now.since(self.since).0)
    }

    /// The mean up to `now`; 0 if no time has passed.
    pub fn mean(&self, now: Nanos) -> f64 {
        let time = now.since(self.from).0;
        if time == 0 { 0.0 } else { self.area(now) as f64 / time as f64 }
    }

    /// The share of the time up to `now` in which it was above zero.
    pub fn share_above_zero(&self, now: Nanos) -> f64 {
        let time = now.since(self.from).0;
        let last = if self.value > 0 { now.since(self.since).0 } else { 0 };
        if time == 0 { 0.0 } else { (self.above_zero + last) as f64 / time as f64 }
    }

    fn advance(&mut self, now: Nanos) {
        self.area = self.area(now);
        if self.value > 0 {
            self.above_zero += now.since(self.since).0;
        }
        self.since = self.since.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_weighted_by_time() {
        let mut level = Level::default();
        level.rise(Nanos(10));
        level.rise(Nanos(20));
        level.fall(Nanos(50));
        level.fall(Nanos(70));
        // 0 for 10 ns, 1 for 10, 2 for 30, 1 for 20, 0 for 30.
        assert_eq!((level.area(Nanos(100)), level.mean(Nanos(100))), (90, 0.9));
        assert_eq!(level.share_above_zero(Nanos(100)), 0.6);
        level.rise(Nanos(100));
        level.restart(Nanos(100));
        assert_eq!((level.value(), level.mean(Nanos(110)), level.share_above_zero(Nanos(110))), (1, 1.0, 1.0));
    }
}
