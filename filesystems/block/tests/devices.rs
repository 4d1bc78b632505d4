//! Every device that keeps data agrees with an array of bytes.

use std::{
    io::{IoSlice, IoSliceMut},
    sync::Arc,
};

use proptest::prelude::*;
use senesce_block::{
    BlockDevice, BlockProblem, CompactDevice, DIRECT_ALIGNMENT, FaultDevice, FileDevice, FileOptions, MemoryDevice,
    OverlayDevice, Recording, TracedDevice,
};
use senesce_core::{BlockOp, Bytes, ManualClock, Nanos};

const SIZE: u64 = 5 * 4096;

#[derive(Clone, Debug)]
enum Request {
    Read(u64, usize),
    Write(u64, usize, u8),
    Discard(u64, u64),
    Flush,
}

fn requests(unit: u64) -> impl Strategy<Value = Vec<Request>> {
    let range =
        move || (0..SIZE / unit + 2, 0..3 * 4096 / unit).prop_map(move |(offset, len)| (offset * unit, len * unit));
    let one = prop_oneof![
        range().prop_map(|(offset, len)| Request::Read(offset, len as usize)),
        (range(), any::<u8>()).prop_map(|((offset, len), byte)| Request::Write(offset, len as usize, byte)),
        range().prop_map(|(offset, len)| Request::Discard(offset, len)),
        Just(Request::Flush),
    ];
    prop::collection::vec(one, 1..40)
}

/// Writes of slots with a repeated word and a trailer. Some are cut or shifted by a few bytes.
fn slot_writes() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    let word = prop_oneof![Just(0), Just(1 << 40), any::<u64>()];
    let slots = prop::collection::vec((word, prop_oneof![Just(0), any::<u8>()]), 1..4);
    let cut = || prop_oneof![3 => Just(0), 1 => 0..4200_usize];
    let one = (0..6u64, slots, cut(), cut(), cut()).prop_map(|(first, slots, shift, front, end)| {
        let all = slots.into_iter().flat_map(|(word, trailer): (u64, u8)| {
            let payload = word.to_le_bytes().repeat(512);
            payload.into_iter().chain([trailer; 64])
        });
        let mut data: Vec<u8> = all.skip(front).collect();
        data.truncate(data.len().saturating_sub(end));
        (first * 4160 + shift as u64, data)
    });
    prop::collection::vec(one, 1..12)
}

/// Sends the requests to the device and to an array. Discarded bytes that were not written again
/// are not compared.
fn agree(device: &dyn BlockDevice, requests: &[Request]) {
    let mut model = vec![Some(0u8); SIZE as usize];
    for request in requests {
        match *request {
            Request::Read(offset, len) => {
                let mut got = vec![0; len];
                // Half of the requests are split.
                let (first, rest) = got.split_at_mut(len / 3);
                let done = match offset / 4096 % 2 {
                    0 => device.read_parts_at(offset, &mut [first, rest].map(IoSliceMut::new)),
                    _ => device.read_at(offset, &mut got),
                };
                if offset + len as u64 > SIZE {
                    assert!(matches!(done.unwrap_err().problem, BlockProblem::OutOfRange { size: Bytes(SIZE) }));
                    continue;
                }
                done.unwrap();
                let want = &model[offset as usize..][..len];
                assert!(got.iter().zip(want).all(|(got, want)| want.is_none_or(|want| want == *got)), "{request:?}");
            }
            Request::Write(offset, len, byte) => {
                let data: Vec<u8> = (0..len).map(|at| byte.wrapping_add(at as u8)).collect();
                let (first, rest) = data.split_at(len / 3);
                let done = match byte % 3 {
                    0 => device.write_parts_at(offset, &[first, rest].map(IoSlice::new)),
                    1 => device.write_durably_at(offset, &data),
                    _ => device.write_at(offset, &data),
                };
                if offset + len as u64 > SIZE {
                    done.unwrap_err();
                    continue;
                }
                done.unwrap();
                for (cell, byte) in model[offset as usize..].iter_mut().zip(data) {
                    *cell = Some(byte);
                }
            }
            Request::Discard(offset, len) if offset + len > SIZE => drop(device.discard(offset, len).unwrap_err()),
            Request::Discard(offset, len) => {
                device.discard(offset, len).unwrap();
                model[offset as usize..(offset + len) as usize].fill(None);
            }
            Request::Flush => device.flush().unwrap(),
        }
    }
    let mut all = vec![0; SIZE as usize];
    device.read_at(0, &mut all).unwrap();
    assert!(all.iter().zip(&model).all(|(got, want)| want.is_none_or(|want| want == *got)), "at the end");
}

