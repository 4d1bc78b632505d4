//! A file system on a device in memory.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_evergreen::{
    Evergreen, EvergreenFs, Limits, MakeOptions, check_files,
    disk::{Copies, KeyOrder, Shape},
};
use senesce_fsapi::{FileSystem, FsResult, conformance::Subject};

/// Nodes of a few entries: the tree has several levels, and all data moves through them.
pub const TINY: MakeOptions = MakeOptions {
    uuid: [7; 16],
    shape: Shape { node_bytes: 16 << 10, basement_bytes: 2 << 10, fanout: 4, key_order: KeyOrder::BirthPath },
    unit_bytes: 4096,
    log_bytes: Some(256 << 10),
    copies: Copies::Two,
};

/// A small cache, so that nodes are evicted and read again.
pub const LITTLE: Limits = Limits { cache_bytes: 64 << 10, dirty_bytes: 256 << 10 };

/// A device with an empty file system.
pub fn made(bytes: u64, options: &MakeOptions) -> MemoryDevice {
    let device = Arc::new(MemoryDevice::new("disk", Bytes(bytes)));
    EvergreenFs::make_on(device.clone(), options).unwrap();
    device.fork()
}

pub struct Rig {
    device: Arc<dyn BlockDevice>,
    fs: Option<EvergreenFs<Evergreen>>,
    limits: Limits,
}

impl Rig {
    pub fn on(device: Arc<dyn BlockDevice>, limits: Limits) -> Self {
        let fs = Some(EvergreenFs::open_on(device.clone(), limits).unwrap());
        Self { device, fs, limits }
    }

    pub fn new(bytes: u64, options: &MakeOptions, limits: Limits) -> Self {
        Self::on(Arc::new(made(bytes, options)), limits)
    }

    pub fn fs(&self) -> &EvergreenFs<Evergreen> {
        self.fs.as_ref().expect("it is open")
    }
}

impl Subject for Rig {
    fn file_system(&self) -> &dyn FileSystem {
        self.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.fs().sync_all()?;
        self.fs = None;
        self.fs = Some(EvergreenFs::open_on(self.device.clone(), self.limits)?);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let findings = check_files(self.fs().store()).map_err(|error| error.to_string())?;
        if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
    }
}
