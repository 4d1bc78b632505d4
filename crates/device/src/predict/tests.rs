//! Predicted requests against hand-computed cases, and properties of all.

use proptest::prelude::*;

use super::*;

const KIB: u64 = 1024;

fn windows(size_kib: u64, read_ahead_kib: u64, read_kib: u64) -> Vec<(u64, u64)> {
    let readahead =
        Readahead { read_ahead_bytes: read_ahead_kib * KIB, read_bytes: read_kib * KIB, ..Readahead::default() };
    compute_windows(size_kib * KIB, &readahead).iter().map(|window| (window.start / KIB, window.end / KIB)).collect()
}

#[test]
fn small_reads_start_small_and_double() {
    // 4 KiB requested, 128 KiB at most: 1 page <= 32/32, so 4 pages; then twice until the maximum.
    let want = [(0, 16), (16, 48), (48, 112), (112, 240), (240, 368), (368, 400)];
    assert_eq!(windows(400, 128, 4), want);
    // 16 KiB requested: 4 pages <= 32/4, so 8.
    assert_eq!(windows(200, 128, 16), [(0, 32), (32, 96), (96, 200)]);
    // 32 KiB requested: 8 pages <= 32/4, so 16. 64 KiB: the maximum.
    assert_eq!(windows(200, 128, 32)[0], (0, 64));
    assert_eq!(windows(200, 128, 64)[0], (0, 128));
    // A large maximum grows by four first: 1 page of 1024: 4 pages, 4 < 64 so 16, 64, then 128,
    // 256, 512, 1024.
    let sizes: Vec<u64> = windows(20_000, 4096, 4).iter().map(|(start, end)| (end - start) / 4).collect();
    assert_eq!(sizes[..8], [4, 16, 64, 128, 256, 512, 1024, 1024]);
}

#[test]
fn reads_of_the_maximum_fetch_it_at_once() {
    assert_eq!(windows(300, 128, 128), [(0, 128), (128, 256), (256, 300)]);
}

#[test]
fn reads_above_maximum_fetch_up_to_a_request() {
    // Calls of 512 KiB, readahead of 128: the first window is 512. The mark in its middle is
    // reached with 256 requested, so the next window is 256. Its mark at 512 is reached with a
    // whole call, so 512; then at 768 and 1280 with 256.
    let want = [(0, 512), (512, 768), (768, 1280), (1280, 1536), (1536, 1600)];
    assert_eq!(windows(1600, 128, 512), want);
    // 4 MiB requested, requests of at most 1280 KiB.
    assert_eq!(windows(4096, 128, 4096)[0], (0, 1280));
}

#[test]
fn without_readahead_every_page_is_a_read() {
    assert_eq!(windows(10, 0, 128), [(0, 4), (4, 8), (8, 12)]);
}

#[test]
fn empty_file_has_no_read_short_one_page() {
    assert_eq!(compute_windows(0, &Readahead::default()), []);
    assert_eq!(windows(1, 128, 128), [(0, 4)]);
}

fn extent(logical: u64, physical: u64, length: u64) -> Extent {
    Extent { logical: logical * KIB, physical: physical * KIB, length: length * KIB }
}

fn requests(reads: &[ColdRead], max_request_kib: u64) -> Vec<(u64, u64)> {
    let readahead = Readahead { max_request_bytes: max_request_kib * KIB, ..Readahead::default() };
    let requests = compute_cold_reads(reads, &readahead).unwrap();
    requests.iter().map(|request| (request.sector / 2, u64::from(request.sectors) / 2)).collect()
}

#[test]
fn requests_end_at_windows_extents_and_size_limit() {
    // 300 KiB: windows of 128, 128 and 44. Extents: 100, 60 that touch it, a hole of 20, 120
    // elsewhere.
    let extents = vec![extent(0, 1000, 100), extent(100, 1100, 60), extent(180, 5000, 120)];
    let file = ColdRead::File { size_bytes: 300 * KIB, extents };
    let want = [(1000, 128), (1128, 32), (5000, 76), (5076, 44)];
    assert_eq!(requests(std::slice::from_ref(&file), 1280), want);
    let want = [(1000, 64), (1064, 64), (1128, 32), (5000, 64), (5064, 12), (5076, 44)];
    assert_eq!(requests(&[file], 64), want);
}

#[test]
fn blocks_after_the_end_are_not_read() {
    let file = ColdRead::File { size_bytes: 5 * KIB, extents: vec![extent(0, 400, 64)] };
    assert_eq!(requests(&[file], 1280), [(400, 8)]);
}

#[test]
fn metadata_is_read_once() {
    let metadata = |physical: u64, length: u64| ColdRead::Metadata { physical: physical * KIB, length: length * KIB };
    let reads = [metadata(40, 4), metadata(32, 16), metadata(42, 1), metadata(100, 0)];
    assert_eq!(requests(&reads, 1280), [(40, 4), (32, 8), (44, 4)]);
}

#[test]
fn impossible_extents_are_refused() {
    for extents in [
        vec![extent(0, 10, 0)],
        vec![extent(0, 10, 8), extent(4, 50, 8)],
        vec![extent(8, 10, 8), extent(0, 50, 8)],
        vec![Extent { logical: 0, physical: u64::MAX - 1, length: 4096 }],
    ] {
        let file = ColdRead::File { size_bytes: 100, extents };
        assert!(compute_cold_reads(&[file], &Readahead::default()).is_err());
    }
    for bad in [
        Readahead { page_bytes: 3000, ..Readahead::default() },
        Readahead { read_bytes: 0, ..Readahead::default() },
        Readahead { max_request_bytes: 1000, ..Readahead::default() },
    ] {
        assert!(compute_cold_reads(&[], &bad).is_err(), "{bad:?}");
    }
}

