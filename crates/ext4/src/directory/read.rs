//! Reads many directories at once: blocks in the order of the device, entries in the order of each
//! directory.

use super::{
    EntryOrder,
    block::{Parsed, Place, Rules, parse_block, parse_index_root, verify_checksum},
    entries::DirectoryEntries,
    order::{Listing, apply_listing, compute_listing, has_stored_hashes},
};
use crate::{
    Error, FileSystem, Problem, ReadAt, Structure,
    features::incompat,
    inode::{FileKind, InodeFlags},
    map::{Budget, MapJob, USED_UP},
    sorted_read::visit_blocks,
};

/// The entries of a directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) entries: DirectoryEntries,
    /// Whether the order is certainly that of the kernel.
    pub(crate) certain: bool,
}

/// A directory that is being read.
struct Open {
    job: usize,
    rules: Rules,
    indexed: bool,
    root_version: Option<u8>,
    /// The contents of each block, with its number in the directory.
    blocks: Vec<(u64, Parsed)>,
}

/// A block to read: its position, its number in the directory, and the index of the open directory.
type Task = (u64, u64, u32);

/// The largest number of blocks that wait.
const MAX_TASKS: usize = 1 << 18;

/// Reads the entries of the jobs that are directories; other jobs have `None`. Jobs record their
/// damage.
///
/// Errors: a block cannot be read. Cost: each block is read once; memory for the packed entries of
/// all directories, twice for one of them.
pub(crate) fn collect_directories<D: ReadAt>(
    fs: &FileSystem<D>,
    budget: &Budget,
    order: EntryOrder,
    jobs: &mut [MapJob],
    buffer: &mut Vec<u8>,
) -> Result<Vec<Option<Listed>>, Error> {
    let mut reading = Reading { fs, budget, open: Vec::new(), tasks: Vec::new() };
    for index in 0..jobs.len() {
        let job = &mut jobs[index];
        if job.damage.is_some() || job.inode.kind != FileKind::Directory {
            continue;
        }
        let directory = begin(fs, job, index);
        if job.inode.flags.contains(InodeFlags::INLINE_DATA) {
            reading.open.push(read_inline(job, directory));
            continue;
        }
        let blocks = match check_blocks(fs, job) {
            Ok(blocks) => blocks,
            Err(problem) => {
                job.set_damage(job.own_block, Structure::Inode, problem);
                continue;
            }
        };
        let place = reading.open.len() as u32;
        reading.open.push(directory);
        let runs = std::mem::take(&mut job.runs);
        for run in runs.iter().filter(|run| run.logical < blocks) {
            for n in 0..run.blocks.min(blocks - run.logical) {
                reading.tasks.push((run.physical + n, run.logical + n, place));
                if reading.tasks.len() == MAX_TASKS {
                    reading.read_tasks(jobs, buffer)?;
                }
            }
        }
        jobs[index].runs = runs;
    }
    reading.read_tasks(jobs, buffer)?;
    let open = reading.open;
    let mut listed: Vec<Option<Listed>> = jobs.iter().map(|_| None).collect();
    for mut directory in open {
        let job = &jobs[directory.job];
        if job.damage.is_some() {
            continue;
        }
        directory.blocks.sort_unstable_by_key(|(logical, _)| *logical);
        let mut all = Parsed::default();
        for (_, parsed) in directory.blocks {
            all.entries.append(&parsed.entries);
            all.hashes.extend(parsed.hashes);
        }
        let listing = match order {
            EntryOrder::OnDisk => Listing::AsItLies,
            EntryOrder::Readdir => compute_listing(&fs.superblock, &job.inode, directory.root_version),
        };
        let folds_case = job.inode.flags.contains(InodeFlags::CASEFOLD);
        let (entries, certain) = apply_listing(all, listing, folds_case);
        listed[directory.job] = Some(Listed { entries, certain });
    }
    Ok(listed)
}

