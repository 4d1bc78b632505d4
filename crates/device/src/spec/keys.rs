//! The constants of a description: their units, meanings and possible values, in one table for each
//! kind of device.

use super::DeviceKind;

/// One constant of a kind of device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyRule {
    /// Its name in the description.
    pub key: &'static str,
    /// Its only unit. `GB` and `MB/s` are decimal, as on datasheets; `KiB` and `MiB` are powers of
    /// 1024.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// The smallest possible value.
    pub at_least: f64,
    /// The largest possible value. A larger one is more likely a wrong unit than a real device.
    pub at_most: f64,
    /// Whether only whole numbers are possible.
    pub whole: bool,
}

const fn key(key: &'static str, unit: &'static str, at_least: f64, at_most: f64, meaning: &'static str) -> KeyRule {
    KeyRule { key, unit, meaning, at_least, at_most, whole: false }
}

const fn whole(key: &'static str, unit: &'static str, at_least: f64, at_most: f64, meaning: &'static str) -> KeyRule {
    KeyRule { key, unit, meaning, at_least, at_most, whole: true }
}

/// The constants of a device of this kind, in display order.
pub fn keys(kind: DeviceKind) -> &'static [KeyRule] {
    match kind {
        DeviceKind::Hdd => HDD,
        DeviceKind::Ssd => SSD,
    }
}

const HDD: &[KeyRule] = &[
    key("capacity", "GB", 0.001, 1e6, "bytes the host can address"),
    whole("rotation", "rpm", 1000.0, 30_000.0, "turns per minute"),
    whole("heads", "count", 1.0, 64.0, "surfaces, and so tracks of a cylinder"),
    whole("zones", "count", 2.0, 1000.0, "groups of cylinders with the same sectors per track"),
    key("outer_rate", "MB/s", 0.1, 5000.0, "a long sequential read in the outermost zone, switches of track included"),
    key("inner_rate", "MB/s", 0.1, 5000.0, "the same in the innermost zone"),
    key("track_to_track_read", "ms", 0.001, 100.0, "seek to the next cylinder before a read"),
    key("track_to_track_write", "ms", 0.001, 100.0, "seek to the next cylinder before a write"),
    key("mean_seek_read", "ms", 0.001, 1000.0, "mean over all pairs of different cylinders, before a read"),
    key("mean_seek_write", "ms", 0.001, 1000.0, "mean over all pairs of different cylinders, before a write"),
    key("full_stroke_read", "ms", 0.001, 1000.0, "seek from the first to the last cylinder, before a read"),
    key("full_stroke_write", "ms", 0.001, 1000.0, "seek from the first to the last cylinder, before a write"),
    key("head_switch", "ms", 0.0, 100.0, "change to another head of the same cylinder"),
    key("command_overhead", "ms", 0.0, 100.0, "electronics before the arm moves"),
    key("buffer_overhead", "ms", 0.0, 100.0, "electronics of a command served from the buffer"),
    key("link_rate", "MB/s", 1.0, 100_000.0, "data between buffer and host"),
    key("buffer", "MiB", 0.0, 65_536.0, "memory for data read and read ahead; 0 is none"),
    key("read_ahead", "KiB", 0.0, 1e6, "data that the drive reads ahead after a read; 0 is none"),
    key("write_cache", "MiB", 0.0, 65_536.0, "memory for writes acknowledged before they are on the medium; 0 is none"),
];

const SSD: &[KeyRule] = &[
    key("capacity", "GB", 0.001, 1e6, "bytes the host can address"),
    whole("channels", "count", 1.0, 1024.0, "buses between controller and flash"),
    whole("chips", "per channel", 1.0, 1024.0, "packages on a channel"),
    whole("dies", "per chip", 1.0, 1024.0, "dies of a package"),
    whole("planes", "per die", 1.0, 1024.0, "planes of a die, which work in parallel"),
    whole("page", "KiB", 1.0, 1024.0, "what flash reads and programs at a time"),
    whole("pages_per_block", "count", 2.0, 65_536.0, "pages erased together"),
    key("page_read", "us", 0.01, 1e6, "flash array to page register"),
    key("page_program", "us", 0.01, 1e6, "page register to flash array"),
    key("block_erase", "us", 0.01, 1e8, "erasing a block"),
    key("channel_rate", "MB/s", 1.0, 100_000.0, "data on one channel"),
    key("link_rate", "MB/s", 1.0, 1e6, "data between drive and host"),
    key("command_overhead", "us", 0.0, 1e5, "controller, protocol and completion of one command"),
    key("spare", "ratio", 0.01, 10.0, "flash the host cannot address / flash it can: (physical - logical) / logical"),
    key("write_cache", "MiB", 0.0, 65_536.0, "memory for writes acknowledged before they are programmed; 0 is none"),
];
