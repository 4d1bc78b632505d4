//! All files with the places of their contents, for measures of a layout.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use senesce_block::BlockDevice;
use senesce_core::Extent;
use senesce_fsapi::{FileKind, FileSystem, Ino};

use super::{evergreen::EvergreenFs, inode_record::BLOCK};
use crate::{
    Evergreen, Limits, Result,
    keys::{Home, Key},
};

/// A surveyed file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedFile {
    /// The path from the root, without a leading slash; empty for the root.
    pub path: Vec<u8>,
    /// The kind.
    pub kind: FileKind,
    /// The number of the inode.
    pub ino: u64,
    /// The number of names.
    pub links: u32,
    /// The length in bytes; for a directory the number of names.
    pub size: u64,
    /// The bytes of the contents.
    pub content_bytes: u64,
    /// The time of the last modification.
    pub modified_unix_seconds: i64,
    /// The extents of the contents in the order of the file, without holes. Positions are offsets
    /// on the device.
    pub extents: Vec<Extent>,
    /// The offset of the inode on the device.
    pub inode_at: u64,
    /// The bytes of the inode, the names in it, and the extended attributes.
    pub metadata_bytes: u64,
}

/// The results of a survey for the whole device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The area of nodes: offset and length in bytes.
    pub area: (u64, u64),
    /// Its free extents in order: offsets and lengths.
    pub free: Vec<(u64, u64)>,
    /// The names after the first one of a file.
    pub further_links: u64,
}

/// The entries of one home.
#[derive(Default)]
struct Found {
    extents: Vec<Extent>,
    content_bytes: u64,
    inode_at: u64,
    metadata_bytes: u64,
}

/// Surveys the evergreen on a device. Opening it writes, so pass an overlay if the device must not
/// change. Files come in the order of listings, a directory before its contents, a file with
/// several names with the first one. `sink` returns whether to continue.
///
/// The position of a block is that of its bytes in its node, without the keys and headers between
/// values. So blocks that one read of a leaf returns in order are adjacent.
///
/// Errors: those of opening. Cost: reads all nodes; memory for the extents of every file.
pub fn survey(device: Arc<dyn BlockDevice>, sink: &mut dyn FnMut(SurveyedFile) -> bool) -> Result<Survey> {
    let fs = EvergreenFs::open(Evergreen::open(device, Limits::default())?)?;
    // Opening may have removed inodes without a name.
    fs.store().checkpoint()?;
    let (mut homes, mut numbers): (HashMap<Home, Found>, HashMap<u64, Home>) = Default::default();
    fs.store().locate(&mut |located| {
        let bytes = (located.key.len() + located.value.len()) as u64;
        match Key::decode(&located.key) {
            Ok(Key::Block(home, number)) => {
                homes.entry(home).or_default().add_block(number, located.at, located.value.len())
            }
            Ok(Key::Inode(home)) => {
                let found = homes.entry(home).or_default();
                (found.inode_at, found.metadata_bytes) = (located.at, found.metadata_bytes + bytes);
            }
            Ok(Key::Target(home) | Key::Name(home, _) | Key::Unordered(home, _) | Key::Xattr(home, ..)) => {
                homes.entry(home).or_default().metadata_bytes += bytes;
            }
            Ok(Key::HomeOf(ino)) => {
                if let Ok(home) = Home::from_bytes(&located.value) {
                    numbers.insert(ino, home);
                }
            }
            // The check reports these.
            Ok(Key::Layout | Key::NextIno | Key::Orphan(_)) | Err(_) => {}
        }
    })?;
    let (area, free) = fs.store().free_places();
    let mut survey = Survey { area, free, further_links: 0 };
    let mut taker = Taker { fs: &fs, homes, numbers, survey: &mut survey, sink };
    taker.take(Ino::ROOT, Vec::new())?;
    Ok(survey)
}

impl Found {
    fn add_block(&mut self, number: u64, at: u64, bytes: usize) {
        let (logical, length) = (number * BLOCK, bytes as u64);
        self.content_bytes += length;
        match self.extents.last_mut() {
            Some(last) if last.logical + last.length == logical && last.physical + last.length == at => {
                last.length += length;
            }
            _ => self.extents.push(Extent { logical, physical: at, length }),
        }
    }
}

struct Taker<'a> {
    fs: &'a EvergreenFs<Evergreen>,
    homes: HashMap<Home, Found>,
    numbers: HashMap<u64, Home>,
    survey: &'a mut Survey,
    sink: &'a mut dyn FnMut(SurveyedFile) -> bool,
}

impl Taker<'_> {
    /// Passes an inode and all below it to the sink. Returns whether the sink continues.
    fn take(&mut self, ino: Ino, path: Vec<u8>) -> Result<bool> {
        // A loop with a stack of names, without recursion, because directories may be deep.
        let mut stack = vec![(ino, path)];
        while let Some((ino, path)) = stack.pop() {
            let attributes = self.fs.attributes(ino)?;
            let Some(home) = self.numbers.remove(&ino.0) else {
                self.survey.further_links += 1;
                continue;
            };
            let found = self.homes.remove(&home).unwrap_or_default();
            if attributes.kind == FileKind::Directory {
                let mut names = Vec::new();
                self.fs.read_dir(ino, 0, &mut |entry| {
                    let separator: &[u8] = if path.is_empty() { b"" } else { b"/" };
                    names.push((entry.ino, [&path[..], separator, entry.name].concat()));
                    ControlFlow::Continue(())
                })?;
                stack.extend(names.into_iter().rev());
            }
            let file = SurveyedFile {
                path,
                kind: attributes.kind,
                ino: ino.0,
                links: attributes.links,
                size: attributes.size,
                content_bytes: found.content_bytes,
                modified_unix_seconds: attributes.modified.seconds,
                extents: found.extents,
                inode_at: found.inode_at,
                metadata_bytes: found.metadata_bytes,
            };
            if !(self.sink)(file) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
