//! Deduplication with colliding fingerprints.

use senesce_fsapi::FileSystem;

use super::{Small, findings, make};
use crate::{Sharing, format::BLOCK};

/// Blocks with equal fingerprints are shared only if their bytes are equal.
#[test]
fn equal_fingerprints_do_not_imply_equal_blocks() {
    let small = Small { groups: vec![3], stripes: 256, aa_stripes: 64, tetris_stripes: 16 };
    let (devices, garden, fs) = small.garden();
    let ino = make(&fs, "file");
    // 4 kinds of blocks, in turn; blocks of one kind are equal.
    let data: Vec<u8> = (0..40 * BLOCK).map(|at| (at / BLOCK % 4) as u8 + 1).collect();
    fs.write(&Default::default(), ino, 0, &data).unwrap();
    garden.consistency_point().unwrap();
    let mut store = garden.shared().lock();
    let (step, done) = store.dedup_step(0, 1000, |_| 7);
    done.unwrap();
    // All blocks are compared with the first one: a quarter of them is equal.
    assert_eq!((step.shared, step.different, step.unread, step.is_done), (9, 30, 0, true));
    let (step, done) = store.dedup_step(0, 1000, |data| u64::from(data[0] / 2));
    done.unwrap();
    // The candidates are now the first block of kind 1, the first of kinds 2 and 3, and the first
    // of kind 4.
    assert_eq!((step.shared, step.different), (18, 10));
    drop(store);
    garden.consistency_point().unwrap();
    assert_eq!(garden.sharing(super::NAME).unwrap(), Sharing { shared: 3, saved: 27 });
    let mut got = vec![0; data.len()];
    assert_eq!(fs.read(ino, 0, &mut got).unwrap(), data.len());
    assert!(got == data);
    assert_eq!(findings(&devices), Vec::<String>::new());
}
