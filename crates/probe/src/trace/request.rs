//! A trace and its requests.

use std::{fmt, str::FromStr};

use senesce_core::{BlockRequest, Nanos};
use serde::{Deserialize, Serialize};

use super::RequestFlags;

/// The number of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// The driver's number.
    pub major: u32,
    /// The device's number within the driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// The number in trace events: the kernel's own `dev_t`, 12 bits and 20 bits.
    pub fn kernel_number(self) -> u64 {
        u64::from(self.major) << 20 | u64::from(self.minor)
    }
}

impl fmt::Display for DeviceNumber {
    /// In the form of `/sys/dev/block`: `8:16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = &'static str;

    /// Parses `8:16`, and `8,16` as `blkparse` writes it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once([':', ',']).and_then(|(major, minor)| Some((parse(major)?, parse(minor)?)));
        let (major, minor) = parts.ok_or("is not a device number such as 8:16")?;
        Ok(Self { major, minor })
    }
}

/// A number in digits only: no sign, no blanks.
fn parse(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A request to the device, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedRequest {
    /// The request and its time of issue.
    pub request: BlockRequest,
    /// When its last part was completed, on the same clock; none if the trace ended before, or lost
    /// the completion.
    pub completed: Option<Nanos>,
    /// The error of the completion, as the kernel's number (`errno`, positive); 0 for success.
    pub error: u32,
    /// The process that issued it. For delayed writes that is a thread of the kernel, not the
    /// writer.
    pub pid: u32,
    /// The other flags of the kernel.
    pub flags: RequestFlags,
}

impl TracedRequest {
    /// The time from issue to completion, if it was completed.
    pub fn service_time(&self) -> Option<Nanos> {
        self.completed.map(|completed| completed.since(self.request.issued))
    }
}

/// The requests of one device during a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockTrace {
    /// The device; none for an imported text without a single event.
    pub device: Option<DeviceNumber>,
    /// The requests in issue order. Sectors count from the start of the device (of the partition,
    /// if it is one).
    pub requests: Vec<TracedRequest>,
    /// Lost events: the kernel had no space, or the trace's own limit was reached. Never below the
    /// true number; a kernel without space counts some events twice. If not zero, requests are
    /// missing, and completions may belong to another request.
    pub lost: u64,
    /// Issues that the driver returned. Each was issued again, and only the second issue is among
    /// the requests.
    pub requeued: u64,
    /// Requests that are neither read, write, discard nor flush (commands of drivers, zeroing
    /// without data), left out.
    pub others: u64,
    /// Completions of requests that were issued before the trace started, or whose issue was lost.
    pub unmatched_completions: u64,
}

impl BlockTrace {
    /// The requests alone, in issue order, for scores and device models.
    pub fn block_requests(&self) -> impl Iterator<Item = BlockRequest> + '_ {
        self.requests.iter().map(|traced| traced.request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_parse_as_displayed() {
        let number = DeviceNumber { major: 8, minor: 16 };
        assert_eq!(number.to_string().parse(), Ok(number));
        assert_eq!("8,16".parse(), Ok(number));
        assert_eq!(number.kernel_number(), 0x0080_0010);
        for bad in ["8", "8:", ":1", "8:+1", "8:1:2", "8: 1", "99999999999:0"] {
            assert!(bad.parse::<DeviceNumber>().is_err(), "{bad}");
        }
    }
}
