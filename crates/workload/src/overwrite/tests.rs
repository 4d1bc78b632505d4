//! The overwriting workloads against their definitions. Seeds are fixed; one seed in 10,000 exceeds
//! the limits.

use senesce_core::{Bytes, Rng, Seed};
use senesce_oplog::{Op, Outcome};

use super::{
    oltp::Oltp,
    request::{BLOCK_BYTES, Request},
    walk::Walk,
    *,
};
use crate::{
    Workload, WorkloadError,
    measured_volume::{Meter, chi_square, chi_square_limit, length},
};

fn small(pattern: Pattern) -> OverwriteOptions {
    OverwriteOptions { seed: Seed(1), pattern, space: Space::Bytes(64 * Bytes::MIB), operations: 2_000, rounds: 5 }
}

const RANDOM: Pattern = Pattern::Random { request_bytes: 8192, files: 4, read_percent: 25 };
const STREAMS: Pattern = Pattern::Streams { request_bytes: 65_536, streams: 4, read_percent: 50 };

/// Whether `count` of `draws` fits a probability, within a limit that one in 10,000 draws exceeds.
fn is_share(count: u64, draws: u64, probability: f64) -> bool {
    let (n, p) = (draws as f64, probability);
    (count as f64 - n * p).abs() < 3.89 * (n * p * (1.0 - p)).sqrt()
}

fn oltp_requests(count: usize) -> Vec<(usize, Request)> {
    let mut rng = Rng::for_purpose(Seed(11), "t");
    let mut oltp = Oltp::new([450_000, 450_000, 100_000]);
    (0..count)
        .map(|_| {
            let request = oltp.next(&mut rng);
            (oltp.last_stream, request)
        })
        .collect()
}

#[test]
fn oltp_request_kinds_have_published_shares() {
    let requests = oltp_requests(200_000);
    let count = |sequential: bool, reads: bool| {
        let of_kind =
            |(stream, request): &&(usize, Request)| [2, 6, 7].contains(stream) == sequential && request.reads == reads;
        requests.iter().filter(of_kind).count() as u64
    };
    for (sequential, reads, share) in
        [(false, true, 0.2894), (true, true, 0.105), (false, false, 0.3246), (true, false, 0.281)]
    {
        let found = count(sequential, reads);
        assert!(is_share(found, 200_000, share), "sequential {sequential}, reads {reads}: {found}");
    }
}

#[test]
fn oltp_streams_keep_share_file_and_region() {
    let requests = oltp_requests(200_000);
    let shares = [0.035, 0.281, 0.070, 0.210, 0.018, 0.070, 0.035, 0.281];
    let files = [0, 0, 0, 0, 1, 1, 1, 2];
    // The region of each stream, in hundredths of its file.
    let regions = [(0, 100), (15, 20), (20, 70), (70, 75), (0, 100), (47, 52), (20, 70), (0, 100)];
    let blocks = [450_000, 450_000, 100_000];
    for stream in 0..8 {
        let of_stream: Vec<Request> = requests.iter().filter(|(s, _)| *s == stream).map(|(_, r)| *r).collect();
        assert!(is_share(of_stream.len() as u64, 200_000, shares[stream]), "stream {stream}: {}", of_stream.len());
        let (from, to) =
            (regions[stream].0 * blocks[files[stream]] / 100, regions[stream].1 * blocks[files[stream]] / 100);
        for request in of_stream {
            assert_eq!(request.file, files[stream]);
            assert!(request.block >= from && request.block + request.blocks <= to, "stream {stream}: {request:?}");
        }
    }
}

#[test]
fn sequential_oltp_streams_continue_with_published_sizes() {
    let requests = oltp_requests(400_000);
    let mut sizes = [0u64; 5];
    let mut total = 0;
    for stream in [2, 6, 7] {
        let of_stream: Vec<Request> = requests.iter().filter(|(s, _)| *s == stream).map(|(_, r)| *r).collect();
        let goes_on = of_stream.windows(2).filter(|pair| pair[0].block + pair[0].blocks == pair[1].block).count();
        assert!(of_stream.len() - goes_on < 20, "stream {stream} restarts {} times", of_stream.len() - goes_on);
        for request in of_stream.iter().filter(|request| request.blocks.is_power_of_two()) {
            sizes[request.blocks.trailing_zeros() as usize] += 1;
            total += 1;
        }
    }
    for (at, weight) in [10.0, 6.0, 5.0, 2.0, 2.0].into_iter().enumerate() {
        assert!(is_share(sizes[at], total, weight / 25.0), "{sizes:?}");
    }
}

#[test]
fn a_walk_doubles_its_reach_as_defined() {
    // 2^16 leaves. The next leaf is within the aligned 64 leaves around the current one if the
    // reach was not doubled. Each doubling halves that probability: 0.56 * (1 + 0.22 + 0.22^2 + …)
    // up to ten doublings.
    let mut rng = Rng::for_purpose(Seed(12), "t");
    let mut walk = Walk::new(0, 8 << 16);
    let (mut near, mut last) = (0, walk.next(true, &mut rng) / 8);
    for _ in 0..100_000 {
        let leaf = walk.next(true, &mut rng) / 8;
        near += u64::from(leaf / 64 == last / 64);
        last = leaf;
    }
    let mut want = 0.0;
    for doublings in 0..=10 {
        let reach = 0.44f64.powi(doublings) * if doublings < 10 { 0.56 } else { 1.0 };
        want += reach / 2f64.powi(doublings);
    }
    assert!(is_share(near, 100_000, want), "{near} of 100,000 against {want}");
}

