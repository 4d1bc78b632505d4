//! A volume that is filled, emptied, and filled again.

use senesce_fsapi::{Caller, FileSystem, FsError, Ino, NewNode, conformance::Subject};

use senesce_evergreen::{Limits, MakeOptions, disk::Shape};

use super::rig::{Rig, TINY};

/// Nodes that hold some dozens of blocks: of tiny ones a good part is never full.
const SMALL: MakeOptions = MakeOptions {
    shape: Shape { node_bytes: 256 << 10, basement_bytes: 32 << 10, ..TINY.shape },
    log_bytes: Some(2 << 20),
    ..TINY
};
const LIMITS: Limits = Limits { cache_bytes: 2 << 20, dirty_bytes: 2 << 20 };

#[test]
fn what_is_removed_can_be_filled_again() {
    let mut rig = Rig::new(48 << 20, &SMALL, LIMITS);
    let caller = Caller::default();
    for round in 0..4u8 {
        let start = rig.fs().space().unwrap();
        let mut written = 0;
        let data = vec![round + 1; 50_000];
        let mut files = Vec::new();
        'full: for number in 0.. {
            let name = format!("file {number}").into_bytes();
            let file = match rig.fs().make_node(&caller, Ino::ROOT, &name, &NewNode::file(0o644)) {
                Ok(made) => made.ino,
                Err(FsError::NoSpace) => break,
                Err(error) => panic!("{error}"),
            };
            files.push(name);
            for at in 0..3 {
                match rig.fs().write(&caller, file, at * data.len() as u64, &data) {
                    Ok(bytes) => written += bytes as u64,
                    Err(FsError::NoSpace) => break 'full,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        rig.check().unwrap();
        let wanted = start.available * u64::from(start.block_bytes);
        assert!(written * 100 >= wanted * 85, "round {round}: {written} bytes were written, {wanted} were free");
        rig.reopen().unwrap();
        for name in files {
            rig.fs().unlink(&caller, Ino::ROOT, &name).unwrap();
        }
        rig.check().unwrap();
        assert_eq!(rig.fs().space().unwrap().free, start.free, "round {round}: all is given back at once");
    }
}
