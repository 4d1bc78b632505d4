//! Warns of commands that read almost nothing from the device: their times say nothing about the
//! layout.

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt, path::Path};

use senesce_core::Bytes;

/// If a command reads less than this share of the bytes that a tree occupies, it read almost
/// nothing.
const LITTLE: f64 = 0.05;
/// Smaller trees are not judged, because metadata is a large part of them.
const JUDGED_FROM_BYTES: u64 = 4 << 20;
/// The most entries that [`allocated_at_least`] visits: an estimate is enough for a warning.
const ENTRIES: usize = 200_000;

/// Returns a warning if `read_bytes` is below 5% of the bytes that the tree occupies.
pub fn warn_of_little(read_bytes: u64, allocated_bytes: u64) -> Option<String> {
    let share = read_bytes as f64 / allocated_bytes as f64;
    if allocated_bytes < JUDGED_FROM_BYTES || share >= LITTLE {
        return None;
    }
    Some(format!(
        "the command read {} from the device, {:.1}% of the {} allocated there (below {:.0}%). It read no contents \
         (like `tar cf /dev/null`), only a small part of the tree, or data that was in memory. So its time does not \
         show the cost of the layout",
        Bytes(read_bytes),
        share * 100.0,
        Bytes(allocated_bytes),
        LITTLE * 100.0
    ))
}

/// Counts the bytes that the entries below a directory occupy, as `du -s -x` does. Stops once the
/// sum is enough for a warning about `read_bytes`, or after 200,000 entries.
pub fn allocated_at_least(root: &Path, read_bytes: u64) -> u64 {
    let enough = ((read_bytes as f64 / LITTLE) as u64 + 1).max(JUDGED_FROM_BYTES);
    let Ok(top) = fs::symlink_metadata(root) else { return 0 };
    let mut linked = BTreeSet::new();
    let mut directories = vec![root.to_owned()];
    let (mut bytes, mut entries) = (top.blocks() * 512, 0);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            entries += 1;
            if found.dev() != top.dev() || found.nlink() > 1 && !found.is_dir() && !linked.insert(found.ino()) {
                continue;
            }
            bytes += found.blocks() * 512;
            if found.is_dir() {
                directories.push(entry.path());
            }
            if bytes >= enough || entries >= ENTRIES {
                return bytes;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_trees_and_large_reads_cause_no_warning() {
        let mib = |count: u64| count << 20;
        assert_eq!(warn_of_little(mib(5), mib(100)), None);
        assert_eq!(warn_of_little(0, mib(3)), None);
        let warning = warn_of_little(mib(4), mib(100)).unwrap();
        assert!(warning.contains("read 4 MiB") && warning.contains("4.0% of the 100 MiB"), "{warning}");
    }

    #[test]
    fn a_tree_is_counted_no_further_than_needed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["a", "sub/b"] {
            fs::write(dir.path().join(name), vec![1; 3 << 20]).unwrap();
        }
        fs::hard_link(dir.path().join("a"), dir.path().join("sub/c")).unwrap();
        let all = allocated_at_least(dir.path(), 1 << 30);
        assert!((6 << 20..7 << 20).contains(&all), "{all}");
        assert!(allocated_at_least(dir.path(), 0) >= JUDGED_FROM_BYTES);
    }
}
