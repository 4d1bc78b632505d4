//! The events that need a processor, and their times.

use serde::{Deserialize, Serialize};

/// A number for each kind of event: a count, or the nanoseconds of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuEvents {
    /// An operation is received from the client and answered.
    pub front_end: u64,
    /// A block is returned from the cache.
    pub cache_hit: u64,
    /// A block is appended to the log.
    pub log_append: u64,
    /// A dirty block gets its location and its checksum.
    pub block_clean: u64,
    /// A chain is issued to a drive, and its completion is processed.
    pub chain_issue: u64,
    /// A block is added to parity.
    pub xor: u64,
    /// A block that was read is compared with its trailer.
    pub context_check: u64,
    /// The container map is searched.
    pub map_lookup: u64,
    /// A block is chosen for relocation, and its owner is made dirty.
    pub relocation: u64,
    /// A block is compressed.
    pub compression: u64,
    /// A block is decompressed.
    pub decompression: u64,
    /// A stale pointer is corrected.
    pub fix_up: u64,
}

impl CpuEvents {
    /// All kinds with their names, in a fixed order.
    pub fn list(&self) -> [(&'static str, u64); 12] {
        [
            ("front end", self.front_end),
            ("cache hit", self.cache_hit),
            ("log append", self.log_append),
            ("block clean", self.block_clean),
            ("chain issue", self.chain_issue),
            ("xor", self.xor),
            ("context check", self.context_check),
            ("map lookup", self.map_lookup),
            ("relocation", self.relocation),
            ("compression", self.compression),
            ("decompression", self.decompression),
            ("fix-up", self.fix_up),
        ]
    }

    /// The sum of these events and others.
    pub fn plus(&self, other: &CpuEvents) -> CpuEvents {
        CpuEvents {
            front_end: self.front_end + other.front_end,
            cache_hit: self.cache_hit + other.cache_hit,
            log_append: self.log_append + other.log_append,
            block_clean: self.block_clean + other.block_clean,
            chain_issue: self.chain_issue + other.chain_issue,
            xor: self.xor + other.xor,
            context_check: self.context_check + other.context_check,
            map_lookup: self.map_lookup + other.map_lookup,
            relocation: self.relocation + other.relocation,
            compression: self.compression + other.compression,
            decompression: self.decompression + other.decompression,
            fix_up: self.fix_up + other.fix_up,
        }
    }
}

/// The source of the times of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuOrigin {
    /// Round numbers of the right order of magnitude. No figure that depends on them is a result.
    Assumed,
    /// Fitted to one published experiment. That one is then no prediction; every other one is.
    Calibrated,
    /// Measured on a described host.
    Measured,
}

/// The time of each event, ns. Every figure of a run carries the profile's name and origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuProfile {
    /// Its name.
    pub name: String,
    /// Its source.
    pub origin: CpuOrigin,
    /// The time of one event of each kind, ns.
    pub times: CpuEvents,
}

impl CpuProfile {
    /// The table for the 20 cores of the published experiments before any fit. An operation costs a
    /// whole protocol stack, an event with data a copy of 4 KiB, a map look-up some cache misses.
    /// The ratio of decompression to compression is that of [`measured`](Self::measured), 0.35.
    pub fn assumed() -> Self {
        let times = CpuEvents {
            front_end: 60_000,
            cache_hit: 4_000,
            log_append: 5_000,
            block_clean: 12_000,
            chain_issue: 10_000,
            xor: 1_000,
            context_check: 2_000,
            map_lookup: 3_000,
            relocation: 8_000,
            compression: 20_000,
            decompression: 7_000,
            fix_up: 5_000,
        };
        Self { name: "assumed".into(), origin: CpuOrigin::Assumed, times }
    }

    /// The table for the 20 cores of the published experiments: the assumed one times 1.083. It is
    /// a fit of two free numbers, this factor and a load of 175,000 operations a second, to one
    /// published latency: that of experiment E4 without cleaning at its highest load. Command:
    /// `cargo run --release -p senesce-timed --example in_time -- calibrate eighth`. The
    /// proportions are still assumed.
    pub fn paper20() -> Self {
        let times = CpuEvents {
            front_end: 64_980,
            cache_hit: 4_332,
            log_append: 5_415,
            block_clean: 12_996,
            chain_issue: 10_830,
            xor: 1_083,
            context_check: 2_166,
            map_lookup: 3_249,
            relocation: 8_664,
            compression: 21_660,
            decompression: 7_581,
            fix_up: 5_415,
        };
        Self { name: "paper20".into(), origin: CpuOrigin::Calibrated, times }
    }

    /// The garden's own code on one host, in a release build:
    /// `cargo run --release -p senesce-garden --example costs`. docs/results/simulation.md has its
    /// circumstances. Its front end has no protocol, and its drives are in memory.
    pub fn measured() -> Self {
        let times = CpuEvents {
            front_end: 1_230,
            cache_hit: 140,
            log_append: 1_700,
            block_clean: 2_830,
            chain_issue: 1_080,
            xor: 85,
            context_check: 530,
            map_lookup: 240,
            relocation: 360,
            compression: 4_280,
            decompression: 1_490,
            fix_up: 7,
        };
        Self { name: "measured".into(), origin: CpuOrigin::Measured, times }
    }

    /// The total time of `events`, ns.
    pub fn cost(&self, events: &CpuEvents) -> u64 {
        self.times.list().iter().zip(events.list()).map(|((_, time), (_, count))| time * count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_cost_their_table_times() {
        let profile = CpuProfile::assumed();
        let events = CpuEvents { front_end: 2, xor: 20, fix_up: 1, ..CpuEvents::default() };
        assert_eq!(profile.cost(&events), 2 * 60_000 + 20 * 1_000 + 5_000);
        // The list has every field once.
        let sum = events.plus(&profile.times);
        let all: u64 = profile.times.list().iter().map(|(_, time)| time).sum();
        assert_eq!(sum.list().map(|(_, count)| count).iter().sum::<u64>(), 23 + all);
    }
}