fn begin<D: ReadAt>(fs: &FileSystem<D>, job: &MapJob, index: usize) -> Open {
    let rules = Rules {
        has_kinds: fs.superblock.has_incompat(incompat::FILETYPE),
        encrypted: job.inode.flags.contains(InodeFlags::ENCRYPTED),
        has_hashes: has_stored_hashes(&job.inode),
        inodes: fs.superblock.inodes,
    };
    let indexed = fs.superblock.has_dir_index() && job.inode.flags.contains(InodeFlags::INDEXED);
    Open { job: index, rules, indexed, root_version: None, blocks: Vec::new() }
}

/// The number of blocks of a directory.
///
/// Errors: the size is not a multiple of the block size; blocks are missing or were never written.
fn check_blocks<D: ReadAt>(fs: &FileSystem<D>, job: &MapJob) -> Result<u64, Problem> {
    let block_bytes = fs.superblock.block_bytes;
    let (blocks, size) = (job.inode.size_bytes / block_bytes, job.inode.size_bytes);
    if size % block_bytes != 0 || blocks == 0 {
        return Err(format!("the directory's size is {size} bytes, with blocks of {block_bytes}").into());
    }
    let mut there = 0;
    for run in job.runs.iter().filter(|run| run.logical < blocks) {
        if run.unwritten {
            return Err(format!("the directory's block {} was never written", run.logical).into());
        }
        there += run.blocks.min(blocks - run.logical);
    }
    if there != blocks {
        return Err(format!("the directory has {there} of its {blocks} blocks").into());
    }
    Ok(blocks)
}

/// The directories that are being read, and their blocks that wait.
struct Reading<'a, D> {
    fs: &'a FileSystem<D>,
    budget: &'a Budget,
    open: Vec<Open>,
    tasks: Vec<Task>,
}

impl<D: ReadAt> Reading<'_, D> {
    /// Reads the blocks that wait.
    fn read_tasks(&mut self, jobs: &mut [MapJob], buffer: &mut Vec<u8>) -> Result<(), Error> {
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.sort_unstable();
        visit_blocks(self.fs, tasks.iter().map(|task| task.0), buffer, |place, bytes| {
            let (block, logical, index) = tasks[place];
            let directory = &mut self.open[index as usize];
            let job = &mut jobs[directory.job];
            if job.damage.is_none()
                && let Err(problem) = read_block(self.fs, self.budget, job, directory, logical, bytes)
            {
                job.set_damage(block, Structure::DirectoryBlock, problem);
            }
        })
    }
}

fn read_block<D: ReadAt>(
    fs: &FileSystem<D>,
    budget: &Budget,
    job: &MapJob,
    directory: &mut Open,
    logical: u64,
    bytes: &[u8],
) -> Result<(), Problem> {
    if !budget.take_structure_block() {
        return Err(USED_UP.into());
    }
    if fs.verifies() {
        let place = match (directory.indexed, logical) {
            (false, _) => Place::NotIndexed,
            (true, 0) => Place::Root,
            (true, _) => Place::Behind,
        };
        verify_checksum(bytes, job.inode.checksum_seed, place)?;
    }
    if directory.indexed && logical == 0 {
        directory.root_version = Some(parse_index_root(bytes)?);
    }
    let mut parsed = Parsed::default();
    parse_block(bytes, &directory.rules, &mut parsed)?;
    directory.blocks.push((logical, parsed));
    Ok(())
}

/// Reads a directory that is stored in its inode: after the number of its parent, and in the
/// attribute.
fn read_inline(job: &mut MapJob, mut directory: Open) -> Open {
    let mut parsed = Parsed::default();
    let result = parse_block(&job.inode.content[4..], &directory.rules, &mut parsed)
        .and_then(|()| parse_block(&job.inline_value, &directory.rules, &mut parsed));
    if let Err(problem) = result {
        job.set_damage(job.own_block, Structure::Inode, problem);
    }
    directory.blocks.push((0, parsed));
    directory
}
