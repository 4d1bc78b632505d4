//! Mounts the file system in memory until it is unmounted, for external test suites:
//! `cargo run --release -p senesce-fuse --example mount_model DIRECTORY [GIB [THREADS
//! [write-back|direct]]]`.

use std::{error::Error, path::Path, sync::Arc, time::SystemTime};

use senesce_core::Bytes;
use senesce_fsapi::{ModelFs, Timestamp};
use senesce_fuse::{KernelPages, MountOptions, Mounted};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let point = arguments.get(1).ok_or("give a directory to mount on")?;
    let number = |at: usize, otherwise: u64| arguments.get(at).map_or(Ok(otherwise), |text| text.parse());
    let fs = Arc::new(ModelFs::new(Bytes(number(2, 4)? * Bytes::GIB)));
    let now = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
    };
    let options = MountOptions {
        source: "senesce-model".to_owned(),
        threads: number(3, 2)? as usize,
        now: Arc::new(now),
        read_only: false,
        pages: match arguments.get(4).map(String::as_str) {
            Some("write-back") => KernelPages::Keep,
            Some("direct") => KernelPages::PastIfNew,
            _ => KernelPages::Through,
        },
        // Test suites such as pjdfstest need them.
        suid: true,
        dev: true,
    };
    Ok(Mounted::start(fs, Path::new(point), options)?.join()?)
}