proptest! {
    #[test]
    fn memory_and_forwarding_devices_agree(requests in requests(1)) {
        let memory = || MemoryDevice::new("memory", Bytes(SIZE));
        agree(&memory(), &requests);
        agree(&FaultDevice::new(memory()), &requests);
        agree(&OverlayDevice::new(memory()), &requests);
        agree(&TracedDevice::new(Arc::new(memory()), Arc::new(ManualClock::default())), &requests);
        agree(&Recording::new(vec![memory()]).1[0], &requests);
    }

    #[test]
    fn a_compact_device_agrees(requests in requests(1)) {
        agree(&CompactDevice::new("compact", Bytes(SIZE)), &requests);
    }

    #[test]
    fn compact_device_agrees_with_memory(writes in slot_writes()) {
        const SLOTS: u64 = 6;
        // The last slot is cut.
        let size = Bytes(SLOTS * 4160 - 1000);
        let (compact, memory) = (CompactDevice::new("compact", size), MemoryDevice::new("memory", size));
        for (offset, data) in writes {
            prop_assert_eq!(compact.write_at(offset, &data).is_ok(), memory.write_at(offset, &data).is_ok());
            let (mut one, mut other) = (vec![1; data.len()], vec![2; data.len()]);
            if compact.read_at(offset / 2, &mut one).is_ok() {
                memory.read_at(offset / 2, &mut other).unwrap();
                prop_assert!(one == other, "{} bytes at {}", data.len(), offset / 2);
            }
        }
        prop_assert!(compact.contents() == memory.contents());
    }

    #[test]
    fn file_agrees_and_keeps_its_contents(requests in requests(1)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let device = FileDevice::create(&path, Bytes(SIZE), FileOptions::default()).unwrap();
        agree(&device, &requests);
        let mut before = vec![0; SIZE as usize];
        device.read_at(0, &mut before).unwrap();
        drop(device);
        let again = FileDevice::open(&path, Bytes(SIZE), FileOptions { read_only: true, ..Default::default() }).unwrap();
        let mut after = vec![1; SIZE as usize];
        again.read_at(0, &mut after).unwrap();
        prop_assert_eq!(before, after);
        prop_assert!(again.write_at(0, &[1]).is_err());
    }

    #[test]
    fn a_file_past_the_page_cache_agrees(requests in requests(u64::from(DIRECT_ALIGNMENT))) {
        let dir = tempfile::tempdir().unwrap();
        let direct = FileOptions { direct: true, ..Default::default() };
        let device = FileDevice::create(&dir.path().join("disk"), Bytes(SIZE), direct).unwrap();
        agree(&device, &requests);
    }

    #[test]
    fn overlay_writes_do_not_reach_the_base(first in requests(1), second in requests(1)) {
        let device = MemoryDevice::new("memory", Bytes(SIZE - 100));
        for request in &first {
            if let Request::Write(offset, len, byte) = *request {
                let _ = device.write_at(offset, &vec![byte; len]);
            }
        }
        let (before, fork) = (device.contents(), device.fork());
        let overlay = OverlayDevice::new(&device);
        for request in &second {
            if let Request::Write(offset, len, byte) = *request {
                let done = fork.write_at(offset, &vec![byte; len]);
                prop_assert_eq!(overlay.write_at(offset, &vec![byte; len]).is_ok(), done.is_ok());
            }
        }
        let mut seen = vec![0; before.len()];
        overlay.read_at(0, &mut seen).unwrap();
        prop_assert_eq!(seen, fork.contents());
        prop_assert_eq!(device.contents(), before);
    }

    #[test]
    fn forks_are_independent(first in requests(1), second in requests(1)) {
        let device = MemoryDevice::new("memory", Bytes(SIZE));
        agree(&device, &first);
        let before = device.contents();
        let fork = device.fork();
        prop_assert!(fork.same_contents(&device));
        for request in &second {
            if let Request::Write(offset, len, byte) = *request {
                let _ = fork.write_at(offset, &vec![byte; len]);
            }
        }
        prop_assert_eq!(device.contents(), &before[..]);
        prop_assert_eq!(fork.same_contents(&device), fork.contents() == before);
    }
}

