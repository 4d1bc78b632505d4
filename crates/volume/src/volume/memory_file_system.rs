//! A file system in memory that is mounted by the FUSE adapter of the engines. It shows the cost of
//! FUSE itself.

use std::path::{Path, PathBuf};

use senesce_core::Bytes;

use crate::{
    Custodian, EngineConfig, EngineSource, Error, Resource, Result,
    resources::{ENGINE_SOURCE, Lease, SharedEngine},
};

/// An empty file system of ours in the memory of its server, mounted as engines are. A drop
/// unmounts it and discards its contents.
#[derive(Debug)]
pub struct MemoryMount {
    root: PathBuf,
    server: SharedEngine,
    lease: Lease,
}

impl MemoryMount {
    /// Mounts one of at most `size`, in a new directory in `dir` whose name starts with `name`.
    ///
    /// Errors: not root; no FUSE. Cost: memory for the stored contents.
    pub fn create(custodian: &Custodian, dir: &Path, name: &str, size: Bytes) -> Result<Self> {
        let dir = std::fs::canonicalize(dir).map_err(Error::std("look up", dir))?;
        let root = dir.join(format!("{name}.{}", custodian.token()));
        let source = format!("{ENGINE_SOURCE}{name}.{}", custodian.token());
        let mut lease = Lease::new(custodian);
        let resource = Resource::Directory { path: root.clone() };
        let (id, _) = custodian.acquire_file(resource, |host| host.create_dir(&root))?;
        lease.push(id);
        let config = EngineConfig { source: source.clone(), point: root.clone(), what: EngineSource::Memory { size } };
        let server = SharedEngine::default();
        lease.keep_engine(server.clone());
        let resource = Resource::Engine { point: root.clone(), name: source.clone(), server: None };
        let (id, started) = custodian.acquire(resource, |host| host.start_engine(&config))?;
        lease.push(id);
        let process = Some(started.process().clone());
        *server.lock() = Some(started);
        custodian.amend(id, Resource::Engine { point: root.clone(), name: source, server: process })?;
        Ok(Self { root, server, lease })
    }

    /// The mount point.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Unmounts it and mounts it again. The kernel then has none of it in its caches, so reads come
    /// through FUSE.
    ///
    /// Errors: another process uses it for five seconds; its server is gone.
    pub fn remount_cold(&mut self) -> Result<()> {
        match self.server.lock().as_mut() {
            Some(server) => server.mount_again(),
            None => Ok(()),
        }
    }

    /// Unmounts it and discards its contents.
    pub fn destroy(mut self) -> Result<()> {
        self.lease.release()
    }
}
