//! Tests of the log's format: round trips, golden files, resuming, and truncated or damaged files.

use std::{fs, path::Path, sync::Arc};

use proptest::prelude::*;
use senesce_core::{RelPath, Seed};
use senesce_oplog::{
    Content, DoneStep, Ended, FileTime, LogError, LogHeader, LogReader, LogWriter, Op, Outcome, SpaceChange, Step,
    verify,
};

fn header() -> LogHeader {
    LogHeader::new(serde_json::json!({ "name": "golden", "commits": 3, "b": { "z": 1, "a": [2, "x"] } }), Seed(42))
}

fn path(bytes: &[u8]) -> RelPath {
    RelPath::new(bytes).unwrap()
}

/// At least one step for each feature of version 1.
fn golden_steps() -> Vec<DoneStep> {
    let all: Vec<Op> = vec![
        Op::Mkdir { path: path(b"src"), mode: 0o755 },
        Op::Create { path: path(b"src/\xff name"), mode: 0o644, content: Content::Inline((*b"ref: x\n").into()) },
        Op::Create { path: path(b"src/seeded"), mode: 0o4755, content: Content::Seeded { seed: u64::MAX, len: 300 } },
        Op::Create { path: path(b"src/blob"), mode: 0o444, content: Content::derived("blob 1234abcd") },
        Op::Write { path: path(b"src/blob"), offset: 1 << 40, content: Content::Inline([].as_slice().into()) },
        Op::Truncate { path: path(b"src/blob"), len: 77 },
        Op::Rename { from: path(b"src/blob"), to: path(b"blob") },
        Op::Symlink { path: path(b"link"), target: Arc::from(&b"../\xfe"[..]) },
        Op::Link { existing: path(b"blob"), path: path(b"twin") },
        Op::Chmod { path: path(b"twin"), mode: 0o600 },
        Op::Fsync { path: path(b"twin") },
        Op::SyncFs,
        Op::Unlink { path: path(b"twin") },
        Op::Rmdir { path: path(b"empty") },
        Op::RemoveTree { path: RelPath::root() },
    ];
    let step = |label: &str, counted, root: &[u8], ops: Vec<Op>| Step {
        label: label.into(),
        counted,
        root: path(root),
        ops: ops.into(),
    };
    let contents = vec![(7, 1), (300, u64::MAX), (1 << 33, 0x0123_4567_89ab_cdef), (0, 4)];
    vec![
        DoneStep {
            number: 0,
            step: step("one of each", true, b"copy-1", all),
            outcome: Outcome::Done,
            contents,
            began: None,
        },
        DoneStep {
            number: 1,
            step: step("nothing", false, b"", vec![]),
            outcome: Outcome::Done,
            contents: vec![],
            began: None,
        },
        DoneStep {
            number: 2,
            step: step(
                "pull 1 into copy-1",
                true,
                b"copy-1",
                vec![
                    Op::Mkdir { path: path(b"a"), mode: 0o700 },
                    Op::Create { path: path(b"a/b"), mode: 0o644, content: Content::Seeded { seed: 1, len: 9000 } },
                ],
            ),
            outcome: Outcome::NoSpace { failed_op: 1, written: Some(4096) },
            contents: vec![(9000, 5)],
            began: None,
        },
        DoneStep {
            number: 3,
            step: step("pull 2 into copy-1", true, b"copy-1", vec![Op::Mkdir { path: path(b"c"), mode: 0o755 }]),
            outcome: Outcome::NoSpace { failed_op: 0, written: None },
            contents: vec![],
            began: None,
        },
    ]
}

