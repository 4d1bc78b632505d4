//! The check of the name of a new file.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use anyhow::Result;

use crate::exit::usage;

/// Refuses a new file among the device nodes, because a mistyped device name would become a file in
/// memory.
pub fn check_new(path: &Path) -> Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Ok(dir), Ok(nodes)) = (fs::canonicalize(dir), fs::metadata("/dev")) else { return Ok(()) };
    // File systems mounted below, such as /dev/shm, are allowed.
    if dir.starts_with("/dev") && fs::metadata(&dir).is_ok_and(|found| found.dev() == nodes.dev()) {
        let message = format!("{} does not exist, and senesce creates no files in /dev", path.display());
        return Err(usage(message, Some("check the name of the device with lsblk")));
    }
    Ok(())
}
