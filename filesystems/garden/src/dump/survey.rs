//! A survey: every file and directory of a volume in the order of listings, with the places of its
//! blocks, and the free space of the aggregate.

use std::{collections::HashSet, ops::Range, sync::Arc};

use senesce_block::BlockDevice;
use senesce_fsapi::FileKind;

use super::{
    aggregate::bit,
    file::entries,
    reader::{Reader, Tree, Volume},
    value::text,
    walk::walk,
};
use crate::{
    Damage,
    error::{Error, Result},
    format::{BLOCK, bytes::u16_at, inode::Inode, inode::PER_BLOCK, pointer::Part},
    log::LogDevices,
    store::{aggregate, volume},
};

/// Adjacent blocks of a file on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyedRun {
    /// The number of the first block in the file.
    pub block: u64,
    /// The PVBN of the first block.
    pub pvbn: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// Whether the blocks have other users: other positions in files, snapshots, or the origin of a
    /// clone.
    pub shared: bool,
}

/// A file or directory of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedFile {
    /// Names from the root, separated by `/`; empty for the root.
    pub path: Vec<u8>,
    /// `File` or `Directory`.
    pub kind: FileKind,
    /// The inode number.
    pub ino: u64,
    /// The number of names.
    pub links: u32,
    /// The length in bytes.
    pub size: u64,
    /// Blocks of contents.
    pub blocks: u64,
    /// The time of the last change of contents, seconds since 1970.
    pub modified_unix_seconds: i64,
    /// Whether the contents are in the inode.
    pub inline: bool,
    /// The places of the contents, in the order of the file.
    pub runs: Vec<SurveyedRun>,
    /// The blocks that are read before the contents: those on the path to its inode, and its blocks
    /// of pointers.
    pub metadata: Vec<u64>,
    /// The number of blocks of pointers in `metadata`.
    pub pointer_blocks: u64,
}

/// An allocation area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyedArea {
    /// The RAID group.
    pub group: u32,
    /// The number in the group.
    pub area: u64,
    /// The blocks, without parity.
    pub blocks: u64,
    /// The free blocks.
    pub free: u64,
}

/// The results besides the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The volume.
    pub volume: Vec<u8>,
    /// The number of other volumes of the aggregate.
    pub other_volumes: u64,
    /// The PVBNs of each data drive, in order.
    pub drives: Vec<Range<u64>>,
    /// Stripes of a tetris: blocks that are written to one drive before the next one.
    pub tetris_stripes: u64,
    /// Free blocks, in runs that do not cross drives.
    pub free: Vec<Range<u64>>,
    /// Free blocks of each allocation area.
    pub areas: Vec<SurveyedArea>,
    /// The inodes of the volume, and those in use.
    pub inodes: (u64, u64),
    /// Further names of files that were visited under another name.
    pub further_links: u64,
    /// Paths that could not be read, and why.
    pub errors: Vec<(Vec<u8>, String)>,
    /// Notes about the drives.
    pub notes: Vec<String>,
    /// Operations in the log that the last consistency point, and so the survey, does not include.
    pub log_operations: u64,
}

/// Surveys a volume at the last consistency point: the one with `name`, or the first one. The
/// devices must not be open in an engine. Writes nothing. Passes every file and directory to
/// `visit`, a directory before its entries; `visit` returns `false` to stop.
///
/// Errors: those of [`dump`](super::dump). Unreadable files are in the survey.
///
/// Cost: reads directories, blocks of pointers, container maps and bits, no contents. Memory: 64
/// MiB of blocks, 8 bytes for each file with several names.
pub fn survey(
    drives: &[Arc<dyn BlockDevice>],
    log: impl Into<LogDevices>,
    name: Option<&[u8]>,
    visit: &mut dyn FnMut(SurveyedFile) -> bool,
) -> Result<Survey> {
    let reader = Reader::open(drives, &log.into())?;
    let names = reader.volume_names()?;
    let name = match name.or(names.first().map(Vec::as_slice)) {
        Some(name) => name,
        None => return Err(Error::invalid("the aggregate has no volume")),
    };
    let volume = reader.volume(name)?;
    let mut found = Survey {
        volume: name.to_vec(),
        other_volumes: names.len() as u64 - 1,
        inodes: (volume.record.inodes, volume.record.inodes_used),
        notes: reader.notes.clone(),
        log_operations: reader.waiting,
        ..Survey::default()
    };
    add_space(&reader, &mut found)?;
    let sharing = Sharing::of(&reader, &volume);
    let mut surveyor = Surveyor { reader: &reader, volume: &volume, found, sharing, linked: HashSet::new(), visit };
    surveyor.directory(Vec::new(), volume::ROOT, 0);
    let problem =
        surveyor.sharing.problem.map(|damage| format!("which blocks are shared is not known of all: {damage}"));
    surveyor.found.notes.extend(problem);
    Ok(surveyor.found)
}