/// One operation for each feature of version 2.
fn golden_recorded_steps() -> Vec<DoneStep> {
    let (name, value) = (Arc::from(&b"user.k\xff"[..]), Arc::from(&b"v\0"[..]));
    let time = |unix_seconds, nanoseconds| Some(FileTime { unix_seconds, nanoseconds });
    let space = |how| Op::Fallocate { path: path(b"a"), how, offset: 4096, len: 1 << 33 };
    let ops = vec![
        space(SpaceChange::Reserve),
        space(SpaceChange::ReserveKeepSize),
        space(SpaceChange::Punch),
        space(SpaceChange::Zero),
        space(SpaceChange::ZeroKeepSize),
        Op::Exchange { first: path(b"a"), second: path(b"d/b") },
        Op::SetXattr { path: path(b"a"), name: Arc::clone(&name), value },
        Op::RemoveXattr { path: path(b"a"), name },
        Op::SetTimes { path: path(b"a"), accessed: None, modified: time(-1, 999_999_999) },
        Op::SetTimes { path: path(b"a"), accessed: time(i64::MAX, 0), modified: None },
        Op::Chown { path: path(b"a"), uid: Some(0), gid: None },
        Op::Chown { path: path(b"a"), uid: None, gid: Some(u32::MAX) },
        Op::Mknod { path: path(b"pipe"), mode: 0o010_644, device: 0 },
    ];
    let step = Step { label: "cc1".into(), counted: true, root: RelPath::root(), ops: ops.into() };
    let began = Some(senesce_core::Nanos(1_500_000_000));
    vec![DoneStep { number: 0, step, outcome: Outcome::Done, contents: vec![], began }]
}

#[test]
fn version_2_golden_file_never_changes() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/oplog-v2.senesce-log");
    let dir = tempfile::tempdir().unwrap();
    let written = dir.path().join("log");
    let header = LogHeader::recorded(serde_json::json!({ "name": "recorded" }), Seed(42));
    let mut writer = LogWriter::create(&written, &header).unwrap();
    golden_recorded_steps().iter().for_each(|step| writer.append(step).unwrap());
    writer.finish().unwrap();
    if std::env::var_os("SENESCE_WRITE_GOLDEN").is_some() {
        fs::copy(&written, &golden).unwrap();
    }
    assert!(fs::read(&written).unwrap() == fs::read(&golden).unwrap(), "the bytes of a log changed");
    let reader = LogReader::open(&golden).unwrap();
    assert_eq!(reader.header(), &header);
    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), golden_recorded_steps());
    // A file that claims the older version is refused: an older program could not read it either.
    let mut older = fs::read(&golden).unwrap();
    older[8] = 1;
    assert!(matches!(read_bytes(&older), Err(LogError::Damaged { frame: 0, .. })));
}

#[test]
fn version_1_log_refuses_version_2_steps() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::create(&dir.path().join("log"), &header()).unwrap();
    let recorded = golden_recorded_steps().remove(0);
    assert!(matches!(writer.append(&recorded), Err(LogError::BadStep { .. })));
    let without_time = DoneStep { began: None, ..recorded.clone() };
    assert!(matches!(writer.append(&without_time), Err(LogError::BadStep { .. })));
    let mut only_time = recorded;
    only_time.step.ops = Arc::from([]);
    assert!(matches!(writer.append(&only_time), Err(LogError::BadStep { .. })));
}

/// Returns a header of the version that the steps need.
fn header_for(steps: &[DoneStep]) -> LogHeader {
    if steps.iter().all(|step| step.version() == 1) {
        return header();
    }
    LogHeader::recorded(serde_json::json!({ "name": "recorded" }), Seed(42))
}

fn write_log(at: &Path, steps: &[DoneStep], flush_after: impl Fn(usize) -> bool) {
    let mut writer = LogWriter::create(at, &header_for(steps)).unwrap();
    for (index, step) in steps.iter().enumerate() {
        writer.append(step).unwrap();
        if flush_after(index) {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap();
}

/// Returns the steps read, and how reading ended.
fn read_bytes(bytes: &[u8]) -> Result<(Vec<DoneStep>, Result<Ended, LogError>), LogError> {
    let mut reader = LogReader::new(bytes, Path::new("test"))?;
    let mut steps = Vec::new();
    for step in reader.by_ref() {
        match step {
            Ok(step) => steps.push(step),
            Err(e) => return Ok((steps, Err(e))),
        }
    }
    let ended = reader.ended().expect("an iteration without error ends somehow");
    Ok((steps, Ok(ended)))
}

#[test]
fn version_1_golden_file_never_changes() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/oplog-v1.senesce-log");
    let dir = tempfile::tempdir().unwrap();
    let written = dir.path().join("log");
    write_log(&written, &golden_steps(), |index| index == 1);
    if std::env::var_os("SENESCE_WRITE_GOLDEN").is_some() {
        fs::copy(&written, &golden).unwrap();
    }
    assert!(fs::read(&written).unwrap() == fs::read(&golden).unwrap(), "the bytes of a log changed");
    let reader = LogReader::open(&golden).unwrap();
    assert_eq!(reader.header(), &header());
    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), golden_steps());
    let summary = verify(&golden).unwrap();
    assert_eq!(summary.ended, Ended::Complete);
    assert_eq!((summary.steps, summary.counted_steps, summary.no_space_steps), (4, 3, 2));
    assert_eq!((summary.operations, summary.frames), (18, 4));
    assert_eq!(summary.content_bytes, 7 + 300 + (1 << 33) + 4096);
    assert_eq!(summary.operations_by_kind["create"], 4);
    assert_eq!(summary.operations_by_kind.len(), 13);
    assert_eq!(summary.file_bytes, fs::metadata(&golden).unwrap().len());
}

