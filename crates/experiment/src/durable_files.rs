//! Durable files: a power cut keeps the files that the journal or a name promises.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use crate::Error;

/// Writes a file, and makes it and its name durable. The old file of that name stays until the new
/// one is complete.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(Error::io("write", path))?;
    sync_entry(path)
}

/// Makes all files and directories below `path` durable. Cost: writes all dirty data of their file
/// system. One call is cheaper than one for each of a repository's many small files.
pub(crate) fn sync_tree(path: &Path) -> Result<(), Error> {
    let sync = || rustix::fs::syncfs(File::open(path)?).map_err(std::io::Error::from);
    sync().map_err(Error::io("sync", path))
}

/// Makes the name of `path` in its directory durable.
pub(crate) fn sync_entry(path: &Path) -> Result<(), Error> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io("sync", dir))
}
