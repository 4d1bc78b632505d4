//! The log on devices with losses of power, flipped bits and failures.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use senesce_block::{BlockDevice, CrashPlan, FaultDevice, MemoryDevice, RecordedDevice, Recording};
use senesce_core::{Bytes, Rng, Seed};

use super::{Log, LogStart, Replay};
use crate::{Batch, Error, Result, disk::Geometry};

const UUID: [u8; 16] = *b"evergreen's logs";
const RING: u64 = 128 << 10;

fn geometry() -> Geometry {
    Geometry::plan(2 << 20, 4096, Some(RING)).unwrap()
}

fn device() -> MemoryDevice {
    MemoryDevice::new("disk", Bytes(2 << 20))
}

/// A batch of about `bytes` bytes with its number.
fn batch(number: u64, bytes: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(number.to_le_bytes().to_vec(), vec![number as u8 | 1; 1 + bytes % 4000]);
    for block in 0..bytes / 4000 {
        batch.put((block as u64).to_be_bytes().to_vec(), vec![block as u8 | 1; 4000]);
    }
    batch.claim.bytes = number as i64;
    batch
}

fn first() -> LogStart {
    LogStart::first(&UUID, 1)
}

fn log_on(device: &Arc<dyn BlockDevice>, start: LogStart) -> Log {
    Log::new(device.clone(), &geometry(), &UUID, start)
}

/// Replays from a start; also returns the start of the new log.
fn replay(device: &Arc<dyn BlockDevice>, start: LogStart, generation: u64) -> Result<(Vec<(u64, Batch)>, LogStart)> {
    let mut replay = Replay::new(device.clone(), &geometry(), UUID, start);
    let batches = replay.by_ref().collect::<Result<Vec<_>>>()?;
    Ok((batches, replay.end(generation)))
}

fn shared(device: impl BlockDevice + 'static) -> Arc<dyn BlockDevice> {
    Arc::new(device)
}

/// A substitute for the superblock: written atomically to the first block of the device.
fn write_start(device: &Arc<dyn BlockDevice>, start: &LogStart) {
    let mut bytes = [0; 512];
    for (index, number) in [start.position, start.sequence, start.chain].into_iter().enumerate() {
        bytes[8 * index..][..8].copy_from_slice(&number.to_le_bytes());
    }
    device.write_at(0, &bytes).unwrap();
    device.flush().unwrap();
}

fn read_start(device: &Arc<dyn BlockDevice>) -> LogStart {
    let mut bytes = [0; 512];
    device.read_at(0, &mut bytes).unwrap();
    let number = |index: usize| u64::from_le_bytes(bytes[8 * index..][..8].try_into().unwrap());
    LogStart { position: number(0), sequence: number(1), chain: number(2) }
}

#[test]
fn synced_batches_are_replayed() {
    let device = shared(device());
    let log = log_on(&device, first());
    for number in 1..=40 {
        assert_eq!(log.append(&batch(number, number as usize * 37)).unwrap(), number);
        if number % 7 == 0 {
            log.sync().unwrap();
        }
    }
    assert_eq!(log.durable_sequence(), 36);
    assert!(log.waiting_bytes() > 0);
    let (batches, end) = replay(&device, first(), 2).unwrap();
    assert_eq!(batches, (1..=35).map(|number| (number, batch(number, number as usize * 37))).collect::<Vec<_>>());
    assert_eq!(end.sequence, 36);
    log.sync().unwrap();
    assert_eq!((log.durable_sequence(), log.waiting_bytes()), (41, 0));
    assert_eq!(replay(&device, first(), 2).unwrap().0.len(), 40);
}

