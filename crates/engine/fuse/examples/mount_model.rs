//! Mounts the file system in memory until it is unmounted, for test suites from outside:
//! `cargo run --release -p senesce-fuse --example mount_model DIRECTORY [GIB [THREADS [write-back]]]`.

use std::{error::Error, path::Path, sync::Arc, time::SystemTime};

use senesce_core::Bytes;
use senesce_fsapi::{ModelFs, Timestamp};
use senesce_fuse::{MountOptions, Mounted};

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
        write_back: arguments.get(4).is_some_and(|word| word == "write-back"),
    };
    Ok(Mounted::start(fs, Path::new(point), options)?.join()?)
}