#[test]
fn truncated_log_returns_its_whole_frames() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    write_log(&log, &golden_steps(), |_| true);
    let bytes = fs::read(&log).unwrap();
    let mut lengths = Vec::new();
    for cut in 0..bytes.len() {
        match read_bytes(&bytes[..cut]) {
            Err(LogError::NotALog { .. }) => assert!(lengths.is_empty(), "cut at {cut}: the header was read before"),
            Err(other) => panic!("cut at {cut}: {other}"),
            Ok((steps, ended)) => {
                assert_eq!(steps, golden_steps()[..steps.len()], "cut at {cut}");
                match ended.unwrap() {
                    Ended::Complete => panic!("cut at {cut} and complete"),
                    Ended::Unfinished => {}
                    Ended::Truncated { at_bytes } => assert!(at_bytes < cut as u64),
                }
                lengths.push(steps.len());
            }
        }
    }
    assert!(lengths.is_sorted());
    assert_eq!(lengths.last(), Some(&4));
}

#[test]
fn every_flipped_bit_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    write_log(&log, &golden_steps(), |index| index == 1);
    let bytes = fs::read(&log).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            match read_bytes(&damaged) {
                Err(_) => {}
                Ok((steps, Err(LogError::Damaged { offset_bytes, .. }))) => {
                    assert!(offset_bytes <= at as u64, "byte {at}");
                    assert_eq!(steps, golden_steps()[..steps.len()]);
                }
                Ok((_, ended)) => panic!("byte {at}, bit {bit}: {ended:?}"),
            }
        }
    }
}

#[test]
fn zeros_after_the_trailer_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    write_log(&log, &golden_steps(), |_| false);
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(&[0; 4096]);
    assert!(matches!(read_bytes(&bytes), Ok((_, Err(LogError::Damaged { .. })))));
}

#[test]
fn newer_version_and_foreign_file_are_refused() {
    let mut bytes = b"SENESCE\x1a".to_vec();
    bytes.extend_from_slice(&3u16.to_le_bytes());
    let error = read_bytes(&bytes).unwrap_err();
    assert!(matches!(error, LogError::NewerVersion { found: 3, known: 2, .. }));
    assert_eq!(
        error.to_string(),
        "the log test has format version 3; this program reads versions up to 2: use a newer senesce"
    );
    assert!(matches!(read_bytes(b"PK\x03\x04 is another thing"), Err(LogError::NotALog { .. })));
}

#[test]
fn refused_steps_leave_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut writer = LogWriter::create(&log, &header()).unwrap();
    let good = golden_steps();
    assert!(matches!(writer.append(&good[1]), Err(LogError::BadStep { .. })), "a number left out");
    let mut without_hash = good[0].clone();
    without_hash.contents.clear();
    assert!(matches!(writer.append(&without_hash), Err(LogError::BadStep { .. })));
    let mut beyond = good[0].clone();
    beyond.outcome = Outcome::NoSpace { failed_op: 99, written: None };
    assert!(matches!(writer.append(&beyond), Err(LogError::BadStep { .. })));
    good.iter().for_each(|step| writer.append(step).unwrap());
    writer.finish().unwrap();
    assert_eq!(LogReader::open(&log).unwrap().map(Result::unwrap).collect::<Vec<_>>(), good);
    assert!(LogWriter::create(&log, &header()).is_err(), "a log that is there is not overwritten");
    assert!(matches!(LogWriter::resume(&log, verify(&log).unwrap().file_bytes), Err(LogError::BadPosition { .. })));
}