#[test]
fn golden() {
    let device = shared(device());
    let log = log_on(&device, LogStart { position: 4096, sequence: 7, chain: 5 });
    log.append(&batch(7, 10)).unwrap();
    log.append(&batch(8, 20)).unwrap();
    log.sync().unwrap();
    let mut frame = [0; 4096];
    device.read_at(geometry().log_at + 4096, &mut frame).unwrap();
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&frame), 16_125_985_926_158_348_557);
    let mut parity = [0; 4096];
    device.read_at(geometry().log_at + 8192, &mut parity).unwrap();
    assert!(
        frame.iter().zip(parity).all(|(byte, parity)| *byte == !parity),
        "the parity of one block is its complement"
    );
    // As a program for format version 1 writes it.
    let log = log_on(&device, LogStart { position: 4096, sequence: 7, chain: 5 }).without_parity();
    log.append(&batch(7, 10)).unwrap();
    log.append(&batch(8, 20)).unwrap();
    log.sync().unwrap();
    device.read_at(geometry().log_at + 4096, &mut frame).unwrap();
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&frame), 4_536_714_008_215_535_312);
    assert_eq!(log.used_bytes(), 4096);
    assert_eq!(first().chain, 3_551_398_220_535_173_526);
}

#[test]
fn empty_sync_writes_nothing() {
    let (recording, devices) = Recording::new(vec![device()]);
    let device = shared(devices.into_iter().next().unwrap());
    let log = log_on(&device, first());
    log.sync().unwrap();
    assert_eq!(recording.events(), 0);
    assert_eq!((log.cut(), log.used_bytes()), (first(), 0));
}

#[test]
fn full_ring_refuses_until_trimmed() {
    let device = shared(device());
    let log = log_on(&device, first());
    let (mut number, mut start) = (1, first());
    // Ten laps.
    for lap in 0..10 {
        while log.has_room(3100) {
            assert!(log.used_bytes() <= RING);
            log.append(&batch(number, 3000)).unwrap();
            number += 1;
            if number % 3 == 0 {
                log.sync().unwrap();
            }
        }
        assert!(log.is_half_full());
        let refusal = log.append(&batch(number, 3000)).unwrap_err();
        assert!(matches!(refusal, Error::NoSpace { .. }), "{refusal}");
        log.sync().unwrap();
        let (batches, _) = replay(&device, start, 0).unwrap();
        assert_eq!(batches.last().unwrap().0, number - 1, "lap {lap}");
        start = log.cut();
        log.trim(&start);
        assert_eq!(log.used_bytes(), 0);
    }
    assert!(start.position > 9 * RING);
    assert_eq!(replay(&device, start, 0).unwrap().0, [], "frames of earlier laps are not replayed");
}

#[test]
fn oversized_batches_are_refused() {
    let log = log_on(&shared(device()), first());
    let most = log.max_record_bytes();
    assert_eq!(most, 32 * 1024 - 4096 - 64 - 4, "a quarter of the ring without its parity");
    assert!(log.append_record(&vec![0; most]).is_ok());
    let refusal = log.append_record(&vec![0; most + 1]).unwrap_err();
    assert_eq!(refusal.to_string(), "a batch of 28605 bytes; the log takes at most 28604");
}

#[test]
fn callers_share_flushes() {
    let (recording, devices) = Recording::new(vec![device()]);
    let device = shared(devices.into_iter().next().unwrap());
    let log = log_on(&device, first());
    let written = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (log, written) = (&log, &written);
            scope.spawn(move || {
                for round in 0..3 {
                    let batch = batch(100 * thread + round, 30);
                    let number = log.append(&batch).unwrap();
                    log.sync().unwrap();
                    assert!(log.durable_sequence() > number);
                    written.lock().unwrap().push((number, batch));
                }
            });
        }
    });
    let mut written = written.into_inner().unwrap();
    written.sort_by_key(|(number, _)| *number);
    assert_eq!(replay(&device, first(), 0).unwrap().0, written);
    assert!(recording.events() <= 24, "at most a write and a flush for each");
}

#[test]
fn frames_of_an_earlier_mount_are_ignored() {
    // Batches 1 to 4. The frame of 2 is lost, those of 3 and 4 are not: all three were in flight.
    let device = shared(device());
    let log = log_on(&device, first());
    log.append(&batch(1, 30)).unwrap();
    log.sync().unwrap();
    for number in 2..5 {
        log.append(&batch(number, 30)).unwrap();
        log.cut();
    }
    let lost = geometry().log_at + 4096;
    log.sync().unwrap();
    // A frame of one block, and its parity.
    device.write_at(lost + 4096, &[0; 8192]).unwrap();
    let (batches, end) = replay(&device, first(), 2).unwrap();
    assert_eq!((batches.len(), end.sequence, end.position), (1, 2, 12_288));
    // The same batches are applied again, up to the frame of 4.
    let log = log_on(&device, end);
    log.append(&batch(2, 30)).unwrap();
    log.append(&batch(3, 30)).unwrap();
    log.sync().unwrap();
    let again = [(2, batch(2, 30)), (3, batch(3, 30))];
    assert_eq!(replay(&device, end, 3).unwrap().0, again, "batch 4 was never applied");
}

