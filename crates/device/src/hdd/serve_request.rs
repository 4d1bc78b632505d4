//! The work of the disk for each request.

use senesce_core::{Nanos, SECTOR_BYTES};

use super::{Hdd, Stream, TURN};
use crate::ServiceTimes;

/// Cached writes go to the platters in pieces of this size (512 KiB), so that a read never waits
/// for a long run.
const WRITE_BACK_SECTORS: u64 = 1024;

/// A sector that passed by less than this counts as not passed, because times are rounded to
/// nanoseconds.
const CATCH: Nanos = Nanos(1000);

impl Hdd {
    /// Serves a read; `start` < `end`.
    pub(super) fn read(&mut self, start: u64, end: u64, arrival: Nanos, times: &mut ServiceTimes) -> Nanos {
        if self.dirty.holds(start, end) || self.buffer.holds(start, end) {
            self.totals.buffer_hits += 1;
            return self.answer(arrival, end - start, times);
        }
        if let Some(done) = self.read_from_stream(start, end, arrival, times) {
            return done;
        }
        // Newer data in the cache is written to the platters first.
        while let Some((start, end)) = self.dirty.first_overlap(start, end) {
            self.write_back(start, end);
        }
        let begin = self.start_access(arrival, times);
        self.stop_stream(begin);
        let done = self.access(start, end, begin, false, times);
        if self.read_ahead_sectors == 0 {
            self.buffer.insert(start, end);
        } else {
            self.stream = Some(Stream {
                start,
                from_sector: end,
                from_course: self.geometry.course_end(end),
                from_time: done,
                limit: (end + self.read_ahead_sectors).min(self.geometry.sectors()),
            });
        }
        done
    }

    /// Serves a read that starts within the data of the running read-ahead, or directly after it.
    /// `None` for other reads.
    fn read_from_stream(&mut self, start: u64, end: u64, arrival: Nanos, times: &mut ServiceTimes) -> Option<Nanos> {
        let mut stream = self.stream?;
        let begin = self.interface_free.max(Nanos(arrival.0 + self.buffer_overhead.0));
        let passed = self.passed(&stream, begin);
        let held = stream.start.max(passed.saturating_sub(self.buffer_sectors));
        if start < held || start > passed || self.dirty.first_overlap(start, end).is_some() {
            return None;
        }
        let limit = (end + self.read_ahead_sectors).min(self.geometry.sectors());
        if passed == stream.limit && stream.limit < limit {
            // The buffer was full and the head waited on its track. It continues when the next
            // sector is under it.
            let course = self.geometry.course(stream.limit);
            let wait = self.wait_for(course, begin);
            stream.from_sector = stream.limit;
            stream.from_course = course;
            stream.from_time = Nanos(begin.0 + wait.0);
            if end > passed {
                times.rotation = wait;
            }
        }
        stream.limit = stream.limit.max(limit);
        let moved = Nanos(begin.0 + self.link_time(end - start).0);
        let done = if end <= passed {
            self.totals.buffer_hits += 1;
            moved
        } else {
            let left = self.geometry.course_end(end).saturating_sub(stream.from_course);
            self.media_free = Nanos(stream.from_time.0 + self.turning_time(left).0);
            self.media_wrote_back = false;
            self.arm = end - 1;
            moved.max(self.media_free)
        };
        self.stream = Some(stream);
        times.overhead = self.buffer_overhead;
        times.queue = Nanos(begin.0 - arrival.0 - self.buffer_overhead.0);
        times.transfer = Nanos(done.0 - begin.0 - times.rotation.0);
        Some(done)
    }

    /// Serves a write; `start` < `end`.
    pub(super) fn write(&mut self, start: u64, end: u64, arrival: Nanos, times: &mut ServiceTimes) -> Nanos {
        let sectors = end - start;
        self.forget_read(start, end, arrival);
        if sectors > self.write_cache_sectors {
            self.dirty.remove(start, end);
            let begin = self.start_access(arrival, times);
            self.stop_stream(begin);
            return self.access(start, end, begin, true, times);
        }
        let begin = self.interface_free.max(Nanos(arrival.0 + self.buffer_overhead.0));
        let mut ready = begin;
        while self.dirty.sectors() + sectors > self.write_cache_sectors {
            self.write_back_piece();
            ready = ready.max(self.media_free);
        }
        let done = Nanos(ready.0 + self.link_time(sectors).0);
        if self.dirty.is_empty() {
            self.media_free = self.media_free.max(done); // the cache was empty, so the arm had no work
        }
        self.dirty.insert(start, end);
        times.overhead = self.buffer_overhead;
        times.queue = Nanos(begin.0 - arrival.0 - self.buffer_overhead.0);
        times.write_back = Nanos(ready.0 - begin.0);
        times.transfer = Nanos(done.0 - ready.0);
        done
    }

