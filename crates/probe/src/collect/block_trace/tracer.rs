//! Starting and stopping a trace.

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

/// The events that make up a trace; the last is not in every kernel.
const EVENTS: [&str; 3] = ["block_rq_issue", "block_rq_complete", "block_rq_requeue"];

/// How much a trace may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Kernel memory for each processor's buffer, bytes; less is taken on machines with many processors, so that all
    /// together are at most 32 times this. A buffer holds one event in about 64 bytes.
    pub buffer_bytes: u64,
    /// Events kept in memory; those beyond are counted as lost. An event takes 32 bytes, and a request, which has two,
    /// takes 56 more; while they are sorted and paired it is 200 bytes a request at most.
    pub event_limit: u64,
}

impl Default for TraceOptions {
    /// 8 MiB a processor, and 20 million events: ten million requests, 2 GB at the end.
    fn default() -> Self {
        Self { buffer_bytes: 8 << 20, event_limit: 20_000_000 }
    }
}

/// A running trace. Dropped without [`BlockTracer::stop`], it ends and removes its instance all the same.
#[derive(Debug)]
pub struct BlockTracer {
    device: TraceDevice,
    instance: Instance,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<ReaderOutcome, Error>>>,
}

impl BlockTracer {
    /// Traces the requests of a device from now on; see [`collect_trace_device`] for what `device` may be.
    ///
    /// Errors: no right to trace (root is needed), no tracefs, or a device without requests of its own.
    /// Cost: 35 to 65 ms to start, a thread, [`TraceOptions::default`] memory, about 0.04 s of CPU per million events.
    pub fn start(device: &Path) -> Result<Self, Error> {
        Self::start_with(collect_trace_device(device)?, &TraceOptions::default())
    }

    /// The same with limits of the caller's.
    pub fn start_with(device: TraceDevice, options: &TraceOptions) -> Result<Self, Error> {
        if cfg!(target_endian = "big") {
            let problem = "trace pages of machines that keep the high byte first are not read".to_owned();
            return Err(Error::NoTrace { path: "/sys/kernel/tracing".into(), problem });
        }
        let instance = Instance::new()?;
        let cpus = instance.cpus()?;
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        // What does not fit is to be lost at the end, where it is counted, and not overwrite what is being read.
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

    /// What is traced.
    pub fn device(&self) -> &TraceDevice {
        &self.device
    }

    /// Ends the trace and gives the requests issued since it began.
    ///
    /// A request that is not completed by now stays without completion: synchronise before, if that matters.
    /// Out: `lost` is the larger of what the kernel's statistics and the pages themselves count, and what was over the
    /// limit. Errors: the kernel's pages make no sense, or its files cannot be read.
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

    /// Lets the thread empty the buffers for the last time, and waits for it.
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
            // The instance cannot be removed while the thread holds its files open; what it found is not wanted.
            if let Some(thread) = self.thread.take() {
                thread.thread().unpark();
                let _ = thread.join();
            }
        }
    }
}

/// All processors' events in the order of time.
fn merge(cpus: Vec<CpuEvents>) -> Vec<BlockEvent> {
    let mut events: Vec<BlockEvent> = Vec::with_capacity(cpus.iter().map(|cpu| cpu.events.len()).sum());
    for mut cpu in cpus {
        events.append(&mut cpu.events);
    }
    // Stable, and fast on what is a few sorted rows; an issue comes before a completion of the same nanosecond.
    events.sort_by_key(|event| (event.at, event.action == Action::Complete));
    events
}

/// How many events a processor's buffer lost, from its `stats` file and the records that were taken out of it.
fn compute_lost(stats: &str, records: u64) -> Result<u64, String> {
    let number = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.ok_or_else(|| format!("there is no line \"{name}\""))?.trim();
        number.parse::<u64>().map_err(|_| format!("{name} is {number:?}, not a number"))
    };
    // Left in the buffer, refused by it, overwritten; and taken out but never seen here.
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
    fn events_and_requests_take_the_memory_they_are_said_to_take() {
        assert_eq!(size_of::<BlockEvent>(), 32);
        assert_eq!(size_of::<crate::trace::TracedRequest>(), 56);
    }

    #[test]
    fn a_buffer_that_lost_nothing_says_so() {
        assert_eq!(compute_lost(STATS, 161), Ok(0));
    }

    #[test]
    fn every_way_to_lose_events_is_counted() {
        assert_eq!(compute_lost(STATS, 100), Ok(61), "read by nobody here");
        assert_eq!(compute_lost(&STATS.replace("dropped events: 0", "dropped events: 7"), 161), Ok(7));
        assert_eq!(compute_lost(&STATS.replace("\noverrun: 0", "\noverrun: 5"), 161), Ok(5));
        assert_eq!(compute_lost(&STATS.replace("entries: 0", "entries: 3"), 161), Ok(3));
        assert!(compute_lost("entries: 0\n", 0).is_err());
    }
}
