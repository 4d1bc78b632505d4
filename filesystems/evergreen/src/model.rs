//! The store in memory: the simplest possible one. Tests compare the tree with it, and run the file
//! system on it.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
    sync::{Mutex, MutexGuard},
};

use bytes::Bytes;

use crate::{Batch, Change, Error, KeyValue, Live, MAX_KEY_BYTES, MAX_VALUE_BYTES, Message, Result};

/// A [`KeyValue`] in memory. Nothing of it is durable.
#[derive(Debug)]
pub struct ModelStore {
    state: Mutex<State>,
    /// The limit of all claims, and the part of it reserved for removals.
    most: u64,
    kept: u64,
}

#[derive(Debug, Default)]
struct State {
    values: BTreeMap<Bytes, Bytes>,
    live: u64,
}

impl ModelStore {
    /// An empty store with a limit of `most` claimed bytes; `kept` of them are for removals only.
    pub fn new(most: u64, kept: u64) -> Self {
        Self { state: Mutex::default(), most, kept }
    }

    /// All keys and values, in order.
    pub fn entries(&self) -> Vec<(Bytes, Bytes)> {
        self.lock().values.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl KeyValue for ModelStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.lock().values.get(key).cloned())
    }

    fn scan(&self, from: &[u8], to: &[u8], sink: &mut dyn FnMut(&[u8], Bytes) -> ControlFlow<()>) -> Result<()> {
        let mut at = Bound::Included(Bytes::copy_from_slice(from));
        loop {
            let end = Bound::Excluded(Bytes::copy_from_slice(to));
            if from >= to {
                return Ok(());
            }
            let next = self.lock().values.range((at, end)).next().map(|(key, value)| (key.clone(), value.clone()));
            let Some((key, value)) = next else { return Ok(()) };
            if sink(&key, value).is_break() {
                return Ok(());
            }
            at = Bound::Excluded(key);
        }
    }

    fn apply(&self, batch: Batch) -> Result<()> {
        check_lengths(&batch)?;
        let mut state = self.lock();
        let live = state.live.saturating_add_signed(batch.claim.bytes);
        let most = if batch.claim.is_removal { self.most } else { self.most - self.kept };
        if batch.claim.bytes > 0 && live > most {
            return Err(Error::NoSpace { wanted: batch.claim.bytes as u64, free: most.saturating_sub(state.live) });
        }
        state.live = live;
        for change in batch.changes() {
            match change {
                Change::One { key, message } => match message.apply(state.values.get(key)) {
                    Some(value) => drop(state.values.insert(key.clone(), value)),
                    None => drop(state.values.remove(key)),
                },
                Change::DeleteRange { from, to } => {
                    let behind = state.values.range::<Bytes, _>(from..);
                    let gone: Vec<Bytes> = behind.map(|(key, _)| key).take_while(|key| *key < to).cloned().collect();
                    gone.iter().for_each(|key| drop(state.values.remove(key)));
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn max_batch_bytes(&self) -> usize {
        usize::MAX
    }

    fn live(&self) -> Live {
        Live { bytes: self.lock().live, most: self.most - self.kept }
    }
}

/// Refuses keys and values that are too long. Errors: `Invalid`.
pub(crate) fn check_lengths(batch: &Batch) -> Result<()> {
    for change in batch.changes() {
        let (keys, value) = match change {
            Change::One { key, message } => (
                [key.len(), 0],
                match message {
                    Message::Put(value) => value.len(),
                    Message::Delete => 0,
                    Message::Edit(edit) => edit.least() as usize,
                },
            ),
            Change::DeleteRange { from, to } => ([from.len(), to.len()], 0),
        };
        if let Some(bytes) = keys.into_iter().find(|bytes| *bytes > MAX_KEY_BYTES) {
            return Err(Error::Invalid { what: format!("a key of {bytes} bytes; at most {MAX_KEY_BYTES}") });
        }
        if value > MAX_VALUE_BYTES {
            return Err(Error::Invalid { what: format!("a value of {value} bytes; at most {MAX_VALUE_BYTES}") });
        }
    }
    Ok(())
}
