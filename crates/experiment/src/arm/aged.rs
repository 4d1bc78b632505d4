//! An aged volume of an arm, and the sums of its steps since the last checkpoint.

use std::{io, os::fd::BorrowedFd};

use senesce_core::{Clock, Nanos};
use senesce_exec::{ExecError, Latencies, LatencyHistogram, LatencySums, PosixTarget, Settle, Target, TimedTarget};
use senesce_oplog::{DoneStep, Op, Outcome};
use senesce_probe::collect::collect_process_times;
use senesce_store::{AgingRow, CellKey, LatencyRow, Role, StepRow};
use senesce_volume::{Pinned, Settler, Volume};

use super::virtual_time::VirtualTime;
use crate::{Error, feedback::SpaceTold};

/// A volume that is aged.
pub(crate) struct Aged {
    /// Full or empty.
    pub role: Role,
    /// Applies operations to the volume. Closed while the volume is unmounted. It is dropped before
    /// the volume: its open root would keep the volume busy, and each release would wait.
    pub target: Option<PosixTarget>,
    /// The volume.
    pub volume: Volume,
    /// Sums since the last checkpoint.
    pub tally: Tally,
    /// Latencies since the last checkpoint.
    latencies: Latencies,
    /// The steps since the last checkpoint.
    steps: Vec<StepDone>,
    /// Whether reads and overwrites bypass the page cache.
    direct: bool,
    /// Bytes that its device had written at the end of the last checkpoint. `None` for a directory.
    written_before: Option<u64>,
    /// Operations between two commits of a volume that settles. `None`: it does not.
    settle: Option<u64>,
}

/// The parts of the time of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StepTimes {
    /// The whole time.
    pub wall: Nanos,
    /// The time within the operations. `None` for the git binary.
    pub operations: Option<LatencySums>,
    /// Seconds in which a disk in virtual time was busy. `None` for other volumes.
    pub disk_seconds: Option<f64>,
}

/// A completed step, for table `steps`.
#[derive(Clone, Debug, PartialEq)]
struct StepDone {
    number: u64,
    counted: bool,
    operations: u64,
    written_bytes: u64,
    no_space: bool,
    times: StepTimes,
    /// The times of the synchronization after it, if there was one.
    sync_after: Option<StepTimes>,
}

/// Sums over steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub steps: u64,
    pub operations: u64,
    pub written_bytes: u64,
    pub no_space_steps: u64,
    pub wall: Nanos,
    pub user_seconds: f64,
    pub system_seconds: f64,
}

impl Aged {
    /// Wraps a mounted volume. With `direct`, reads and overwrites bypass the page cache.
    pub fn new(role: Role, volume: Volume, direct: bool, settle: Option<u64>) -> Result<Self, Error> {
        let (tally, latencies) = (Tally::default(), Latencies::default());
        let written_before = device_written(&volume)?;
        Ok(Self { role, volume, target: None, tally, latencies, steps: Vec::new(), direct, written_before, settle })
    }

    /// Replaces the volume. Destroys the old one before it makes the new one.
    pub fn replaced(self, make: impl FnOnce(Role) -> Result<Volume, Error>) -> Result<Self, Error> {
        drop(self.target);
        self.volume.destroy()?;
        let volume = make(self.role)?;
        let written_before = device_written(&volume)?;
        Ok(Self { volume, target: None, written_before, ..self })
    }

    /// Starts the count of written bytes for the next checkpoint.
    pub fn mark_written(&mut self) -> Result<(), Error> {
        self.written_before = device_written(&self.volume)?;
        Ok(())
    }

    /// Bytes that its device wrote since [`mark_written`](Self::mark_written). `None` for a
    /// directory.
    pub fn written_since(&self) -> Result<Option<u64>, Error> {
        let now = device_written(&self.volume)?;
        Ok(now.zip(self.written_before).and_then(|(now, before)| now.checked_sub(before)))
    }

