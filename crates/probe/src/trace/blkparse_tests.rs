//! A text that blkparse 1.2.0 wrote, malformed lines, and random bytes.

use proptest::prelude::*;

use super::*;
use crate::trace::RequestFlags;

/// Output of blkparse 1.2.0 for a binary trace with one of each kind of event.
const GOLDEN: &str = include_str!("../../../../golden/probe/blkparse-1.2.0.txt");

#[test]
fn a_text_of_blkparse_is_parsed() {
    let trace = import_blkparse(GOLDEN.as_bytes()).unwrap();
    assert_eq!(trace.device, Some(DeviceNumber { major: 8, minor: 16 }));
    assert_eq!((trace.lost, trace.requeued, trace.others, trace.unmatched_completions), (0, 1, 1, 0));
    let seen: Vec<_> = trace
        .requests
        .iter()
        .map(|r| {
            (r.request.issued.0, r.request.op, r.request.sector, r.request.sectors, r.completed.map(|c| c.0), r.error)
        })
        .collect();
    use BlockOp::*;
    assert_eq!(
        seen,
        [
            (2_300, Read, 1000, 16, Some(92_300), 0),
            (92_310, Read, 1016, 256, Some(96_410), 0),
            (94_410, Write, 5000, 24, Some(97_410), 5),
            (98_410, Flush, 0, 0, Some(99_410), 0),
            (100_410, Write, 7000, 8, Some(101_410), 0),
            (3_000_101_410, Discard, 8192, 65536, Some(3_000_102_410), 0),
            (3_000_107_410, Read, 20000, 8, None, 0),
        ]
    );
    assert_eq!(trace.requests[0].pid, 1234);
    assert_eq!(trace.requests[1].flags, RequestFlags::READAHEAD);
    let durable = RequestFlags::PREFLUSH.with(RequestFlags::FUA).with(RequestFlags::SYNC);
    assert_eq!(trace.requests[4].flags, durable);
}

#[test]
fn a_truncated_text_gives_its_complete_lines() {
    let whole = import_blkparse(GOLDEN.as_bytes()).unwrap();
    for (end, _) in GOLDEN.match_indices('\n') {
        let trace = import_blkparse(&GOLDEN.as_bytes()[..=end]).unwrap();
        let places = |trace: &BlockTrace| -> Vec<_> {
            trace.requests.iter().map(|r| (r.request.sector, r.request.sectors)).collect()
        };
        let seen = places(&trace);
        assert_eq!(seen, places(&whole)[..seen.len()]);
    }
}

#[test]
fn a_text_with_several_devices_needs_a_name() {
    let text = "8,0 0 1 0.1 5 D R 8 + 8 [a]\n8,16 0 1 0.2 5 D R 16 + 8 [a]\n";
    let error = import_blkparse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("8:16"), "{error}");
    let trace = import_blkparse_of(text.as_bytes(), DeviceNumber { major: 8, minor: 16 }).unwrap();
    assert_eq!(trace.requests.len(), 1);
    assert_eq!(trace.requests[0].request.sector, 16);
}

#[test]
fn out_of_range_values_are_refused_with_their_line() {
    let first = "8,0 0 1 0.1 5 D R 8 + 8 [a]\n";
    let long = format!("8,0 0 1 0.1 5 m N {}\n", "x".repeat(1 << 16));
    for (line, says) in [
        ("8,0 0 1 0.1 5 D R 8 + 8388609 [a]\n", "8388609 sectors"),
        ("8,0 0 1 9223372037.0 5 D R 8 + 8 [a]\n", "9223372037.0"),
        (&long, "longer than 65536 bytes"),
    ] {
        let error = import_blkparse(format!("{first}{line}").as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains(says), "{error}");
    }
    // An endless file without lines.
    let error = import_blkparse(std::io::BufReader::new(std::io::repeat(b'8'))).unwrap_err().to_string();
    assert!(error.contains("line 1") && error.contains("longer than"), "{error}");
    let most = "8,0 0 1 0.1 5 D R 8 + 8388608 [a]\n";
    assert_eq!(import_blkparse(most.as_bytes()).unwrap().requests[0].request.sectors, 8_388_608);
    let skips =
        "8,0 0 1 0.1 5 D R 8 + 8 [a]\n".to_owned() + &"Skips: 1 forward (18446744073709551615 - 0%)\n".repeat(2);
    assert_eq!(import_blkparse(skips.as_bytes()).unwrap().lost, u64::MAX);
}

