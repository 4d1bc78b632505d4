//! Starts and stops a trace.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use super::{
    device::{TraceDevice, collect_trace_device},
    instance::Instance,
    reader::{CpuBuffer, CpuEvents, Reader, ReaderOutcome},
};
use crate::{
    Error,
    trace::{Action, BlockEvent, BlockTrace, EventDecoder, EventFormat, PageFormat, compute_requests},
};

/// The events of a trace. Older kernels lack the last one.
const EVENTS: [&str; 3] = ["block_rq_issue", "block_rq_complete", "block_rq_requeue"];

/// Limits of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Kernel memory for each processor's buffer, bytes. On machines with more than 32 processors
    /// it is less, so that all buffers together have at most 32 times this. A buffer stores one
    /// event in about 64 bytes.
    pub buffer_bytes: u64,
    /// The largest number of events in memory; later ones count as lost. An event needs 32 bytes. A
    /// request has two events and needs 56 more. Sorting and pairing need at most 200 bytes a
    /// request.
    pub event_limit: u64,
}

impl Default for TraceOptions {
    /// 8 MiB a processor, and 20 million events: ten million requests, 2 GB at the end.
    fn default() -> Self {
        Self { buffer_bytes: 8 << 20, event_limit: 20_000_000 }
    }
}

/// A running trace. If it is dropped without [`BlockTracer::stop`], it stops and removes its
/// instance too.
#[derive(Debug)]
pub struct BlockTracer {
    device: TraceDevice,
    instance: Instance,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<ReaderOutcome, Error>>>,
}

impl BlockTracer {
    /// Starts to trace the requests of a device; see [`collect_trace_device`] for the meaning of
    /// `device`.
    ///
    /// Errors: no right to trace (root is needed), no tracefs, or a device without requests of its
    /// own. Cost: 35 to 65 ms to start, a thread, the memory of [`TraceOptions::default`], about
    /// 0.04 s of CPU per million events.
    pub fn start(device: &Path) -> Result<Self, Error> {
        Self::start_with(collect_trace_device(device)?, &TraceOptions::default())
    }

    /// Starts a trace with the given limits.
    pub fn start_with(device: TraceDevice, options: &TraceOptions) -> Result<Self, Error> {
        if cfg!(target_endian = "big") {
            let problem = "trace pages of big-endian machines are not supported".to_owned();
            return Err(Error::NoTrace { path: "/sys/kernel/tracing".into(), problem });
        }
        let instance = Instance::new()?;
        let cpus = instance.cpus()?;
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        // Events that do not fit must be lost at the end, where they are counted. They must not
        // overwrite unread ones.
        instance.set("options/overwrite", "0")?;
        let share = options.buffer_bytes.saturating_mul(32) / cpus.len().max(1) as u64;
        let kib = (options.buffer_bytes.min(share) >> 10).max(64);
        instance.set("buffer_size_kb", &kib.to_string())?;
        let mut formats = Vec::new();
        for event in EVENTS {
            let directory = format!("events/block/{event}");
            if event == "block_rq_requeue" && !instance.file(&directory).is_dir() {
                continue;
            }
            formats.push(EventFormat::parse(&instance.get(&format!("{directory}/format"))?)?);
            instance.set(&format!("{directory}/filter"), &device.filter())?;
            instance.set(&format!("{directory}/enable"), "1")?;
        }
        let page_format =
            PageFormat::parse(&instance.get("events/header_page")?, &instance.get("events/header_event")?)?;
        let mut buffers = Vec::new();
        for cpu in cpus {
            let path = instance.file(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let pipe = OpenOptions::new().read(true).custom_flags(flags).open(&path);
            let pipe = pipe.map_err(|source| Error::system("open the trace", &path, source))?;
            buffers.push(CpuBuffer { cpu, path, pipe });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let decoder = EventDecoder::new(&formats)?;
        let reader = Reader { buffers, page_format, decoder, limit: options.event_limit, stop: Arc::clone(&stop) };
        instance.set("tracing_on", "1")?;
        let thread = std::thread::Builder::new()
            .name("block-trace".to_owned())
            .spawn(move || reader.run())
            .map_err(|source| Error::system("start a thread to read", instance.file("per_cpu"), source))?;
        Ok(Self { device, instance, stop, thread: Some(thread) })
    }

    /// The traced device.
    pub fn device(&self) -> &TraceDevice {
        &self.device
    }

    /// Stops the trace and returns the requests issued since its start.
    ///
    /// An unfinished request has no completion: sync first if that matters. `lost` is the larger of
    /// the losses in the kernel's statistics and in the pages, plus the events beyond the limit.
    /// Errors: the kernel's pages are malformed, or its files cannot be read.
    pub fn stop(mut self) -> Result<BlockTrace, Error> {
        self.instance.set("tracing_on", "0")?;
        let outcome = self.finish()?;
        let mut lost = outcome.over_limit;
        for cpu in &outcome.cpus {
            let name = format!("per_cpu/cpu{}/stats", cpu.cpu);
            let stats = self.instance.get(&name)?;
            let counted = compute_lost(&stats, cpu.records);
            let counted = counted.map_err(|problem| Error::Malformed {
                call: "the trace statistics",
                path: self.instance.file(&name),
                problem,
            })?;
            lost += counted.max(cpu.missed);
        }
        let events = merge(outcome.cpus);
        let mut paired = compute_requests(events);
        let start = self.device.start_sector();
        for traced in &mut paired.requests {
            if traced.request.sectors > 0 {
                traced.request.sector = traced.request.sector.saturating_sub(start);
            }
        }
        Ok(BlockTrace {
            device: Some(self.device.device),
            requests: paired.requests,
            lost,
            requeued: paired.requeued,
            others: paired.others,
            unmatched_completions: paired.unmatched_completions,
        })
    }

    /// Lets the thread empty the buffers a last time, and waits for it.
    fn finish(&mut self) -> Result<ReaderOutcome, Error> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return Ok(ReaderOutcome { cpus: Vec::new(), over_limit: 0 });
        };
        thread.thread().unpark();
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for BlockTracer {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = fs::write(self.instance.file("tracing_on"), "0");
            self.stop.store(true, Ordering::Release);
            // The instance cannot be removed while the thread has its files open. The events are
            // discarded.
            if let Some(thread) = self.thread.take() {
                thread.thread().unpark();
                let _ = thread.join();
            }
        }
    }
}