#[test]
fn operations_after_a_failed_one_are_not_logged() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut whole = golden_steps().remove(0);
    whole.outcome = Outcome::NoSpace { failed_op: 2, written: Some(10) };
    write_log(&log, &[whole.clone()], |_| false);
    let mut want = whole;
    want.step.ops = want.step.ops[..3].into();
    want.contents.truncate(2);
    assert_eq!(LogReader::open(&log).unwrap().map(Result::unwrap).collect::<Vec<_>>(), [want]);
    assert_eq!(verify(&log).unwrap().content_bytes, 7 + 10);
}

fn any_path() -> impl Strategy<Value = RelPath> {
    prop::collection::vec("[^/\0.]{1,6}", 0..4).prop_map(|parts| path(parts.join("/").as_bytes()))
}

fn any_content() -> impl Strategy<Value = Content> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Content::Inline(bytes.into())),
        (any::<u64>(), any::<u64>()).prop_map(|(seed, len)| Content::Seeded { seed, len }),
        "[ -~]{0,20}".prop_map(Content::derived),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    (0u8..23, any_path(), any_path(), any::<u32>(), any::<u64>(), any_content()).prop_map(
        |(kind, path, other, mode, number, content)| match kind {
            0 => Op::Mkdir { path, mode },
            1 => Op::Rmdir { path },
            2 => Op::Create { path, mode, content },
            3 => Op::Write { path, offset: number, content },
            4 => Op::Truncate { path, len: number },
            5 => Op::Rename { from: path, to: other },
            6 => Op::Unlink { path },
            7 => Op::Symlink { path, target: Arc::from(other.as_bytes()) },
            8 => Op::Link { existing: path, path: other },
            9 => Op::Chmod { path, mode },
            10 => Op::RemoveTree { path },
            11 => Op::Fsync { path },
            12 => Op::Allocate { path, mode, len: number },
            13 => Op::SetModified { path, unix_seconds: number },
            14 => Op::Read { path, offset: number, len: u64::from(mode) },
            15 => {
                let how = [SpaceChange::Punch, SpaceChange::Zero, SpaceChange::Reserve][mode as usize % 3];
                Op::Fallocate { path, how, offset: number, len: u64::from(mode) }
            }
            16 => Op::Exchange { first: path, second: other },
            17 => Op::SetXattr { path, name: Arc::from(other.as_bytes()), value: number.to_le_bytes().to_vec().into() },
            18 => Op::RemoveXattr { path, name: Arc::from(other.as_bytes()) },
            19 => {
                let time = FileTime { unix_seconds: number.cast_signed(), nanoseconds: mode % 1_000_000_000 };
                Op::SetTimes { path, accessed: Some(time).filter(|_| mode % 2 == 0), modified: Some(time) }
            }
            20 => Op::Chown { path, uid: Some(mode), gid: None },
            21 => Op::Mknod { path, mode, device: number },
            _ => Op::SyncFs,
        },
    )
}

/// A step as the log keeps it; its number is set later.
fn any_step() -> impl Strategy<Value = DoneStep> {
    let failed = prop::option::of(prop::option::of(any::<u64>()));
    (
        prop::collection::vec(any_op(), 0..8),
        ".{0,12}",
        any::<bool>(),
        any_path(),
        failed,
        any::<u64>(),
        prop::option::of(any::<u64>()),
    )
        .prop_map(|(ops, label, counted, root, failed, hash, began)| {
            let outcome = match failed {
                Some(written) if !ops.is_empty() => Outcome::NoSpace { failed_op: ops.len() - 1, written },
                _ => Outcome::Done,
            };
            let with_content = ops.iter().filter(|op| op.content().is_some()).count() as u64;
            let contents = (0..with_content).map(|index| (hash >> index, hash.wrapping_mul(index + 1))).collect();
            DoneStep {
                number: 0,
                step: Step { label, counted, root, ops: ops.into() },
                outcome,
                contents,
                began: began.map(senesce_core::Nanos),
            }
        })
}