#[test]
fn damage_of_durable_frames_is_reported() {
    let device = shared(device());
    let log = log_on(&device, first());
    for number in 1..=6 {
        log.append(&batch(number, 5000)).unwrap();
        log.sync().unwrap();
    }
    let flip = |at: u64| {
        let mut byte = [0];
        device.read_at(at, &mut byte).unwrap();
        device.write_at(at, &[byte[0] ^ 16]).unwrap();
    };
    let log_at = geometry().log_at;
    const FRAME: u64 = 3 * 4096;
    // Each frame has two blocks and one of parity. Flip a byte of the third frame: in the header,
    // records, padding or parity.
    for at in [0, 9, 30, 60, 64, 3000, 5000, 8191, 8192, FRAME - 1] {
        flip(log_at + 2 * FRAME + at);
        let mut replayed = Replay::new(device.clone(), &geometry(), UUID, first());
        assert_eq!(replayed.by_ref().collect::<Result<Vec<_>>>().unwrap().len(), 6, "byte {at}");
        assert_eq!(replayed.restored().len(), 1, "byte {at}: {:?}", replayed.restored());
        // A second block of the frame.
        let other = if at < 4096 { 4096 } else { 100 };
        flip(log_at + 2 * FRAME + other);
        let text = replay(&device, first(), 2).map(|(batches, _)| batches.len());
        if at < 8192 {
            let text = text.unwrap_err().to_string();
            assert_eq!(
                text,
                format!(
                    "disk, log, position 24576 (byte {}): log: frame is damaged (batch 3), expected whole: it was durable when \
                     batch 4 was written, at 36864",
                    log_at + 2 * FRAME
                )
            );
        }
        flip(log_at + 2 * FRAME + other);
        flip(log_at + 2 * FRAME + at);
    }
    // The last frame may have been cut by a loss of power, so its damage is no error.
    flip(log_at + 5 * FRAME + 100);
    flip(log_at + 5 * FRAME + 5000);
    assert_eq!(replay(&device, first(), 2).unwrap().0.len(), 5);
}

#[test]
fn unreadable_blocks_of_frames_are_restored() {
    let device = Arc::new(self::device());
    let writable: Arc<dyn BlockDevice> = device.clone();
    let log = log_on(&writable, first());
    for number in 1..=4 {
        log.append(&batch(number, 5000)).unwrap();
        log.sync().unwrap();
    }
    for block in 0..12 {
        let faulty = FaultDevice::new(device.clone());
        faulty.inject(&format!("fail read at {}+4096", geometry().log_at + block * 4096)).unwrap();
        let mut replayed = Replay::new(shared(faulty), &geometry(), UUID, first());
        assert_eq!(replayed.by_ref().collect::<Result<Vec<_>>>().unwrap().len(), 4, "block {block}");
        assert_eq!(replayed.restored().len(), 1, "block {block}");
    }
    // Two blocks after the end: they may be the next frame.
    let faulty = FaultDevice::new(device.clone());
    faulty.inject(&format!("fail read at {}+8192", geometry().log_at + 12 * 4096)).unwrap();
    let replayed = Replay::new(shared(faulty), &geometry(), UUID, first()).collect::<Result<Vec<_>>>();
    assert!(matches!(replayed, Err(Error::Device(_))), "{replayed:?}");
}

