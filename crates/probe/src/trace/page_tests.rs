//! Pages of a real kernel, and generated pages, truncated and modified.

use proptest::prelude::*;

use super::*;
use crate::trace::{Action, BlockEvent, EventDecoder, EventFormat, compute_requests};

const HEADER_PAGE: &str = include_str!("../../../../golden/probe/header_page");
const HEADER_EVENT: &str = include_str!("../../../../golden/probe/header_event");
const FORMATS: [&str; 2] = [
    include_str!("../../../../golden/probe/block_rq_issue.format"),
    include_str!("../../../../golden/probe/block_rq_complete.format"),
];
/// Recorded on a loop device: direct reads, then an ext4 mount, writes, a trim, an unmount.
const PAGES: [&[u8]; 2] = [
    include_bytes!("../../../../golden/probe/trace-cpu0.pages"),
    include_bytes!("../../../../golden/probe/trace-cpu1.pages"),
];
/// The kernel's own text of the same events: CPU, microseconds, event, letters, sector, sectors,
/// process.
const EVENTS: &str = include_str!("../../../../golden/probe/trace-events.txt");

fn format() -> PageFormat {
    PageFormat::parse(HEADER_PAGE, HEADER_EVENT).unwrap()
}

fn decoder() -> EventDecoder {
    EventDecoder::new(&FORMATS.map(|text| EventFormat::parse(text).unwrap())).unwrap()
}

fn golden_events() -> Vec<(usize, BlockEvent)> {
    let mut events = Vec::new();
    for (cpu, pages) in PAGES.iter().enumerate() {
        for bytes in pages.chunks(format().page_bytes()) {
            let page = Page::new(bytes, &format()).unwrap();
            assert_eq!(page.missed, Missed::None);
            events.extend(page.map(|record| (cpu, decoder().decode(&record.unwrap()).unwrap())));
        }
    }
    events.sort_by_key(|(_, event)| event.at);
    events
}

#[test]
fn decoded_pages_equal_the_kernels_text() {
    let events = golden_events();
    let lines: Vec<Vec<&str>> = EVENTS.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(events.len(), lines.len());
    for ((cpu, event), line) in events.iter().zip(&lines) {
        // The kernel's text rounds to microseconds.
        let microseconds = (event.at.0 + 500) / 1000;
        let name = if event.action == Action::Issue { "issue" } else { "complete" };
        let (op, flags) = crate::trace::event::parse_letters(line[3].as_bytes());
        // A flush completes at sector -1.
        let sector = if line[3] == "FF" { "0" } else { line[4] };
        let ours = [cpu.to_string(), microseconds.to_string(), name.to_owned()];
        assert_eq!(ours, line[..3], "{line:?}");
        assert_eq!((event.op, event.flags), (op, flags), "{line:?}");
        assert_eq!([event.sector.to_string(), event.sectors.to_string()], [sector, line[5]], "{line:?}");
        assert_eq!(event.pid.to_string(), line[6], "{line:?}");
    }
}

#[test]
fn every_request_of_the_recorded_trace_was_completed() {
    let paired = compute_requests(golden_events().into_iter().map(|(_, event)| event));
    let issues = EVENTS.lines().filter(|line| line.contains(" issue ")).count();
    assert_eq!(paired.requests.len(), issues);
    assert!(paired.requests.iter().all(|request| request.completed.is_some()));
    assert_eq!((paired.unmatched_completions, paired.requeued, paired.others), (0, 0, 0));
    // The first 21 requests are direct reads of 64 KiB at multiples of 7 * 64 KiB, from the 40th
    // multiple on.
    for (n, traced) in paired.requests[..21].iter().enumerate() {
        assert_eq!((traced.request.sector, traced.request.sectors), ((40 + n as u64) * 7 * 128, 128));
    }
}

#[test]
fn a_truncated_page_gives_its_complete_records() {
    let whole = &PAGES[0][..4096];
    let records: Vec<_> = Page::new(whole, &format()).unwrap().map(Result::unwrap).collect();
    assert!(records.len() > 40, "the page was to be full, and has {} records", records.len());
    let mut seen = 0;
    for length in 0..=whole.len() {
        let Ok(page) = Page::new(&whole[..length], &format()) else {
            assert!(length < 16, "a page of {length} bytes has a header");
            continue;
        };
        let read: Vec<_> = page.collect();
        let good: Vec<_> = read.iter().map_while(|record| record.as_ref().ok().copied()).collect();
        assert_eq!(good, records[..good.len()]);
        assert!(good.len() >= seen && good.len() <= seen + 1, "one record at a time comes into sight");
        seen = good.len();
        // Either all records are there, or the last item is an error.
        assert_eq!(read.len() - good.len(), usize::from(good.len() < records.len()), "at {length} bytes");
    }
    assert_eq!(seen, records.len());
}

#[test]
fn a_changed_record_type_is_refused() {
    let changed = HEADER_EVENT.replace("type == 30", "type == 27");
    assert_ne!(changed, HEADER_EVENT);
    assert!(PageFormat::parse(HEADER_PAGE, &changed).is_err());
    assert!(PageFormat::parse(&HEADER_PAGE.replace("commit", "length"), HEADER_EVENT).is_err());
}

