//! Figures that follow from a description, to show beside its constants.

use crate::{DeviceKind, DeviceSpec, Error, compute_greedy_write_amplification, hdd::Hdd};

/// A figure of the model that follows from the constants.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedFigure {
    /// Its name, such as `cylinders`.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}

/// The figures that follow from a description, in display order. Errors: those of
/// [`DeviceSpec::check`].
pub fn compute_derived_figures(spec: &DeviceSpec) -> Result<Vec<DerivedFigure>, Error> {
    spec.check()?;
    let figure = |name, value, unit| DerivedFigure { name, value, unit };
    let value = |key: &str| spec.value(key);
    Ok(match spec.kind {
        DeviceKind::Hdd => {
            let disk = Hdd::new(spec)?;
            let turn_ms = 60_000.0 / value("rotation");
            let (first, last) = (disk.geometry.place(0), disk.geometry.place(u64::MAX));
            let access_ms = value("command_overhead") + value("mean_seek_read") + turn_ms / 2.0;
            vec![
                figure("turn", turn_ms, "ms"),
                figure("cylinders", disk.geometry.cylinders() as f64, "count"),
                figure("sectors per track, outermost", first.sectors_per_track as f64, "count"),
                figure("sectors per track, innermost", last.sectors_per_track as f64, "count"),
                figure("seek over a third of the stroke, read", disk.read_seek.third_ms(), "ms"),
                figure("seek over a third of the stroke, write", disk.write_seek.third_ms(), "ms"),
                figure("mean access, read, without transfer", access_ms, "ms"),
                figure("random reads of a few KiB", 1000.0 / access_ms, "per s"),
            ]
        }
        DeviceKind::Ssd => {
            let planes = value("channels") * value("chips") * value("dies") * value("planes");
            // KiB per microsecond are 1024 MB/s.
            let rate = |time: &str| planes * value("page") * 1024.0 / value(time);
            let small_us = value("command_overhead")
                + value("page_read")
                + 4096.0 / value("channel_rate")
                + 4096.0 / value("link_rate");
            vec![
                figure("planes", planes, "count"),
                figure("all planes read", rate("page_read"), "MB/s"),
                figure("all planes program", rate("page_program"), "MB/s"),
                figure("all channels", value("channels") * value("channel_rate"), "MB/s"),
                figure("read of 4 KiB, one at a time", small_us, "us"),
                figure("random reads of 4 KiB, one at a time", 1e6 / small_us, "per s"),
                figure(
                    "write amplification, uniform random",
                    compute_greedy_write_amplification(value("spare")),
                    "ratio",
                ),
            ]
        }
    })
}
