//! The OLTP load agrees with its table of streams.

use senesce_core::Seed;
use senesce_trials::{Oltp, Request, Way};

const BLOCKS: u64 = 400_000;

fn requests(units: u64, seed: u64, count: usize) -> Vec<Request> {
    let mut load = Oltp::new(BLOCKS, units, Seed(seed));
    (0..count).map(|_| load.next_request()).collect()
}

/// The share of these operations, in percent.
fn share(requests: &[Request], is_read: bool, way: Way) -> f64 {
    let of = requests.iter().filter(|request| request.is_read == is_read && request.way == way).count();
    100.0 * of as f64 / requests.len() as f64
}

#[test]
fn shares_of_operations_match_the_table() {
    for units in [1, 7] {
        let all = requests(units, 1, 200_000);
        // The standard error of each is 0.11 at most.
        for (is_read, way, percent) in [
            (true, Way::Random, 28.9),
            (true, Way::Sequential, 10.5),
            (false, Way::Random, 32.5),
            (false, Way::Sequential, 28.1),
        ] {
            let ours = share(&all, is_read, way);
            assert!((ours - percent).abs() < 0.4, "{way:?}, read {is_read}: {ours}, not {percent}");
        }
    }
}

#[test]
fn arrivals_are_poisson_with_the_units_rate() {
    for units in [1, 20] {
        let all = requests(units, 2, 100_000);
        let rate = all.len() as f64 * 1e9 / all.last().unwrap().at.0 as f64;
        assert!((rate / (50 * units) as f64 - 1.0).abs() < 0.015, "{rate} a second of {units} units");
        // In a Poisson process the variance of counts over equal times is their mean.
        let second = 1_000_000_000 / units;
        let seconds = all.last().unwrap().at.0 / second;
        let mut counts = vec![0_f64; seconds as usize];
        for request in &all {
            if let Some(count) = counts.get_mut((request.at.0 / second) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / seconds as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / seconds as f64;
        // 2,000 counts: the standard error of the ratio is 3.2 %.
        assert!((variance / mean - 1.0).abs() < 0.12, "variance {variance}, mean {mean}");
    }
}

#[test]
fn blocks_are_within_their_parts() {
    let all = requests(3, 3, 200_000);
    let part = |percent: u64| BLOCKS * percent / 100;
    assert!(all.iter().all(|request| !request.blocks.is_empty() && request.blocks.end <= BLOCKS));
    let sequential = |is_read| {
        let of = move |request: &&Request| request.is_read == is_read && request.way == Way::Sequential;
        all.iter().filter(of)
    };
    // Streams 1-3 and 2-3 read from 20 % of their parts on, 3-1 writes the last part.
    for request in sequential(true) {
        let from = if request.blocks.start < part(45) { part(45) / 5 } else { part(45) + part(45) / 5 };
        assert!(request.blocks.start >= from && request.blocks.end <= from + part(45) / 2, "{request:?}");
    }
    assert!(sequential(false).all(|request| request.blocks.start >= part(90)));
    // Random writes are mostly in the three walks of 5 % of a part; all others are uniform.
    let in_walks = |block: u64| {
        [(15, 0), (70, 0), (47, 45)].iter().any(|&(from, base)| {
            let start = part(base) + part(45) * from / 100;
            (start..start + part(45) / 20 + 1).contains(&block)
        })
    };
    let random: Vec<&Request> = all.iter().filter(|request| request.way == Way::Random).collect();
    let walked = random.iter().filter(|request| in_walks(request.blocks.start)).count() as f64 / random.len() as f64;
    // (281 + 210 + 70) of 614, and the part of the uniform rest that is in the walks by chance.
    let expected = (561.0 + 35.0 * 0.10 + 18.0 * 0.05) / 614.0;
    assert!((walked - expected).abs() < 0.005, "{walked}, not {expected}");
    assert!(
        random.iter().all(|request| request.blocks.end - request.blocks.start == 1 && request.blocks.end <= part(90))
    );
}

#[test]
fn sequential_streams_are_contiguous() {
    let all = requests(1, 4, 100_000);
    let writes: Vec<&Request> =
        all.iter().filter(|request| !request.is_read && request.way == Way::Sequential).collect();
    let breaks = writes.windows(2).filter(|pair| pair[0].blocks.end != pair[1].blocks.start).count() as u64;
    let blocks: u64 = writes.iter().map(|request| request.blocks.end - request.blocks.start).sum();
    // Each run has 30 % of the last part, 12,000 blocks.
    assert_eq!(breaks, (blocks - 1) / 12_000, "{blocks} blocks");
}

#[test]
fn the_sequence_is_pinned() {
    let told: Vec<String> = requests(2, 5, 12)
        .iter()
        .map(|request| {
            let kind = if request.is_read { 'r' } else { 'w' };
            let way = if request.way == Way::Random { "" } else { "s" };
            let count = request.blocks.end - request.blocks.start;
            format!("{}us {kind}{way} {}+{count}", request.at.0 / 1000, request.blocks.start)
        })
        .collect();
    assert_eq!(told, GOLDEN);
}
const GOLDEN: [&str; 12] = [
    "1179us r 27856+1",
    "12405us r 126192+1",
    "34699us w 28281+1",
    "50495us r 54512+1",
    "51503us w 265503+1",
    "62555us ws 360100+4",
    "81597us rs 78562+16",
    "82109us w 28028+1",
    "89585us w 28415+1",
    "102819us r 28480+1",
    "110630us rs 53763+2",
    "119405us w 28220+1",
];
