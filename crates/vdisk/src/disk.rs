//! The disk itself: the effect of a request on the contents, on virtual time and on the request
//! log.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use senesce_core::{BlockOp, Clock, Nanos, SECTOR_BYTES};

use crate::{
    Error, LogHeader, LogWriter, Result, ServeConfig, TimeReport, VirtualClock, backing::Backing,
    clock::compute_sectors, model::find_device,
};

/// A disk in virtual time, shared by the thread that serves requests and the thread that answers
/// the parent.
pub(crate) struct Disk {
    name: String,
    size_bytes: u64,
    takes_discards: bool,
    backing: Backing,
    real: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    clock: VirtualClock,
    log: Option<LogWriter>,
    log_problem: Option<String>,
    /// Receives the contents of all writes.
    contents: Option<File>,
    failed_requests: u64,
    unaligned_requests: u64,
}

impl Disk {
    /// Creates the backing file and the model.
    pub(crate) fn open(config: &ServeConfig, real: Arc<dyn Clock>) -> Result<Self> {
        config.check()?;
        let clock = VirtualClock::new(find_device(&config.device)?, config.pace);
        let create = |path: &PathBuf| {
            let create = OpenOptions::new().append(true).create_new(true).open(path);
            create.map_err(Error::std("create the file for contents", path))
        };
        let contents = config.contents.as_ref().map(create).transpose()?;
        let state = State { clock, log: None, log_problem: None, contents, failed_requests: 0, unaligned_requests: 0 };
        Ok(Self {
            name: config.name.clone(),
            size_bytes: config.size_bytes,
            takes_discards: config.discard,
            backing: Backing::open(&config.backing, &config.name, config.size_bytes)?,
            real,
            state: Mutex::new(state),
        })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn takes_discards(&self) -> bool {
        self.takes_discards
    }

    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.backing.allocated_bytes()
    }