fn any_steps() -> impl Strategy<Value = Vec<DoneStep>> {
    prop::collection::vec(any_step(), 0..12).prop_map(|mut steps| {
        (0..).zip(&mut steps).for_each(|(number, step)| step.number = number);
        steps
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_steps_are_read_back(steps in any_steps(), flushes: u16) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        write_log(&log, &steps, |index| flushes >> index & 1 == 1);
        prop_assert_eq!(LogReader::open(&log).unwrap().map(Result::unwrap).collect::<Vec<_>>(), steps);
    }

    #[test]
    fn resumed_writer_writes_the_same_bytes(steps in any_steps(), stop in 0usize..12, lost in 0usize..4) {
        let dir = tempfile::tempdir().unwrap();
        let stop = stop.min(steps.len());
        let whole = dir.path().join("whole");
        write_log(&whole, &steps, |index| index + 1 == stop);

        let resumed = dir.path().join("resumed");
        let mut writer = LogWriter::create(&resumed, &header_for(&steps)).unwrap();
        steps[..stop].iter().for_each(|step| writer.append(step).unwrap());
        let position = writer.sync().unwrap();
        // Work after the checkpoint, part of it in the file, which the interruption undoes.
        steps[stop..].iter().take(lost).for_each(|step| writer.append(step).unwrap());
        writer.flush().unwrap();
        drop(writer);
        let mut writer = LogWriter::resume(&resumed, position).unwrap();
        prop_assert_eq!(writer.steps(), stop as u64);
        steps[stop..].iter().for_each(|step| writer.append(step).unwrap());
        writer.finish().unwrap();
        prop_assert!(fs::read(&whole).unwrap() == fs::read(&resumed).unwrap());
        prop_assert!(LogWriter::resume(&resumed, position + 1).is_err());
    }

    #[test]
    fn random_bytes_never_return_wrong_steps(noise in prop::collection::vec(any::<u8>(), 0..200), keep in 0usize..200) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        write_log(&log, &golden_steps(), |_| false);
        let mut bytes = fs::read(&log).unwrap();
        bytes.truncate(keep);
        bytes.extend_from_slice(&noise);
        if let Ok((steps, _)) = read_bytes(&bytes) {
            prop_assert_eq!(&steps[..], &golden_steps()[..steps.len()]);
        }
    }
}

/// A frame of steps with correct checksums around bytes that an attacker chose.
fn forge_frame(sequence: u64, raw: &[u8]) -> Vec<u8> {
    let stored = zstd::bulk::compress(raw, 3).unwrap();
    let mut frame = Vec::new();
    frame.extend((stored.len() as u32).to_le_bytes());
    frame.extend((raw.len() as u32).to_le_bytes());
    frame.extend(crc32c::crc32c(&stored).to_le_bytes());
    frame.extend(sequence.to_le_bytes());
    frame.extend(1_u32.to_le_bytes());
    let crc = crc32c::crc32c(&frame);
    frame.extend(crc.to_le_bytes());
    frame.extend(stored);
    frame
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[test]
fn reader_refuses_a_step_with_too_many_operations() {
    const SYNC_FS: u8 = 12;
    for (operations, refused) in [(60_000_000_usize, true), ((4 << 20) + 1, true), (1000, false)] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        LogWriter::create(&log, &header()).unwrap().finish().unwrap();
        let mut bytes = fs::read(&log).unwrap();
        let stored = u32::from_le_bytes(bytes[10..14].try_into().unwrap()) as usize;
        bytes.truncate(10 + 28 + stored);
        // Fields: number 0, counted, no label, the root, the operations.
        let mut step = vec![0, 1, 0, 0];
        put_number(&mut step, operations as u64);
        step.resize(step.len() + operations, SYNC_FS);
        bytes.extend(forge_frame(1, &step));
        assert!(bytes.len() < 8 << 10, "{} bytes", bytes.len());
        fs::write(&log, bytes).unwrap();
        let step = LogReader::open(&log).unwrap().next().unwrap();
        match (step, refused) {
            (Err(LogError::Damaged { problem, .. }), true) => {
                assert!(problem.contains("the most is 4194304"), "{problem}");
            }
            (Ok(step), false) => assert_eq!(step.step.ops.len(), operations),
            (other, _) => panic!("{operations}: {:?}", other.map(|step| step.step.ops.len())),
        }
    }
}

#[test]
fn writer_refuses_a_step_with_too_many_operations() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::create(&dir.path().join("log"), &header()).unwrap();
    let ops = vec![Op::SyncFs; (4 << 20) + 1].into();
    let step = Step { label: "long".into(), counted: true, root: RelPath::root(), ops };
    let done = DoneStep { number: 0, step, outcome: Outcome::Done, contents: vec![], began: None };
    assert!(matches!(writer.append(&done), Err(LogError::BadStep { .. })));
}
