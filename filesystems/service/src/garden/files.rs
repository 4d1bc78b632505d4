//! Passes over files: defragmenting and deduplication.

use std::{collections::BTreeSet, ops::ControlFlow};

use senesce_fsapi::{FileKind, FileSystem, FsError, Ino};
use senesce_garden::{DedupStep, DefragCounts, DefragFiles, Placing, VolumeFs};

use super::Service;
use crate::{Deduped, Defragmented, Error, Name, ReadChains, Request, Requests, Response, Result, Task, error::While};

/// Blocks of one step, which locks the aggregate.
const DEFRAG_BLOCKS: u64 = 1024;
const DEDUP_BLOCKS: u64 = 4096;
/// The most passes after the first one.
const MOST_PASSES: u32 = 8;

/// The files to defragment, and the method.
struct Wanted<'a> {
    volume: &'a Name,
    files: DefragFiles,
    placing: Placing,
    dry_run: bool,
}

impl Service<'_> {
    /// Runs passes over files until one of them moves nothing. Moves before a cancellation remain.
    pub(super) fn defrag(&self, request: &Request, task: &mut dyn Task) -> Result<Response> {
        let Request::Defrag { volume, paths, traditional, dry_run } = request else {
            return Err(Error::usage("the request names no files", None));
        };
        let _pass = self.begin_pass(task)?;
        let fs = self.garden.volume(&volume.0).map_err(|error| self.explain(volume, error))?;
        let files =
            if paths.is_empty() { DefragFiles::All } else { DefragFiles::These(collect_files(&fs, paths, task)?) };
        let placing = if *traditional { Placing::Traditional } else { Placing::FakeDirty };
        let wanted = Wanted { volume, files, placing, dry_run: *dry_run };
        let held = self.garden.held_blocks(&volume.0)?;
        let mut run = || {
            let counts = self.pass(&wanted, task).when(|| format!("cannot defragment files of {}", self.place))?;
            // A dry run changes nothing, and offline it must not write at all.
            self.close()?;
            Ok::<_, Error>((counts, task.is_cancelled()))
        };
        let (mut done, mut is_cancelled) = run()?;
        let mut after = None;
        // The next pass can use the space that this one frees. A pass without moves measures the
        // final layout.
        for _ in 0..MOST_PASSES {
            if *dry_run || is_cancelled {
                break;
            }
            let next;
            (next, is_cancelled) = run()?;
            done = done.and_then(&next);
            after = Some(next);
            if next.moved == 0 {
                break;
            }
        }
        let held = self.garden.held_blocks(&volume.0)?.saturating_sub(held);
        Ok(Response::Defragmented(Defragmented {
            volume: volume.lossy(),
            dry_run: *dry_run,
            traditional: *traditional,
            files: done.files,
            blocks: done.blocks,
            moved_blocks: done.moved,
            fixed_pointers: done.fixed,
            unread_blocks: done.unread,
            windows_without_space: done.no_space,
            newly_held_blocks: held,
            requests: Requests {
                before: done.requests,
                predicted: done.predicted,
                after: after.as_ref().map(|after| after.requests),
            },
            read_chain: ReadChains {
                before: done.chain(),
                predicted: done.predicted_chain(),
                after: after.as_ref().and_then(DefragCounts::chain),
            },
        }))
    }

    fn pass(&self, wanted: &Wanted<'_>, task: &mut dyn Task) -> Result<DefragCounts> {
        let Wanted { volume, files, placing, dry_run } = wanted;
        let mut defrag = self.garden.begin_defrag(&volume.0, files.clone(), *placing, *dry_run)?;
        let (doing, of) = (if *dry_run { "examining files" } else { "defragmenting" }, self.garden.report().blocks);
        while !defrag.is_done() && !task.is_cancelled() {
            self.garden.defrag_step(&mut defrag, DEFRAG_BLOCKS)?;
            task.progress(doing, "blocks", defrag.counts().blocks, of);
        }
        Ok(defrag.counts())
    }

    /// One pass over the files of a volume. Sharing before a cancellation remains.
    pub(super) fn dedup(&self, volume: &Name, task: &mut dyn Task) -> Result<Response> {
        let _pass = self.begin_pass(task)?;
        let before = self.garden.sharing(&volume.0).map_err(|error| self.explain(volume, error))?;
        // A cancelled pass is not continued.
        self.garden.stop_dedup(&volume.0)?;
        let of = self.garden.report().blocks;
        let mut all = DedupStep::default();
        while !all.is_done && !task.is_cancelled() {
            let step = self.garden.dedup_step(&volume.0, DEDUP_BLOCKS);
            all += step.when(|| format!("cannot deduplicate {}", self.place))?;
            task.progress("looking for equal blocks", "blocks", all.looked_at, of);
        }
        self.close()?;
        let now = self.garden.sharing(&volume.0)?;
        let DedupStep { looked_at, shared, different, unread, is_done } = all;
        Ok(Response::Deduped(Deduped {
            volume: volume.lossy(),
            looked_at,
            newly_shared_blocks: shared,
            same_fingerprint_other_bytes: different,
            unread,
            whole: is_done,
            shared_blocks: now.shared,
            saved_blocks_before: before.saved,
            saved_blocks: now.saved,
        }))
    }
}

/// The regular files at paths and below them. Symbolic links are not followed. Errors: a path does
/// not exist.
fn collect_files(fs: &VolumeFs, paths: &[Name], task: &mut dyn Task) -> Result<BTreeSet<Ino>> {
    let mut files = BTreeSet::new();
    for path in paths {
        let (mut ino, mut kind) = (Ino::ROOT, FileKind::Directory);
        for name in path.0.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let found = fs.lookup(ino, name).map_err(|error| match error {
                FsError::NotFound | FsError::NotDirectory | FsError::TooLong { .. } => {
                    Error::usage(format!("{path} is not in the volume"), Some("paths begin at the root of the volume"))
                }
                error => error.into(),
            })?;
            (ino, kind) = (found.ino, found.kind);
        }
        let mut directories = Vec::new();
        match kind {
            FileKind::Directory => directories.push(ino),
            FileKind::File => drop(files.insert(ino)),
            _ => {}
        }
        while let Some(directory) = directories.pop() {
            if task.is_cancelled() {
                return Ok(files);
            }
            let listed = fs.read_dir(directory, 0, &mut |entry| {
                match entry.kind {
                    FileKind::Directory if !matches!(entry.name, b"." | b"..") => directories.push(entry.ino),
                    FileKind::File => drop(files.insert(entry.ino)),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            match listed {
                // Programs may remove directories at the same time.
                Ok(()) | Err(FsError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(files)
}