#[test]
fn unsuitable_file_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let plain = FileOptions::default();
    let refused = |at_least| FileDevice::open(&path, Bytes(at_least), plain).unwrap_err().to_string();
    assert!(refused(0).contains("No such file"), "{}", refused(0));
    let first = FileDevice::create(&path, Bytes(8192), plain).unwrap();
    assert!(refused(0).ends_with("it is open elsewhere"), "{}", refused(0));
    assert!(FileDevice::create(&path, Bytes(8192), plain).unwrap_err().to_string().contains("File exists"));
    drop(first);
    assert!(refused(8193).ends_with("it has 8192 bytes, and 8193 are needed"), "{}", refused(8193));
    let error = FileDevice::open(dir.path(), Bytes(0), plain).unwrap_err().to_string();
    assert!(error.ends_with("it is neither a file nor a block device"), "{error}");
    let device = FileDevice::open(&path, Bytes(8192), plain).unwrap();
    let error = device.read_at(8000, &mut [0; 500]).unwrap_err().to_string();
    let want = format!("cannot read {} (offset 8000, 500 bytes): the device ends at 8192", path.display());
    assert_eq!(error, want);
}

#[test]
fn direct_access_needs_whole_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let direct = FileOptions { direct: true, ..Default::default() };
    let device = FileDevice::create(&dir.path().join("disk"), Bytes(8192 + 512), direct).unwrap();
    assert_eq!((device.size(), device.alignment()), (Bytes(8192), 4096));
    for (offset, len) in [(512, 4096), (0, 512), (4096, 100)] {
        let error = device.write_at(offset, &vec![0; len]).unwrap_err();
        assert!(matches!(error.problem, BlockProblem::Misaligned { alignment: 4096 }), "{error}");
    }
}

#[test]
fn requests_are_counted_and_listed_by_sectors() {
    let clock = Arc::new(ManualClock::default());
    let device = TracedDevice::new(MemoryDevice::new("memory", Bytes(SIZE)), clock.clone());
    device.write_at(4160, &[1; 4160]).unwrap();
    clock.set(Nanos(7));
    device.read_at(512, &mut [0; 1024]).unwrap();
    device.flush().unwrap();
    device.discard(0, 4096).unwrap();
    assert!(device.read_at(SIZE, &mut [0; 1]).is_err(), "a failed request counts, too");
    let listed: Vec<_> = device.take_requests().iter().map(|r| (r.issued.0, r.op, r.sector, r.sectors)).collect();
    let want = [
        (0, BlockOp::Write, 8, 9),
        (7, BlockOp::Read, 1, 2),
        (7, BlockOp::Flush, 0, 0),
        (7, BlockOp::Discard, 0, 8),
        (7, BlockOp::Read, 40, 1),
    ];
    assert_eq!(listed, want);
    assert!(device.take_requests().is_empty());
    let counts = device.counts();
    assert_eq!((counts.reads, counts.writes, counts.flushes, counts.discards), (2, 1, 1, 1));
    assert_eq!((counts.bytes_read, counts.bytes_written), (1025, 4160));
}
