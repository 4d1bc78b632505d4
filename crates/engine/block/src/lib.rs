//! Block devices of the engines: a small trait, and what stands behind it.
//!
//! Everything an engine keeps goes through [`BlockDevice`], so a test can put a device there that fails, lies, or loses
//! its power, and the engine does not know.
//!
//! - [`FileDevice`]: a file or block device of the system, through the page cache or past it.
//! - [`MemoryDevice`]: in memory; a [fork](MemoryDevice::fork) costs almost nothing.
//! - [`CompactDevice`]: in memory, for large runs: a block that repeats one word takes 76 bytes.
//! - [`FaultDevice`]: does what the [faults](Fault) that it was given say: fails, loses, tears, misdirects, flips bits.
//! - [`Recording`]: of several devices, makes every state that a loss of power may leave.
//! - [`OverlayDevice`]: looks at another one, and keeps writes to itself.
//! - [`SliceDevice`]: a part of another one.
//! - [`TracedDevice`]: counts requests and lists them.
//!
//! What holds many blocks in memory has each in a [`Slot`], whose memory is used again.
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
//! None of them knows what lies on it, and none formats: who may be written to is decided elsewhere.

mod aligned;
mod compact;
mod crash;
mod device;
mod error;
mod fault;
mod file;
mod frozen;
mod memory;
mod overlay;
mod range;
mod slice;
mod slot;
mod traced;

pub use compact::CompactDevice;
pub use crash::{Crash, CrashPlan, RecordedDevice, Recording};
pub use device::BlockDevice;
pub use error::{BlockError, BlockOperation, BlockProblem, BlockResult};
pub use fault::{Effect, Fault, FaultDevice, ParseFaultError, When};
pub use file::{DIRECT_ALIGNMENT, FileDevice, FileOptions};
pub use frozen::{FreezableDevice, Freezer, FrozenDevice, LostMoment, Moment};
pub use memory::MemoryDevice;
pub use overlay::OverlayDevice;
pub use slice::SliceDevice;
pub use slot::{SLOT_BYTES, Slot};
pub use traced::{RequestCounts, TracedDevice};
