//! Shared code of the tests of mounts.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use senesce_core::Bytes;
use senesce_fsapi::{ModelFs, Timestamp};
use senesce_fuse::{Error, KernelPages, MountOptions, Mounted};
use senesce_testkit::root_or_skip;
use tempfile::TempDir;

/// A mounted model. Its clock ticks with each use.
pub struct Bed {
    pub fs: Arc<ModelFs>,
    pub mounted: Option<Mounted>,
    pub dir: TempDir,
    pub pages: KernelPages,
    /// The part of the source after the number of the mount.
    pub suffix: &'static str,
}

impl Bed {
    pub fn new(threads: usize, read_only: bool, pages: KernelPages) -> Option<Self> {
        if !root_or_skip("mounting") {
            return None;
        }
        let fs = Arc::new(ModelFs::new(Bytes(256 << 20)));
        let mut bed = Self { fs, mounted: None, dir: tempfile::tempdir().unwrap(), pages, suffix: "" };
        bed.mount(threads, read_only).unwrap();
        Some(bed)
    }

    pub fn mount(&mut self, threads: usize, read_only: bool) -> Result<(), Error> {
        let ticks = AtomicU64::new(0);
        let now = move || {
            let tick = ticks.fetch_add(1, Ordering::SeqCst);
            Timestamp { seconds: 1_000_000_000 + tick as i64, nanoseconds: 5 }
        };
        static MOUNTS: AtomicU64 = AtomicU64::new(0);
        let number = MOUNTS.fetch_add(1, Ordering::SeqCst);
        let source = format!("senesce-test-{}-{number}{}", std::process::id(), self.suffix);
        let options =
            MountOptions { source, threads, now: Arc::new(now), read_only, pages: self.pages, suid: true, dev: true };
        self.mounted = Some(Mounted::start(self.fs.clone(), self.dir.path(), options)?);
        Ok(())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn unmount(&mut self) -> Result<(), Error> {
        self.mounted.take().unwrap().unmount()
    }
}
