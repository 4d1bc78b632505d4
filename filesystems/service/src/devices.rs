//! The devices of an open engine, which can be read in their state at one moment.

use std::{
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use senesce_block::{BlockDevice, FreezableDevice, Freezer, LostMoment, Moment, OverlayDevice};
use senesce_core::Bytes;
use senesce_garden::LogDevices;

use crate::{Error, Result, Task};

/// The most bytes of changes to a frozen device that are kept in memory.
pub const MOST_CHANGES: Bytes = Bytes(256 << 20);
/// The most bytes of overwritten data that a dry run keeps.
pub(crate) const KEPT_BYTES: Bytes = Bytes(256 << 20);
/// What to do if a check must keep more.
pub(crate) const KEEP_MORE: &str = "--keep SIZE keeps more in memory; or unmount it";
/// How often to check for cancellation while work reports no progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

type Shared = Arc<dyn BlockDevice>;
type Freezable = Arc<FreezableDevice<Shared>>;

/// The devices of an engine, which is opened on [`drives`](Self::drives) and [`log`](Self::log).
pub struct Devices {
    freezer: Freezer,
    drives: Vec<Freezable>,
    logs: Vec<Freezable>,
    /// `logs` under the names of the engine.
    log: LogDevices,
}

/// The contents of the devices at one moment. Changes stay in memory, up to 256 MiB for each
/// device.
pub struct Frozen {
    /// The drives in the same order.
    pub drives: Vec<Shared>,
    /// The devices of the log.
    pub log: LogDevices,
    /// Saves overwritten data of the engine while it exists.
    moment: Moment,
}

impl Devices {
    /// Nothing else may write to these devices. An evergreen has one drive and no log.
    pub fn new(drives: Vec<Shared>, log: LogDevices) -> Self {
        let freezer = Freezer::default();
        let freezable = |number, device| Arc::new(FreezableDevice::new(device, &freezer, number));
        let drives: Vec<_> = drives.into_iter().enumerate().map(|(number, drive)| freezable(number, drive)).collect();
        let mut logs = Vec::new();
        let log = log.map(|number, device| {
            let device = freezable(drives.len() + number, device);
            logs.push(device.clone());
            device
        });
        Self { freezer, drives, logs, log }
    }

    /// The drives for the engine in the same order.
    pub fn drives(&self) -> Vec<Shared> {
        self.drives.iter().map(|device| device.clone() as Shared).collect()
    }

    /// The devices of the log for the engine.
    pub fn log(&self) -> &LogDevices {
        &self.log
    }

    /// The current contents of the devices. At most `most_bytes` of data that is overwritten later
    /// are kept for them. `None`: the devices are already frozen.
    pub fn freeze(&self, most_bytes: Bytes) -> Option<Frozen> {
        let moment = self.freezer.freeze(most_bytes)?;
        let frozen =
            |device: &Freezable| -> Shared { Arc::new(OverlayDevice::within(device.at(&moment), MOST_CHANGES)) };
        let drives = self.drives.iter().map(&frozen).collect();
        let log = self.log.clone().map(|number, _| frozen(&self.logs[number]));
        Some(Frozen { drives, log, moment })
    }
}

impl Frozen {
    /// Runs work in another thread and forwards its progress. After a cancellation, reads of the
    /// devices fail, which ends the work.
    ///
    /// Errors: the task was cancelled; more data was overwritten than is kept, with the hint
    /// `keep_more`.
    pub(crate) fn attend<T: Send, P: Send>(
        &self,
        task: &mut dyn Task,
        keep_more: Option<&str>,
        tell: impl Fn(&mut dyn Task, P),
        work: impl FnOnce(Sender<P>) -> T + Send,
    ) -> Result<T> {
        thread::scope(|scope| {
            let (sender, steps) = channel();
            let work = scope.spawn(move || work(sender));
            let mut is_cancelled = false;
            loop {
                match steps.recv_timeout(POLL_INTERVAL) {
                    Ok(step) => tell(task, step),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if task.is_cancelled() {
                    is_cancelled = true;
                    self.moment.give_up("the work was interrupted");
                }
            }
            match work.join() {
                Ok(_) if is_cancelled => Err(Error::refused("it was interrupted", None)),
                Ok(done) => match self.moment.lost() {
                    Some(LostMoment { why, is_full }) => {
                        let hint =
                            is_full.then_some(keep_more.unwrap_or("try again when programs write less, or unmount it"));
                        Err(Error::refused(why, hint))
                    }
                    None => Ok(done),
                },
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use senesce_block::{FaultDevice, MemoryDevice};

    use super::*;
    use crate::NoTask;

    #[test]
    fn work_on_a_lost_moment_has_no_result() {
        let devices = Devices::new(vec![Arc::new(MemoryDevice::new("d", Bytes(1 << 20)))], LogDevices::none());
        let drive = devices.drives().swap_remove(0);
        let frozen = devices.freeze(Bytes(0)).unwrap();
        let done = frozen.attend(&mut NoTask, None, |_, ()| {}, |_sender| drive.write_at(0, &[1; 8]).is_ok());
        let Err(Error::Refused { message, .. }) = done else { panic!("{done:?}") };
        assert!(message.contains("were overwritten during the moment"), "{message}");
    }

    #[test]
    fn changes_of_a_moment_are_bounded() {
        const PIECE: usize = 8 << 20;
        let device = MemoryDevice::new("d", Bytes(MOST_CHANGES.0 + PIECE as u64));
        let devices = Devices::new(vec![Arc::new(device)], LogDevices::none());
        let frozen = devices.freeze(Bytes(1 << 20)).unwrap();
        let drive = &frozen.drives[0];
        let piece = vec![1; PIECE];
        for offset in (0..MOST_CHANGES.0).step_by(PIECE) {
            drive.write_at(offset, &piece).unwrap();
        }
        drive.write_at(0, &piece).unwrap(); // already kept
        let error = drive.write_at(MOST_CHANGES.0, &piece).unwrap_err();
        assert!(error.problem.to_string().contains("the changes exceed"), "{error}");
    }

    /// One piece of the drive cannot be saved.
    #[test]
    fn read_error_of_a_drive_has_no_hint() {
        let drive = FaultDevice::new(MemoryDevice::new("d", Bytes(1 << 20)));
        drive.inject("fail read 1").unwrap();
        let devices = Devices::new(vec![Arc::new(drive)], LogDevices::none());
        let drive = devices.drives().swap_remove(0);
        let frozen = devices.freeze(Bytes(1 << 20)).unwrap();
        let done = frozen.attend(&mut NoTask, None, |_, ()| {}, |_sender| drive.write_at(0, &[1; 8]).is_ok());
        let Err(Error::Refused { message, hint }) = done else { panic!("{done:?}") };
        assert!(message.contains("could not be saved") && hint.is_none(), "{message}, {hint:?}");
    }
}