/// Adds the drives, their free blocks, and the free blocks of each area.
fn add_space(reader: &Reader, found: &mut Survey) -> Result<()> {
    const BITS: u64 = 8 * BLOCK as u64;
    let geometry = &reader.media.geometry;
    let damaged = |damage| Error::damaged("file 1 of the aggregate, which says what is free", damage);
    let bits = reader.aggregate_file(aggregate::BITMAP).map_err(damaged)?;
    found.tetris_stripes = geometry.tetris_stripes;
    let mut next = 0;
    for (group, shape) in (0..).zip(&geometry.groups) {
        let first_area = found.areas.len();
        for area in 0..geometry.areas(group) {
            let stripes = geometry.area_stripes(group, area);
            let blocks = (stripes.end - stripes.start) * u64::from(shape.data_drives);
            found.areas.push(SurveyedArea { group: group as u32, area, blocks, free: 0 });
        }
        for _ in 0..shape.data_drives {
            let drive = next..next + shape.stripes;
            next = drive.end;
            let mut run: Option<Range<u64>> = None;
            for pvbn in drive.clone() {
                let block = reader.contents(&bits, pvbn / BITS).map_err(damaged)?;
                if block.is_some_and(|block| bit(&block[..], pvbn % BITS)) {
                    found.free.extend(run.take());
                    continue;
                }
                found.areas[first_area + ((pvbn - drive.start) / u64::from(shape.area_stripes)) as usize].free += 1;
                run = Some(run.map_or(pvbn, |run| run.start)..pvbn + 1);
            }
            found.free.extend(run);
            found.drives.push(drive);
        }
    }
    Ok(())
}

struct Surveyor<'a> {
    reader: &'a Reader,
    volume: &'a Volume,
    found: Survey,
    sharing: Sharing,
    /// Visited directories, and visited files with several names.
    linked: HashSet<u64>,
    visit: &'a mut dyn FnMut(SurveyedFile) -> bool,
}

/// The deepest nesting of directories that is visited.
const MAX_DEPTH: usize = 4096;

