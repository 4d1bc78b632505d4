//! Collected traces equal the requests of drives; simulated requests equal the collected ones.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Nanos};
use senesce_garden::Trailer;
use senesce_sim::{
    CpuProfile,
    storage::{Chain, Operation, SimEvent, compute_storage, compute_storage_observed},
};
use senesce_timed::{Entry, IoTrace, TimedTrial, TracingDrive, Window, compute_operation, published_machines};
use senesce_trials::{CleaningPolicy, LoadKind, Request, Rig, Scale, Setup, Way};

const TINY: Scale = Scale { areas: 32, areas_per_point: 2, turnover_percent: 100 };
const FILE: u64 = 18;

fn setup() -> Setup {
    Setup { data_drives: 6, area_stripes: 16, fill: 765, ..Setup::published(TINY) }
}

fn data(block: u64) -> Option<Trailer> {
    Some(Trailer { of_volume: true, level: 0, file: FILE, block })
}

fn pointer(block: u64) -> Option<Trailer> {
    Some(Trailer { of_volume: true, level: 1, file: FILE, block })
}

fn map(block: u64) -> Option<Trailer> {
    Some(Trailer { of_volume: false, level: 0, file: 33, block })
}

fn other(block: u64) -> Option<Trailer> {
    Some(Trailer { of_volume: true, level: 0, file: 99, block })
}

/// Chains are identified by their first block.
fn read(at: u64, trailers: &[Option<Trailer>]) -> Entry {
    Entry::Read(Chain { drive: 0, block: at, blocks: trailers.len() as u32 }, trailers.to_vec())
}