    /// Writes all cached data to the platters.
    pub(super) fn flush(&mut self, arrival: Nanos, times: &mut ServiceTimes) -> Nanos {
        let begin = self.interface_free.max(Nanos(arrival.0 + self.buffer_overhead.0));
        let mut done = begin;
        while !self.dirty.is_empty() {
            self.write_back_piece();
            done = done.max(self.media_free);
        }
        if self.media_wrote_back {
            done = done.max(self.media_free); // the last piece may still be in progress
        }
        times.overhead = self.buffer_overhead;
        times.queue = Nanos(begin.0 - arrival.0 - self.buffer_overhead.0);
        times.write_back = Nanos(done.0 - begin.0);
        done
    }

    /// Serves a command that moves `sectors` sectors between buffer and host only.
    pub(super) fn answer(&mut self, arrival: Nanos, sectors: u64, times: &mut ServiceTimes) -> Nanos {
        let begin = self.interface_free.max(Nanos(arrival.0 + self.buffer_overhead.0));
        times.overhead = self.buffer_overhead;
        times.queue = Nanos(begin.0 - arrival.0 - self.buffer_overhead.0);
        times.transfer = self.link_time(sectors);
        Nanos(begin.0 + times.transfer.0)
    }

    /// Uses the idle time of the arm before `now` for cached writes.
    pub(super) fn write_back_until(&mut self, now: Nanos) {
        while !self.dirty.is_empty() && self.media_free < now {
            self.write_back_piece();
        }
    }

    fn write_back_piece(&mut self) {
        if let Some((start, end)) = self.dirty.next_from(self.arm) {
            self.write_back(start, end.min(start + WRITE_BACK_SECTORS));
        }
    }

    fn write_back(&mut self, start: u64, end: u64) {
        let begin = self.media_free;
        self.stop_stream(begin);
        self.access(start, end, begin, true, &mut ServiceTimes::default());
        self.media_wrote_back = true;
        self.dirty.remove(start, end);
        self.buffer.insert(start, end);
    }

    /// The time at which the arm can start a command. Records the wait until then.
    fn start_access(&self, arrival: Nanos, times: &mut ServiceTimes) -> Nanos {
        let ready = Nanos(arrival.0 + self.command_overhead.0);
        let begin = ready.max(self.media_free);
        times.overhead = self.command_overhead;
        let waited = begin.since(ready);
        if self.media_wrote_back {
            times.write_back = waited;
        } else {
            times.queue = waited;
        }
        begin
    }

    /// A seek, a wait and a transfer that start at `begin`. Returns their end.
    fn access(&mut self, start: u64, end: u64, begin: Nanos, write: bool, times: &mut ServiceTimes) -> Nanos {
        let (from, to) = (self.geometry.place(self.arm), self.geometry.place(start));
        let curve = if write { &self.write_seek } else { &self.read_seek };
        let seek = match from.cylinder.abs_diff(to.cylinder) {
            0 if from.head == to.head => Nanos(0),
            0 => self.head_switch,
            distance => curve.time(distance),
        };
        let course = self.geometry.course(start);
        let there = Nanos(begin.0 + seek.0);
        let rotation = self.wait_for(course, there);
        let transfer = self.turning_time(self.geometry.course_end(end) - course);
        (times.seek, times.rotation, times.transfer) = (seek, rotation, transfer);
        self.arm = end - 1;
        self.media_free = Nanos(there.0 + rotation.0 + transfer.0);
        self.media_wrote_back = false;
        self.media_free
    }

    /// The time from `now` until the point `course` is under the head.
    fn wait_for(&self, course: u128, now: Nanos) -> Nanos {
        let angle = u128::from(now.0) * u128::from(self.geometry.rpm()) % TURN;
        let wait = (course % TURN + TURN - angle) % TURN;
        let just_passed = TURN - wait <= u128::from(CATCH.0) * u128::from(self.geometry.rpm());
        if just_passed { Nanos(0) } else { self.turning_time(wait) }
    }

    /// The time in which the platter turns by an angle.
    fn turning_time(&self, angle: u128) -> Nanos {
        Nanos((angle / u128::from(self.geometry.rpm())) as u64)
    }

    /// The position of the read-ahead at `now`.
    fn passed(&self, stream: &Stream, now: Nanos) -> u64 {
        let turned = u128::from(now.since(stream.from_time).0) * u128::from(self.geometry.rpm());
        self.geometry.sector_at(stream.from_sector, stream.limit, stream.from_course + turned)
    }

    /// Ends the read-ahead, because the arm is needed elsewhere at `now`. Its data stays in the
    /// buffer.
    pub(super) fn stop_stream(&mut self, now: Nanos) {
        if let Some(stream) = self.stream.take() {
            let passed = self.passed(&stream, now);
            self.buffer.insert(stream.start, passed);
            self.arm = passed.max(1) - 1;
        }
    }

    /// Forgets read data of sectors that are being written.
    fn forget_read(&mut self, start: u64, end: u64, now: Nanos) {
        if self.stream.is_some_and(|stream| start < stream.limit && stream.start < end) {
            self.stop_stream(now);
        }
        self.buffer.remove(start, end);
    }

    fn link_time(&self, sectors: u64) -> Nanos {
        // Bytes over MB/s are microseconds.
        Nanos(((sectors * SECTOR_BYTES) as f64 / self.link_mb_per_second * 1000.0).round() as u64)
    }
}
