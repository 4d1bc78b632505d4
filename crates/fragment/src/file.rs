//! Files with a requested number of extents.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use rustix::io::Errno;
use schemars::JsonSchema;
use senesce_core::{Bytes, Rng, Seed};
use senesce_probe::{
    collect::collect_extents,
    map::{ExtentFlags, RawExtent},
    score::{FileLayout, compute_file_layout},
};
use senesce_volume::{Claim, Custodian, Purpose, check_interrupted, copy_attributes};
use serde::Serialize;

use crate::{
    Error, Result,
    apply::{Kind, Scratch, Workplace, check_writable, collect_kind, compute_run_blocks},
    cuts::{compute_pieces, plan_cuts},
};

/// The block of all figures, bytes.
const BLOCK_BYTES: u64 = 4096;
const BUFFER_BYTES: usize = 1 << 20;

/// The target of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileTarget {
    /// The number of extents, adjacent ones merged.
    Extents(u64),
    /// The layout score to approach: 0 means every block alone, 1 means one extent.
    LayoutScore(f64),
}

impl FileTarget {
    /// The number of extents of a file of `blocks` blocks.
    ///
    /// layout score = (blocks − extents) / (blocks − 1), so extents = blocks − score · (blocks −
    /// 1).
    pub fn extents(self, blocks: u64) -> u64 {
        match self {
            Self::Extents(extents) => extents,
            Self::LayoutScore(score) => {
                let following = (score * blocks.saturating_sub(1) as f64).round() as u64;
                blocks - following.min(blocks.saturating_sub(1))
            }
        }
    }
}

/// The result, measured by FIEMAP.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FileReport {
    /// Extents before, adjacent ones merged; `None` for a new file.
    pub extents_before: Option<u64>,
    /// Extents after, adjacent ones merged.
    pub extents: u64,
    /// Layout score after; `None` for a file of one block.
    pub layout_score: Option<f64>,
    /// Blocks of 4 KiB.
    pub blocks: u64,
    /// Size of the file, bytes.
    pub size_bytes: u64,
    /// How the file was cut.
    pub method: &'static str,
}

/// Gives the file at `path` the number of extents of `target`. With `size` it creates a file of
/// random bytes. Otherwise it writes the contents of the existing file, including holes, to new
/// blocks. Name and attributes stay, the inode does not. The custodian's journal records temporary
/// files.
///
/// Errors: not ext4, XFS or Btrfs; more extents than blocks; too little or too scattered free
/// space; a file in use, with several hard links or without content; another number of extents than
/// requested. The file is unchanged then. Cost: the file is written once. On ext4 each cut costs a
/// transaction that moves the map after it.
pub fn fragment_file(
    custodian: &Custodian,
    path: &Path,
    target: FileTarget,
    size: Option<Bytes>,
) -> Result<FileReport> {
    fragment_in(&Workplace::of(custodian, path)?, path, target, size)
}

/// As [`fragment_file`], with a given directory for temporary files.
pub(crate) fn fragment_in(
    workplace: &Workplace<'_>,
    path: &Path,
    target: FileTarget,
    size: Option<Bytes>,
) -> Result<FileReport> {
    let dir = workplace.dir();
    let Goal { old, kind, unit, units, size_bytes, wanted, before } = Goal::find(path, dir, target, size)?;
    let extents_before = before.as_ref().map(|layout| layout.extents);
    if let Some(layout) = before.as_ref().filter(|layout| is_reached(layout, wanted)) {
        return Ok(FileReport::of(extents_before, layout, size_bytes, "as it was"));
    }
    let shape = Shape { path, kind, unit, units, size_bytes, workplace, is_new: old.is_none() };
    let base = shape.create("base")?;
    let spare = shape.allocate(&base, wanted)?;
    let mut content = Content::of(old.as_ref(), path);
    let (made, method) = shape.cut(base, &spare, &mut content)?;
    if let Some(old) = &old {
        let metadata = old.metadata().map_err(Error::io("look up", path))?;
        copy_attributes(&metadata, path, &made.path)?;
    }
    made.sync()?;
    let layout = compute_file_layout(&made.extents()?, BLOCK_BYTES);
    // Checks the layout of the new file before it replaces anything.
    if layout.extents != wanted || layout.encoded_extents > 0 {
        return Err(Error::Missed { path: path.to_owned(), wanted, found: layout.extents + layout.encoded_extents });
    }
    made.rename(path)?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::io("sync", dir))?;
    Ok(FileReport::of(extents_before, &layout, size_bytes, method))
}