#[test]
fn retried_blocks_do_not_end_the_log() {
    // The last frame crosses the end of the first read of 1 MiB. So a read starts with it, and the
    // search for later frames reads its blocks again.
    let geometry = Geometry::plan(16 << 20, 4096, Some(8 << 20)).unwrap();
    let device = Arc::new(MemoryDevice::new("disk", Bytes(16 << 20)));
    let log = Log::new(device.clone(), &geometry, &UUID, first());
    const BATCHES: u64 = 5;
    for number in 1..=BATCHES {
        log.append(&batch(number, 220_000)).unwrap();
        log.sync().unwrap();
    }
    for (version, from, count) in [1, 2].into_iter().flat_map(|version| {
        let readings = (1..16).flat_map(|from| (1..8).map(move |count| (from, count)));
        readings.map(move |(from, count)| (version, from, count))
    }) {
        let faulty = FaultDevice::new(device.clone());
        let faults: Vec<String> = (from..from + count).map(|read| format!("fail read {read}")).collect();
        faulty.inject(&faults.join("; ")).unwrap();
        let replay = Replay::new(shared(faulty), &geometry, UUID, first()).of_version(version);
        let found = replay.collect::<Result<Vec<_>>>().map(|batches| batches.len() as u64);
        let is_right = found.as_ref().map_or(true, |count| *count == BATCHES);
        assert!(is_right, "version {version}: {count} readings from {from} on fail: {found:?}");
    }
}

#[test]
fn unreadable_block_of_unused_ring_ends_the_log() {
    let device = Arc::new(self::device());
    let writable: Arc<dyn BlockDevice> = device.clone();
    let log = log_on(&writable, first());
    let mut start = first();
    // The ring is full of old frames; the last four frames are valid.
    for number in 1..=20 {
        log.append(&batch(number, 5000)).unwrap();
        log.sync().unwrap();
        if number == 9 || number == 16 {
            start = log.cut();
            log.trim(&start);
        }
    }
    let (want, end) = replay(&writable, start, 2).unwrap();
    assert_eq!(want.len(), 4);
    for block in 0..RING / 4096 {
        let faulty = FaultDevice::new(device.clone());
        faulty.inject(&format!("fail read at {}+4096", geometry().log_at + block * 4096)).unwrap();
        let faulty = shared(faulty);
        assert_eq!(replay(&faulty, start, 2).unwrap(), (want.clone(), end), "block {block}");
        // Without parity the block may be a frame.
        let old = Replay::new(faulty, &geometry(), UUID, start).of_version(1).collect::<Result<Vec<_>>>();
        let is_behind = (end.position - 4096) % RING == block * 4096;
        assert_eq!(old.is_err(), is_behind, "block {block}: {old:?}");
    }
}

#[test]
fn unreadable_proof_of_newer_superblock_is_an_error() {
    let device = Arc::new(self::device());
    let writable: Arc<dyn BlockDevice> = device.clone();
    // A newer superblock names a start after an empty block, with one frame.
    let newer = first().skip(0).anew(&UUID, 2);
    let log = log_on(&writable, newer);
    log.append(&batch(1, 100)).unwrap();
    log.sync().unwrap();
    let from_older = |device: Arc<dyn BlockDevice>| {
        Replay::new(device, &geometry(), UUID, first()).beside_torn(true).collect::<Result<Vec<_>>>()
    };
    assert!(from_older(writable.clone()).unwrap_err().to_string().contains("it was durable when"));
    let faulty = FaultDevice::new(device);
    faulty.inject(&format!("fail read at {}+4096", geometry().log_at + newer.position)).unwrap();
    assert!(matches!(from_older(shared(faulty)), Err(Error::Device(_))));
}

#[test]
fn outdated_start_is_an_error() {
    // The ring is reused after a checkpoint; then only the previous superblock can be read.
    let device = shared(device());
    let log = log_on(&device, first());
    for number in 1..=40 {
        if log.append(&batch(number, 3000)).is_err() {
            log.trim(&log.cut());
            log.append(&batch(number, 3000)).unwrap();
        }
        log.sync().unwrap();
    }
    let text = replay(&device, first(), 2).unwrap_err().to_string();
    assert!(text.contains("frame is damaged (batch 1), expected whole: batch 3"), "{text}");
    assert!(text.ends_with("took its place, so a newer superblock was durable"), "{text}");
}

