//! Costs of sequences of requests: the closed loop, the accounts, and the cost of extents.

use senesce_core::{BlockOp, BlockRequest, Bytes, Extent, Nanos, Rng, Seed};
use senesce_device::{
    BandwidthPoint, ColdRead, DeviceCost, DeviceModel, QueuePolicy, ReadExperiment, Readahead, compute_cold_reads,
    compute_cost, compute_effective_bandwidth, compute_natural_transfer_size, find_preset,
};

/// Serves each request in 10 ns, any number at a time, and records their arrivals.
#[derive(Default)]
struct Fixed {
    arrivals: Vec<u64>,
}

impl DeviceModel for Fixed {
    fn serve(&mut self, _: &BlockRequest, arrival: Nanos) -> Nanos {
        self.arrivals.push(arrival.0);
        Nanos(arrival.0 + 10)
    }

    fn name(&self) -> &str {
        "model: fixed"
    }
}

fn read(issued: u64, sector: u64, sectors: u32) -> BlockRequest {
    BlockRequest { issued: Nanos(issued), op: BlockOp::Read, sector, sectors }
}

fn arrivals(policy: QueuePolicy) -> (Vec<u64>, f64) {
    let requests: Vec<BlockRequest> = [100, 103, 150, 151, 152].map(|issued| read(issued, 0, 8)).to_vec();
    let mut model = Fixed::default();
    let cost = compute_cost(&mut model, &requests, policy);
    (model.arrivals, cost.seconds * 1e9)
}

#[test]
fn requests_arrive_when_they_are_issued() {
    let depth = |depth: u32| depth.try_into().unwrap();
    let check = |policy, want: [u64; 5], seconds: f64| {
        let (got, took) = arrivals(policy);
        assert_eq!(got, want, "{policy:?}");
        assert!((took - seconds).abs() < 1e-3, "{policy:?} {took}");
    };
    check(QueuePolicy::default(), [0, 10, 20, 30, 40], 50.0);
    check(QueuePolicy::BackToBack { depth: depth(2) }, [0, 0, 10, 10, 20], 30.0);
    check(QueuePolicy::BackToBack { depth: depth(9) }, [0, 0, 0, 0, 0], 10.0);
    check(QueuePolicy::Think { depth: depth(1), think: Nanos(5) }, [0, 15, 30, 45, 60], 70.0);
    check(QueuePolicy::Recorded { depth: depth(1) }, [0, 10, 50, 60, 70], 80.0);
    check(QueuePolicy::Recorded { depth: depth(9) }, [0, 3, 50, 51, 52], 62.0);
}

#[test]
fn cost_parts_add_up_bytes_count_by_kind() {
    let mut rng = Rng::for_purpose(Seed(1), "requests");
    let requests: Vec<BlockRequest> = (0..3000)
        .map(|index| {
            let op = [BlockOp::Read, BlockOp::Write, BlockOp::Discard, BlockOp::Flush][rng.weighted(&[6, 3, 1, 1])];
            let sectors = if op == BlockOp::Flush { 0 } else { 8 };
            BlockRequest { issued: Nanos(index), op, sector: rng.below(1 << 24) * 8, sectors }
        })
        .collect();
    let bytes = |op| requests.iter().filter(|request| request.op == op).map(BlockRequest::bytes).sum::<u64>();
    for preset in ["hdd-7200", "hdd-10k", "sata-ssd", "nvme"] {
        let cost = compute_cost(&mut *find_preset(preset).unwrap().build().unwrap(), &requests, QueuePolicy::default());
        let DeviceCost { overhead_seconds, seek_seconds, rotation_seconds, transfer_seconds, .. } = cost;
        let DeviceCost { queue_seconds, write_back_seconds, flash_seconds, collection_seconds, .. } = cost;
        let sum = overhead_seconds + seek_seconds + rotation_seconds + transfer_seconds;
        let sum = sum + queue_seconds + write_back_seconds + flash_seconds + collection_seconds;
        assert!((sum - cost.seconds).abs() < 1e-6, "{cost:?}");
        assert_eq!((cost.requests, cost.totals.requests), (3000, 3000));
        assert_eq!(cost.read_bytes, bytes(BlockOp::Read));
        assert_eq!(cost.written_bytes, bytes(BlockOp::Write));
        assert_eq!(cost.discarded_bytes, bytes(BlockOp::Discard));
    }
}