#[test]
fn requests_are_classified_by_trailers() {
    struct Case {
        name: &'static str,
        entries: Vec<Entry>,
        /// Cache hits; first blocks of pointers, reads, lookups, redirected.
        want: (u32, [&'static [u64]; 4]),
    }
    let cases = [
        Case { name: "all in the cache", entries: vec![], want: (4, [&[], &[], &[], &[]]) },
        Case {
            name: "pointers first",
            entries: vec![read(1, &[pointer(0)]), read(2, &[data(10), data(11)]), read(3, &[data(12)])],
            want: (1, [&[1], &[2, 3], &[], &[]]),
        },
        Case {
            name: "read ahead",
            entries: vec![read(2, &[data(12), data(13), data(14), data(15)])],
            want: (2, [&[], &[2], &[], &[]]),
        },
        Case {
            name: "a stale pointer within a chain, the map in the cache",
            entries: vec![read(2, &[data(10), other(3), data(12)]), read(4, &[data(13)]), read(9, &[data(11)])],
            want: (0, [&[], &[2, 4], &[], &[9]]),
        },
        Case {
            name: "blocks that moved together, and the map read",
            entries: vec![
                read(2, &[other(3), other(4)]),
                read(4, &[data(12)]),
                read(5, &[map(1)]),
                read(6, &[map(0)]),
                read(9, &[data(10), data(11)]),
            ],
            want: (1, [&[], &[2, 4], &[5, 6], &[9]]),
        },
        Case {
            name: "a stale pointer alone, and the map read",
            entries: vec![read(2, &[other(3)]), read(5, &[map(1)]), read(6, &[map(0)]), read(9, &[data(11)])],
            want: (3, [&[], &[2], &[5, 6], &[9]]),
        },
        Case {
            name: "a place that holds another block of the same request is taken for that",
            entries: vec![read(2, &[data(10), data(13)]), read(9, &[data(11)])],
            want: (1, [&[], &[2, 9], &[], &[]]),
        },
        Case {
            name: "a place that was never written",
            entries: vec![read(2, &[None]), read(9, &[data(11)])],
            want: (3, [&[], &[2], &[], &[9]]),
        },
    ];
    for Case { name, entries, want } in cases {
        let request = Request { at: Nanos(0), is_read: true, way: Way::Sequential, blocks: 10..14 };
        let got = compute_operation(&request, FILE, &(8..16), entries);
        let firsts = |chains: &[Chain]| chains.iter().map(|chain| chain.block).collect::<Vec<_>>();
        let Operation { pointers, reads, lookups, redirected, .. } = &got;
        let kinds = [pointers, reads, lookups, redirected].map(|chains| firsts(chains));
        assert_eq!((got.cache_hits, kinds), (want.0, want.1.map(<[u64]>::to_vec)), "{name}");
        assert!(!got.write && got.blocks == 4, "{name}");
    }
    let request = Request { at: Nanos(0), is_read: false, way: Way::Random, blocks: 10..11 };
    let got = compute_operation(&request, FILE, &(10..11), vec![read(1, &[pointer(0)])]);
    assert_eq!((got.write, got.cache_hits, got.pointers.len(), got.reads.len()), (true, 0, 1, 0));
}

#[test]
fn tapes_align_stripes_and_keep_write_history() {
    let tape = IoTrace::new(64, true);
    let drive = TracingDrive::new(MemoryDevice::new("drive", Bytes(100 * Rig::SLOT_BYTES)), 7, tape.clone());
    let slots = |count: u64| vec![0; (count * Rig::SLOT_BYTES) as usize];
    drive.write_at(0, &slots(1)).unwrap();
    tape.set_recording(true);
    drive.write_at(2 * Rig::SLOT_BYTES, &slots(1)).unwrap(); // the second label, which simulated drives do not have
    drive.write_at(4 * Rig::SLOT_BYTES, &slots(64)).unwrap();
    drive.read_at(5 * Rig::SLOT_BYTES, &mut slots(2)).unwrap();
    tape.set_recording(false);
    drive.write_at(3 * Rig::SLOT_BYTES, &slots(1)).unwrap();
    let chain = |block, blocks| Chain { drive: 7, block, blocks };
    assert_eq!(tape.take(), [Entry::Write(chain(64, 64)), Entry::Read(chain(65, 2), vec![None, None])]);
    assert_eq!(tape.history(), [chain(61, 1), chain(64, 64), chain(63, 1)]);
    assert_eq!(tape.take(), []);
    let name: Arc<dyn BlockDevice> = Arc::new(drive);
    assert_eq!((name.name(), name.size()), ("drive", Bytes(100 * Rig::SLOT_BYTES)));
}

fn collect(cleaning: CleaningPolicy) -> (Setup, Window, Vec<senesce_garden::DriveCounts>) {
    let mut trial = TimedTrial::new(setup(), LoadKind::Oltp { units: 1 }, true).unwrap();
    trial.set_cleaning(cleaning);
    trial.age(1500).unwrap();
    let counts = |trial: &mut TimedTrial| {
        let drives = trial.trial().rig().garden().report().drives;
        drives.into_iter().map(|drive| drive.counts).collect::<Vec<_>>()
    };
    let before = counts(&mut trial);
    let window = trial.collect(5).unwrap();
    let since = counts(&mut trial).iter().zip(before).map(|(now, before)| now.since(before)).collect();
    (setup(), window, since)
}

#[test]
fn a_window_has_every_counted_request() {
    for cleaning in [CleaningPolicy::Off, CleaningPolicy::Default] {
        let (setup, window, counts) = collect(cleaning);
        assert_eq!(window.trace.points.len(), 5);
        for (number, counts) in counts.iter().enumerate() {
            let of = |chain: &&Chain| chain.drive as usize == number;
            // Superblocks are not counted; they are before the first stripe.
            let stripes = |chain: &&Chain| chain.block >= u64::from(setup.area_stripes);
            let points = &window.trace.points;
            let writes = points.iter().flat_map(|point| &point.writes).filter(of).filter(stripes);
            let (requests, blocks) = writes.fold((0, 0), |(n, sum), chain| (n + 1, sum + u64::from(chain.blocks)));
            assert_eq!((counts.writes.requests, counts.writes.blocks), (requests, blocks), "drive {number}");
            let clients = points.iter().flat_map(|point| &point.operations).flat_map(Operation::chains);
            let all = clients.chain(points.iter().flat_map(|point| &point.reads)).filter(of);
            let (requests, blocks) = all.fold((0, 0), |(n, sum), chain| (n + 1, sum + u64::from(chain.blocks)));
            let kinds = [counts.reads, counts.parity_reads, counts.cleaning_reads];
            let told = kinds.iter().fold((0, 0), |(n, sum), of| (n + of.requests, sum + of.blocks));
            assert_eq!(told, (requests, blocks), "drive {number}");
        }
        let counted = &window.counted;
        assert_eq!(window.operations(), counted.client_reads + counted.client_writes);
        let operations = || window.trace.points.iter().flat_map(|point| &point.operations);
        let written: u64 = operations().filter(|one| one.write).map(|one| u64::from(one.blocks)).sum();
        assert_eq!(written, counted.client_blocks);
        let of = |chains: &[Chain]| chains.iter().map(|chain| u64::from(chain.blocks)).sum::<u64>();
        let redirected: u64 = operations().map(|one| of(&one.redirected)).sum();
        match cleaning {
            CleaningPolicy::Off => assert_eq!((redirected, counted.redirects), (0, 0)),
            // Redirections during a consistency point do not belong to operations.
            _ => assert!(redirected > 0 && redirected <= counted.redirects, "{redirected} of {}", counted.redirects),
        }
        let moved: u64 = window.trace.points.iter().map(|point| point.events.relocation).sum();
        assert_eq!(moved > 0, cleaning != CleaningPolicy::Off);
        assert_eq!(window.cleaning_events().relocation, moved);
    }
}

#[test]
fn simulated_requests_equal_the_collected_ones() {
    let (setup, window, _) = collect(CleaningPolicy::Default);
    let (again, other, _) = collect(CleaningPolicy::Default);
    assert_eq!((&setup, &window.trace), (&again, &other.trace));
    for system in [
        published_machines::flash(&setup, CpuProfile::measured()),
        published_machines::disks(&setup, published_machines::DISK_CORES, CpuProfile::measured()),
    ] {
        let (system, count) = (system.unwrap(), window.operations());
        let load =
            senesce_sim::storage::StorageLoad { warm_up: 0, operations: count, ..published_machines::open(200, count) };
        let (mut came, mut answered, mut requests) = (0, 0, 0);
        let mut look = |_, happening| match happening {
            SimEvent::Arrived(_) => came += 1,
            SimEvent::Answered(_) => answered += 1,
            SimEvent::Request { blocks, .. } if blocks > 0 => requests += 1,
            _ => {}
        };
        let figures = compute_storage_observed(&system, &window.trace, &load, &mut look).unwrap();
        assert_eq!((answered, figures.latency.count), (count, count));
        // Some operations arrived and wait when the last of these is answered.
        assert!(came >= count && came - count < 50, "{came} of {count}");
        let points = &window.trace.points;
        let reads: usize = points.iter().flat_map(|point| &point.operations).map(|one| one.chains().count()).sum();
        let all = reads + points.iter().map(|point| point.reads.len() + point.writes.len()).sum::<usize>();
        // All requests of operations and of completed points, and no others.
        let least = reads
            + points[..points.len() - 1].iter().map(|point| point.reads.len() + point.writes.len()).sum::<usize>();
        assert!((least..=all + 50).contains(&requests), "{requests} of {least} to {all}");
        assert_eq!(figures, compute_storage(&system, &window.trace, &load).unwrap());
    }
}

#[test]
fn sequential_files_need_fewer_read_requests() {
    let mut trial = TimedTrial::new(setup(), LoadKind::Random, false).unwrap();
    let in_order = trial.collect_reads(4, 16, 100).unwrap();
    trial.age(2000).unwrap();
    let at_random = trial.collect_reads(4, 16, 100).unwrap();
    assert_eq!((in_order.operations(), at_random.operations()), (100, 100));
    let requests = |window: &Window| window.counted.reads.requests;
    assert!(requests(&at_random) > 3 * requests(&in_order), "{:?} {:?}", at_random.counted, in_order.counted);
    let system = published_machines::disks(&setup(), published_machines::DISK_CORES, CpuProfile::measured()).unwrap();
    let rate = |window: &Window| {
        compute_storage(&system, &window.trace, &published_machines::closed(4, 100)).unwrap().per_second
    };
    assert!(rate(&in_order) > rate(&at_random));
}
