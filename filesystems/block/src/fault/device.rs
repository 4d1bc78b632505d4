//! A device with injected faults.

use std::sync::{Mutex, MutexGuard, PoisonError};

use senesce_core::Bytes;

use super::{Effect, Fault, ParseFaultError};
use crate::{BlockDevice, BlockError, BlockOperation, BlockProblem, BlockResult, check_range::check_range};

/// Passes requests to another device, except those with a [fault](Fault).
pub struct FaultDevice<D> {
    inner: D,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    faults: Vec<Fault>,
    reads: u64,
    writes: u64,
    flushes: u64,
    struck: u64,
}

impl<D: BlockDevice> FaultDevice<D> {
    /// A device without faults.
    pub fn new(inner: D) -> Self {
        Self { inner, state: Mutex::default() }
    }

    /// Adds faults: one as text, or several separated by `;`. If two match a request, the first one
    /// acts.
    pub fn inject(&self, words: &str) -> Result<(), ParseFaultError> {
        let faults: Vec<Fault> = words.split(';').map(str::parse).collect::<Result<_, _>>()?;
        self.state().faults.extend(faults);
        Ok(())
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// The number of requests with a fault.
    pub fn struck(&self) -> u64 {
        self.state().struck
    }

    /// The number of reads, writes or flushes; 0 for other operations.
    pub fn requests(&self, operation: BlockOperation) -> u64 {
        let state = self.state();
        match operation {
            BlockOperation::Read => state.reads,
            BlockOperation::Write => state.writes,
            BlockOperation::Flush => state.flushes,
            BlockOperation::Open | BlockOperation::Discard => 0,
        }
    }

    /// The device below.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, and returns the effect of a matching fault.
    fn strike(&self, operation: BlockOperation, offset: u64, len: u64) -> Option<Effect> {
        let mut state = self.state();
        let count = match operation {
            BlockOperation::Read => &mut state.reads,
            BlockOperation::Write => &mut state.writes,
            _ => &mut state.flushes,
        };
        *count += 1;
        let number = *count;
        let fault =
            state.faults.iter().find(|fault| fault.operation == operation && fault.when.is(number, offset, len));
        let effect = fault.map(|fault| fault.effect)?;
        state.struck += 1;
        Some(effect)
    }

    fn injected(&self, operation: BlockOperation, offset: u64, len: u64) -> BlockError {
        BlockError::new(self.name(), operation, offset, len, BlockProblem::Injected)
    }
}

fn flip(data: &mut [u8], bit: u64) {
    if !data.is_empty() {
        let bit = bit % (data.len() as u64 * 8);
        data[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

impl<D: BlockDevice> BlockDevice for FaultDevice<D> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> Bytes {
        self.inner.size()
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        let len = out.len() as u64;
        check_range(self, BlockOperation::Read, offset, len)?;
        match self.strike(BlockOperation::Read, offset, len) {
            Some(Effect::Fail | Effect::Lose | Effect::Tear { .. }) => {
                Err(self.injected(BlockOperation::Read, offset, len))
            }
            Some(Effect::Misdirect { to }) if check_range(self, BlockOperation::Read, to, len).is_ok() => {
                self.inner.read_at(to, out)
            }
            Some(Effect::Misdirect { .. }) => {
                out.fill(0);
                Ok(())
            }
            Some(Effect::Flip { bit }) => {
                self.inner.read_at(offset, out)?;
                flip(out, bit);
                Ok(())
            }
            None => self.inner.read_at(offset, out),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        let len = data.len() as u64;
        check_range(self, BlockOperation::Write, offset, len)?;
        match self.strike(BlockOperation::Write, offset, len) {
            Some(Effect::Fail) => Err(self.injected(BlockOperation::Write, offset, len)),
            Some(Effect::Lose) => Ok(()),
            Some(Effect::Tear { keep }) => self.inner.write_at(offset, &data[..keep.min(len) as usize]),
            Some(Effect::Misdirect { to }) => match check_range(self, BlockOperation::Write, to, len) {
                Ok(()) => self.inner.write_at(to, data),
                Err(_) => Ok(()), // out of range, so it is lost, as documented for `Effect`
            },
            Some(Effect::Flip { bit }) => {
                let mut flipped = data.to_vec();
                flip(&mut flipped, bit);
                self.inner.write_at(offset, &flipped)
            }
            None => self.inner.write_at(offset, data),
        }
    }

    fn flush(&self) -> BlockResult<()> {
        match self.strike(BlockOperation::Flush, 0, 0) {
            None => self.inner.flush(),
            Some(Effect::Lose) => Ok(()),
            Some(_) => Err(self.injected(BlockOperation::Flush, 0, 0)),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        self.inner.discard(offset, len)
    }
}
