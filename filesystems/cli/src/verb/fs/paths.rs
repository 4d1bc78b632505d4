//! The names of inodes of a volume.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use anyhow::Result;
use senesce_fsapi::{FileKind, FileSystem, Ino};
use senesce_garden::VolumeFs;
use senesce_volume::check_interrupted;

/// The paths of inodes, for each in the order of their bytes; none for one without a name.
pub type Paths = BTreeMap<u64, BTreeSet<Vec<u8>>>;

/// Finds the paths of some inodes. Cost: reads all directories, for inodes do not know their names.
///
/// Errors: a directory cannot be read; interrupted.
pub fn find(fs: &VolumeFs, wanted: &BTreeSet<u64>) -> Result<Paths> {
    let mut paths = Paths::new();
    if wanted.contains(&Ino::ROOT.0) {
        paths.entry(Ino::ROOT.0).or_default().insert(b"/".to_vec());
    }
    let mut directories = vec![(Ino::ROOT, Vec::new())];
    while let Some((directory, path)) = directories.pop() {
        check_interrupted("looking for paths")?;
        fs.read_dir(directory, 0, &mut |entry| {
            if matches!(entry.name, b"." | b"..") {
                return ControlFlow::Continue(());
            }
            let own = [&path[..], b"/", entry.name].concat();
            if wanted.contains(&entry.ino.0) {
                paths.entry(entry.ino.0).or_default().insert(own.clone());
            }
            if entry.kind == FileKind::Directory {
                directories.push((entry.ino, own));
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(paths)
}