#[test]
fn skipped_events_count_as_lost() {
    let text = "8,0 0 1 0.1 5 D R 8 + 8 [a]\nTotal (8,0):\n Reads Queued: 1\nSkips: 2 forward (17 -   0.1%)\n";
    assert_eq!(import_blkparse(text.as_bytes()).unwrap().lost, 17);
}

#[test]
fn malformed_lines_are_refused_with_their_number() {
    for (line, part) in [
        ("8,0 0 1 0.1 5 D R 8 + x [a]", "\"x\""),
        ("8,0 0 1 0.1 5 D R 8", "sectors are missing"),
        ("8,0 0 1 0.1 5 D", "letters"),
        ("8,0 0 1 0.1 5 Y R 8 + 8 [a]", "\"Y\""),
        ("8,0 0 1 0.1234567890 5 D R 8 + 8 [a]", "0.1234567890"),
        ("8,0 0 1 -1.0 5 D R 8 + 8 [a]", "-1.0"),
        ("8,0 x 1 0.1 5 D R 8 + 8 [a]", "CPU"),
        ("8,0 0 1 0.1 5 C R 8 + 8 [oops]", "oops"),
        ("8,0 0 1 0.1 5 D R 8 + 99999999999 [a]", "99999999999 sectors are more than"),
        ("hello", "neither"),
    ] {
        let text = format!("8,0 0 1 0.1 5 D R 8 + 8 [a]\n{line}\n");
        let error = import_blkparse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains(part), "{line}: {error}");
    }
}

#[test]
fn an_empty_text_is_an_empty_trace() {
    assert_eq!(import_blkparse(&b""[..]).unwrap(), BlockTrace::default());
}

proptest! {
    #[test]
    fn any_bytes_parse_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = import_blkparse(&bytes[..]);
    }

    #[test]
    fn a_corrupted_text_parses_without_panic(
        changes in prop::collection::vec((0usize..GOLDEN.len(), prop::sample::select(b"0 +[](DCRF,.\n9x\xff".to_vec())), 1..6),
    ) {
        let mut bytes = GOLDEN.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let _ = import_blkparse(&bytes[..]);
    }

    #[test]
    fn a_rendered_trace_parses_to_itself(
        requests in prop::collection::vec((0u64..1 << 40, 1u32..1 << 20, any::<bool>(), 1u64..1_000_000), 0..40),
    ) {
        use std::fmt::Write;
        let (mut text, mut at) = (String::new(), 0u64);
        for (n, (sector, sectors, write, wait)) in requests.iter().enumerate() {
            let letter = if *write { "WS" } else { "R" };
            for (action, name) in [("D", "tar"), ("C", "0")] {
                at += wait;
                writeln!(
                    text, "  8,0 {:>4} {n:>8} {:>5}.{:09} {:>5}  {action} {letter:>3} {sector} + {sectors} [{name}]",
                    n % 4, at / 1_000_000_000, at % 1_000_000_000, 100 + n,
                ).unwrap();
            }
        }
        let trace = import_blkparse(text.as_bytes()).unwrap();
        let read: Vec<_> = trace.requests.iter()
            .map(|r| (r.request.sector, r.request.sectors, r.request.op == BlockOp::Write, r.service_time().unwrap().0))
            .collect();
        prop_assert_eq!(read, requests);
    }
}
