//! A survey of a whole ext4, read straight from its device or image.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;
use senesce_core::{RelPath, Space};
use senesce_ext4::{
    EntryOrder, Error as Ext4Error, ExtentState, FileKind, FileSystem, Mapping, ScanOptions, Tree, TreeEntry,
    TreeOptions,
};
use senesce_probe::{
    collect::{EntryKind, ItemError, SurveyFigures, Surveyed},
    map::{ExtentFlags, RawExtent},
};

use crate::{Error, metadata::Ext4Metadata};

/// An ext4 and its tree.
pub(crate) struct OfflineTree {
    pub fs: FileSystem<File>,
    tree: Tree,
    /// Bytes allocated to each inode, sorted by inode.
    allocated: Vec<(u32, u64)>,
}

/// Reads an ext4 without its contents: the tree, and the places of inodes and maps. `progress`
/// receives the number of inodes, and stops the read if it returns `false`.
///
/// Errors: those of the ext4 reader, with the path; stopped. Cost: reads all inode tables in use,
/// and the blocks of maps and directories, once (twice if the device is being written); 120 bytes
/// of memory for a file of one extent.
pub(crate) fn read_offline(
    path: &Path,
    threads: usize,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(OfflineTree, Ext4Metadata), Error> {
    let wrong = |source| match source {
        Ext4Error::Stopped { .. } => Error::Stopped,
        source => Error::Ext4 { path: path.into(), source },
    };
    let file = open_quietly(path).map_err(Error::io("open", path))?;
    let mut fs = FileSystem::open(file).map_err(wrong)?;
    let superblock = fs.superblock().clone();
    let mut metadata = Ext4Metadata::new(&superblock);
    let mut allocated: Vec<(u32, u64)> = Vec::new();
    let mut seen = 1;
    let scan = ScanOptions { threads: threads.max(1), entries: Some(EntryOrder::Readdir) };
    let tree = fs.collect_tree_with(&TreeOptions { scan, ..TreeOptions::default() }, &mut |attempt, record| {
        if attempt != seen {
            (seen, metadata) = (attempt, Ext4Metadata::new(&superblock));
            allocated.clear();
        }
        metadata.add(record);
        // `st_blocks` of the kernel counts inline contents, so they are added here.
        let is_inline = record.kind == FileKind::Regular && record.mapping == Mapping::Inline;
        let inline_bytes = if is_inline { record.size_bytes.next_multiple_of(512) } else { 0 };
        allocated.push((record.inode, record.allocated_bytes + inline_bytes));
        !allocated.len().is_multiple_of(crate::inspect::PROGRESS_EVERY as usize) || progress(allocated.len() as u64)
    });
    let tree = tree.map_err(wrong)?;
    Ok((OfflineTree { fs, tree, allocated }, metadata))
}

impl OfflineTree {
    /// Passes every file and directory to `visit` in the order in which the kernel would list them,
    /// until `visit` returns `false`.
    pub fn survey(&self, visit: &mut dyn FnMut(Surveyed) -> bool) -> SurveyFigures {
        let mut figures = SurveyFigures {
            space: Space::Device,
            files: 0,
            directories: 0,
            further_links: 0,
            mounts_passed: 0,
            vanished: 0,
            errors: Vec::new(),
            errors_count: 0,
        };
        let mut goes_on = true;
        self.tree.walk(&mut |entry| {
            let kind = match entry.file.map(|file| file.kind()) {
                Some(FileKind::Directory) => EntryKind::Directory,
                Some(FileKind::Regular) => EntryKind::File,
                _ => return,
            };
            if !goes_on {
                return;
            }
            match (kind, entry.further_link) {
                (EntryKind::File, true) => figures.further_links += 1,
                // A directory has one name. A second name is damage.
                (EntryKind::Directory, true) => add_error(&mut figures, &entry, "the directory has a second name"),
                _ => match self.surveyed(&entry, kind) {
                    Ok(surveyed) => {
                        match kind {
                            EntryKind::Directory => figures.directories += 1,
                            EntryKind::File => figures.files += 1,
                        }
                        goes_on = visit(surveyed);
                    }
                    Err(problem) => add_error(&mut figures, &entry, problem),
                },
            }
        });
        figures
    }

    fn surveyed(&self, entry: &TreeEntry<'_>, kind: EntryKind) -> Result<Surveyed, &'static str> {
        let file = entry.file.ok_or("its inode is damaged")?;
        let path = match entry.path {
            [] => RelPath::root(),
            path => RelPath::new(path).map_err(|_| "its name is invalid")?,
        };
        let at = self.allocated.binary_search_by_key(&entry.inode, |(inode, _)| *inode);
        let extents = file.extents().map(|mapped| RawExtent {
            extent: mapped.extent,
            flags: match mapped.state {
                ExtentState::Written => ExtentFlags::default(),
                ExtentState::Unwritten => ExtentFlags::UNWRITTEN,
                ExtentState::Inline => ExtentFlags::INLINE.with(ExtentFlags::NOT_ALIGNED),
            },
        });
        Ok(Surveyed {
            path,
            kind,
            inode: u64::from(entry.inode),
            links: u64::from(file.links()),
            is_executable: false,
            size_bytes: file.size_bytes(),
            allocated_bytes: at.map_or(0, |at| self.allocated[at].1),
            modified_unix_seconds: file.modified_seconds(),
            born_unix_seconds: None,
            extents: extents.collect(),
        })
    }

    /// The warnings of the ext4 reader.
    pub fn warnings(&self) -> Vec<String> {
        self.tree.report.warnings.iter().map(|warning| warning.to_string()).collect()
    }
}

/// Opens a file for reading, without an update of its access time if that is permitted.
fn open_quietly(path: &Path) -> io::Result<File> {
    let no_access_time = OFlags::NOATIME.bits() as i32;
    match OpenOptions::new().read(true).custom_flags(no_access_time).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path),
        opened => opened,
    }
}

fn add_error(figures: &mut SurveyFigures, entry: &TreeEntry<'_>, problem: &str) {
    figures.errors_count += 1;
    if figures.errors.len() < SurveyFigures::ERRORS_KEPT {
        let path = String::from_utf8_lossy(entry.path).into_owned().into();
        let message = problem.to_owned();
        figures.errors.push(ItemError { operation: "read the inode of".into(), path, message, errno: None });
    }
}
