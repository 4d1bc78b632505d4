//! The modelled cost of a grep test or a step on a disk in virtual time: the difference of two
//! reports of the disk's clock.

use senesce_core::Bytes;
use senesce_store::{CellKey, ModelledRow};
use senesce_vdisk::{OpTotals, TimeReport, Totals};

use crate::Error;

/// The method of table `modelled` for the clock of a disk.
pub(crate) const VIRTUAL_TIME: &str = "virtual-time";

/// Modelled time and requests between two reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VirtualTime {
    /// Name of the modelled device.
    pub(crate) device: String,
    /// Busy time of the device, seconds.
    pub(crate) seconds: f64,
    /// Requests to read, and bytes read.
    pub(crate) read: (u64, u64),
    /// Requests to write, and bytes written.
    pub(crate) write: (u64, u64),
}

impl VirtualTime {
    /// Computes the difference of two reports. It includes the writes of the file system, which
    /// keep the device busy.
    ///
    /// Errors: requests failed between the reports, and so took no time.
    pub(crate) fn between(before: &TimeReport, after: &TimeReport) -> Result<Self, Error> {
        let failed = after.failed_requests - before.failed_requests;
        if failed > 0 {
            let problem = format!("{failed} request(s) failed on the disk's image");
            return Err(Error::Unverified { what: "the virtual time".into(), problem });
        }
        // Idle time passes only if virtual time is real time, and does not count.
        let busy = |totals: &Totals| totals.elapsed().0 - totals.idle_ns;
        let since =
            |before: &OpTotals, after: &OpTotals| (after.requests - before.requests, after.bytes - before.bytes);
        Ok(Self {
            device: after.device.clone(),
            seconds: (busy(&after.totals) - busy(&before.totals)) as f64 / 1e9,
            read: since(&before.totals.read, &after.totals.read),
            write: since(&before.totals.write, &after.totals.write),
        })
    }

    /// The row of table `modelled`. `allocated_bytes` is the allocated size of the files that were
    /// read.
    pub(crate) fn row(self, key: CellKey, allocated_bytes: u64) -> ModelledRow {
        ModelledRow {
            key,
            device: self.device,
            method: VIRTUAL_TIME.to_owned(),
            seconds: self.seconds,
            best_order_seconds: f64::NAN,
            seconds_per_gib: seconds_per_gib(self.seconds, allocated_bytes),
            requests: self.read.0,
            read_bytes: self.read.1,
        }
    }
}

/// Seconds per GiB; NaN for a tree without contents.
pub(crate) fn seconds_per_gib(seconds: f64, allocated_bytes: u64) -> f64 {
    if allocated_bytes == 0 { f64::NAN } else { seconds / (allocated_bytes as f64 / Bytes::GIB as f64) }
}

#[cfg(test)]
mod tests {
    use senesce_store::Role;

    use super::*;

    fn look(reads: u64, idle_ns: u64) -> TimeReport {
        let read = OpTotals { requests: reads, bytes: reads * 4096, busy_ns: reads * 8_000_000 };
        let write = OpTotals { requests: 1, bytes: 4096, busy_ns: 5_000_000 };
        let totals = Totals { read, write, idle_ns, ..Totals::default() };
        TimeReport { device: "model: x".to_owned(), totals, ..TimeReport::default() }
    }

    #[test]
    fn only_busy_time_of_the_device_counts() {
        let time = VirtualTime::between(&look(100, 7), &look(350, 9_000_000_007)).unwrap();
        let key = CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Empty, pulls: 3 };
        let row = time.row(key, Bytes::GIB / 2);
        assert_eq!((row.seconds, row.seconds_per_gib), (2.0, 4.0)); // 250 reads of 8 ms
        assert!(seconds_per_gib(2.0, 0).is_nan(), "an empty tree");
        assert_eq!((row.requests, row.read_bytes), (250, 250 * 4096));
        assert_eq!((row.device.as_str(), row.method.as_str()), ("model: x", "virtual-time"));
    }

    #[test]
    fn a_scan_with_failed_requests_has_no_figure() {
        let after = TimeReport { failed_requests: 2, ..look(5, 0) };
        let error = VirtualTime::between(&look(1, 0), &after).unwrap_err().to_string();
        assert!(error.contains("2 request(s)"), "{error}");
        let before = TimeReport { failed_requests: 2, ..look(1, 0) };
        VirtualTime::between(&before, &after).unwrap();
    }
}
