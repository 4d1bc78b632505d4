//! Divides a consistency point into steps: the writes of one tetris of one group.

use std::collections::BTreeMap;

use super::{
    setup::StorageSetup,
    trace::{Chain, PointTrace},
};
use crate::CpuEvents;

/// A part of a consistency point's work: processors, reads, parity, writes, in this order.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// Processor time before the reads, ns.
    pub before: u64,
    pub reads: Vec<Chain>,
    /// Processor time between reads and writes, ns: parity.
    pub between: u64,
    pub writes: Vec<Chain>,
}

/// A part of the work before the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScanPart {
    /// A chain to read; none for processor time alone.
    pub chain: Option<Chain>,
    /// Processor time after the read, ns, at most one turn.
    pub time: u64,
    /// Operations that arrive during this part wait.
    pub excludes: bool,
    /// Waiting operations start after this part.
    pub releases: bool,
}

/// The work of a consistency point.
#[derive(Clone, Debug)]
pub(super) struct PointWork {
    /// The work before its steps, in order.
    pub scan: Vec<ScanPart>,
    /// The steps of each group, in order.
    pub groups: Vec<Vec<Step>>,
    /// The events of all of its work.
    pub events: CpuEvents,
    /// Operations that write.
    pub writes: u64,
}

/// Divides a point into steps. A chain that extends into the next tetris stays whole: it is one
/// request, of the tetris in which it starts. The processor time is divided by blocks.
pub(super) fn cut(point: &PointTrace, setup: &StorageSetup) -> PointWork {
    let group_of: Vec<usize> =
        setup.groups.iter().enumerate().flat_map(|(group, drives)| (0..drives.count).map(move |_| group)).collect();
    let mut steps: Vec<BTreeMap<u64, Step>> = vec![BTreeMap::new(); setup.groups.len()];
    for (chains, write) in [(&point.reads, false), (&point.writes, true)] {
        for chain in chains {
            let tetris = chain.block / u64::from(setup.step_blocks);
            let step = steps[group_of[chain.drive as usize]].entry(tetris).or_default();
            if write { step.writes.push(*chain) } else { step.reads.push(*chain) }
        }
    }
    let issued = CpuEvents { chain_issue: (point.reads.len() + point.writes.len()) as u64, ..CpuEvents::default() };
    let events = point.events.plus(&issued);
    let (scan, scanned) = cut_scan(point, setup);
    let parity = setup.cpu.cost(&CpuEvents { xor: events.xor, ..CpuEvents::default() });
    let others = setup.cpu.cost(&events) - parity;
    let all = events.plus(&scanned);
    let mut groups: Vec<Vec<Step>> = steps.into_iter().map(|steps| steps.into_values().collect()).collect();
    share(others, groups.iter_mut().flatten(), |step, part| step.before = part);
    share(parity, groups.iter_mut().flatten(), |step, part| step.between = part);
    if groups.iter().all(Vec::is_empty) {
        // Without chains the processor time still needs a step.
        groups[0].push(Step { before: others, between: parity, ..Step::default() });
    }
    let writes = point.operations.iter().filter(|operation| operation.write).count() as u64;
    PointWork { scan, groups, events: all, writes }
}

/// The work of one thread before the steps, and its events including the chains it issues. Every
/// chain gets the same processor time.
fn cut_scan(point: &PointTrace, setup: &StorageSetup) -> (Vec<ScanPart>, CpuEvents) {
    let issued = CpuEvents { chain_issue: point.scanned.len() as u64, ..CpuEvents::default() };
    let mut events = point.scan_events.plus(&issued);
    let (all, parts) = (setup.cpu.cost(&events), point.scanned.len().max(1) as u64);
    let mut scan = Vec::new();
    for part in 0..parts {
        let time = all * (part + 1) / parts - all * part / parts;
        let chains = point.scanned.get(part as usize).copied();
        cut_turns(chains.into_iter().collect(), time, setup.turn.0, &mut scan);
    }
    for part in &point.exclusive {
        let issued = CpuEvents { chain_issue: part.reads.len() as u64, ..CpuEvents::default() };
        let own = part.events.plus(&issued);
        events = events.plus(&own);
        let first = scan.len();
        cut_turns(part.reads.clone(), setup.cpu.cost(&own), setup.turn.0, &mut scan);
        scan[first..].iter_mut().for_each(|part| part.excludes = true);
        if let Some(last) = scan[first..].last_mut() {
            last.releases = true;
        }
    }
    (scan, events)
}