/// The change that a run would make to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilePlan {
    /// Extents now, adjacent ones merged; `None` for a new file.
    pub extents_before: Option<u64>,
    /// The number of extents that the file would have.
    pub extents: u64,
    /// Blocks of the file, at least 4 KiB each.
    pub blocks: u64,
    /// Size of the file, bytes.
    pub size_bytes: u64,
    /// Whether the file already has this number of extents.
    pub is_reached: bool,
}

/// Checks a target without a write.
///
/// Errors: those of [`fragment_file`] that are known before the file is allocated. Whether the free
/// space has suitable pieces is not known then.
pub fn plan_file(path: &Path, target: FileTarget, size: Option<Bytes>) -> Result<FilePlan> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = fs::canonicalize(dir).map_err(Error::io("look up", dir))?;
    let goal = Goal::find(path, &dir, target, size)?;
    let is_reached = goal.before.as_ref().is_some_and(|layout| is_reached(layout, goal.wanted));
    if !is_reached {
        check_writable(&dir)?;
        let needed = Bytes((goal.units + goal.wanted - 1).saturating_mul(goal.unit));
        let free = collect_free_bytes(&dir)?;
        if needed > free {
            return Err(Error::NoSpace { path: path.to_owned(), needed, free });
        }
    }
    Ok(FilePlan {
        extents_before: goal.before.map(|layout| layout.extents),
        extents: goal.wanted,
        blocks: goal.units,
        size_bytes: goal.size_bytes,
        is_reached,
    })
}

/// The bytes that this process can still write to the file system of a directory.
fn collect_free_bytes(dir: &Path) -> Result<Bytes> {
    let info = rustix::fs::statvfs(dir).map_err(Error::sys("stat", dir))?;
    // The reserve of ext4 is for root.
    let blocks = if rustix::process::geteuid().is_root() { info.f_bfree } else { info.f_bavail };
    Ok(Bytes(blocks * info.f_frsize))
}

/// A target for a file, after all checks that need no write.
struct Goal {
    old: Option<File>,
    kind: Kind,
    /// Bytes of a block of the file system, at least 4 KiB.
    unit: u64,
    /// Blocks of the file.
    units: u64,
    size_bytes: u64,
    /// The requested number of extents.
    wanted: u64,
    /// The layout of the existing file.
    before: Option<FileLayout>,
}

impl Goal {
    fn find(path: &Path, dir: &Path, target: FileTarget, size: Option<Bytes>) -> Result<Self> {
        let old = open_old(path, size)?;
        let size_bytes = match (&old, size) {
            (Some(file), _) => file.metadata().map_err(Error::io("look up", path))?.len(),
            (None, Some(size)) => size.0,
            (None, None) => unreachable!("open_old refuses it"),
        };
        let (kind, unit) = collect_kind(dir)?;
        let units = size_bytes.div_ceil(unit);
        let wanted = target.extents(units);
        let refuse = |problem: String| Err(Error::Target { path: path.to_owned(), problem });
        if units == 0 {
            return refuse("a file without content has no extents".into());
        }
        if wanted == 0 || wanted > units {
            return refuse(format!(
                "{wanted} extents are not possible: the file has {units} block(s) of {}, and no more extents",
                Bytes(unit)
            ));
        }
        let before = match &old {
            Some(file) => Some(compute_file_layout(&collect_extents(file, path)?, BLOCK_BYTES)),
            None => None,
        };
        Ok(Self { old, kind, unit, units, size_bytes, wanted, before })
    }
}

/// Whether a file has the requested number of extents, and nothing but extents.
fn is_reached(layout: &FileLayout, wanted: u64) -> bool {
    let is_plain = layout.encoded_extents == 0 && layout.inline_bytes == 0 && layout.unwritten_blocks == 0;
    layout.extents == wanted && is_plain
}

