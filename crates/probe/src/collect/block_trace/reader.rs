//! The thread that empties the trace buffers.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    Error,
    trace::{BlockEvent, EventDecoder, Missed, Page, PageFormat},
};

/// The pause of the thread after it found the buffers empty. A buffer of 8 MiB holds a hundred
/// thousand events, and no processor causes that number within the pause.
const REST: Duration = Duration::from_millis(20);

/// The buffer of one processor.
#[derive(Debug)]
pub(super) struct CpuBuffer {
    pub(super) cpu: u32,
    pub(super) path: PathBuf,
    /// `trace_pipe_raw`, opened in non-blocking mode.
    pub(super) pipe: File,
}

/// The content of one buffer.
#[derive(Debug, Default)]
pub(super) struct CpuEvents {
    pub(super) cpu: u32,
    pub(super) events: Vec<BlockEvent>,
    /// Data records read, of any kind, to compare with the kernel's own count.
    pub(super) records: u64,
    /// Lost events according to the pages.
    pub(super) missed: u64,
}

/// The inputs of the thread.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) buffers: Vec<CpuBuffer>,
    pub(super) page_format: PageFormat,
    pub(super) decoder: EventDecoder,
    /// The largest number of events to keep, over all processors.
    pub(super) limit: u64,
    pub(super) stop: Arc<AtomicBool>,
}

/// The result of the thread.
#[derive(Debug)]
pub(super) struct ReaderOutcome {
    pub(super) cpus: Vec<CpuEvents>,
    /// Events beyond the limit.
    pub(super) over_limit: u64,
}

impl Reader {
    /// Empties the buffers until `stop` is set, and then once more.
    pub(super) fn run(mut self) -> Result<ReaderOutcome, Error> {
        let mut outcome = ReaderOutcome { cpus: Vec::new(), over_limit: 0 };
        outcome.cpus.extend(self.buffers.iter().map(|buffer| CpuEvents { cpu: buffer.cpu, ..CpuEvents::default() }));
        let mut bytes = vec![0; self.page_format.page_bytes()];
        let mut kept = 0;
        loop {
            // The flag is read before the buffers, so that the last round sees every event before
            // the stop.
            let last_round = self.stop.load(Ordering::Acquire);
            for (buffer, found) in self.buffers.iter_mut().zip(&mut outcome.cpus) {
                loop {
                    let length = match buffer.pipe.read(&mut bytes) {
                        Ok(0) => break,
                        Ok(length) => length,
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(source) => return Err(Error::system("read the trace", &buffer.path, source)),
                    };
                    let page = Page::new(&bytes[..length], &self.page_format)?;
                    found.missed += match page.missed {
                        Missed::None => 0,
                        Missed::Some => 1,
                        Missed::Count(count) => count,
                    };
                    for record in page {
                        found.records += 1;
                        let Some(event) = self.decoder.decode(&record?) else { continue };
                        if kept < self.limit {
                            kept += 1;
                            found.events.push(event);
                        } else {
                            outcome.over_limit += 1;
                        }
                    }
                }
            }
            if last_round {
                return Ok(outcome);
            }
            std::thread::park_timeout(REST);
        }
    }
}
