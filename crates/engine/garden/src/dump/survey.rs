//! A survey: every file and directory of a volume in the order in which it is listed, with the places of its blocks, and
//! what of the aggregate is free.

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

/// Blocks of a file that lie one behind the other on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyedRun {
    /// The first block's number in the file.
    pub block: u64,
    /// Where it lies.
    pub pvbn: u64,
    /// How many there are.
    pub blocks: u64,
    /// Whether others use them as well: other places in files, snapshots, or the volume that this one is a clone of.
    pub shared: bool,
}

/// A file or directory of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedFile {
    /// Names from the root, parted by `/`; empty for the root itself.
    pub path: Vec<u8>,
    /// `File` or `Directory`.
    pub kind: FileKind,
    /// Its number.
    pub ino: u64,
    /// How many names it has.
    pub links: u32,
    /// Its length, bytes.
    pub size: u64,
    /// Blocks of contents that it has.
    pub blocks: u64,
    /// When its contents changed last, seconds since 1970.
    pub modified_unix_seconds: i64,
    /// Whether its contents lie in its inode.
    pub inline: bool,
    /// Where its contents lie, in the order of the file.
    pub runs: Vec<SurveyedRun>,
    /// The blocks that are read before its contents: those of its inode, and its blocks of pointers.
    pub metadata: Vec<u64>,
    /// How many of these are its blocks of pointers.
    pub pointer_blocks: u64,
}

/// An allocation area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyedArea {
    /// Its RAID group.
    pub group: u32,
    /// Its number in the group.
    pub area: u64,
    /// Its blocks, without parity.
    pub blocks: u64,
    /// Those that are free.
    pub free: u64,
}

/// What there is besides files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The volume.
    pub volume: Vec<u8>,
    /// How many other volumes the aggregate has.
    pub other_volumes: u64,
    /// The PVBNs of each drive that holds data, in order.
    pub drives: Vec<Range<u64>>,
    /// Stripes of a tetris: blocks that are written to one drive before the next one's turn.
    pub tetris_stripes: u64,
    /// Blocks that are free, in runs that lie on one drive.
    pub free: Vec<Range<u64>>,
    /// Free blocks of each allocation area.
    pub areas: Vec<SurveyedArea>,
    /// Inodes that there can be, and those in use.
    pub inodes: (u64, u64),
    /// Names of files that came before under another one.
    pub further_links: u64,
    /// What could not be looked at: where, and why.
    pub errors: Vec<(Vec<u8>, String)>,
    /// What there is to know of the drives.
    pub notes: Vec<String>,
    /// Operations in the log, which the last consistency point does not include: they are not in the survey.
    pub log_operations: u64,
}

/// Surveys a volume as the last consistency point has it (the only one, or the first, without a name), from devices that
/// no engine has open; nothing is written. `visit` is given every file and directory, a directory before what is in it,
/// and may stop it with `false`.
///
/// Errors: as [`dump`](super::dump). Files that cannot be read are in the survey. Cost: reads directories, blocks of
/// pointers, container maps and bits, no contents; memory: 64 MiB of blocks, 8 bytes for each file with several names.
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

/// The drives, what is free on them, and in which areas.
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
    /// Directories, and files with several names, that came by.
    linked: HashSet<u64>,
    visit: &'a mut dyn FnMut(SurveyedFile) -> bool,
}

/// Directories in each other that are gone into.
const MAX_DEPTH: usize = 4096;

impl Surveyor<'_> {
    /// Visits a directory and all that is in it; `false` if it is to stop.
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

    /// Visits one entry. Gives its tree, and whether to go on; `None` if it is nothing to visit.
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
                // It has one name; what gives it another is damage, and may lead in a circle.
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

/// What says which blocks of a volume others use as well.
struct Sharing {
    /// A clone's blocks below this are its origin's.
    origin_blocks: u64,
    /// The VVBNs that snapshots use, and how many pointers name a VVBN.
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

    /// One that the maps do not tell of is taken for the file's own.
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
        // What lies in objects costs no drive anything.
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
    /// The volume's name, to be shown.
    pub fn name(&self) -> String {
        text(&self.volume)
    }
}