impl FileReport {
    fn of(extents_before: Option<u64>, layout: &FileLayout, size_bytes: u64, method: &'static str) -> Self {
        Self {
            extents_before,
            extents: layout.extents,
            layout_score: layout.layout_score(),
            blocks: layout.blocks,
            size_bytes,
            method,
        }
    }
}

/// Opens the existing file, which must not be in use; `None` if a new one is created.
fn open_old(path: &Path, size: Option<Bytes>) -> Result<Option<File>> {
    let refuse = |problem: &str| Err(Error::Target { path: path.to_owned(), problem: problem.to_owned() });
    let metadata = match fs::symlink_metadata(path) {
        Ok(_) if size.is_some() => return refuse("it exists; --size is for a new file"),
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return if size.is_some() { Ok(None) } else { refuse("there is no such file; --size SIZE makes one") };
        }
        Err(error) => return Err(Error::io("look up", path)(error)),
    };
    if !metadata.is_file() {
        return refuse("it is not a regular file");
    }
    if metadata.nlink() > 1 {
        return refuse("it has several hard links, which a new file would separate");
    }
    // A user of the old file, such as a loop device, would continue with it and not with the new
    // file.
    Ok(Some(Claim::open(path, Purpose::Replace)?.into_file()))
}

/// The source of the file's contents.
enum Content<'a> {
    Old(&'a File),
    Random(Box<Rng>),
}

impl<'a> Content<'a> {
    fn of(old: Option<&'a File>, path: &Path) -> Self {
        let purpose = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        old.map_or_else(|| Self::Random(Box::new(Rng::for_purpose(Seed(0), &purpose()))), Self::Old)
    }

    /// Reads the next bytes.
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Old(file) => file.read_exact(out),
            Self::Random(rng) => {
                rng.fill(out);
                Ok(())
            }
        }
    }
}

struct Shape<'a> {
    path: &'a Path,
    kind: Kind,
    /// Bytes of a block of the file system, at least 4 KiB.
    unit: u64,
    /// Blocks of the file.
    units: u64,
    size_bytes: u64,
    workplace: &'a Workplace<'a>,
    is_new: bool,
}

