//! Object stores of the engines: a small synchronous trait, and its implementations.
//!
//! An object is written once, read in ranges, and deleted; it never changes. An engine stores all
//! its objects through [`ObjectStore`], so a test can use a store that fails.
//!
//! - [`MemoryObjects`]: in memory.
//! - [`FaultObjects`]: another store with injected failures; it counts calls and lists those that
//!   changed something.
//! - [`OverlayObjects`]: another store, whose changes are only noted.
//! - `LibraryObjects`: a directory, or a bucket of a store with the S3 protocol, through the
//!   `object_store` library; only with the feature `library`.
//! - [`PriceList`]: the cost of objects, and whether a rewrite pays off within a month.
//!
//! Not here: the contents of objects, and the decision to delete them.

mod error;
mod fault;
#[cfg(feature = "library")]
mod library;
mod memory;
mod overlay;
mod prices;
#[cfg(feature = "library")]
mod s3;
mod store;

pub use error::{ObjectError, ObjectErrorKind, ObjectOperation, ObjectResult};
pub use fault::{FaultObjects, ObjectCall, ObjectCounts};
#[cfg(feature = "library")]
pub use library::LibraryObjects;
pub use memory::MemoryObjects;
pub use overlay::OverlayObjects;
pub use prices::{AZURE_HOT, Emptied, PriceList, S3_STANDARD};
#[cfg(feature = "library")]
pub use s3::{Patience, S3Access, S3Place};
pub use store::ObjectStore;