#[test]
fn second_replay_counts_only_itself() {
    let requests: Vec<BlockRequest> = (0..100).map(|index| read(0, index * 1_000_003, 8)).collect();
    let mut model = find_preset("hdd-10k").unwrap().build().unwrap();
    let first = compute_cost(&mut *model, &requests, QueuePolicy::default());
    let second = compute_cost(&mut *model, &requests, QueuePolicy::default());
    assert_eq!((first.requests, second.requests, second.totals.requests), (100, 100, 100));
    assert!(
        second.seconds < first.seconds && second.totals.buffer_hits == 100,
        "all of it is in the buffer: {second:?}"
    );
}

/// 200 files of 256 KiB in pieces of `piece_kib`, in order or shuffled over 10 GiB.
fn tree(piece_kib: u64, shuffled: bool) -> Vec<ColdRead> {
    let per_file = 256 / piece_kib;
    let mut places: Vec<u64> = (0..200 * per_file).collect();
    if shuffled {
        Rng::for_purpose(Seed(1), "tree").shuffle(&mut places);
    }
    let spread = if shuffled { (10 * Bytes::GIB) / (200 * per_file) } else { piece_kib * Bytes::KIB };
    places
        .chunks(per_file as usize)
        .map(|pieces| ColdRead::File {
            size_bytes: 256 * Bytes::KIB,
            extents: (0..)
                .zip(pieces)
                .map(|(index, place)| Extent {
                    logical: index * piece_kib * Bytes::KIB,
                    physical: place * (spread / 4096 * 4096),
                    length: piece_kib * Bytes::KIB,
                })
                .collect(),
        })
        .collect()
}

#[test]
fn pieces_cost_disk_positionings_but_ssd_little() {
    let seconds = |preset: &str, reads: &[ColdRead]| {
        let requests = compute_cold_reads(reads, &Readahead::default()).unwrap();
        let mut model = find_preset(preset).unwrap().build().unwrap();
        let cost = compute_cost(&mut *model, &requests, QueuePolicy::default());
        assert_eq!(cost.read_bytes, 200 * 256 * Bytes::KIB);
        cost.seconds
    };
    let (whole, pieces) = (tree(256, false), tree(16, true));
    // In order: 50 MiB at 192 MB/s. In 3,200 pieces within a fiftieth of the disk: a positioning of
    // about 6 ms each.
    let (fast, slow) = (seconds("hdd-7200", &whole), seconds("hdd-7200", &pieces));
    assert!((fast / (50.0 * 1.048_576 / 192.0) - 1.0).abs() < 0.05, "{fast}");
    assert!((0.0050..0.0075).contains(&(slow / 3200.0)), "{slow}");
    assert!(slow / fast > 50.0, "{fast} {slow}");
    // With one read at a time, each piece costs the SSD the latency of a page: 96 us.
    let (fast, slow) = (seconds("nvme", &whole), seconds("nvme", &pieces));
    assert!(slow / fast < 7.0 && (90e-6..100e-6).contains(&(slow / 3200.0)), "{fast} {slow}");
}

#[test]
fn finds_transfer_sizes_on_and_between_points() {
    let curve: Vec<BandwidthPoint> = [(1024, 10.0), (2048, 20.0), (4096, 40.0), (8192, 40.0)]
        .map(|(size_bytes, mib_per_second)| BandwidthPoint { size_bytes, mib_per_second })
        .to_vec();
    let nts = |fraction| compute_natural_transfer_size(&curve, fraction);
    assert_eq!(nts(1.0), Ok(4096));
    assert_eq!(nts(0.5), Ok(2048));
    assert_eq!(nts(0.75), Ok(2896)); // half way between 2048 and 4096 in the logarithm
    assert_eq!(nts(0.01), Ok(1024));
    for fraction in [0.0, -1.0, 1.01, f64::NAN] {
        assert!(nts(fraction).is_err());
    }
    assert!(compute_natural_transfer_size(&[], 0.5).is_err());
    assert!(compute_natural_transfer_size(&[curve[1], curve[0]], 0.5).is_err());
    assert!(compute_natural_transfer_size(&[BandwidthPoint { mib_per_second: f64::NAN, ..curve[0] }], 0.5).is_err());
}

#[test]
fn impossible_reads_are_refused() {
    let mut model = Fixed::default();
    let experiment = ReadExperiment { region_bytes: 4096..1 << 20, reads: 10, seed: Seed(1) };
    let mut measure = |size_bytes, experiment: &ReadExperiment| {
        compute_effective_bandwidth(&mut model, size_bytes, experiment).is_ok()
    };
    assert!(measure(4096, &experiment));
    assert!(!measure(0, &experiment) && !measure(1000, &experiment));
    assert!(!measure(1 << 20, &experiment), "the region begins behind the only multiple of 1 MiB in it");
    assert!(!measure(4096, &ReadExperiment { reads: 0, ..experiment.clone() }));
    assert!(!measure(4096, &ReadExperiment { region_bytes: 10..10, ..experiment }));
}