/// One entry of a generated page.
#[derive(Clone, Debug)]
enum Entry {
    /// A record: nanoseconds since the previous one, words of data (more than 28 need the long
    /// form).
    Data {
        delta: u32,
        words: u32,
    },
    Extend {
        delta: u64,
    },
    Stamp {
        ahead: u64,
    },
    TakenBack {
        delta: u32,
        words: u32,
    },
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        6 => (0u32..1 << 27, 1u32..40).prop_map(|(delta, words)| Entry::Data { delta, words }),
        1 => (0u64..1 << 50).prop_map(|delta| Entry::Extend { delta }),
        1 => (0u64..1 << 50).prop_map(|ahead| Entry::Stamp { ahead }),
        1 => (1u32..1 << 27, 1u32..40).prop_map(|(delta, words)| Entry::TakenBack { delta, words }),
    ]
}

/// A page of the entries that fit, and its records.
fn build(start: u64, entries: &[Entry]) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
    let (mut data, mut records, mut time) = (Vec::new(), Vec::new(), start);
    let head = |kind: u32, delta: u64| (kind | (delta as u32 & ((1 << 27) - 1)) << 5).to_le_bytes();
    for entry in entries {
        let mut bytes = Vec::new();
        let before = time;
        let mut record = None;
        match *entry {
            Entry::Data { delta, words } => {
                time += u64::from(delta);
                let content: Vec<u8> = (0..words * 4).map(|n| (n as u64 + time) as u8).collect();
                if words <= 28 {
                    bytes.extend(head(words, u64::from(delta)));
                } else {
                    bytes.extend(head(0, u64::from(delta)));
                    bytes.extend((words * 4 + 4).to_le_bytes());
                }
                bytes.extend(&content);
                record = Some((time, content));
            }
            Entry::Extend { delta } => {
                time += delta;
                bytes.extend(head(30, delta));
                bytes.extend(((delta >> 27) as u32).to_le_bytes());
            }
            Entry::Stamp { ahead } => {
                time += ahead;
                bytes.extend(head(31, time));
                bytes.extend(((time >> 27) as u32).to_le_bytes());
            }
            Entry::TakenBack { delta, words } => {
                time += u64::from(delta);
                bytes.extend(head(29, u64::from(delta)));
                bytes.extend((words * 4).to_le_bytes());
                bytes.resize(bytes.len() + words as usize * 4 - 4, 0xEE);
            }
        }
        if data.len() + bytes.len() > 4000 {
            time = before;
            break;
        }
        data.extend(bytes);
        records.extend(record);
    }
    let _ = time;
    let mut page = Vec::new();
    page.extend(start.to_le_bytes());
    page.extend((data.len() as u64).to_le_bytes());
    page.extend(data);
    page.resize(4096, 0);
    (page, records)
}

fn set_commit(page: &mut [u8], change: impl Fn(u64) -> u64) {
    let commit = u64::from_le_bytes(page[8..16].try_into().unwrap());
    page[8..16].copy_from_slice(&change(commit).to_le_bytes());
}

#[test]
fn lost_events_are_reported() {
    let (page, _) = build(1000, &[Entry::Data { delta: 5, words: 2 }]);
    let missed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut page = page.clone();
        change(&mut page);
        let read = Page::new(&page, &format()).unwrap();
        assert_eq!(read.clone().count(), 1, "the flags are no part of the length");
        read.missed
    };
    assert_eq!(missed(&|_| ()), Missed::None);
    assert_eq!(missed(&|page| set_commit(page, |commit| commit | 1 << 31)), Missed::Some);
    // The count follows the data: 12 bytes here, from byte 16 on.
    let stored = |page: &mut Vec<u8>| {
        set_commit(page, |commit| commit | 3 << 30);
        page[28..36].copy_from_slice(&77u64.to_le_bytes());
    };
    assert_eq!(missed(&stored), Missed::Count(77));
    let cut = |page: &mut Vec<u8>| {
        stored(page);
        page.truncate(30);
    };
    assert_eq!(missed(&cut), Missed::Some, "a count that is cut off is not believed");
}

#[test]
fn a_length_beyond_the_page_is_refused() {
    let (mut page, _) = build(0, &[]);
    set_commit(&mut page, |_| 4081);
    assert!(Page::new(&page, &format()).is_err());
}

proptest! {
    #[test]
    fn a_generated_page_decodes_to_its_records(start in 0u64..1 << 60, entries in prop::collection::vec(entry(), 0..60)) {
        let (page, records) = build(start, &entries);
        let read: Vec<_> = Page::new(&page, &format()).unwrap()
            .map(|record| record.map(|record| (record.at.0, record.event.to_vec())).unwrap()).collect();
        prop_assert_eq!(read, records);
    }

    #[test]
    fn any_bytes_decode_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..600), length in 0u64..5000) {
        if bytes.len() >= 16 {
            bytes[8..16].copy_from_slice(&length.to_le_bytes());
        }
        if let Ok(page) = Page::new(&bytes, &format()) {
            for record in page.flatten() {
                let _ = decoder().decode(&record);
            }
        }
    }

    #[test]
    fn a_corrupted_page_decodes_without_panic(at in 0usize..4096, byte: u8) {
        let mut page = PAGES[1][..4096].to_vec();
        page[at] = byte;
        if let Ok(page) = Page::new(&page, &format()) {
            let events: Vec<_> = page.flatten().filter_map(|record| decoder().decode(&record)).collect();
            compute_requests(events);
        }
    }
}