/// The events of all processors, ordered by time.
fn merge(cpus: Vec<CpuEvents>) -> Vec<BlockEvent> {
    let mut events: Vec<BlockEvent> = Vec::with_capacity(cpus.iter().map(|cpu| cpu.events.len()).sum());
    for mut cpu in cpus {
        events.append(&mut cpu.events);
    }
    // The sort is stable, and fast on a few sorted runs. An issue comes before a completion of the
    // same nanosecond.
    events.sort_by_key(|event| (event.at, event.action == Action::Complete));
    events
}

/// The number of events that a processor's buffer lost, from its `stats` file and the number of
/// records read from it.
fn compute_lost(stats: &str, records: u64) -> Result<u64, String> {
    let number = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.ok_or_else(|| format!("there is no line \"{name}\""))?.trim();
        number.parse::<u64>().map_err(|_| format!("{name} is {number:?}, not a number"))
    };
    // Left in the buffer, refused by it, overwritten; and read by another reader.
    let unread = number("entries")?;
    let refused = number("dropped events")? + number("overrun")? + number("commit overrun")?;
    let unseen = number("read events")?.saturating_sub(records);
    Ok(unread + refused + unseen)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "entries: 0\noverrun: 0\ncommit overrun: 0\nbytes: 52\noldest event ts: 13172.268419\n\
                         now ts: 13172.675740\ndropped events: 0\nread events: 161\n";

    #[test]
    fn events_and_requests_have_documented_sizes() {
        assert_eq!(size_of::<BlockEvent>(), 32);
        assert_eq!(size_of::<crate::trace::TracedRequest>(), 56);
    }

    #[test]
    fn a_buffer_without_losses_counts_zero() {
        assert_eq!(compute_lost(STATS, 161), Ok(0));
    }

    #[test]
    fn every_kind_of_loss_is_counted() {
        assert_eq!(compute_lost(STATS, 100), Ok(61), "read by another reader");
        assert_eq!(compute_lost(&STATS.replace("dropped events: 0", "dropped events: 7"), 161), Ok(7));
        assert_eq!(compute_lost(&STATS.replace("\noverrun: 0", "\noverrun: 5"), 161), Ok(5));
        assert_eq!(compute_lost(&STATS.replace("entries: 0", "entries: 3"), 161), Ok(3));
        assert!(compute_lost("entries: 0\n", 0).is_err());
    }
}