#[test]
fn leaf_reads_advance_and_some_writes_repeat() {
    let mut rng = Rng::for_purpose(Seed(13), "t");
    let mut one = Walk::new(100, 8);
    let reads: Vec<u64> = (0..10).map(|_| one.next(true, &mut rng)).collect();
    assert_eq!(reads, [100, 101, 102, 103, 104, 105, 106, 107, 100, 101]);
    let mut walk = Walk::new(0, 8 << 14);
    let writes: Vec<u64> = (0..100_000).map(|_| walk.next(false, &mut rng)).collect();
    assert!(writes.iter().all(|block| (block / 8).is_multiple_of(8)), "writes go to every eighth leaf");
    // Of 100 new writes 15 are repeated, so 15 of 115 writes are repetitions. A new write may also
    // hit the same block by chance, within the 8 leaves of the smallest reach. The upper bound
    // allows for that.
    let repeated = writes.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64 / 1e5;
    assert!((0.128..0.19).contains(&repeated), "{repeated}");
}

#[test]
fn random_requests_are_uniform_with_their_read_share() {
    let (mut work, mut meter) = (Overwrite::new(small(RANDOM)).unwrap(), Meter::new(Bytes::GIB));
    let (mut places, mut reads, mut total) = (vec![0u64; 4 * 16], 0, 0);
    for step in meter.run(&mut work) {
        for op in step.ops.iter() {
            let (path, offset, len) = match op {
                Op::Read { path, offset, len } => (path, *offset, *len),
                Op::Write { path, offset, content } => (path, *offset, length(content)),
                _ => continue,
            };
            assert_eq!((len, offset % 8192), (8192, 0));
            let file = usize::from(path.to_string().as_bytes()[5] - b'1');
            places[file * 16 + (offset / Bytes::MIB) as usize] += 1;
            reads += u64::from(matches!(op, Op::Read { .. }));
            total += 1;
        }
    }
    assert_eq!(total, 5 * 2_000);
    assert!(chi_square(&places) < chi_square_limit(63), "{places:?}");
    assert!(is_share(reads, total, 0.25), "{reads}");
    assert!(meter.files.values().all(|size| *size == 16 * Bytes::MIB), "nothing grows");
}

#[test]
fn streams_alternate_and_wrap_around() {
    let (mut work, mut meter) = (Overwrite::new(small(STREAMS)).unwrap(), Meter::new(Bytes::GIB));
    let mut next = [0u64; 4];
    let mut turn = 0;
    for op in meter.run(&mut work).iter().flat_map(|step| step.ops.iter()) {
        let (path, offset, reads) = match op {
            Op::Read { path, offset, .. } => (path, *offset, true),
            Op::Write { path, offset, .. } => (path, *offset, false),
            _ => continue,
        };
        assert_eq!(path.to_string(), format!("data-{}", turn + 1));
        assert_eq!((offset, reads), (next[turn], turn < 2));
        next[turn] = (offset + 65_536) % (16 * Bytes::MIB);
        turn = (turn + 1) % 4;
    }
}

#[test]
fn files_can_fill_a_share_of_the_volume() {
    let options = OverwriteOptions { space: Space::FillPercent(80), ..small(Pattern::Oltp) };
    let (mut work, mut meter) = (Overwrite::new(options).unwrap(), Meter::new(Bytes::GIB));
    meter.run(&mut work);
    assert!((0.79..0.801).contains(&meter.used_share()), "{}", meter.used_share());
    let sizes: Vec<u64> = meter.files.values().copied().collect();
    assert_eq!((sizes[0], sizes[0] * 10 / sizes[2]), (sizes[1], 45));
}

#[test]
fn rounds_are_counted_and_depend_on_the_seed() {
    for pattern in [Pattern::Oltp, RANDOM, STREAMS] {
        let steps = || Meter::new(Bytes::GIB).run(&mut Overwrite::new(small(pattern)).unwrap());
        let first = steps();
        assert_eq!(first.iter().filter(|step| step.counted).count(), 5);
        assert!(first.iter().filter(|step| step.counted).all(|step| step.ops.len() == 2_001));
        assert_eq!(first, steps());
    }
}

#[test]
fn a_failed_overwrite_is_repeated() {
    let (mut work, mut meter) = (Overwrite::new(small(RANDOM)).unwrap(), Meter::new(Bytes::GIB));
    let (mut refused, mut counted) = (0, 0);
    while let Some(step) = meter.step(&mut work).unwrap() {
        refused += u64::from(meter.last() != Outcome::Done);
        counted += u64::from(step.counted);
        if step.counted && refused < 3 {
            meter.refuse_after = Some(100);
        }
    }
    assert!(refused >= 2 && counted == 5, "{refused} {counted}");
}

#[test]
fn invalid_or_oversized_options_are_refused() {
    for pattern in [
        Pattern::Random { request_bytes: 1000, files: 1, read_percent: 0 },
        Pattern::Random { request_bytes: BLOCK_BYTES, files: 0, read_percent: 0 },
        Pattern::Streams { request_bytes: BLOCK_BYTES, streams: 1, read_percent: 101 },
    ] {
        assert!(Overwrite::new(small(pattern)).is_err(), "{pattern:?}");
    }
    assert!(Overwrite::new(OverwriteOptions { operations: 0, ..small(RANDOM) }).is_err());
    assert!(Overwrite::new(OverwriteOptions { space: Space::FillPercent(100), ..small(RANDOM) }).is_err());
    let tiny = OverwriteOptions { space: Space::Bytes(4096), ..small(Pattern::Oltp) };
    let error = Overwrite::new(tiny).unwrap().next_step(&Meter::new(Bytes::GIB).feedback()).unwrap_err();
    assert!(matches!(error, WorkloadError::VolumeTooSmall { .. }), "{error}");
}