    /// Returns the target, and opens it if it is closed.
    pub fn target(&mut self) -> Result<&mut PosixTarget, Error> {
        if !self.volume.is_mounted() {
            // Without the mount, this path is on the host's file system.
            return Err(Error::Unverified {
                what: "the mount of an aged volume".into(),
                problem: "it is unmounted".into(),
            });
        }
        if self.target.is_none() {
            let settle = settling(&self.volume, self.settle)?;
            let target = PosixTarget::open(self.volume.root())?.with_direct_io(self.direct);
            self.target = Some(target.with_settle(settle.map(|settling| Box::new(settling) as Box<dyn Settle>)));
        }
        Ok(self.target.as_mut().expect("it was just opened"))
    }

    /// Runs `work` and adds its time to the tally. Also returns the time.
    pub fn timed<T>(
        &mut self,
        clock: &dyn Clock,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<(T, StepTimes), Error> {
        let before = self.volume.disk_time()?;
        let (began, cpu) = (clock.now(), collect_process_times());
        let result = work(self);
        let used = collect_process_times().since(cpu);
        let wall = clock.now().since(began);
        self.tally.wall.0 += wall.0;
        self.tally.user_seconds += used.user_seconds;
        self.tally.system_seconds += used.system_seconds;
        let result = result?;
        let disk = before.zip(self.volume.disk_time()?).map(|(before, after)| VirtualTime::between(&before, &after));
        let disk_seconds = disk.transpose()?.map(|time| time.seconds);
        Ok((result, StepTimes { wall, operations: None, disk_seconds }))
    }

    /// Lets `work` apply operations to the volume. Measures its time and that of each operation.
    pub fn apply<T>(
        &mut self,
        clock: &dyn Clock,
        work: impl FnOnce(&mut dyn Target) -> Result<T, ExecError>,
    ) -> Result<(T, StepTimes), Error> {
        self.target()?;
        // Only here: threads that this thread starts at other times would inherit it.
        let pinned = self.settle.map(|_| Pinned::new()).transpose();
        let _pinned = pinned.map_err(Error::io("pin a thread that applies operations to", self.volume.root()))?;
        let before = self.latencies.sums();
        let (result, times) = self.timed(clock, |aged| {
            let target = aged.target.as_mut().expect("it was just opened");
            Ok(work(&mut TimedTarget::new(target, clock, &mut aged.latencies))?)
        })?;
        let operations = Some(self.latencies.sums().since(before));
        Ok((result, StepTimes { operations, ..times }))
    }

    /// Counts and lists a completed step.
    pub fn count(&mut self, done: &DoneStep, times: StepTimes) {
        let written_bytes = written_bytes(done);
        let no_space = matches!(done.outcome, Outcome::NoSpace { .. });
        self.count_sync(done);
        self.tally.written_bytes += written_bytes;
        self.steps.push(StepDone {
            number: done.number,
            counted: done.step.counted,
            operations: done.step.ops.len() as u64,
            written_bytes,
            no_space,
            times,
            sync_after: None,
        });
    }

    /// Counts a step that only synchronized, and does not list it.
    pub fn count_sync(&mut self, done: &DoneStep) {
        self.tally.steps += 1;
        self.tally.operations += done.step.ops.len() as u64;
        self.tally.no_space_steps += u64::from(matches!(done.outcome, Outcome::NoSpace { .. }));
    }

    /// Counts and lists a step of the git binary.
    pub fn count_git(&mut self, number: u64, counted: bool, times: StepTimes) {
        self.tally.steps += 1;
        let done =
            StepDone { number, counted, operations: 0, written_bytes: 0, no_space: false, times, sync_after: None };
        self.steps.push(done);
    }

    /// Counts a synchronization between two steps of the git binary, but does not log it.
    pub fn count_git_sync(&mut self) {
        self.tally.steps += 1;
    }

    /// Records the times of the synchronization after the last step.
    pub fn note_sync(&mut self, times: StepTimes) {
        if let Some(last) = self.steps.last_mut() {
            last.sync_after = Some(times);
        }
    }

    /// Returns the rows of table `latency`, and clears them.
    pub fn take_latencies(&mut self, key: &CellKey) -> Vec<LatencyRow> {
        let latencies = std::mem::take(&mut self.latencies);
        let row = |operation: &str, histogram: &LatencyHistogram| {
            let at = |quantile| histogram.quantile(quantile).unwrap_or_default().as_secs_f64();
            LatencyRow {
                key: key.clone(),
                operation: operation.to_owned(),
                operations: histogram.count(),
                total_seconds: histogram.total().as_secs_f64(),
                p50_seconds: at(0.5),
                p99_seconds: at(0.99),
                p99_9_seconds: at(0.999),
                max_seconds: histogram.max().as_secs_f64(),
            }
        };
        let all = latencies.all_but_syncs();
        let all = all.iter().map(|histogram| row("all", histogram));
        all.chain(latencies.iter().map(|(kind, histogram)| row(kind.name(), histogram))).collect()
    }

    /// Returns the rows of table `steps`, and clears them.
    pub fn take_steps(&mut self, key: &CellKey) -> Vec<StepRow> {
        let seconds = |time: Option<Nanos>| time.map_or(f64::NAN, Nanos::as_secs_f64);
        let row = |step: StepDone| StepRow {
            key: key.clone(),
            step: step.number,
            counted: step.counted,
            operations: step.operations,
            written_bytes: step.written_bytes,
            no_space: step.no_space,
            wall_seconds: step.times.wall.as_secs_f64(),
            operation_seconds: seconds(step.times.operations.map(|sums| sums.work)),
            sync_seconds: {
                let own = step.times.operations.filter(|sums| sums.syncs > 0).map(|sums| sums.sync.0);
                let parts = own.into_iter().chain(step.sync_after.map(|after| after.wall.0));
                seconds(parts.reduce(|own, after| own + after).map(Nanos))
            },
            disk_seconds: {
                let after = step.sync_after.and_then(|after| after.disk_seconds).unwrap_or(0.0);
                step.times.disk_seconds.map_or(f64::NAN, |seconds| seconds + after)
            },
        };
        std::mem::take(&mut self.steps).into_iter().map(row).collect()
    }

    /// Returns the row of table `aging`, and clears the tally.
    pub fn take_row(&mut self, key: CellKey, copies: u64) -> AgingRow {
        let tally = std::mem::take(&mut self.tally);
        AgingRow {
            key,
            steps: tally.steps,
            operations: tally.operations,
            written_bytes: tally.written_bytes,
            no_space_steps: tally.no_space_steps,
            copies,
            wall_seconds: tally.wall.as_secs_f64(),
            user_seconds: tally.user_seconds,
            system_seconds: tally.system_seconds,
            // Known only after the volume is unmounted.
            device_written_bytes: None,
        }
    }

    /// Returns the current capacity and free space.
    pub fn space(&mut self) -> Result<SpaceTold, Error> {
        use senesce_exec::Target;
        let root = self.volume.root().to_owned();
        let left = self.target()?.space().map_err(Error::io("query the free space of", root))?;
        Ok(SpaceTold { capacity: left.capacity, free: left.free })
    }
}

/// Settles an aged volume after its operations.
#[derive(Debug)]
struct Settling(Settler);

impl Settle for Settling {
    fn wrote(&mut self, file: BorrowedFd<'_>) -> io::Result<()> {
        self.0.write_back(file)
    }