impl Surveyor<'_> {
    /// Visits a directory and all entries below; returns `false` to stop.
    fn directory(&mut self, path: Vec<u8>, ino: u64, depth: usize) -> bool {
        let Some((tree, goes_on)) = self.entry(&path, ino, FileKind::Directory) else { return true };
        if !goes_on {
            return false;
        }
        let (entries, wrong) = entries(self.reader, &tree);
        self.found.errors.extend(wrong.into_iter().map(|wrong| (path.clone(), wrong)));
        for entry in entries {
            let mut below = path.clone();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(&entry.name);
            let goes_on = match entry.kind {
                FileKind::Directory if depth < MAX_DEPTH => self.directory(below, entry.ino, depth + 1),
                FileKind::Directory => {
                    self.found.errors.push((below, "it is in too many others".to_owned()));
                    true
                }
                FileKind::File => self.entry(&below, entry.ino, FileKind::File).is_none_or(|(_, goes_on)| goes_on),
                _ => true,
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Visits one entry. Returns its tree, and whether to continue; `None` if there is nothing to
    /// visit.
    fn entry(&mut self, path: &[u8], ino: u64, kind: FileKind) -> Option<(Tree, bool)> {
        let inodes = self.volume.inodes();
        let inode = self.reader.inode(&inodes, ino).map_err(|damage| damage.to_string());
        let of_kind = |inode: Option<Inode>| {
            inode.filter(|inode| inode.kind == kind).ok_or_else(|| format!("inode {ino} is not what its name says"))
        };
        let inode = match inode.and_then(of_kind) {
            Ok(inode) => inode,
            Err(problem) => {
                self.found.errors.push((path.to_owned(), problem));
                return None;
            }
        };
        if (inode.links > 1 || kind == FileKind::Directory) && !self.linked.insert(ino) {
            match kind {
                // A directory has one name. Another one is damage, and may form a cycle.
                FileKind::Directory => self.found.errors.push((path.to_owned(), "it came before".to_owned())),
                _ => self.found.further_links += 1,
            }
            return None;
        }
        let mut file = SurveyedFile {
            path: path.to_owned(),
            kind,
            ino,
            links: inode.links,
            size: inode.size,
            blocks: inode.blocks,
            modified_unix_seconds: inode.modified.seconds,
            inline: inode.inline,
            runs: Vec::new(),
            metadata: self.reader.way(&inodes, ino / PER_BLOCK).unwrap_or_default(),
            pointer_blocks: 0,
        };
        let tree = self.volume.tree(ino, inode);
        let wrong = add_runs(self.reader, &tree, &mut self.sharing, &mut file);
        if let Some(first) = wrong.first() {
            self.found.errors.push((path.to_owned(), format!("{first}, and {} more", wrong.len() - 1)));
            return Some((tree, true));
        }
        let goes_on = (self.visit)(file);
        Some((tree, goes_on))
    }
}

/// The maps that show which blocks of a volume have other users.
struct Sharing {
    /// Blocks of a clone below this belong to its origin.
    origin_blocks: u64,
    /// The VVBNs that snapshots use, and the number of pointers to each VVBN.
    maps: [Option<Tree>; 2],
    problem: Option<Damage>,
}

impl Sharing {
    fn of(reader: &Reader, volume: &Volume) -> Self {
        let (inodes, mut problem) = (volume.inodes(), None);
        let maps = [volume::SUMMARY_MAP, volume::REFERENCES].map(|file| match reader.inode(&inodes, file) {
            Ok(inode) => inode.map(|inode| volume.tree(file, inode)),
            Err(damage) => {
                problem = Some(damage);
                None
            }
        });
        Self { origin_blocks: volume.record.origin.as_ref().map_or(0, |origin| origin.blocks), maps, problem }
    }

    /// A block counts as unshared if its maps cannot be read.
    fn is_shared(&mut self, reader: &Reader, vvbn: u64) -> bool {
        const BITS: u64 = 8 * BLOCK as u64;
        const COUNTS: u64 = BLOCK as u64 / 2;
        if vvbn < self.origin_blocks {
            return true;
        }
        let [held, counts] = &self.maps;
        let block = |tree: &Option<Tree>, index| tree.as_ref().map_or(Ok(None), |tree| reader.contents(tree, index));
        let is_held = block(held, vvbn / BITS).map(|block| block.is_some_and(|block| bit(&block[..], vvbn % BITS)));
        let pointers = block(counts, vvbn / COUNTS)
            .map(|block| block.map_or(0, |block| u16_at(&block[..], (vvbn % COUNTS * 2) as usize)));
        match is_held.and_then(|held| Ok(held || pointers? > 1)) {
            Ok(is_shared) => is_shared,
            Err(damage) => {
                self.problem.get_or_insert(damage);
                false
            }
        }
    }
}

fn add_runs(reader: &Reader, tree: &Tree, sharing: &mut Sharing, file: &mut SurveyedFile) -> Vec<String> {
    let SurveyedFile { runs, metadata, pointer_blocks, .. } = file;
    walk(reader, tree, 0, &mut |met| {
        let at = met.at.pvbn;
        let is_saved = matches!(met.pointer.part, Part::Saved { .. });
        // Blocks in objects need no reads of drives.
        if is_saved || met.at.in_object().is_some() {
            return;
        }
        if met.level > 0 {
            *pointer_blocks += 1;
            return metadata.push(at);
        }
        let is_shared = met.pointer.vvbn.is_some_and(|vvbn| sharing.is_shared(reader, vvbn));
        match runs.last_mut() {
            Some(SurveyedRun { block, pvbn, blocks, shared })
                if *shared == is_shared
                    && *block + *blocks == met.index
                    && *pvbn + *blocks == at
                    && reader.media.geometry.stripes_behind(*pvbn) > *blocks =>
            {
                *blocks += 1;
            }
            _ => runs.push(SurveyedRun { block: met.index, pvbn: at, blocks: 1, shared: is_shared }),
        }
    })
}

impl Reader {
    fn volume_names(&self) -> Result<Vec<Vec<u8>>> {
        let records = self.volume_records().map_err(|damage| Error::damaged("the volume table", damage))?;
        let decoded =
            records.iter().filter_map(|(_, bytes)| crate::format::volume::VolumeRecord::decode(bytes).ok()?);
        Ok(decoded.filter(|record| !record.deleted).map(|record| record.name).collect())
    }
}

impl Survey {
    /// The volume's name for display.
    pub fn name(&self) -> String {
        text(&self.volume)
    }
}