impl Shape<'_> {
    fn create(&self, what: &str) -> Result<Scratch> {
        // It holds the old contents: no other user may read it until it has the old file's mode.
        let mode = if self.is_new { 0o666 } else { 0o600 };
        self.workplace.create(self.path.file_name().unwrap_or_default(), what, mode)
    }

    /// Allocates the file with one spare block for each cut, and returns their positions.
    fn allocate(&self, base: &Scratch, wanted: u64) -> Result<Vec<u64>> {
        const TRIES: u32 = 16;
        let mut cuts = wanted - 1;
        for _ in 0..TRIES {
            let total = (self.units + cuts) * self.unit;
            base.set_len(total)?;
            match base.allocate(0, total) {
                Ok(()) => {}
                Err(Errno::NOSPC) => {
                    let info = rustix::fs::statvfs(&base.path).map_err(Error::sys("stat", self.path))?;
                    let free = Bytes(info.f_bavail * info.f_frsize);
                    return Err(Error::NoSpace { path: self.path.to_owned(), needed: Bytes(total), free });
                }
                Err(error) => return Err(Error::sys("allocate", &base.path)(error)),
            }
            let runs = compute_run_blocks(&base.extents()?, self.unit);
            let found = runs.len() as u64;
            if found > wanted {
                return Err(self.not_reachable(format!("the free space needs at least {found} extents")));
            }
            if wanted - found == cuts {
                let spare = plan_cuts(&runs, cuts);
                return spare.ok_or_else(|| self.not_reachable("the pieces of free space are too short".into()));
            }
            // Fewer cuts need fewer blocks: the next `set_len` frees the last ones.
            cuts = wanted - found;
        }
        Err(self.not_reachable("every allocation had another number of extents".into()))
    }

    fn not_reachable(&self, problem: String) -> Error {
        Error::NotReachable { path: self.path.to_owned(), problem }
    }

    /// Removes the spare blocks and writes the content. Returns the file and the method.
    fn cut(&self, base: Scratch, spare: &[u64], content: &mut Content<'_>) -> Result<(Scratch, &'static str)> {
        if spare.is_empty() {
            self.write(&base, &[(0, self.units)], content)?;
            return Ok((base, "allocated"));
        }
        if self.kind == Kind::Ext4 || (self.kind == Kind::Xfs && !self.can_clone()?) {
            return self.collapse(base, spare, content);
        }
        let pieces = compute_pieces(self.units + spare.len() as u64, spare);
        self.write(&base, &pieces, content)?;
        base.sync()?;
        let made = self.create("new")?;
        let mut at = 0;
        for &(start, length) in &pieces {
            check_interrupted("the fragmentation of a file")?;
            let length = (length * self.unit).min(self.size_bytes - at);
            made.clone_range(&base, start * self.unit, at, length)?;
            at += length;
        }
        Ok((made, "cloned without spare blocks"))
    }

    fn collapse(&self, base: Scratch, spare: &[u64], content: &mut Content<'_>) -> Result<(Scratch, &'static str)> {
        // From the end, so that each collapse moves as little of the map as possible.
        for &block in spare.iter().rev() {
            check_interrupted("the fragmentation of a file")?;
            match base.collapse(block * self.unit, self.unit) {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP | Errno::INVAL) => {
                    return Err(Error::NotSupported {
                        path: self.path.to_owned(),
                        file_system: format!("{:?}", self.kind).to_lowercase(),
                        problem: "cannot remove single blocks of this file (FALLOC_FL_COLLAPSE_RANGE)",
                    });
                }
                Err(error) => return Err(Error::sys("remove spare blocks from", &base.path)(error)),
            }
        }
        self.write(&base, &[(0, self.units)], content)?;
        Ok((base, "collapsed without spare blocks"))
    }

    /// Returns whether the file system shares blocks, which is optional on XFS. It tries with files
    /// of one block: XFS keeps the shared blocks of a removed file for a while, and would move data
    /// that is written meanwhile.
    fn can_clone(&self) -> Result<bool> {
        let first = self.create("first")?;
        first.file.write_all_at(&vec![1; self.unit as usize], 0).map_err(Error::io("write", &first.path))?;
        first.sync()?;
        let second = self.create("second")?;
        second.clone_range(&first, 0, 0, self.unit)?;
        let is_shared = |raw: &RawExtent| raw.flags.contains(ExtentFlags::SHARED);
        Ok(second.extents()?.first().is_some_and(is_shared))
    }

    /// Writes the content to pieces of the allocation, (first block, blocks), and truncates the
    /// file to its size.
    fn write(&self, base: &Scratch, pieces: &[(u64, u64)], content: &mut Content<'_>) -> Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let (mut left, mut end) = (self.size_bytes, 0);
        for &(start, length) in pieces {
            let mut at = start * self.unit;
            let mut piece = (length * self.unit).min(left);
            left -= piece;
            while piece > 0 {
                check_interrupted("the fragmentation of a file")?;
                let part = piece.min(BUFFER_BYTES as u64) as usize;
                content.read(&mut buffer[..part]).map_err(Error::io("read", self.path))?;
                base.file.write_all_at(&buffer[..part], at).map_err(Error::io("write", &base.path))?;
                (at, piece) = (at + part as u64, piece - part as u64);
            }
            end = at;
        }
        (&base.file).flush().map_err(Error::io("write", &base.path))?;
        base.set_len(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_score_gives_the_number_of_extents() {
        assert_eq!(FileTarget::LayoutScore(1.0).extents(100), 1);
        assert_eq!(FileTarget::LayoutScore(0.0).extents(100), 100);
        assert_eq!(FileTarget::LayoutScore(0.5).extents(101), 51);
        assert_eq!(FileTarget::LayoutScore(0.5).extents(1), 1);
        assert_eq!(FileTarget::LayoutScore(0.5).extents(0), 0);
        assert_eq!(FileTarget::Extents(7).extents(100), 7);
    }
}
