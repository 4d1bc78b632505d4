//! `senesce fs defrag`: files whose blocks lie scattered are written together again.

use std::{collections::BTreeSet, ops::ControlFlow, os::unix::ffi::OsStrExt};

use anyhow::{Context, Result};
use senesce_fsapi::{FileKind, FileSystem, FsError, Ino};
use senesce_garden::{Defrag, DefragCounts, DefragFiles, Garden, Placing, VolumeFs};
use senesce_volume::{check_interrupted, install_signal_cleanup, interrupted};
use serde_json::json;

use super::{
    place::Place,
    words::{explain, show, split},
};
use crate::{args::FsDefragArgs, exit::usage, progress::Stretch};

/// Blocks that are looked at before it is looked whether a signal came.
const BLOCKS: u64 = 1024;
/// Passes after the first one at most.
const MOST_PASSES: u32 = 8;

/// What is asked for.
struct Wanted<'a> {
    volume: &'a [u8],
    files: DefragFiles,
    placing: Placing,
    dry_run: bool,
}

/// One pass over files of a volume, and a look at how they lie then. What was moved until a signal stays moved.
pub fn defrag(args: &FsDefragArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, paths) = split(&args.words, &args.drives, 0..=usize::MAX)?;
    // A dry run leaves even the log as it is.
    let devices = if args.dry_run { place.look()? } else { place.open()? };
    let garden = place.garden(&devices)?;
    let volume = args.volume.as_bytes();
    let fs = garden.volume(volume).map_err(|error| explain(&garden, volume, error))?;
    let files = if paths.is_empty() { DefragFiles::All } else { DefragFiles::These(collect_files(&fs, &paths)?) };
    let placing = if args.traditional { Placing::Traditional } else { Placing::FakeDirty };
    let wanted = Wanted { volume, files, placing, dry_run: args.dry_run };
    let held = garden.held_blocks(volume)?;
    let run = || {
        let counts = pass(&garden, &wanted, quiet).with_context(|| format!("cannot lay files of {place} better"))?;
        garden.close().with_context(|| format!("cannot close {place}"))?;
        Ok::<_, anyhow::Error>(counts)
    };
    let mut done = run()?;
    let mut after = None;
    // What a pass frees may serve the next one; one that moves nothing tells how files lie.
    for _ in 0..MOST_PASSES {
        if args.dry_run || interrupted().is_some() {
            break;
        }
        let next = run()?;
        done = done.and_then(&next);
        after = Some(next);
        if next.moved == 0 {
            break;
        }
    }
    let held = garden.held_blocks(volume)?.saturating_sub(held);
    if args.json {
        println!("{}", shown(args, &done, after.as_ref(), held));
    } else {
        print(&place, args, &done, after.as_ref(), held);
    }
    Ok(check_interrupted("defragmenting")?)
}

fn pass(garden: &Garden, wanted: &Wanted<'_>, quiet: bool) -> Result<DefragCounts> {
    let Wanted { volume, files, placing, dry_run } = wanted;
    let mut defrag: Defrag = garden.begin_defrag(volume, files.clone(), *placing, *dry_run)?;
    let doing = if *dry_run { "looking at how files lie" } else { "defragmenting" };
    let mut bar = Stretch::for_stderr(quiet, doing, "blocks", garden.report().blocks);
    while !defrag.is_done() && interrupted().is_none() {
        garden.defrag_step(&mut defrag, BLOCKS)?;
        bar.reach(defrag.counts().blocks);
    }
    Ok(defrag.counts())
}

/// The regular files that paths lead to, with all below them. Symbolic links are not followed. Errors: a path leads nowhere.
fn collect_files(fs: &VolumeFs, paths: &[Vec<u8>]) -> Result<BTreeSet<Ino>> {
    let mut files = BTreeSet::new();
    for path in paths {
        let (mut ino, mut kind) = (Ino::ROOT, FileKind::Directory);
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let found = fs.lookup(ino, name);
            let found = found.map_err(|error| match error {
                FsError::NotFound | FsError::NotDirectory => {
                    usage(format!("{} is not in the volume", show(path)), Some("paths begin at the root of the volume"))
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
            check_interrupted("looking for files")?;
            fs.read_dir(directory, 0, &mut |entry| {
                match entry.kind {
                    FileKind::Directory if !matches!(entry.name, b"." | b"..") => directories.push(entry.ino),
                    FileKind::File => drop(files.insert(entry.ino)),
                    _ => {}
                }
                ControlFlow::Continue(())
            })?;
        }
    }
    Ok(files)
}

fn shown(args: &FsDefragArgs, done: &DefragCounts, after: Option<&DefragCounts>, held: u64) -> serde_json::Value {
    json!({
        "format": "senesce-fs-defrag/1",
        "volume": args.volume.to_string_lossy(),
        "dry_run": args.dry_run,
        "traditional": args.traditional,
        "files": done.files,
        "blocks": done.blocks,
        "moved_blocks": done.moved,
        "fixed_pointers": done.fixed,
        "unread_blocks": done.unread,
        "windows_without_space": done.no_space,
        "newly_held_blocks": held,
        "requests": { "before": done.requests, "predicted": done.predicted, "after": after.map(|after| after.requests) },
        "read_chain": {
            "before": done.chain(),
            "predicted": done.predicted_chain(),
            "after": after.and_then(DefragCounts::chain),
        },
    })
}

fn print(place: &Place, args: &FsDefragArgs, done: &DefragCounts, after: Option<&DefragCounts>, held: u64) {
    let volume = show(args.volume.as_bytes());
    let would = if args.dry_run { "would move" } else { "moved" };
    println!("{place}: volume {volume}: {} blocks of {} files, {} {would}", done.blocks, done.files, done.moved);
    let chain = |chain: Option<f64>| chain.map_or("none".to_owned(), |chain| format!("{chain:.2}"));
    let now = after.map_or(String::new(), |after| format!(", is {}", chain(after.chain())));
    println!("  read chain: was {} blocks, foreseen {}{now}", chain(done.chain()), chain(done.predicted_chain()));
    if done.unread + done.no_space > 0 {
        println!("  {} blocks cannot be read; {} times there was no space", done.unread, done.no_space);
    }
    if !args.dry_run {
        println!("  snapshots hold {held} blocks more; {} pointers named an old place and were put right", done.fixed);
    }
}
