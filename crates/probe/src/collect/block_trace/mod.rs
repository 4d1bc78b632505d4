//! Tracing the requests of one block device through a private instance of the kernel's tracing.
//!
//! Every tracer has an instance of its own under `instances` of tracefs, with its own buffers, clock and filter, so that
//! several tracers, and whatever else is traced on the machine, do not disturb each other. Nothing is written to the
//! device, and reading the trace causes no requests.
//!
//! ```no_run
//! use std::path::Path;
//! use senesce_probe::collect::BlockTracer;
//!
//! let tracer = BlockTracer::start(Path::new("/dev/sdb"))?;
//! // ... what is to be traced ...
//! let trace = tracer.stop()?;
//! println!("{} requests, {} events lost", trace.requests.len(), trace.lost);
//! # Ok::<(), senesce_probe::Error>(())
//! ```
//!
//! What it is not: a trace of devices that hand requests on to others (device mapper, MD, multipath heads) — trace what
//! lies below them — and no substitute for making the cache cold first.

mod device;
mod instance;
mod reader;
mod tracer;

pub use device::{TraceDevice, collect_trace_device};
pub use instance::{StaleInstances, check_block_tracing, clean_stale_trace_instances};
pub use tracer::{BlockTracer, TraceOptions};
