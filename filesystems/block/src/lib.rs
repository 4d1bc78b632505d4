//! Block devices of the engines: a small trait, and its implementations.
//!
//! An engine stores all its data through [`BlockDevice`]. So a test can use a device that fails,
//! returns wrong data, or loses power.
//!
//! - [`FileDevice`]: a file or block device of the operating system, with or without the page
//!   cache.
//! - [`MemoryDevice`]: in memory; a [fork](MemoryDevice::fork) costs almost nothing.
//! - [`CompactDevice`]: in memory, for large runs: a block that repeats one word takes 76 bytes.
//! - [`FaultDevice`]: has injected [faults](Fault): it fails, loses, tears, misdirects, flips bits.
//! - [`Recording`]: generates every possible state of several devices after a loss of power.
//! - [`OverlayDevice`]: reads another device, and keeps writes in memory.
//! - [`SliceDevice`]: a part of another device.
//! - [`TracedDevice`]: counts and lists requests.
//!
//! Structures with many blocks in memory use a [`Slot`] for each, whose memory is reused.
//!
//! ```
//! use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
//! use senesce_core::Bytes;
//!
//! let device = FaultDevice::new(MemoryDevice::new("disk", Bytes(1 << 20)));
//! device.inject("lose write 2; fail read at 8192+512").unwrap();
//! device.write_at(0, b"first").unwrap();
//! device.write_at(0, b"other").unwrap();
//! let mut got = [0; 5];
//! device.read_at(0, &mut got).unwrap();
//! assert_eq!(&got, b"first");
//! assert!(device.read_at(8000, &mut [0; 512]).is_err());
//! assert_eq!(device.struck(), 2);
//! ```
//!
//! The devices do not know their contents, and none of them formats: other crates decide which
//! devices may be written.

mod aligned;
mod check_range;
mod crash;
mod device;
mod error;
mod fault;
mod file;
mod memory;
mod overlay;
mod past_state;
mod repeating_memory;
mod slice;
mod slot_memory;
mod traced;

pub use crash::{Crash, CrashPlan, RecordedDevice, Recording};
pub use device::BlockDevice;
pub use error::{BlockError, BlockOperation, BlockProblem, BlockResult};
pub use fault::{Effect, Fault, FaultDevice, ParseFaultError, When};
pub use file::{DIRECT_ALIGNMENT, FileDevice, FileOptions};
pub use memory::MemoryDevice;
pub use overlay::OverlayDevice;
pub use past_state::{FreezableDevice, Freezer, FrozenDevice, LostMoment, Moment};
pub use repeating_memory::CompactDevice;
pub use slice::SliceDevice;
pub use slot_memory::{SLOT_BYTES, Slot};
pub use traced::{RequestCounts, TracedDevice};
