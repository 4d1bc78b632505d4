//! Devices that record their requests in one common order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use senesce_core::Bytes;

use crate::{BlockDevice, BlockOperation, BlockResult, MemoryDevice, check_range::check_range};

/// A request to one of the devices.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Write {
        device: usize,
        offset: u64,
        data: Arc<[u8]>,
    },
    Discard {
        device: usize,
        offset: u64,
        len: u64,
    },
    Flush {
        device: usize,
    },
    /// The previous write is durable; earlier ones need not be.
    Settle {
        device: usize,
    },
    Mark(u64),
}

/// A recording of all requests to several devices, in one order.
/// [`for_each_crash`](Self::for_each_crash) generates the possible states after a loss of power,
/// which hits all devices at once.
///
/// ```
/// use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
/// use senesce_core::Bytes;
///
/// let devices = vec![MemoryDevice::new("log", Bytes(512)), MemoryDevice::new("data", Bytes(512))];
/// let (recording, devices) = Recording::new(devices);
/// devices[0].write_at(0, &[1]).unwrap(); // the log announces the data
/// devices[0].flush().unwrap();
/// recording.mark(1); // from here on it must not be lost
/// devices[1].write_at(0, &[1]).unwrap();
///
/// recording.for_each_crash(&CrashPlan::default(), |crash| {
///     let byte = |device: usize| crash.devices[device].contents()[0];
///     assert!(byte(1) <= byte(0), "data without a log, {crash}");
///     assert!(byte(0) == 1 || crash.mark.is_none(), "an acknowledged write is lost, {crash}");
/// });
/// ```
#[derive(Clone)]
pub struct Recording(Arc<Mutex<State>>);

pub(super) struct State {
    /// The contents of the devices at the start.
    pub(super) start: Vec<MemoryDevice>,
    pub(super) events: Vec<Event>,
}

impl Recording {
    /// Starts a recording. Returns the recorded devices in the order of `devices`.
    pub fn new(devices: Vec<MemoryDevice>) -> (Self, Vec<RecordedDevice>) {
        let start = devices.iter().map(MemoryDevice::fork).collect();
        let recording = Self(Arc::new(Mutex::new(State { start, events: Vec::new() })));
        let recorded = |(number, device)| RecordedDevice { recording: recording.clone(), number, device };
        let devices = devices.into_iter().enumerate().map(recorded).collect();
        (recording, devices)
    }

    /// Adds a mark: the program under test acknowledged all that belongs to this number. Numbers
    /// should ascend.
    pub fn mark(&self, number: u64) {
        self.state().events.push(Event::Mark(number));
    }

    /// The number of recorded events: writes, discards, flushes and marks.
    pub fn events(&self) -> usize {
        self.state().events.len()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device of a [`Recording`]. It behaves like the original device.
pub struct RecordedDevice {
    recording: Recording,
    number: usize,
    device: MemoryDevice,
}

impl RecordedDevice {
    /// A copy of the current contents, durable or not.
    pub fn fork(&self) -> MemoryDevice {
        self.device.fork()
    }
}

impl BlockDevice for RecordedDevice {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn size(&self) -> Bytes {
        self.device.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.device.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        // Written under the lock, so that the recording has the order of execution.
        let mut state = self.recording.state();
        state.events.push(Event::Write { device: self.number, offset, data: data.into() });
        self.device.write_at(offset, data)
    }

    fn write_durably_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        let mut state = self.recording.state();
        state.events.push(Event::Write { device: self.number, offset, data: data.into() });
        state.events.push(Event::Settle { device: self.number });
        self.device.write_at(offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.recording.state().events.push(Event::Flush { device: self.number });
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        check_range(self, BlockOperation::Discard, offset, len)?;
        let mut state = self.recording.state();
        state.events.push(Event::Discard { device: self.number, offset, len });
        self.device.discard(offset, len)
    }
}
