//! Formulas of queueing theory, for comparison with a simulation.
//!
//! No simulation depends on these formulas. Sources: L. Kleinrock, Queueing Systems 1, 1975
//! (Erlang's C formula, Pollaczek and Khinchine, the machine repair model); A. Cobham, Operations
//! Research 2, 1954 (priorities).

/// The probability of waiting in M/M/c (Erlang's C formula). In: `load` = arrival rate / (channels
/// * service rate), below 1.
pub fn compute_erlang_c(channels: u32, load: f64) -> f64 {
    let offered = load * f64::from(channels);
    // Erlang's B formula by its recursion, which loses no digits; C follows from it.
    let blocked = (1..=channels).fold(1.0, |blocked, c| offered * blocked / (f64::from(c) + offered * blocked));
    blocked / (1.0 - load * (1.0 - blocked))
}

/// The mean wait in M/M/c, in the unit of `service`, the mean service time.
pub fn compute_wait_mmc(channels: u32, load: f64, service: f64) -> f64 {
    compute_erlang_c(channels, load) * service / (f64::from(channels) * (1.0 - load))
}

/// The mean wait in M/G/1 (Pollaczek and Khinchine), from the mean and the mean square of the
/// service.
pub fn compute_wait_mg1(load: f64, (mean, square): (f64, f64)) -> f64 {
    load / mean * square / (2.0 * (1.0 - load))
}

/// The mean waits in M/G/1 with a priority class and without preemption (Cobham): of the first
/// class, of the other.
///
/// In: the load of each; moments of the service, equal for both.
pub fn compute_waits_priority(first: f64, other: f64, (mean, square): (f64, f64)) -> (f64, f64) {
    let load = first + other;
    let rest = load / mean * square / 2.0;
    (rest / (1.0 - first), rest / ((1.0 - first) * (1.0 - load)))
}

/// The share of the time in which one channel is busy when `customers` think and are served in
/// turn, both with exponential times (machine repair model).
pub fn compute_closed_utilisation(customers: u32, think: f64, service: f64) -> f64 {
    // 1 / p0 = sum over n of N! / (N - n)! (service / think)^n.
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 0..customers {
        term *= f64::from(customers - n) * service / think;
        sum += term;
    }
    1.0 - 1.0 / sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-4, "{got} {want}");
    }

    #[test]
    fn formulas_agree_with_each_other_and_tables() {
        for load in [0.3, 0.9] {
            assert_near(compute_erlang_c(1, load), load);
            assert_near(compute_wait_mmc(1, load, 1.0), load / (1.0 - load));
            assert_near(compute_wait_mg1(load, (1.0, 2.0)), load / (1.0 - load));
            assert_near(compute_wait_mg1(load, (1.0, 1.0)), load / (1.0 - load) / 2.0);
        }
        // Two channels: 2 load² / (1 + load).
        assert_near(compute_erlang_c(2, 0.5), 1.0 / 3.0);
        // Printed tables: 20 channels with 18 erlang offered.
        assert_near(compute_erlang_c(20, 0.9), 0.5508);
        // One customer never waits.
        assert_near(compute_closed_utilisation(1, 3.0, 1.0), 0.25);
    }

    #[test]
    fn priority_keeps_the_mean_wait() {
        // Services are equal, so the mean wait is that of a single line.
        let (first, other) = compute_waits_priority(0.4, 0.4, (1.0, 2.0));
        assert_near((first + other) / 2.0, 0.8 / 0.2);
        assert!(first < other);
    }
}
