//! Sequential reads: their cost, and rewrites after them.

use senesce_fsapi::{Caller, FileSystem, Ino, Timestamp};

use super::{
    NAME, Small,
    defrag::{BLOCKS, with_random_file},
    findings, make, open,
    relocate::contents,
};
use crate::{Garden, Gardening, Headroom, VolumeFs, WriteAfterRead};

const BLOCK: u64 = 4096;

/// Reads a file in calls of `call` blocks. Returns the number of blocks read, and of requests.
fn pass(garden: &Garden, fs: &VolumeFs, ino: Ino, blocks: u64, call: u64) -> (u64, u64) {
    let before = garden.report().raid;
    let mut data = vec![0; (call * BLOCK) as usize];
    for first in (0..blocks).step_by(call as usize) {
        let got = fs.read(ino, first * BLOCK, &mut data).unwrap();
        let whole = data[..got].chunks_exact(BLOCK as usize);
        (first..).zip(whole).for_each(|(block, data)| assert_eq!(data, contents(block), "block {block}"));
    }
    let reads = garden.report().raid.since(before).data.reads;
    (reads.blocks, reads.requests)
}

#[test]
fn sequential_read_needs_one_request_per_chain() {
    let small = Small { groups: vec![3], stripes: 1024, aa_stripes: 64, tetris_stripes: 64 };
    let (devices, garden, fs) = small.garden();
    let ino = make(&fs, "file");
    let blocks = 64 * 3 * 4;
    let all: Vec<u8> = (0..blocks).flat_map(contents).collect();
    fs.write(&Caller::default(), ino, 0, &all).unwrap();
    garden.consistency_point().unwrap();
    drop((fs, garden));
    for (read_ahead, least, most) in [(0, blocks / 4, blocks), (256, 12, 40)] {
        let garden = open(&devices);
        garden.set_read_ahead(read_ahead);
        let (read, requests) = pass(&garden, &garden.volume(NAME).unwrap(), ino, blocks, 4);
        assert!((least..=most).contains(&requests), "{requests} requests");
        // Contents, pointers, inodes and maps, each read once.
        assert!((blocks..blocks + 20).contains(&read), "{read} blocks");
        let counts = garden.report().counts;
        assert_eq!(counts.read_aheads > 0, read_ahead > 0);
        assert!(counts.sequential_reads <= blocks / 4 && counts.rewrites_put_off == 0);
    }
    // Random reads read no additional blocks.
    let garden = open(&devices);
    let fs = garden.volume(NAME).unwrap();
    let mut data = vec![0; BLOCK as usize];
    for block in [700, 3, 500, 77, 20, 600] {
        fs.read(ino, block * BLOCK, &mut data).unwrap();
        assert_eq!(data, contents(block));
    }
    let counts = garden.report().counts;
    assert_eq!((counts.sequential_reads, counts.read_ahead_blocks), (0, 0));
}

#[test]
fn scattered_file_is_rewritten_after_sequential_reads() {
    let (devices, garden, fs, ino) = with_random_file();
    garden.create_snapshot(NAME, b"before", Timestamp::default()).unwrap();
    let held = garden.held_blocks(NAME).unwrap();
    drop((fs, garden));
    let rewritten = |garden: &Garden| garden.report().counts.rewritten_after_read;
    let with = |policy| Gardening { write_after_read: Some(policy), ..Gardening::default() };
    let cold = |policy| {
        let garden = open(&devices);
        garden.set_gardening(with(policy));
        let fs = garden.volume(NAME).unwrap();
        (garden, fs)
    };
    let none = Headroom { cpu_percent: 24, io_percent: 100 };
    for headroom in [none, Headroom { cpu_percent: 100, io_percent: 0 }] {
        let (garden, fs) = cold(WriteAfterRead::default());
        garden.set_headroom(headroom);
        pass(&garden, &fs, ino, BLOCKS, 8);
        let counts = garden.report().counts;
        assert!(counts.rewritten_after_read == 0 && counts.rewrites_put_off > 2, "{counts:?}");
    }
    // At most this number of blocks in one consistency point.
    let (garden, fs) = cold(WriteAfterRead { blocks_per_point: 100, ..WriteAfterRead::default() });
    let (_, before) = pass(&garden, &fs, ino, BLOCKS, 8);
    let first = rewritten(&garden);
    assert!((60..=100).contains(&first), "{first} blocks");
    pass(&garden, &fs, ino, BLOCKS, 8);
    assert_eq!(rewritten(&garden), first);
    garden.consistency_point().unwrap();
    drop((fs, garden));
    // The remaining blocks, and then nothing.
    for _ in 0..2 {
        let (garden, fs) = cold(WriteAfterRead::default());
        pass(&garden, &fs, ino, BLOCKS, 8);
        garden.consistency_point().unwrap();
    }
    let (garden, fs) = cold(WriteAfterRead::default());
    let (_, after) = pass(&garden, &fs, ino, BLOCKS, 8);
    assert_eq!((rewritten(&garden), garden.report().counts.redirects), (0, 0), "a good layout stays");
    assert!(after * 5 < before, "{before} requests, then {after}");
    assert_eq!(garden.held_blocks(NAME).unwrap(), held);
    assert_eq!(garden.diff(NAME, b"before", None).unwrap(), []);
    // Reads of a snapshot use read-ahead, but do not rewrite blocks.
    let snapshot = garden.snapshot(NAME, b"before").unwrap();
    pass(&garden, &snapshot, ino, BLOCKS, 8);
    assert_eq!(rewritten(&garden), 0);
    assert_eq!(findings(&devices), Vec::<String>::new());
}
