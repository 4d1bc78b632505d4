//! Devices that record what is done to them, in one order for all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use senesce_core::Bytes;

use crate::{BlockDevice, BlockOperation, BlockResult, MemoryDevice, range::check_range};

/// What happened to one of the devices.
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
    /// The write before it is durable, and others need not be.
    Settle {
        device: usize,
    },
    Mark(u64),
}

/// The record of all that was done to several devices, in one order, from which
/// [`for_each_crash`](Self::for_each_crash) makes what a loss of power may leave: it hits all devices at once.
///
/// ```
/// use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
/// use senesce_core::Bytes;
///
/// let devices = vec![MemoryDevice::new("log", Bytes(512)), MemoryDevice::new("data", Bytes(512))];
/// let (recording, devices) = Recording::new(devices);
/// devices[0].write_at(0, &[1]).unwrap(); // the log says that data will be written
/// devices[0].flush().unwrap();
/// recording.mark(1); // and from here on it must not be lost
/// devices[1].write_at(0, &[1]).unwrap();
///
/// recording.for_each_crash(&CrashPlan::default(), |crash| {
///     let byte = |device: usize| crash.devices[device].contents()[0];
///     assert!(byte(1) <= byte(0), "data without a log, {crash}");
///     assert!(byte(0) == 1 || crash.mark.is_none(), "what was promised is lost, {crash}");
/// });
/// ```
#[derive(Clone)]
pub struct Recording(Arc<Mutex<State>>);

pub(super) struct State {
    /// What the devices held at first.
    pub(super) start: Vec<MemoryDevice>,
    pub(super) events: Vec<Event>,
}

impl Recording {
    /// Records what is done from now on to the devices that it gives back, in the order of those it was given.
    pub fn new(devices: Vec<MemoryDevice>) -> (Self, Vec<RecordedDevice>) {
        let start = devices.iter().map(MemoryDevice::fork).collect();
        let recording = Self(Arc::new(Mutex::new(State { start, events: Vec::new() })));
        let recorded = |(number, device)| RecordedDevice { recording: recording.clone(), number, device };
        let devices = devices.into_iter().enumerate().map(recorded).collect();
        (recording, devices)
    }

    /// Notes that the program under test has come to a point: what it promised, it promised before. Numbers should rise.
    pub fn mark(&self, number: u64) {
        self.state().events.push(Event::Mark(number));
    }

    /// How many events were recorded: writes, discards, flushes and marks.
    pub fn events(&self) -> usize {
        self.state().events.len()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the devices of a [`Recording`]: it works as the device that it was made of.
pub struct RecordedDevice {
    recording: Recording,
    number: usize,
    device: MemoryDevice,
}

impl RecordedDevice {
    /// What it holds now, durable or not, as a device of its own.
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
        // Done under the lock, so that the order of the record is the order in which it was done.
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
