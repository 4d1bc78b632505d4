//! Traces the requests of one block device through a private instance of the kernel's tracing.
//!
//! Every tracer has its own instance under `instances` of tracefs, with its own buffers, clock and
//! filter. Several tracers, and other traces on the machine, do not disturb each other. Tracing
//! writes nothing to the device, and reading the trace causes no requests.
//!
//! ```no_run
//! use std::path::Path;
//! use senesce_probe::collect::BlockTracer;
//!
//! let tracer = BlockTracer::start(Path::new("/dev/sdb"))?;
//! // ... the work to trace ...
//! let trace = tracer.stop()?;
//! println!("{} requests, {} events lost", trace.requests.len(), trace.lost);
//! # Ok::<(), senesce_probe::Error>(())
//! ```
//!
//! It cannot trace devices that pass requests to other devices (device mapper, MD, multipath
//! heads): trace the lower devices. It does not make the cache cold.

mod device;
mod instance;
mod reader;
mod tracer;

pub use device::{TraceDevice, collect_trace_device};
pub use instance::{StaleInstances, check_block_tracing, clean_stale_trace_instances};
pub use tracer::{BlockTracer, TraceOptions};