    fn done(&mut self, op: &Op) -> io::Result<()> {
        self.0.count(matches!(op, Op::Unlink { .. } | Op::Rename { .. } | Op::RemoveTree { .. }))
    }
}

fn settling(volume: &Volume, every: Option<u64>) -> Result<Option<Settling>, Error> {
    let settler = every.map(|every| Settler::open(volume.root(), volume.spec().file_system, every));
    Ok(settler.transpose()?.map(Settling))
}

/// Bytes that a volume's device has written. `None` for a directory.
fn device_written(volume: &Volume) -> Result<Option<u64>, Error> {
    /// Bytes of a sector in the block layer's statistics.
    const SECTOR_BYTES: u64 = 512;
    Ok(volume.device_stat()?.map(|stat| stat.written_sectors * SECTOR_BYTES))
}

/// Bytes of content that a step wrote.
pub(crate) fn written_bytes(done: &DoneStep) -> u64 {
    let contents: u64 = done.contents.iter().map(|(bytes, _)| bytes).sum();
    match done.outcome {
        // The failed operation wrote only a part of its content.
        Outcome::NoSpace { failed_op, written } if done.step.ops.get(failed_op).and_then(Op::content).is_some() => {
            let whole = done.contents.last().map_or(0, |(bytes, _)| *bytes);
            contents - (whole - written.unwrap_or(0))
        }
        _ => contents,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use senesce_core::{Bytes, Seed};
    use senesce_testkit::root_or_skip;
    use senesce_volume::{Backend, Custodian, FileSystemKind, LinuxHost, Slot, Uuid, VolumeSpec};

    use super::*;

    fn volume(custodian: &Custodian, dir: &Path, name: &str, backend: Backend) -> Volume {
        let uuid = Uuid::from_seed(Seed(std::process::id().into()).derive(&dir.join(name).to_string_lossy()));
        let slot = Slot { name: name.into(), uuid, mount_dir: dir.to_owned(), needed: Bytes(1 << 20) };
        Volume::create(custodian, &VolumeSpec::new(backend, FileSystemKind::Ext4), &slot).unwrap()
    }

    fn image(dir: &Path) -> Backend {
        Backend::Image { dir: dir.to_owned(), size: Bytes(64 * Bytes::MIB), memory: false }
    }

    #[test]
    fn volume_is_released_if_its_target_was_open() {
        if !root_or_skip("loop devices and mounts") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let custodian = Custodian::open(Arc::new(LinuxHost::default()), dir.path()).unwrap();
        let loop_volume = volume(&custodian, dir.path(), "loop", image(dir.path()));
        let mut aged = Aged::new(Role::Full, loop_volume, false, None).unwrap();
        aged.target().unwrap();
        assert!(!custodian.held().is_empty());
        // As after a signal in the middle of a step.
        drop(aged);
        assert_eq!(custodian.held(), []);
    }

    #[test]
    fn device_writes_are_counted_in_bytes() {
        if !root_or_skip("loop devices and mounts") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let custodian = Custodian::open(Arc::new(LinuxHost::default()), dir.path()).unwrap();
        let volume = |name: &str, backend| volume(&custodian, dir.path(), name, backend);
        let mut aged = Aged::new(Role::Full, volume("loop", image(dir.path())), false, None).unwrap();
        let mut written = |mib: u64| {
            aged.mark_written().unwrap();
            fs::write(aged.volume.root().join(format!("{mib}")), vec![7; (mib << 20) as usize]).unwrap();
            aged.volume.unmount().unwrap();
            let written = aged.written_since().unwrap().expect("it is a device");
            aged.volume.mount().unwrap();
            written
        };
        // Inodes, maps and journal blocks come on top of the contents.
        for mib in [1, 8] {
            let found = written(mib);
            assert!((mib << 20..(mib + 1) << 20).contains(&found), "{found} bytes for {mib} MiB");
        }
        let path = dir.path().join("directory");
        fs::create_dir(&path).unwrap();
        let plain = Aged::new(Role::Full, volume("directory", Backend::Directory { path }), false, None).unwrap();
        assert_eq!(plain.written_since().unwrap(), None, "a directory has no device of its own");
    }
}
