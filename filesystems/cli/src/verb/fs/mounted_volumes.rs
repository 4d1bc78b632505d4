//! The volumes and snapshots that `senesce fs mount` mounts.

use std::{fs, os::unix::ffi::OsStrExt, path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use senesce_fsapi::FileSystem;
use senesce_garden::Garden;
use senesce_service::MountStat;

use super::{held_mounts::Begin, mkfs::USUAL_VOLUME, name_arguments::explain};
use crate::{args::FsMountArgs, exit::usage};

/// A volume, or a snapshot of one, and where it is to be mounted.
pub(super) struct Wanted {
    volume: Vec<u8>,
    snapshot: Option<Vec<u8>>,
    point: PathBuf,
}

impl Wanted {
    /// The volumes and snapshots that a command names. Errors: a mount point that does not exist,
    /// or is named twice.
    pub fn all(args: &FsMountArgs) -> Result<Vec<Self>> {
        let volume = args.volume.as_deref().unwrap_or(USUAL_VOLUME).as_bytes().to_vec();
        let snapshot = args.snapshot.as_ref().map(|name| name.as_bytes().to_vec());
        let mut all = vec![Self { volume, snapshot, point: args.point.clone() }];
        for also in &args.also {
            let name = also.name.as_bytes();
            let (volume, snapshot) = match name.iter().position(|&byte| byte == b'/') {
                Some(at) => (&name[..at], Some(name[at + 1..].to_vec())),
                None => (name, None),
            };
            all.push(Self { volume: volume.to_vec(), snapshot, point: also.point.clone() });
        }
        for number in 0..all.len() {
            let point = &all[number].point;
            let real = fs::canonicalize(point).with_context(|| format!("cannot look up {}", point.display()))?;
            if all[..number].iter().any(|other| other.point == real) {
                return Err(usage(
                    format!("{} is named twice", point.display()),
                    Some("name another mount point for each volume"),
                ));
            }
            all[number].point = real;
        }
        Ok(all)
    }

    /// The file system. Errors: there is none of this name.
    pub fn find(&self, garden: &Garden) -> Result<Arc<dyn FileSystem>> {
        let found = match &self.snapshot {
            Some(name) => garden.snapshot(&self.volume, name),
            None => garden.volume(&self.volume),
        };
        Ok(Arc::new(found.map_err(|error| explain(garden, &self.volume, error))?))
    }

    /// How it is mounted; all mounts are read-only if `read_only`.
    pub fn begin(&self, fs: Arc<dyn FileSystem>, read_only: bool) -> Begin<'_> {
        Begin { fs, point: &self.point, read_only: read_only || self.snapshot.is_some() }
    }

    /// The same as it is reported.
    pub fn stat(&self, read_only: bool) -> MountStat {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        MountStat {
            point: self.point.as_os_str().as_bytes().into(),
            volume: text(&self.volume),
            snapshot: self.snapshot.as_deref().map(text),
            read_only: read_only || self.snapshot.is_some(),
            device: None,
        }
    }
}