/// Chains in sequence, with processor time in turns from the first chain on.
fn cut_turns(chains: Vec<Chain>, mut left: u64, turn: u64, scan: &mut Vec<ScanPart>) {
    let mut chains = chains.into_iter();
    let mut chain = chains.next();
    while chain.is_some() || left > 0 {
        let time = left.min(turn);
        scan.push(ScanPart { chain, time, ..ScanPart::default() });
        (chain, left) = (chains.next(), left - time);
    }
}

/// Divides a number by blocks; the parts add up to it exactly.
fn share<'a>(all: u64, steps: impl Iterator<Item = &'a mut Step>, set: impl Fn(&mut Step, u64)) {
    let steps: Vec<&mut Step> = steps.collect();
    let blocks =
        |step: &Step| step.reads.iter().chain(&step.writes).map(|chain| u128::from(chain.blocks)).sum::<u128>();
    let total = steps.iter().map(|step| blocks(step)).sum::<u128>().max(1);
    let (mut passed, mut given) = (0, 0);
    for step in steps {
        passed += blocks(step);
        let until = (u128::from(all) * passed / total) as u64;
        set(step, until - given);
        given = until;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        CpuProfile,
        storage::{Drives, Model},
    };

    proptest! {
        #[test]
        fn steps_have_every_chain_and_all_work(
            chains in prop::collection::vec((0u32..6, 0u64..1000, 1u32..100, any::<bool>()), 0..60),
            block_clean in 0u64..500,
            xor in 0u64..500,
        ) {
            let spec = senesce_device::find_preset("hdd-10k").unwrap();
            let group = |count| Drives { count, model: Model::Disk { spec: spec.clone(), spread: None } };
            let setup = StorageSetup::new(vec![group(2), group(4)], 1, CpuProfile::paper20());
            let mut point = PointTrace { events: CpuEvents { block_clean, xor, ..Default::default() }, ..Default::default() };
            point.scan_events.relocation = block_clean / 3;
            for (at, (drive, block, blocks, write)) in chains.into_iter().enumerate() {
                let chain = Chain { drive, block, blocks };
                if write { point.writes.push(chain) } else if at % 3 == 0 { point.scanned.push(chain) } else { point.reads.push(chain) }
            }
            let work = cut(&point, &setup);
            let steps: Vec<&Step> = work.groups.iter().flatten().collect();
            prop_assert!(!steps.is_empty());
            prop_assert_eq!(work.scan.iter().filter_map(|part| part.chain).collect::<Vec<_>>(), point.scanned);
            prop_assert!(work.scan.iter().all(|part| part.time <= setup.turn.0 && !part.excludes));
            let scan: u64 = work.scan.iter().map(|part| part.time).sum();
            let time: u64 = scan + steps.iter().map(|step| step.before + step.between).sum::<u64>();
            prop_assert_eq!(time, setup.cpu.cost(&work.events));
            let parity: u64 = steps.iter().map(|step| step.between).sum();
            prop_assert_eq!(parity, xor * setup.cpu.times.xor);
            for (group, steps) in work.groups.iter().enumerate() {
                for step in steps {
                    let all: Vec<&Chain> = step.reads.iter().chain(&step.writes).collect();
                    prop_assert!(all.iter().all(|chain| (chain.drive >= 2) == (group == 1)));
                    prop_assert!(all.windows(2).all(|pair| pair[0].block / 64 == pair[1].block / 64));
                }
            }
            let mut writes: Vec<Chain> = steps.iter().flat_map(|step| step.writes.clone()).collect();
            let key = |chain: &Chain| (chain.drive, chain.block, chain.blocks);
            writes.sort_by_key(key);
            point.writes.sort_by_key(key);
            prop_assert_eq!(writes, point.writes);
        }
    }
}