/// The windows, computed page by page from the rules.
fn windows_page_by_page(size_bytes: u64, readahead: &Readahead) -> Vec<std::ops::Range<u64>> {
    let page = readahead.page_bytes;
    let pages = size_bytes.div_ceil(page);
    if readahead.read_ahead_bytes < page {
        return (0..pages).map(|at| at * page..(at + 1) * page).collect();
    }
    let mut ends = vec![0];
    let (mut size, mut mark, mut call_end) = (0, None, 0);
    for at in 0..pages {
        while call_end <= at {
            let calls = (at * page / readahead.read_bytes) + 1;
            call_end = (calls * readahead.read_bytes).div_ceil(page).max(at + 1);
        }
        let (asked, fetched) = (call_end - at, ends[ends.len() - 1]);
        let (most, request) = (readahead.read_ahead_bytes / page, readahead.max_request_bytes / page);
        let max = if asked > most && request > most { asked.min(request) } else { most };
        if at >= fetched {
            let rounded = asked.next_power_of_two();
            let factor = if rounded <= max / 32 {
                4
            } else if rounded <= max / 4 {
                2
            } else {
                0
            };
            size = if factor > 0 { rounded * factor } else { max };
            let ahead = if size > asked { size - asked } else { size / 2 };
            mark = (ahead > 0).then(|| at + size - ahead);
            ends.push((at + size).min(pages));
        }
        if mark == Some(at) {
            let start = ends[ends.len() - 1];
            size = if size < max / 16 {
                size * 4
            } else if size <= max / 2 {
                size * 2
            } else {
                max
            };
            mark = Some(start);
            ends.push((start + size).min(pages));
        }
    }
    ends.windows(2).filter(|pair| pair[0] < pair[1]).map(|pair| pair[0] * page..pair[1] * page).collect()
}

fn layouts() -> impl Strategy<Value = (u64, Vec<Extent>)> {
    // Pieces of pages: hole before, length, gap on the device before (0 touches), and the bytes
    // that the file's size lacks.
    let pieces = prop::collection::vec((0u64..3, 1u64..90, 0u64..4), 0..12);
    (pieces, 0u64..20_000).prop_map(|(pieces, lacking)| {
        let (mut logical, mut physical, mut extents) = (0, 1 << 20, Vec::new());
        for (hole, length, gap) in pieces {
            logical += hole * 4096;
            physical += gap * 4096;
            extents.push(Extent { logical, physical, length: length * 4096 });
            logical += length * 4096;
            physical += length * 4096;
        }
        (u64::saturating_sub(logical, lacking), extents)
    })
}

proptest! {
    #[test]
    fn every_allocated_byte_is_read_once_in_order(
        (size_bytes, extents) in layouts(),
        read_ahead_pages in 0u64..70,
        read_bytes in prop::sample::select(vec![1000u64, 4096, 5000, 32768, 131_072, 1 << 20]),
        max_request_pages in 1u64..100,
    ) {
        let readahead = Readahead {
            read_ahead_bytes: read_ahead_pages * 4096,
            read_bytes,
            max_request_bytes: max_request_pages * 4096,
            page_bytes: 4096,
        };
        let file = ColdRead::File { size_bytes, extents: extents.clone() };
        let requests = compute_cold_reads(&[file], &readahead).unwrap();
        let end = size_bytes.div_ceil(4096) * 4096;
        // The pages to read, in file order, by their places.
        let wanted: Vec<u64> = extents
            .iter()
            .flat_map(|e| (0..e.length / 4096).map(move |page| (e.logical + page * 4096, e.physical + page * 4096)))
            .filter(|(logical, _)| *logical < end)
            .map(|(_, physical)| physical)
            .collect();
        let got: Vec<u64> = requests
            .iter()
            .flat_map(|r| (0..u64::from(r.sectors) / 8).map(move |page| r.sector * 512 + page * 4096))
            .collect();
        prop_assert_eq!(got, wanted);
        let mut added = Vec::new();
        add_cold_reads(size_bytes, &extents, &readahead, &mut added).unwrap();
        prop_assert_eq!(&added, &requests);
        let runs = compute_runs(&extents, 0).unwrap();
        for request in &requests {
            prop_assert!(request.bytes() <= max_request_pages * 4096 && request.sectors > 0);
            let (start, end) = (request.sector * 512, request.end() * 512);
            prop_assert!(runs.iter().any(|run| run.physical <= start && end <= run.end()), "{:?}", request);
        }
    }

    #[test]
    fn windows_are_the_file_without_gaps(
        size_bytes in 0u64..4_000_000,
        read_ahead_bytes in 0u64..600_000,
        read_bytes in 1u64..600_000,
    ) {
        let readahead = Readahead { read_ahead_bytes, read_bytes, ..Readahead::default() };
        let windows = compute_windows(size_bytes, &readahead);
        let mut at = 0;
        for window in &windows {
            prop_assert_eq!(window.start, at);
            prop_assert!(window.end > at);
            at = window.end;
        }
        prop_assert_eq!(at, size_bytes.div_ceil(4096) * 4096);
        prop_assert_eq!(windows, windows_page_by_page(size_bytes, &readahead));
    }
}
