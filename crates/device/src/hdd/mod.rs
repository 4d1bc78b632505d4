//! The model of a disk: overhead, seek, rotational wait, transfer, read-ahead and a write cache.
//!
//! - A command that needs the platters costs its overhead and a seek ([`SeekCurve`]). Then follow
//!   the wait until its first sector is under the head (the angle follows from the model's clock),
//!   and the transfer with its switches of track ([`Geometry`]).
//! - Requests are served in the given order; the drive does not reorder them.
//! - Read-ahead: after a read, the head continues to read into the buffer until the next command
//!   needs the arm or `read_ahead` is full. So a reader that continues at its last position has the
//!   sequential rate of the disk, if its pauses are shorter than the buffer lasts.
//! - Write cache: with `write_cache` above 0, a write is complete when it is in the memory of the
//!   drive. The drive writes it to the platters when it is idle, when it needs space, and on a
//!   flush, in sweeps from the outside to the inside. With 0, a write is complete when it is on the
//!   platters.
//!
//! Not modelled: reads that start in the middle of a track on arrival, reordering of queued
//! commands, retries, remapped sectors, adaptive read-ahead, temperature, sleep.

mod buffer;
mod geometry;
mod seek;
mod serve_request;

use senesce_core::{BlockOp, BlockRequest, Bytes, Nanos, SECTOR_BYTES};

use buffer::{DirtySectors, ReadBuffer};
pub(crate) use geometry::Geometry;
use geometry::TURN;
use seek::NoCurve;
pub(crate) use seek::SeekCurve;

use crate::{DeviceModel, DeviceSpec, Error, ServiceTimes, Totals};

/// A disk in use.
pub(crate) struct Hdd {
    name: String,
    pub(crate) geometry: Geometry,
    pub(crate) read_seek: SeekCurve,
    pub(crate) write_seek: SeekCurve,
    head_switch: Nanos,
    command_overhead: Nanos,
    buffer_overhead: Nanos,
    link_mb_per_second: f64,
    buffer_sectors: u64,
    read_ahead_sectors: u64,
    write_cache_sectors: u64,

    /// Data of earlier reads, without the data of the stream.
    buffer: ReadBuffer,
    /// The running read-ahead.
    stream: Option<Stream>,
    dirty: DirtySectors,
    /// The last sector under the head.
    arm: u64,
    /// The end of the current work of the arm, and whether that work wrote cached data to the
    /// platters.
    media_free: Nanos,
    media_wrote_back: bool,
    /// The end of the last command.
    interface_free: Nanos,
    last_arrival: Nanos,
    totals: Totals,
}

/// The read-ahead after the last request.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The first sector that the stream read into the buffer.
    start: u64,
    /// At `from_time` all sectors before `from_sector` had passed, and the course was
    /// `from_course`.
    from_sector: u64,
    from_course: u128,
    from_time: Nanos,
    /// The sector at which it stops.
    limit: u64,
}