    /// Reads; the result ends at the end of the disk.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>, offset: u64, length: u32) -> io::Result<()> {
        let length = self.size_bytes.saturating_sub(offset).min(u64::from(length));
        // Bytes of a larger, earlier request stay in the buffer: the read overwrites them, and
        // clearing costs the same as reading.
        buffer.resize(length as usize, 0);
        self.serve(BlockOp::Read, offset, length, |_| self.backing.read(buffer, offset))
    }

    pub(crate) fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let length = data.len() as u64;
        self.check_range(offset, length)?;
        self.serve(BlockOp::Write, offset, length, |contents| {
            self.backing.write(data, offset)?;
            contents.map_or(Ok(()), |contents| contents.write_all(data))
        })
    }

    /// Discards a range; it reads as zeros afterwards.
    pub(crate) fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.check_range(offset, length)?;
        self.serve(BlockOp::Discard, offset, length, |_| self.backing.punch(offset, length))
    }

    /// Writes zeros: to the device a write, to the backing file a hole.
    pub(crate) fn zero(&self, offset: u64, length: u64) -> io::Result<()> {
        self.check_range(offset, length)?;
        self.serve(BlockOp::Write, offset, length, |contents| {
            self.backing.punch(offset, length)?;
            contents.map_or(Ok(()), |mut contents| io::copy(&mut io::repeat(0).take(length), &mut contents).map(drop))
        })
    }

    /// Flushes the device's cache. The backing file is not synced: the disk is as durable as the
    /// machine's memory.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.serve(BlockOp::Flush, 0, 0, |_| Ok(()))
    }

    fn check_range(&self, offset: u64, length: u64) -> io::Result<()> {
        match offset.checked_add(length) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// `act` gets the file for the contents of writes.
    fn serve(
        &self,
        op: BlockOp,
        offset: u64,
        length: u64,
        act: impl FnOnce(Option<&mut File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut state = self.state();
        if let Err(error) = act(state.contents.as_mut()) {
            state.failed_requests += 1;
            return Err(error);
        }
        let looks_at_clock = state.clock.needs_real_time();
        let real = |disk: &Self| if looks_at_clock { disk.real.now() } else { Nanos(0) };
        let arrived = real(self);
        if op == BlockOp::Flush {
            state.one(op, 0, 0, arrived);
        }
        for (sector, sectors) in compute_sectors(offset, length) {
            state.one(op, sector, sectors, arrived);
        }
        let is_aligned = offset.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES);
        state.unaligned_requests += u64::from(!is_aligned);
        let wait = state.clock.answer(real(self));
        drop(state);
        if wait.0 > 0 {
            // During the sleep the parent can query the time, but the next request waits.
            std::thread::sleep(Duration::from_nanos(wait.0));
        }
        Ok(())
    }

    /// Starts a request log.
    pub(crate) fn start_log(&self, path: &Path) -> Result<()> {
        let mut state = self.state();
        let header = LogHeader {
            disk: self.name.clone(),
            device: state.clock.device().to_owned(),
            size_bytes: self.size_bytes,
            began_ns: state.clock.now().0,
        };
        let log = LogWriter::create(path, &header)?;
        state.end_log();
        state.log_problem = None;
        state.log = Some(log);
        Ok(())
    }

    /// Ends the request log. Returns its error, if it had one.
    pub(crate) fn stop_log(&self) -> Option<String> {
        let mut state = self.state();
        state.end_log();
        state.log_problem.take()
    }

    /// Starts a phase; the report is about the previous one.
    pub(crate) fn mark(&self, name: &str) -> TimeReport {
        let mut state = self.state();
        let at = state.clock.now();
        state.with_log(|log| log.mark(at, name));
        let ended = state.clock.mark(name.to_owned());
        TimeReport { phase: ended, ..self.report(&mut state) }
    }

    pub(crate) fn drop_device_cache(&self) -> TimeReport {
        let mut state = self.state();
        state.clock.drop_device_cache();
        self.report(&mut state)
    }

    pub(crate) fn time(&self) -> TimeReport {
        self.report(&mut self.state())
    }

    fn report(&self, state: &mut State) -> TimeReport {
        // The caller may read the log after this report.
        state.with_log(LogWriter::flush);
        TimeReport {
            device: state.clock.device().to_owned(),
            virtual_ns: state.clock.now().0,
            totals: *state.clock.totals(),
            by_device: state.clock.device_totals(),
            phase: state.clock.phase(),
            failed_requests: state.failed_requests,
            unaligned_requests: state.unaligned_requests,
            allocated_bytes: self.backing.allocated_bytes(),
            log: state.log.as_ref().map(|log| log.path().to_owned()),
            log_problem: state.log_problem.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn one(&mut self, op: BlockOp, sector: u64, sectors: u32, real: Nanos) {
        let served = self.clock.serve(op, sector, sectors, real);
        self.with_log(|log| log.append(&served));
    }

    /// Runs an operation on the log. If the log cannot be written, it ends with a recorded error,
    /// and the disk continues.
    fn with_log(&mut self, act: impl FnOnce(&mut LogWriter) -> Result<()>) {
        if let Some(log) = &mut self.log
            && let Err(error) = act(log)
        {
            self.log_problem = Some(error.to_string());
            self.log = None;
        }
    }

    fn end_log(&mut self) {
        self.with_log(LogWriter::flush);
        self.log = None;
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::ManualClock;

    use super::*;
    use crate::{BackingSpec, read_log};

    fn disk(dir: &Path, size_bytes: u64) -> Disk {
        let backing = BackingSpec::Unlinked { dir: dir.to_owned() };
        let config = ServeConfig::new("a", dir.to_owned(), size_bytes, backing, "plain");
        Disk::open(&config, Arc::new(ManualClock::default())).unwrap()
    }

    #[test]
    fn writes_read_back_and_discards_read_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let disk = disk(dir.path(), 1 << 20);
        let mut got = Vec::new();
        disk.write(&[9; 8192], 4096).unwrap();
        disk.discard(4096, 4096).unwrap();
        disk.read(&mut got, 4096, 8192).unwrap();
        assert_eq!(got, [[0; 4096], [9; 4096]].concat());
        disk.zero(8192, 4096).unwrap();
        disk.read(&mut got, 8192, 4096).unwrap();
        assert_eq!(got, [0; 4096]);
        disk.read(&mut got, (1 << 20) - 4096, 8192).unwrap();
        assert_eq!(got.len(), 4096, "a read ends at the disk's end");
        disk.flush().unwrap();
        let totals = disk.time().totals;
        let counts = [totals.read, totals.write, totals.discard, totals.flush].map(|op| (op.requests, op.bytes));
        assert_eq!(counts, [(3, 16_384), (2, 12_288), (1, 4096), (1, 0)]);
    }

    #[test]
    fn nothing_is_written_past_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let disk = disk(dir.path(), 1 << 20);
        assert!(disk.write(&[1; 8192], (1 << 20) - 4096).is_err());
        assert!(disk.discard(u64::MAX, 4096).is_err());
        assert_eq!((disk.time().virtual_ns, disk.allocated_bytes()), (0, 0));
    }

    #[test]
    fn the_log_replays_to_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let disk = disk(dir.path(), 1 << 30);
        disk.write(&[1; 4096], 0).unwrap();
        let path = dir.path().join("log");
        disk.start_log(&path).unwrap();
        for n in 0..100u64 {
            disk.write(&[2; 4096], n * n * 4096).unwrap();
        }
        disk.mark("second");
        disk.flush().unwrap();
        assert_eq!(disk.stop_log(), None);
        disk.write(&[1; 4096], 0).unwrap();
        let log = read_log(&path).unwrap();
        assert_eq!((log.requests.len(), log.marks.len(), log.marks[0].request), (101, 1, 100));
        let mut again = VirtualClock::new(find_device("plain").unwrap(), crate::Pace::Device);
        again.serve(BlockOp::Write, 0, 8, Nanos(0));
        for (request, completed) in &log.requests {
            let served = again.serve(request.op, request.sector, request.sectors, Nanos(0));
            assert_eq!((served.request, served.completed), (*request, *completed));
        }
    }

    #[test]
    fn contents_of_writes_are_kept_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("contents");
        let backing = BackingSpec::Unlinked { dir: dir.path().to_owned() };
        let mut config = ServeConfig::new("a", dir.path().to_owned(), 1 << 20, backing, "plain");
        config.contents = Some(path.clone());
        let open = || Disk::open(&config, Arc::new(ManualClock::default()));
        let disk = open().unwrap();
        disk.write(&[3; 1024], 8192).unwrap();
        disk.zero(0, 512).unwrap();
        disk.discard(8192, 4096).unwrap();
        disk.write(&[4; 512], 0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [vec![3; 1024], vec![0; 512], vec![4; 512]].concat());
        assert!(open().is_err(), "contents are never overwritten");
    }

    #[test]
    fn partial_sectors_are_counted_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let disk = disk(dir.path(), 1 << 20);
        disk.write(b"abc", 511).unwrap();
        let time = disk.time();
        assert_eq!((time.unaligned_requests, time.totals.write.bytes), (1, 1024));
    }
}
