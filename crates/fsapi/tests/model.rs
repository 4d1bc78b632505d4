//! The model passes the cases, and agrees with an array of bytes.

use proptest::prelude::*;
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    Caller, FallocateMode, FileSystem, FsError, Ino, ModelFs, NewNode, SetAttributes,
    conformance::{SequenceOptions, Subject, run_cases, run_read_dir, run_sequence, run_threads},
};

fn make() -> Box<dyn Subject> {
    Box::new(ModelFs::new(Bytes(Bytes::GIB)))
}

#[test]
fn model_passes_the_cases() {
    run_cases(&make).unwrap();
}

#[test]
fn changing_directories_are_listed_completely() {
    for seed in 0..5 {
        run_read_dir(&make, Seed(seed), 100).unwrap();
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    run_threads(&make, Seed(1), 4, 200).unwrap();
}

#[test]
fn sequences_run_with_any_boundaries() {
    let boundaries = vec![160, 40_960, 1_089_536];
    let options = SequenceOptions { boundaries, ..SequenceOptions::default() };
    for seed in 0..10 {
        run_sequence(&make, Seed(seed), &options).unwrap();
    }
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, u64, u8),
    Allocate(FallocateMode, u64, u64),
    Truncate(u64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let place = || (0..30_000u64, 1..9000u64);
    let how = prop_oneof![
        any::<bool>().prop_map(|keep_size| FallocateMode::Reserve { keep_size }),
        any::<bool>().prop_map(|keep_size| FallocateMode::Zero { keep_size }),
        Just(FallocateMode::Punch),
    ];
    let change = prop_oneof![
        (place(), any::<u8>()).prop_map(|((offset, len), byte)| Change::Write(offset, len, byte)),
        (how, place()).prop_map(|(how, (offset, len))| Change::Allocate(how, offset, len)),
        (0..40_000u64).prop_map(Change::Truncate),
    ];
    prop::collection::vec(change, 1..20)
}

proptest! {
    #[test]
    fn contents_agree_with_an_array(changes in changes()) {
        let fs = ModelFs::new(Bytes(Bytes::MIB));
        let caller = Caller::default();
        let empty = fs.space().unwrap();
        let file = fs.make_node(&caller, Ino::ROOT, b"f", &NewNode::file(0o644)).unwrap().ino;
        let mut array: Vec<u8> = Vec::new();
        let grow = |array: &mut Vec<u8>, end: u64| array.resize(array.len().max(end as usize), 0);
        for change in changes {
            match change {
                Change::Write(offset, len, byte) => {
                    prop_assert_eq!(fs.write(&caller, file, offset, &vec![byte; len as usize]).unwrap() as u64, len);
                    grow(&mut array, offset + len);
                    array[offset as usize..(offset + len) as usize].fill(byte);
                }
                Change::Allocate(how, offset, len) => {
                    fs.allocate(&caller, file, how, offset, len).unwrap();
                    if matches!(how, FallocateMode::Reserve { keep_size: false } | FallocateMode::Zero { keep_size: false }) {
                        grow(&mut array, offset + len);
                    }
                    if !matches!(how, FallocateMode::Reserve { .. }) {
                        let end = array.len().min((offset + len) as usize);
                        array[end.min(offset as usize)..end].fill(0);
                    }
                }
                Change::Truncate(size) => {
                    let change = SetAttributes { size: Some(size), ..SetAttributes::default() };
                    fs.set_attributes(&caller, file, &change).unwrap();
                    array.resize(size as usize, 0);
                }
            }
            let mut got = vec![7; array.len() + 1];
            prop_assert_eq!(fs.read(file, 0, &mut got).unwrap(), array.len());
            prop_assert_eq!(&got[..array.len()], &array[..]);
            let taken = fs.attributes(file).unwrap().allocated / 4096;
            prop_assert_eq!(fs.space().unwrap().free, empty.free - 1 - taken);
        }
        fs.unlink(&caller, Ino::ROOT, b"f").unwrap();
        prop_assert_eq!(fs.space().unwrap(), empty);
    }
}

#[test]
fn full_model_writes_a_part_and_reuses_space() {
    let fs = ModelFs::new(Bytes(5 * 4096)); // the root, the file, three pages
    let caller = Caller::default();
    let file = fs.make_node(&caller, Ino::ROOT, b"f", &NewNode::file(0o644)).unwrap().ino;
    assert_eq!(fs.write(&caller, file, 100, &[1; 20_000]).unwrap(), 3 * 4096 - 100);
    assert!(matches!(fs.write(&caller, file, 3 * 4096, &[1]), Err(FsError::NoSpace)));
    assert!(matches!(fs.make_node(&caller, Ino::ROOT, b"g", &NewNode::file(0o644)), Err(FsError::NoSpace)));
    assert!(matches!(
        fs.allocate(&caller, file, FallocateMode::Reserve { keep_size: true }, 0, 12_289),
        Err(FsError::NoSpace)
    ));
    assert_eq!(fs.write(&caller, file, 0, &[2; 4096]).unwrap(), 4096, "no new page is needed");
    fs.open(file).unwrap();
    fs.unlink(&caller, Ino::ROOT, b"f").unwrap();
    assert_eq!(fs.space().unwrap().free, 0, "an allocation reserves it");
    fs.release(file, caller.now).unwrap();
    assert_eq!(fs.space().unwrap().free, 4);
    assert!(matches!(fs.release(file, caller.now), Err(FsError::NotFound)));
}

#[test]
fn forks_are_independent() {
    let fs = ModelFs::new(Bytes(Bytes::MIB));
    let caller = Caller::default();
    let file = fs.make_node(&caller, Ino::ROOT, b"f", &NewNode::file(0o644)).unwrap().ino;
    let fork = fs.fork();
    fork.write(&caller, file, 0, b"fork").unwrap();
    fs.unlink(&caller, Ino::ROOT, b"f").unwrap();
    assert_eq!(fork.attributes(file).unwrap().size, 4);
}
