//! All files with the places of their contents, for whoever judges a layout.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use senesce_block::BlockDevice;
use senesce_core::Extent;
use senesce_fsapi::{FileKind, FileSystem, Ino};

use super::{evergreen::EvergreenFs, inode::BLOCK};
use crate::{
    Evergreen, Limits, Result,
    keys::{Home, Key},
};

/// A file or directory that was surveyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedFile {
    /// From the root on, without a leading slash; empty for the root.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: FileKind,
    /// Its inode's number.
    pub ino: u64,
    /// Names that it has.
    pub links: u32,
    /// Its length in bytes; of a directory, as its attributes have it.
    pub size: u64,
    /// Bytes of its contents.
    pub content_bytes: u64,
    /// When it was modified.
    pub modified_unix_seconds: i64,
    /// Where its contents lie, in the order of the file, without holes. Positions are bytes of the device.
    pub extents: Vec<Extent>,
    /// Where its inode lies.
    pub inode_at: u64,
    /// Bytes of its inode, names and extended attributes.
    pub metadata_bytes: u64,
}

/// What a survey found of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The area of nodes: its first byte, and its length.
    pub area: (u64, u64),
    /// Free extents of it: first bytes and lengths, in their order.
    pub free: Vec<(u64, u64)>,
    /// Names beyond the first of a file.
    pub further_links: u64,
}

/// What lies under a home.
#[derive(Default)]
struct Found {
    extents: Vec<Extent>,
    content_bytes: u64,
    inode_at: u64,
    metadata_bytes: u64,
}

/// Surveys what lies on a device; nothing is written to it if it is one that keeps writes to itself. Files come in the order in which
/// directories are listed, a directory before what is in it; a file with several names with the first. `sink` returns whether it goes on.
///
/// A block's position is that of its bytes in its leaf, without what lies between values (keys, headers): blocks that one reading of a
/// leaf gives in order lie behind each other.
///
/// Errors: those of opening. Cost: reads all nodes; memory for every file's extents.
pub fn survey(device: Arc<dyn BlockDevice>, sink: &mut dyn FnMut(SurveyedFile) -> bool) -> Result<Survey> {
    let fs = EvergreenFs::open(Evergreen::open(device, Limits::default())?)?;
    // What was opened may have removed inodes without a name.
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
            // The check tells of it.
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
    /// Gives an inode and all below it. Returns whether the sink goes on.
    fn take(&mut self, ino: Ino, path: Vec<u8>) -> Result<bool> {
        // One at a time from here on: a path is as deep as the deepest directory, and a stack of names as long as its names.
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
