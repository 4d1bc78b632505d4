//! Containers of aged volumes: a volume is aged once and used in many benchmarks.
//!
//! [`save`] writes an image or a device into a container, [`restore`] makes an image of a
//! container, [`verify`] checks a container against its hashes, and [`Container::open`] reads its
//! description. Zeros are not stored. Several threads compress and restore chunks; the container is
//! the same for any number of them. The format is in docs/reference/image-format.md.
//!
//! ```
//! use std::collections::BTreeMap;
//! use senesce_image::{Description, RestoreOptions, SaveOptions, restore, save};
//!
//! let dir = tempfile::tempdir().unwrap();
//! let path = |name: &str| dir.path().join(name);
//! std::fs::write(path("disk.img"), [7; 10_000]).unwrap();
//! let file_system = Some("ext4".into());
//! let description = Description { file_system, circumstances: BTreeMap::new() };
//! let container = path("aged.senesce-image");
//! let saved = save(&path("disk.img"), &container, &description, &SaveOptions::default())?;
//! restore(&container, &path("again.img"), &RestoreOptions::default())?;
//! assert_eq!(std::fs::read(path("again.img")).unwrap(), [7; 10_000]);
//! assert_eq!(saved.volume_bytes, 10_000);
//! # Ok::<(), senesce_image::Error>(())
//! ```
//!
//! This crate knows no file systems. The caller decides whether a device may be read or written.

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
