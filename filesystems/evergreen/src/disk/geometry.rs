//! The layout of a device.

use super::{BLOCK, Damage, Decoded};
use crate::{Error, Result};

/// The offset of the second superblock; the first one is at 0.
pub(crate) const SECOND_SLOT_AT: u64 = 1 << 20;
/// The offsets of their second copies, each far from its first.
pub(super) const SLOT_COPIES_AT: [u64; 2] = [768 << 10, 256 << 10];
/// The least log; it holds several commits.
const MIN_LOG_BYTES: u64 = 16 * BLOCK as u64;
const DEFAULT_LOG_SHARE: u64 = 64;
const DEFAULT_LOG_BYTES: std::ops::RangeInclusive<u64> = 64 << 20..=1 << 30;
/// The largest share of a small device that the default log uses.
const SMALLEST_LOG_SHARE: u64 = 8;
const MIN_UNITS: u64 = 8;

/// The layout of a device, in bytes. Bytes after the last whole unit are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The least size of the device.
    pub device_bytes: u64,
    /// The offset of the ring of the log.
    pub log_at: u64,
    /// The length of the log, a multiple of [`BLOCK`].
    pub log_bytes: u64,
    /// The offset of the area of nodes.
    pub data_at: u64,
    /// The size of a unit of the area: a power of two, at least [`BLOCK`].
    pub unit_bytes: u32,
    /// The number of units.
    pub units: u32,
}

impl Geometry {
    /// Plans the layout of a device of `device_bytes`. The default of `log_bytes` is 1/64 of the
    /// device, from 64 MiB to 1 GiB, but at most 1/8 of a small device.
    ///
    /// Errors: `Invalid` for an impossible unit size, and for a device that is too small or has
    /// more than 2^32 - 1 units.
    pub fn plan(device_bytes: u64, unit_bytes: u32, log_bytes: Option<u64>) -> Result<Self> {
        if !unit_bytes.is_power_of_two() || !(BLOCK as u32..=1 << 20).contains(&unit_bytes) {
            let what = format!("units of {unit_bytes} bytes; a power of two from {BLOCK} to {} is possible", 1 << 20);
            return Err(Error::Invalid { what });
        }
        let (unit, block) = (u64::from(unit_bytes), BLOCK as u64);
        let log_at = (SECOND_SLOT_AT + block).next_multiple_of(unit);
        let usual = (device_bytes / DEFAULT_LOG_SHARE).clamp(*DEFAULT_LOG_BYTES.start(), *DEFAULT_LOG_BYTES.end());
        let usual = usual.min(device_bytes / SMALLEST_LOG_SHARE).max(MIN_LOG_BYTES);
        let log_bytes = log_bytes.unwrap_or(usual) / block * block;
        if log_bytes < MIN_LOG_BYTES {
            return Err(Error::Invalid { what: format!("a log of {log_bytes} bytes; at least {MIN_LOG_BYTES}") });
        }
        let data_at = log_at.saturating_add(log_bytes).checked_next_multiple_of(unit).unwrap_or(u64::MAX);
        let units = device_bytes.saturating_sub(data_at) / unit;
        if units < MIN_UNITS {
            let least = data_at.saturating_add(MIN_UNITS * unit);
            let what = format!("a device of {device_bytes} bytes; with a log of {log_bytes} at least {least}");
            return Err(Error::Invalid { what });
        }
        let Ok(units) = u32::try_from(units) else {
            let what = format!("{units} units of {unit_bytes} bytes; at most {}", u32::MAX);
            return Err(Error::Invalid { what });
        };
        Ok(Self { device_bytes: data_at + u64::from(units) * unit, log_at, log_bytes, data_at, unit_bytes, units })
    }

    /// The offset of a unit on the device.
    pub fn unit_at(&self, unit: u32) -> u64 {
        self.data_at + u64::from(unit) * u64::from(self.unit_bytes)
    }

    /// The number of units that `bytes` take.
    pub fn units_for(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.unit_bytes)).min(u64::from(u32::MAX)) as u32
    }

    /// The size of the units that `bytes` take.
    pub fn room_for(&self, bytes: u64) -> u64 {
        u64::from(self.units_for(bytes)) * u64::from(self.unit_bytes)
    }

    /// The byte range of the log on the device.
    pub fn log(&self) -> std::ops::Range<u64> {
        self.log_at..self.log_at + self.log_bytes
    }

    /// The size of the area of nodes.
    pub fn data_bytes(&self) -> u64 {
        u64::from(self.units) * u64::from(self.unit_bytes)
    }

    /// Validates the numbers of a superblock. Errors: the first wrong field.
    pub(super) fn validate(&self) -> Decoded<()> {
        let damage = |field, found: u64, expected: String| Err(Damage::new("superblock", field, found, expected));
        let (block, unit) = (BLOCK as u64, u64::from(self.unit_bytes));
        if !self.unit_bytes.is_power_of_two() || unit < block {
            return damage("unit bytes", unit, format!("a power of two, at least {block}"));
        }
        if self.log_at < SECOND_SLOT_AT + block || !self.log_at.is_multiple_of(block) {
            return damage("log at", self.log_at, format!("a multiple of {block} after the second slot"));
        }
        if self.log_bytes < MIN_LOG_BYTES || !self.log_bytes.is_multiple_of(block) {
            return damage("log bytes", self.log_bytes, format!("a multiple of {block}, at least {MIN_LOG_BYTES}"));
        }
        let log_end = self.log_at.checked_add(self.log_bytes);
        if log_end.is_none_or(|end| self.data_at < end) || !self.data_at.is_multiple_of(block) {
            return damage("data at", self.data_at, format!("a multiple of {block} after the log"));
        }
        let end = self.data_at.checked_add(self.data_bytes());
        if end != Some(self.device_bytes) {
            return damage("device bytes", self.device_bytes, format!("{end:?}, where the last unit ends"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_a_64th_within_bounds() {
        let log = |device: u64| Geometry::plan(device, 64 << 10, None).unwrap().log_bytes;
        assert_eq!(log(1 << 40), 1 << 30);
        assert_eq!(log(32 << 30), 512 << 20);
        assert_eq!(log(2 << 30), 64 << 20);
        assert_eq!(log(64 << 20), 8 << 20);
    }

    #[test]
    fn parts_follow_each_other_and_fill_the_device() {
        for device in [2 << 20, 3_000_001, 100 << 20, 20 << 40] {
            let geometry = Geometry::plan(device, 4096.max((device >> 31) as u32).next_power_of_two(), None).unwrap();
            geometry.validate().unwrap();
            let unit = u64::from(geometry.unit_bytes);
            assert!((device - unit + 1..=device).contains(&geometry.device_bytes), "{device}: {geometry:?}");
            assert_eq!(geometry.unit_at(geometry.units), geometry.device_bytes);
        }
        assert_eq!(Geometry::plan(8 << 20, 4096, None).unwrap().units_for(4097), 2);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let refusal = |device, unit, log| Geometry::plan(device, unit, log).unwrap_err().to_string();
        assert_eq!(
            refusal(1 << 30, 3000, None),
            "units of 3000 bytes; a power of two from 4096 to 1048576 is possible"
        );
        assert_eq!(refusal(1 << 30, 4096, Some(5000)), "a log of 4096 bytes; at least 65536");
        assert_eq!(refusal(1 << 20, 4096, None), "a device of 1048576 bytes; with a log of 131072 at least 1216512");
        assert!(refusal(1 << 60, 4096, None).ends_with("at most 4294967295"));
        assert!(Geometry::plan(u64::MAX, 1 << 20, Some(u64::MAX)).is_err());
    }
}
