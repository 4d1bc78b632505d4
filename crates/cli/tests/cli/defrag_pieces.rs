//! Shattered ranges of a large file become contiguous; the rest of the file stays.

use std::{fs::File, os::unix::fs::FileExt};

use senesce_testkit::root_or_skip;

use super::{
    defrag::{Aged, defrag, state},
    lab::Lab,
};

const KINDS: [(&str, &[&str], u64); 3] = [("ext4", &[], 256), ("xfs", &[], 320), ("btrfs", &[], 320)];
/// The length of the shattered range, and of the rest of the file.
const SHATTERED: u64 = 2 << 20;
const LONG: u64 = 8 << 20;

#[test]
fn only_shattered_ranges_move() {
    if !root_or_skip("mounting") {
        return;
    }
    for case in KINDS {
        let lab = Lab::new();
        let aged = Aged::new(&lab, case);
        let tree = aged.tree();
        // 2 MiB in pieces, and then a long piece.
        let path = tree.join("large").to_string_lossy().into_owned();
        let is_btrfs = case.0 == "btrfs";
        let size = if is_btrfs { ["--size", "2MiB", "--extents", "1"] } else { ["--size", "2MiB", "--extents", "32"] };
        lab.run([&["--quiet", "fragment", &path][..], &size].concat()).good();
        let large = File::options().write(true).open(&path).unwrap();
        let bytes: Vec<u8> = (0..LONG).map(|at| (at * 13 + at / 4096) as u8).collect();
        large.write_all_at(&bytes, SHATTERED).unwrap();
        large.sync_all().unwrap();
        if is_btrfs {
            // Copy-on-write shatters what is overwritten.
            for at in (0..SHATTERED).step_by(128 << 10) {
                large.write_all_at(&bytes[..64 << 10], at).unwrap();
                large.sync_all().unwrap();
            }
        }
        drop(large);
        let before = state(&tree);

        let pieces = ["--strategy", "pieces", "--piece-size", "512KiB"];
        let advice = defrag(&lab, &tree, &[&pieces[..], &["--dry-run"]].concat());
        let number = |name: &str| advice[name].as_u64().unwrap();
        assert!(number("moved_bytes") >= SHATTERED / 2, "{case:?}: {advice}");
        assert!(number("moved_bytes") < 2 * SHATTERED, "{case:?}: the long piece stays: {advice}");
        assert!(number("pieces_after") * 4 < number("pieces_now"), "{case:?}: {advice}");

        let report = defrag(&lab, &tree, &[&pieces[..], &["--force"]].concat());
        let applied = &report["applied"];
        assert_eq!(applied["written_bytes"], advice["moved_bytes"], "{case:?}: {applied}");
        assert_eq!(applied["skipped"], serde_json::json!({}), "{case:?}");
        assert_eq!(state(&tree), before, "{case:?}");
        let second = defrag(&lab, &tree, &[&pieces[..], &["--dry-run"]].concat());
        assert_eq!(second["moved_bytes"], 0, "{case:?}: {second}");
        aged.check();
    }
}
