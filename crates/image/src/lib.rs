//! Containers of aged volumes: one ages once and benchmarks often.
//!
//! [`save`] writes an image or a device into a container, [`restore`] makes it again, [`verify`] checks a container
//! against its hashes, [`Container::open`] tells what is in one. What is zero is not stored. Chunks are compressed and
//! restored by several threads; the container is the same for any number of them. The format is in docs/reference/image-format.md.
//!
//! ```
//! use std::collections::BTreeMap;
//! use senesce_image::{Description, RestoreOptions, SaveOptions, restore, save};
//!
//! let dir = tempfile::tempdir().unwrap();
//! let path = |name: &str| dir.path().join(name);
//! std::fs::write(path("disk.img"), [7; 10_000]).unwrap();
//! let description = Description { file_system: Some("ext4".into()), circumstances: BTreeMap::new() };
//! let saved = save(&path("disk.img"), &path("aged.senesce-image"), &description, &SaveOptions::default())?;
//! restore(&path("aged.senesce-image"), &path("again.img"), &RestoreOptions::default())?;
//! assert_eq!(std::fs::read(path("again.img")).unwrap(), [7; 10_000]);
//! assert_eq!(saved.volume_bytes, 10_000);
//! # Ok::<(), senesce_image::Error>(())
//! ```
//!
//! What it is not: it does not know what a file system is. Whether a device may be read or written is its caller's
//! decision.

mod container;
mod direct;
mod error;
mod format;
mod hash;
mod restore;
mod save;
mod sparse;

pub use container::Container;
pub use error::{Error, Result};
pub use format::{CHUNK_BYTES, Description, FORMAT, VERSION};
pub use restore::{RestoreOptions, RestoreReport, restore, restore_device, verify};
pub use save::{SaveOptions, SaveReport, save, save_open, temporary_path};