#[test]
fn nothing_is_acknowledged_after_a_failure() {
    for fault in ["fail write 1", "fail flush 1"] {
        let faulty = Arc::new(FaultDevice::new(device()));
        faulty.inject(fault).unwrap();
        let device: Arc<dyn BlockDevice> = faulty;
        let log = log_on(&device, first());
        log.append(&batch(1, 10)).unwrap();
        assert!(matches!(log.sync().unwrap_err(), Error::Device(_)));
        assert!(matches!(log.sync().unwrap_err(), Error::Stopped { .. }));
        assert!(matches!(log.append(&batch(2, 10)).unwrap_err(), Error::Stopped { .. }));
        assert_eq!(log.durable_sequence(), 1);
    }
}

/// Appends, syncs and checkpoints at random. The marks have the last acknowledged batch.
fn record_run(seed: u64, recording: &Recording, device: RecordedDevice) -> u64 {
    let device = shared(device);
    let mut rng = Rng::for_purpose(Seed(seed), "log");
    let mut generation = 2;
    write_start(&device, &first());
    let mut log = log_on(&device, first());
    for number in 1..60 {
        let bytes = [10, 600, 5000, 20_000][rng.below(4) as usize];
        while log.append(&batch(number, bytes)).is_err() {
            let start = log.cut();
            write_start(&device, &start);
            log.trim(&start);
            recording.mark(start.sequence - 1);
        }
        match rng.below(12) {
            0..=3 => {
                log.sync().unwrap();
                recording.mark(number);
            }
            4 => drop(log.cut()),
            5 => {
                // A checkpoint with concurrent batches: batches that wait before the cut are never
                // written.
                let start = log.cut();
                write_start(&device, &start);
                log.trim(&start);
                recording.mark(number);
            }
            6 => {
                // The log is closed and opened again.
                log.sync().unwrap();
                recording.mark(number);
                let (_, start) = replay(&device, read_start(&device), generation).unwrap();
                generation += 1;
                write_start(&device, &start);
                log = log_on(&device, start);
            }
            _ => {}
        }
    }
    log.next_sequence()
}

#[test]
fn acknowledged_batches_survive_every_power_loss() {
    let mut states = 0;
    for seed in 0..4 {
        let (recording, devices) = Recording::new(vec![device()]);
        let next = record_run(seed, &recording, devices.into_iter().next().unwrap());
        let plan = CrashPlan { exhaustive_up_to: 6, samples: 12, tears: 6, seed: Seed(seed) };
        recording.for_each_crash(&plan, |crash| {
            states += 1;
            let (case, promised) = (crash.to_string(), crash.mark.unwrap_or(0));
            let device = shared(crash.devices.into_iter().next().unwrap());
            let start = read_start(&device);
            if start.sequence == 0 {
                assert_eq!(promised, 0, "{case}");
                return;
            }
            let (batches, end) = replay(&device, start, 99).unwrap_or_else(|error| panic!("{case}: {error}"));
            let numbers: Vec<u64> = batches.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, (start.sequence..end.sequence).collect::<Vec<_>>(), "{case}");
            assert!(
                end.sequence > promised && end.sequence <= next,
                "{case}: {promised} acknowledged, {} found",
                end.sequence
            );
            for (number, batch) in batches {
                assert_eq!(batch.claim.bytes, number as i64, "{case}");
            }
        });
    }
    assert!(states > 1000, "{states} states");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A replay of changed bytes returns a prefix of the written batches.
    #[test]
    fn changed_bytes_never_become_batches(
        sizes in proptest::collection::vec(1usize..9000, 1..12),
        changes in proptest::collection::vec((0u64..RING / 2, any::<u8>()), 1..4),
    ) {
        let device = shared(device());
        let log = log_on(&device, first());
        let mut written = Vec::new();
        for (number, bytes) in (1..).zip(sizes) {
            let batch = batch(number, bytes);
            if log.append(&batch).is_ok() {
                written.push((number, batch));
                log.sync().unwrap();
            }
        }
        let changed = changes.len();
        for (at, value) in changes {
            device.write_at(geometry().log_at + at, &[value]).unwrap();
        }
        match replay(&device, first(), 2) {
            Ok((batches, _)) => {
                prop_assert_eq!(&batches[..], &written[..batches.len()]);
                prop_assert!(batches.len() + changed >= written.len(), "only changed frames at the end may be lost silently");
            }
            Err(error) => prop_assert!(matches!(error, Error::Damaged { .. }), "{}", error),
        }
    }
}