impl Hdd {
    /// The disk of a checked description, idle, with the arm at the outermost cylinder.
    pub(crate) fn new(spec: &DeviceSpec) -> Result<Self, Error> {
        let geometry = Geometry::new(spec)?;
        let curve = |t1: &str, mean: &str, full: &str| {
            let (t1_ms, mean_ms, full_ms) = (spec.value(t1), spec.value(mean), spec.value(full));
            SeekCurve::solve(geometry.cylinders(), t1_ms, mean_ms, full_ms).map_err(|why| match why {
                NoCurve::FullStroke => spec
                    .absurd(full, format!("{full_ms} ms is below {t1} of {t1_ms} ms; at least that would be possible")),
                NoCurve::Mean { at_least_ms, at_most_ms } => spec.absurd(
                    mean,
                    format!(
                        "{mean_ms} ms does not go with {t1} of {t1_ms} ms and {full} of {full_ms} ms; \
                         {at_least_ms:.3} to {at_most_ms:.3} ms would be possible"
                    ),
                ),
            })
        };
        let read_seek = curve("track_to_track_read", "mean_seek_read", "full_stroke_read")?;
        let write_seek = curve("track_to_track_write", "mean_seek_write", "full_stroke_write")?;
        let ms = |key| Nanos((spec.value(key) * 1e6).round() as u64);
        let sectors = |key, unit: u64| (spec.value(key) * unit as f64) as u64 / SECTOR_BYTES;
        let buffer_sectors = sectors("buffer", Bytes::MIB);
        let read_ahead_sectors = sectors("read_ahead", Bytes::KIB);
        if read_ahead_sectors > buffer_sectors {
            let problem = format!(
                "{} KiB do not fit into the buffer of {} MiB; at most that would be possible",
                spec.value("read_ahead"),
                spec.value("buffer")
            );
            return Err(spec.absurd("read_ahead", problem));
        }
        Ok(Self {
            name: spec.model_name(),
            geometry,
            read_seek,
            write_seek,
            head_switch: ms("head_switch"),
            command_overhead: ms("command_overhead"),
            buffer_overhead: ms("buffer_overhead"),
            link_mb_per_second: spec.value("link_rate"),
            buffer_sectors,
            read_ahead_sectors,
            write_cache_sectors: sectors("write_cache", Bytes::MIB),
            buffer: ReadBuffer::new(buffer_sectors),
            stream: None,
            dirty: DirtySectors::default(),
            arm: 0,
            media_free: Nanos(0),
            media_wrote_back: false,
            interface_free: Nanos(0),
            last_arrival: Nanos(0),
            totals: Totals::default(),
        })
    }
}

impl DeviceModel for Hdd {
    fn drop_device_cache(&mut self) {
        // The read-ahead stops at its current position.
        self.stop_stream(self.media_free.max(self.interface_free));
        self.buffer = ReadBuffer::new(self.buffer_sectors);
    }

    fn restart_clock(&mut self) -> bool {
        if !self.dirty.is_empty() {
            return false;
        }
        self.drop_device_cache();
        (self.arm, self.media_wrote_back) = (0, false);
        (self.media_free, self.interface_free, self.last_arrival) = (Nanos(0), Nanos(0), Nanos(0));
        true
    }

    fn forget_sectors(&mut self, start: u64, end: u64) {
        if let Some(stream) = self.stream {
            // The read-ahead continues. The data that it reads after the last request stays.
            let requested = stream.limit.saturating_sub(self.read_ahead_sectors);
            let end = end.min(requested);
            if start < end && stream.start < end {
                self.buffer.insert(stream.start, start);
                self.stream = Some(Stream { start: end, ..stream });
            }
        }
        self.buffer.remove(start, end);
    }

    fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos {
        let arrival = arrival.max(self.last_arrival);
        self.last_arrival = arrival;
        self.totals.requests += 1;
        let total = self.geometry.sectors();
        if request.end() > total {
            self.totals.beyond_end += 1;
        }
        let sectors = u64::from(request.sectors).min(total);
        let start = request.sector.min(total - sectors);
        let end = start + sectors;

        self.write_back_until(arrival);
        let mut times = ServiceTimes::default();
        let done = match request.op {
            BlockOp::Flush => self.flush(arrival, &mut times),
            BlockOp::Discard => {
                self.dirty.remove(start, end);
                self.answer(arrival, 0, &mut times)
            }
            _ if sectors == 0 => self.answer(arrival, 0, &mut times),
            BlockOp::Read => self.read(start, end, arrival, &mut times),
            BlockOp::Write => self.write(start, end, arrival, &mut times),
        };
        self.interface_free = self.interface_free.max(done);
        self.totals.times += times;
        done
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn now(&self) -> Nanos {
        self.last_arrival.max(self.interface_free)
    }

    fn totals(&self) -> Totals {
        self.totals
    }
}

#[cfg(test)]
mod tests;
