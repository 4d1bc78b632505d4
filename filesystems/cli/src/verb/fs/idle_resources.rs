//! The time that processors and drives have left, as the kernel reports it: the engine has no clock
//! of its own.

use std::fs;

use senesce_garden::Headroom;

/// From the shares of the last ten seconds in which some task waited for a processor, or for a
/// drive (pressure stall information of Linux). A kernel without this information counts as idle.
pub fn collect_headroom() -> Headroom {
    let left =
        |what: &str| fs::read_to_string(format!("/proc/pressure/{what}")).ok().and_then(|told| compute_left(&told));
    Headroom { cpu_percent: left("cpu").unwrap_or(100), io_percent: left("io").unwrap_or(100) }
}

/// What is left of a hundred, of a line such as `some avg10=12.34 avg60=…`.
fn compute_left(told: &str) -> Option<u8> {
    let line = told.lines().find(|line| line.starts_with("some "))?;
    let waited: f64 = line.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    Some((100.0 - waited).clamp(0.0, 100.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::compute_left;

    #[test]
    fn what_nobody_waited_for_is_left() {
        let told =
            |avg10| format!("some avg10={avg10} avg60=1.00 avg300=0.50 total=123\nfull avg10=90.00 avg60=0.00\n");
        assert_eq!(compute_left(&told("0.00")), Some(100));
        assert_eq!(compute_left(&told("98.83")), Some(1));
        assert_eq!(compute_left(&told("nothing")), None);
        assert_eq!(compute_left(""), None);
    }
}
