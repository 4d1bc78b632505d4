//! Volumes.

use senesce_garden::{Error as Engine, Packing, VolumeOptions};

use super::Service;
use crate::{BLOCK_BYTES, Error, Name, Request, Response, Result, Task, VolumeMade, Volumes, error::While};

impl Service<'_> {
    pub(super) fn create_volume(&self, request: &Request) -> Result<Response> {
        let Request::VolumeCreate { name, bytes, inodes, seed, compress } = request else {
            return Err(Error::usage("no volume is described", None));
        };
        let packing = packing(*compress)?;
        let blocks = bytes.map_or_else(|| self.garden.report().blocks, |bytes| bytes.div_ceil(BLOCK_BYTES));
        let inodes = inodes.unwrap_or((blocks / 2).max(1024));
        let made = self.garden.create_volume(&name.0, &VolumeOptions { blocks, inodes, seed: *seed });
        made.map_err(|error| match error {
            Engine::Invalid { what } => Error::usage(what, None),
            error => error.into(),
        })
        .when(|| format!("cannot make volume {name} in {}", self.place))?;
        if packing.compaction {
            self.garden.set_packing(&name.0, packing)?;
        }
        self.close()?;
        Ok(Response::VolumeMade(VolumeMade { bytes: blocks * BLOCK_BYTES, inodes }))
    }

    pub(super) fn list_volumes(&self) -> Result<Response> {
        Ok(Response::Volumes(Volumes { volumes: self.volumes()? }))
    }

    pub(super) fn delete_volume(&self, name: &Name, task: &mut dyn Task) -> Result<Response> {
        self.check_unmounted(name, None, &format!("cannot delete volume {name}"))?;
        // A pass may use this volume.
        let _pass = self.begin_alone(task)?;
        let before = self.garden.report().free;
        let done = self.garden.delete_volume(&name.0);
        done.map_err(|error| self.explain(name, error))
            .when(|| format!("cannot delete volume {name} in {}", self.place))?;
        self.reclaim(before, task)
    }
}

/// The packing for a size of groups in bytes; 0 for no compression. Errors: not a size of a group.
pub fn packing(compress: u64) -> Result<Packing> {
    match compress / BLOCK_BYTES {
        0 if compress == 0 => Ok(Packing::default()),
        blocks @ (2 | 4 | 8) if compress.is_multiple_of(BLOCK_BYTES) => {
            Ok(Packing { group_blocks: blocks as u8, compaction: true })
        }
        _ => {
            let message = format!("{} is not a unit of compression", senesce_core::Bytes(compress));
            Err(Error::usage(message, Some("use 8KiB, 16KiB or 32KiB")))
        }
    }
}
