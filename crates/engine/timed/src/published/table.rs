//! The table of published experiments, as the design has it (Kesavan et al., "Storage Gardening", FAST 2019).

use super::Part;
use crate::Experiment;

/// A published experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name here.
    pub name: &'static str,
    /// What was done.
    pub setup: &'static str,
    /// What came out there.
    pub paper: &'static str,
    /// What is accepted here.
    pub band: &'static str,
    /// Why a figure is outside, as far as that is known; empty if none is known to be.
    pub cause: &'static str,
}

impl Published {
    /// What of it is code, structure first.
    pub fn parts(&self) -> Vec<Part> {
        let structure = senesce_trials::Experiment::ALL.into_iter().map(Part::Structure);
        let time = Experiment::ALL.into_iter().map(Part::Time);
        structure.chain(time).filter(|part| part.experiment() == self.name).collect()
    }
}

/// All of them, in order.
pub const PUBLISHED: [Published; 14] = [
    Published {
        name: "E1",
        setup: "OLTP, 3,000 operations a second, 22 disks, 8 cores, 62 days (about 39 turnovers at 0.765 fill)",
        paper: "cleaning is slower for the first 35 days, then stable and faster; without it latency rises and chains go to 1",
        band: "chain < 2.5 at the end without, 5 times that with; 3 times fewer parity reads; one crossover",
        cause: "",
    },
    Published {
        name: "E2",
        setup: "flash pool: 12 SSDs before disks",
        paper: "chains of the disks level at about 48",
        band: "35..60",
        cause: "Blocks that are written over here and there leave holes on the disks, which are filled by single blocks later, and nothing \
                joins them unless disks are cleaned, too: then chains stay near 63. How long the published run was is not known; until the \
                seventh turnover ours are above 50 as well, but not level. A model of disks that keeps single blocks apart from what is in \
                order is level at 25 under this load, and at 48 with a fifth of its single blocks.",
    },
    Published {
        name: "E3",
        setup: "12 SSDs of 200 GiB; 100,000 operations a second for 2 h, then 50,000 for 2 h",
        paper: "write chain 2 to about 40; 0.79 to 0.82 ms; less write amplification",
        band: "<= 4 to >= 28; latency +0..10 %; amplification falls",
        cause: "Write chain with cleaning: below quarter a consistency point is a few areas of 12 drives, ends within \
                one, and uses up the stock of empty ones; at quarter it is inside.",
    },
    Published {
        name: "E4",
        setup: "OLTP, 21 SSDs of 1 TiB, 20 cores, 85 % full, aged to a plateau, rising load",
        paper: "write chain 10.9 to 60.6, read chain 2.2 to 3.7; 3.0 to 2.6 ms at the highest load",
        band: "7..16 to >= 50; read chain 1.4 times; cleaning < 1 core",
        cause: "Read chains: cleaning moves the emptiest areas, those of blocks written often, and joins little of what is read in \
                order; with what cleaning itself reads the ratio is near 2. Cores: the table's proportions, which are assumed, \
                make a block that moves cost 33 us; the published ones would want 13. Latency follows from the cores; the \
                table was fitted at small, and at eighth the highest load is not kept up with without cleaning either.",
    },
    Published {
        name: "E5",
        setup: "the same with random overwrites",
        paper: "chain 3 without, never below 12 with cleaning; 10 times the parity reads without; 3 of 20 cores",
        band: "<= 4, >= 8; 5..20 times; 2..4 cores; slower at high load",
        cause: "Parity reads: at small a consistency point is too large a part of the aggregate, and at larger scale than that the \
                ratio rises as areas are written whole. Cores: as in E4.",
    },
    Published {
        name: "E6",
        setup: "reads of 64 KiB in order of randomised files, disks",
        paper: "8 ms, chain 1.8; writing after reads takes 1 to 2.6 GiB/s",
        band: ">= 2 times the throughput, 3 times fewer requests a GiB",
        cause: "",
    },
    Published {
        name: "E7",
        setup: "the same on 21 SSDs",
        paper: "read chain 1.7 to 32",
        band: "<= 2 to >= 28",
        cause: "A garden of 32 areas has too little memory for what is read ahead: a window is cut short there.",
    },
    Published {
        name: "E8",
        setup: "reads and writes in order, pre-aged SSDs, writing after reads on",
        paper: "1.7 to 2.5 ms, 2 to 1.7 GiB/s, 1.6 more cores",
        band: "the same signs, +-40 %",
        cause: "Cores: by the table 18 of 20 are busy without it already, so what it takes shows in fewer operations and not in more \
                cores; a GiB takes more processor time than without.",
    },
    Published {
        name: "E9",
        setup: "2.2 TiB that compress well",
        paper: "511 GiB, 77 % saved, 4.8 chunks a block",
        band: "72..82 %, 4.3..5.3",
        cause: "Chunks: two blocks of a group that become one chunk save 1 - 1 / (2 c) with c chunks a block, so 77 % are 2.2 chunks, and 4.8 save \
                90 %. Both figures together are those of blocks with a chunk each, which the garden does not compress one by one.",
    },
    Published {
        name: "E10",
        setup: "overwrites until 27 % are saved, reads of 80 MB/s, then recompaction",
        paper: "3.78 GiB a minute; 0.63 to 2.07 ms; 1.25 more cores",
        band: "the same direction",
        cause: "",
    },
    Published {
        name: "E11",
        setup: "cold blocks in objects, at list prices",
        paper: "breaks even within a month",
        band: "the decision is the formula's; the ledger is never negative over 30 days",
        cause: "Cash: requests are paid when they are made and storage is saved day by day, so cash is below zero until a month is over, whoever \
                decides; only a ledger that books a month at once is never below zero.",
    },
    Published {
        name: "E12",
        setup: "a sweep of fullness",
        paper: "about 40 % of systems that are 75 % full or more have chains below 11",
        band: "chains fall with fullness",
        cause: "",
    },
    Published {
        name: "E13",
        setup: "a load of days and nights",
        paper: "most fragmented systems have idle processors",
        band: "gardening fits the idle periods, p99 of clients + < 5 %",
        cause: "",
    },
    Published {
        name: "E14",
        setup: "secondary volumes: large overwrites, snapshots in turn",
        paper: "they fragment slowly",
        band: "clearly longer chains than E1",
        cause: "",
    },
];
