//! Object stores of the engines: a small synchronous trait, and what stands behind it.
//!
//! An object is put whole, read in ranges, and deleted; it is never changed. Everything an engine keeps in objects goes
//! through [`ObjectStore`], so a test can put a store there that fails.
//!
//! - [`MemoryObjects`]: in memory.
//! - [`FaultObjects`]: another store, that fails when it is told to, counts calls and lists those that changed something.
//! - `LibraryObjects`: a directory, or a bucket of a store that speaks the protocol of S3, by way of the `object_store` library; only
//!   with the feature `library`.
//! - [`PriceList`]: what objects cost, and whether writing one anew pays for itself within a month.
//!
//! Not here: what objects hold, and when they are deleted.

mod error;
mod fault;
#[cfg(feature = "library")]
mod http;
#[cfg(feature = "library")]
mod library;
mod memory;
mod prices;
#[cfg(feature = "library")]
mod s3;
mod store;

pub use error::{ObjectError, ObjectErrorKind, ObjectOperation, ObjectResult};
pub use fault::{FaultObjects, ObjectCall, ObjectCounts};
#[cfg(feature = "library")]
pub use library::LibraryObjects;
pub use memory::MemoryObjects;
pub use prices::{AZURE_HOT, Emptied, PriceList, S3_STANDARD};
#[cfg(feature = "library")]
pub use s3::{Patience, S3Access, S3Place};
pub use store::ObjectStore;
