//! `senesce profile capture`: the files below a directory, or of an ext4 read from its device or
//! image, as a profile.

use std::{
    fs::{self, File},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use anyhow::{Context, Result};
use senesce_core::{Clock, Printable};
use senesce_ext4::{EntryOrder, FileKind, FileSystem, ScanOptions, TreeOptions};
use senesce_probe::collect::{Census, CensusFile, CensusOptions, collect_census};
use senesce_workload::profile::{AgingProfile, Captured, FoundFile, compute_profile};

use crate::{args::ProfileCaptureArgs, clock::SystemClock, exit::usage, machine::count_threads};

/// Reads the attributes of every file, and makes a profile in the bins of `like`, if that is given.
pub fn capture(args: &ProfileCaptureArgs, like: Option<&AgingProfile>, quiet: bool) -> Result<AgingProfile> {
    let clock = SystemClock::start();
    let threads = count_threads(args.threads);
    let options = CensusOptions { threads, with_extents: args.extents };
    let place = fs::metadata(&args.path).with_context(|| format!("cannot read {}", args.path.display()))?;
    let (census, fullness) = match place.file_type() {
        kind if kind.is_file() || kind.is_block_device() => read_ext4(&args.path, &options)?,
        _ => (collect_census(&args.path, &options)?, collect_fullness(&args.path)?),
    };
    let took = clock.now();
    for error in &census.errors {
        eprintln!("cannot {} {}: {}", error.operation, Printable::new(&error.path), error.message);
    }
    if census.errors_count > 0 {
        eprintln!("{} entries could not be read; the profile describes the others", census.errors_count);
    }
    if census.files.is_empty() {
        return Err(usage(format!("there are no files in {}", args.path.display()), None));
    }
    let now = args.now.unwrap_or_else(|| clock.unix_seconds());
    let found: Vec<FoundFile> = census
        .files
        .iter()
        .map(|file| FoundFile {
            size_bytes: file.size_bytes,
            depth: u64::from(file.depth),
            age_seconds: now.saturating_sub(u64::try_from(file.modified_unix_seconds).unwrap_or(0)),
            extents: file.extents.map(u64::from),
        })
        .collect();
    let captured = Captured {
        name: &args.name,
        study: format!("captured by senesce {}", env!("CARGO_PKG_VERSION")),
        fullness: Some(fullness),
        directories_by_depth: &census.directories_by_depth,
        like,
    };
    let profile = compute_profile(&found, &captured)
        .map_err(|problem| usage(format!("{}: {problem}", args.path.display()), None))?;
    if !quiet {
        let directories: u64 = census.directories_by_depth.iter().sum();
        eprintln!(
            "{} files in {directories} directories, {:.2} s with {threads} thread(s)",
            census.files.len(),
            took.as_secs_f64()
        );
    }
    Ok(profile)
}

/// Share of the file system's capacity that is used.
fn collect_fullness(path: &Path) -> Result<f64> {
    let stat = rustix::fs::statvfs(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(1.0 - stat.f_bavail as f64 / stat.f_blocks.max(1) as f64)
}

/// The census of a whole ext4 that is not mounted, and its fullness; blocks reserved for root count
/// as free here.
fn read_ext4(path: &Path, options: &CensusOptions) -> Result<(Census, f64)> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let wrong = |error: senesce_ext4::Error| {
        usage(
            format!("{} holds no ext4 that can be read: {error}", path.display()),
            Some("mount another file system, and name its directory"),
        )
    };
    let mut system = FileSystem::open(file).map_err(wrong)?;
    let superblock = system.superblock();
    let capacity = superblock.blocks.saturating_sub(superblock.overhead_clusters * superblock.cluster_blocks);
    let fullness = 1.0 - superblock.free_blocks as f64 / capacity.max(1) as f64;
    let scan = ScanOptions { threads: options.threads.max(1), entries: Some(EntryOrder::Readdir) };
    let tree =
        system.collect_tree_with(&TreeOptions { scan, ..TreeOptions::default() }, &mut |_, _| true).map_err(wrong)?;
    for warning in &tree.report.warnings {
        eprintln!("warning: {warning}");
    }
    let mut census = Census::default();
    tree.walk(&mut |entry| {
        let Some(file) = entry.file else { return };
        let slashes = entry.path.iter().filter(|&&byte| byte == b'/').count();
        match (file.kind(), entry.further_link) {
            (FileKind::Directory, false) => {
                let depth = if entry.path.is_empty() { 0 } else { slashes + 1 };
                if census.directories_by_depth.len() <= depth {
                    census.directories_by_depth.resize(depth + 1, 0);
                }
                census.directories_by_depth[depth] += 1;
            }
            (FileKind::Regular, true) => census.further_links += 1,
            (FileKind::Regular, false) => census.files.push(CensusFile {
                size_bytes: file.size_bytes(),
                depth: slashes as u32,
                modified_unix_seconds: file.modified_seconds(),
                extents: options.with_extents.then(|| count_pieces(file.extents())),
            }),
            _ => {}
        }
    });
    census.files.sort_unstable();
    Ok((census, fullness))
}

/// Extents that do not follow each other on the device.
fn count_pieces(extents: impl IntoIterator<Item = senesce_ext4::MappedExtent>) -> u32 {
    let (mut count, mut end) = (0, None);
    for mapped in extents {
        let extent = mapped.extent;
        if end != Some((extent.logical, extent.physical)) {
            count += 1;
        }
        end = Some((extent.logical + extent.length, extent.physical + extent.length));
    }
    count
}
