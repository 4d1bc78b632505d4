//! The effects of faults match their texts.

use proptest::prelude::*;
use senesce_block::{BlockDevice, BlockOperation, BlockProblem, Effect, Fault, FaultDevice, MemoryDevice, When};
use senesce_core::Bytes;

const SIZE: u64 = 8192;

/// Three writes of 1024 bytes at 0, 1024 and 2048, a flush, and three reads of them, with the
/// outcome of each.
fn story(faults: &str) -> String {
    let device = FaultDevice::new(MemoryDevice::new("disk", Bytes(SIZE)));
    device.inject(faults).unwrap();
    let mut told = Vec::new();
    for number in 1..=3u8 {
        let done = device.write_at(u64::from(number - 1) * 1024, &[number; 1024]);
        told.push(done.map_or_else(|error| short(&error.problem), |()| "ok".to_owned()));
    }
    told.push(device.flush().map_or_else(|error| short(&error.problem), |()| "ok".to_owned()));
    for number in 0..3 {
        let mut got = [9; 1024];
        told.push(match device.read_at(number * 1024, &mut got) {
            Ok(()) => runs(&got),
            Err(error) => short(&error.problem),
        });
    }
    let all = device.inner().contents();
    format!("{} | {} | {}", told.join(" "), runs(&all), device.struck())
}

fn short(problem: &BlockProblem) -> String {
    assert!(matches!(problem, BlockProblem::Injected), "{problem}");
    "E".to_owned()
}

/// `1x1024,0x7168`
fn runs(bytes: &[u8]) -> String {
    let runs = bytes.chunk_by(|a, b| a == b).map(|run| format!("{}x{}", run[0], run.len()));
    runs.collect::<Vec<_>>().join(",")
}

#[test]
fn each_fault_has_its_effect() {
    let rest = "0x5120";
    for (faults, want) in [
        ("fail read 9", "ok ok ok ok 1x1024 2x1024 3x1024 | 1x1024,2x1024,3x1024,REST | 0"),
        ("fail write 2", "ok E ok ok 1x1024 0x1024 3x1024 | 1x1024,0x1024,3x1024,REST | 1"),
        ("fail write 2..", "ok E E ok 1x1024 0x1024 0x1024 | 1x1024,0x7168 | 2"),
        ("fail read 3; fail flush 1", "ok ok ok E 1x1024 2x1024 E | 1x1024,2x1024,3x1024,REST | 2"),
        ("fail read at 1023+2", "ok ok ok ok E E 3x1024 | 1x1024,2x1024,3x1024,REST | 2"),
        ("fail write at 1024+0", "ok ok ok ok 1x1024 2x1024 3x1024 | 1x1024,2x1024,3x1024,REST | 0"),
        ("lose write at 2048+1", "ok ok ok ok 1x1024 2x1024 0x1024 | 1x1024,2x1024,0x6144 | 1"),
        ("lose flush 1", "ok ok ok ok 1x1024 2x1024 3x1024 | 1x1024,2x1024,3x1024,REST | 1"),
        ("tear write 2 keep 512", "ok ok ok ok 1x1024 2x512,0x512 3x1024 | 1x1024,2x512,0x512,3x1024,REST | 1"),
        (
            "misdirect write 2 to 4096",
            "ok ok ok ok 1x1024 0x1024 3x1024 | 1x1024,0x1024,3x1024,0x1024,2x1024,0x3072 | 1",
        ),
        ("misdirect write 2 to 8000", "ok ok ok ok 1x1024 0x1024 3x1024 | 1x1024,0x1024,3x1024,REST | 1"),
        ("misdirect read 1 to 2048", "ok ok ok ok 3x1024 2x1024 3x1024 | 1x1024,2x1024,3x1024,REST | 1"),
        ("flip read 1 bit 8191", "ok ok ok ok 1x1023,129x1 2x1024 3x1024 | 1x1024,2x1024,3x1024,REST | 1"),
        ("flip write 3 bit 0", "ok ok ok ok 1x1024 2x1024 2x1,3x1023 | 1x1024,2x1025,3x1023,REST | 1"),
    ] {
        assert_eq!(story(faults), want.replace("REST", rest), "{faults}");
    }
}

#[test]
fn healed_device_works_and_counts_further() {
    let device = FaultDevice::new(MemoryDevice::new("disk", Bytes(SIZE)));
    device.inject("fail write 1..").unwrap();
    let error = device.write_at(512, &[1; 512]).unwrap_err();
    assert_eq!(error.to_string(), "cannot write disk (offset 512, 512 bytes): an injected fault");
    device.heal();
    device.write_at(512, &[1; 512]).unwrap();
    device.inject("fail write 3").unwrap();
    assert!(device.write_at(512, &[1; 512]).is_err());
    assert_eq!(device.requests(BlockOperation::Write), 3);
}

#[test]
fn wrong_texts_are_refused_with_the_reason() {
    for (words, reason) in [
        ("", "the effect is missing"),
        ("fail", "the operation is missing"),
        ("fail sync 1", "\"sync\" is not read, write or flush"),
        ("fail write", "the number of the request is missing"),
        ("fail write x", "\"x\" is not a whole number"),
        ("fail write 0", "requests are counted from 1"),
        ("fail write at 12", "\"12\" is not a range such as 4096+512"),
        ("break write 1", "\"break\" is not fail, lose, tear, misdirect or flip"),
        ("tear write 1", "keep is missing"),
        ("tear write 1 to 5", "found \"to\", expected \"keep\""),
        ("fail write 1 keep 5", "unexpected \"keep\""),
        ("lose read 1", "this effect is impossible for a read"),
        ("flip flush 1 bit 1", "this effect is impossible for a flush"),
        ("fail flush at 0+1", "a flush has no range"),
    ] {
        let error = words.parse::<Fault>().unwrap_err();
        assert_eq!(error.problem, reason, "{words}");
        assert!(error.to_string().contains(&format!("{words:?}")), "{error}");
    }
}

fn faults() -> impl Strategy<Value = Fault> {
    let effect = prop_oneof![
        Just(Effect::Fail),
        Just(Effect::Lose),
        any::<u64>().prop_map(|keep| Effect::Tear { keep }),
        any::<u64>().prop_map(|to| Effect::Misdirect { to }),
        any::<u64>().prop_map(|bit| Effect::Flip { bit }),
    ];
    let when = prop_oneof![
        (1..u64::MAX).prop_map(|number| When::Numbers(number..=number)),
        (1..u64::MAX).prop_map(|number| When::Numbers(number..=u64::MAX)),
        any::<(u64, u64)>().prop_map(|(offset, len)| When::Touches { offset, len }),
    ];
    (effect, when).prop_map(|(effect, when)| Fault { effect, operation: BlockOperation::Write, when })
}

proptest! {
    #[test]
    fn fault_survives_its_text(fault in faults()) {
        prop_assert_eq!(fault.to_string().parse::<Fault>().unwrap(), fault);
    }

    #[test]
    fn faulty_device_never_panics(fault in faults(), offset in 0..SIZE, len in 0..600u64) {
        let device = FaultDevice::new(MemoryDevice::new("disk", Bytes(SIZE)));
        device.inject(&fault.to_string()).unwrap();
        let done = device.write_at(offset, &vec![1; len as usize]);
        prop_assert_eq!(done.is_err(), offset + len > SIZE || (device.struck() == 1 && fault.effect == Effect::Fail));
    }
}
