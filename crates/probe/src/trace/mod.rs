//! Block traces: the requests of a device in issue order. Pure: it decodes texts and pages into
//! requests.
//!
//! - [`BlockTrace`]: the requests of one device, with the number of lost events.
//! - [`EventFormat`], [`PageFormat`], [`Page`]: decode the kernel's binary trace pages by the
//!   kernel's own description.
//! - [`compute_requests`]: pairs issues and completions into requests.
//! - [`import_blkparse`]: the same from the text of `blkparse`.
//!
//! ```
//! use senesce_probe::trace::import_blkparse;
//!
//! let text = "  8,0 1 1 0.000002300 1234 D R 1000 + 8 [grep]\n\
//!               8,0 1 2 0.000092300 0 C R 1000 + 8 [0]\n";
//! let trace = import_blkparse(text.as_bytes())?;
//! assert_eq!(trace.requests[0].request.sector, 1000);
//! assert_eq!(trace.requests[0].service_time().unwrap().0, 90_000);
//! # Ok::<(), senesce_probe::Error>(())
//! ```
//!
//! Other modules take traces ([`crate::collect::BlockTracer`]) and score them
//! ([`crate::score::compute_trace_figures`]).

mod blkparse;
mod event;
mod format;
mod page;
mod pair;
mod request;

pub use blkparse::{import_blkparse, import_blkparse_of};
pub use event::{Action, BlockEvent, EventDecoder, RequestFlags};
pub use format::{EventFormat, Field};
pub use page::{Missed, Page, PageFormat, Record};
pub use pair::{Paired, compute_requests};
pub use request::{BlockTrace, DeviceNumber, TracedRequest};
