//! The table of published experiments, as the design has it (Kesavan et al., "Storage Gardening", FAST 2019).

use senesce_trials::Scale;

use super::Part;
use crate::Experiment;

/// A published experiment.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its name here.
    pub name: &'static str,
    /// What was done.
    pub setup: &'static str,
    /// What came out there.
    pub paper: &'static str,
    /// What is accepted here.
    pub band: &'static str,
    /// Why figures are outside, as far as that is known.
    pub causes: &'static [Cause],
}

/// Why a figure of ours is outside its band.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// How the figure's name begins.
    pub figure: &'static str,
    /// Whether it explains this value at this scale: one that is too low is no explanation of one that is too high.
    pub explains: fn(f64, Scale) -> bool,
    /// The cause.
    pub told: &'static str,
}

impl Published {
    /// What of it is code, structure first.
    pub fn parts(&self) -> Vec<Part> {
        let structure = senesce_trials::Experiment::ALL.into_iter().map(Part::Structure);
        let time = Experiment::ALL.into_iter().map(Part::Time);
        structure.chain(time).filter(|part| part.experiment() == self.name).collect()
    }

    /// Why a figure with this value is outside at this scale, if that is known.
    pub fn find_cause(&self, figure: &str, ours: f64, scale: Scale) -> Option<&'static str> {
        let explains = |cause: &&Cause| figure.starts_with(cause.figure) && (cause.explains)(ours, scale);
        self.causes.iter().find(explains).map(|cause| cause.told)
    }
}

/// A scale whose consistency points are a larger part of the aggregate than those of full scale are.
fn is_coarse(scale: Scale) -> bool {
    scale.areas < 64 * scale.areas_per_point
}

/// Of E4 and E5.
const CORES_FOR_CLEANING: &str =
    "The table's proportions, which are assumed, make a block that moves cost 33 us; the published ones would want 13.";

/// Of E11, at either price list.
const CASH_BEFORE_A_MONTH: &str = "Requests are paid when they are made and storage is saved day by day, so cash is below zero until a month is \
     over, whoever decides; only a ledger that books a month at once is never below zero.";

/// All of them, in order.
pub const PUBLISHED: [Published; 14] = [
    Published {
        name: "E1",
        setup: "OLTP, 3,000 operations a second, 22 disks, 8 cores, 62 days (about 39 turnovers at 0.765 fill)",
        paper: "cleaning is slower for the first 35 days, then stable and faster; without it latency rises and chains go to 1",
        band: "chain < 2.5 at the end without, 5 times that with; 3 times fewer parity reads; one crossover",
        causes: &[],
    },
    Published {
        name: "E2",
        setup: "flash pool: 12 SSDs before disks",
        paper: "chains of the disks level at about 48",
        band: "35..60",
        causes: &[Cause {
            figure: "write chain of the disks, last turnover",
            explains: |ours, _| ours < 35.0,
            told: "Blocks that are written over here and there leave holes on the disks, which are filled by \
                       single blocks later, and nothing joins them unless disks are cleaned, too: then chains stay \
                       near 63. How long the published run was is not known; until the seventh turnover ours are \
                       above 50 as well, but not level. A model of disks that keeps single blocks apart from what is \
                       in order is level at 25 under this load, and at 48 with a fifth of its single blocks.",
        }],
    },
    Published {
        name: "E3",
        setup: "12 SSDs of 200 GiB; 100,000 operations a second for 2 h, then 50,000 for 2 h",
        paper: "write chain 2 to about 40; 0.79 to 0.82 ms; less write amplification",
        band: "<= 4 to >= 28; latency +0..10 %; amplification falls",
        causes: &[
            Cause {
                figure: "write chain with cleaning",
                explains: |ours, scale| ours < 28.0 && scale.areas_per_point < 8,
                told: "Below quarter a consistency point is a few areas of 12 drives, ends within one, and uses up \
                       the stock of empty ones; at quarter it is inside.",
            },
            Cause {
                figure: "write amplification of flash, with over without",
                explains: |ours, _| ours.is_nan(),
                told: "SSDs of this scale have too few blocks for their dies, so larger ones stand for them, and what \
                       those say of collection means nothing.",
            },
        ],
    },
    Published {
        name: "E4",
        setup: "OLTP, 21 SSDs of 1 TiB, 20 cores, 85 % full, aged to a plateau, rising load",
        paper: "write chain 10.9 to 60.6, read chain 2.2 to 3.7; 3.0 to 2.6 ms at the highest load",
        band: "7..16 to >= 50; read chain 1.4 times; cleaning < 1 core",
        causes: &[
            Cause {
                figure: "read chain with cleaning, times that without",
                explains: |ours, _| ours < 1.4,
                told: "Cleaning moves the emptiest areas, those of blocks written often, and joins little of what is \
                       read in order; with what cleaning itself reads the ratio is near 2.",
            },
            Cause { figure: "cores for cleaning", explains: |ours, _| ours > 1.0, told: CORES_FOR_CLEANING },
            Cause {
                figure: "with cleaning over without, highest load",
                explains: |ours, _| ours.is_nan(),
                told: "Neither keeps up with the highest load: it and the table of processors were set at scale \
                       small.",
            },
            Cause {
                figure: "with cleaning over without, highest load",
                explains: |ours, _| ours > 1.0,
                told: "It follows from the cores that cleaning takes, and those from the table's proportions, which \
                       are assumed.",
            },
        ],
    },
    Published {
        name: "E5",
        setup: "the same with random overwrites",
        paper: "chain 3 without, never below 12 with cleaning; 10 times the parity reads without; 3 of 20 cores",
        band: "<= 4, >= 8; 5..20 times; 2..4 cores; slower at high load",
        causes: &[
            Cause {
                figure: "parity reads without, over those with cleaning",
                explains: |ours, scale| ours < 5.0 && is_coarse(scale),
                told: "A consistency point is too large a part of the aggregate at this scale: its end within an \
                       area, where parity is read, counts more.",
            },
            Cause {
                figure: "parity reads without, over those with cleaning",
                explains: |ours, scale| ours > 20.0 && scale.areas_per_point >= 8,
                told: "With more areas in a consistency point more of what is written with cleaning are whole \
                       stripes, which read no parity.",
            },
            Cause { figure: "cores for cleaning", explains: |ours, _| ours > 4.0, told: CORES_FOR_CLEANING },
        ],
    },
    Published {
        name: "E6",
        setup: "reads of 64 KiB in order of randomised files, disks",
        paper: "8 ms, chain 1.8; writing after reads takes 1 to 2.6 GiB/s",
        band: ">= 2 times the throughput, 3 times fewer requests a GiB",
        causes: &[],
    },
    Published {
        name: "E7",
        setup: "the same on 21 SSDs",
        paper: "read chain 1.7 to 32",
        band: "<= 2 to >= 28",
        causes: &[Cause {
            figure: "read chain after writing after reads",
            explains: |ours, scale| ours < 28.0 && scale.areas <= 32,
            told: "A garden of 32 areas has too little memory for what is read ahead: a window is cut short \
                       there.",
        }],
    },
    Published {
        name: "E8",
        setup: "reads and writes in order, pre-aged SSDs, writing after reads on",
        paper: "1.7 to 2.5 ms, 2 to 1.7 GiB/s, 1.6 more cores",
        band: "the same signs, +-40 %",
        causes: &[Cause {
            figure: "cores more with WAR",
            explains: |ours, _| ours < 0.96,
            told: "By the table 18 of 20 cores are busy without it already, so what it takes shows in fewer \
                       operations and not in more cores; a GiB takes more processor time than without.",
        }],
    },
    Published {
        name: "E9",
        setup: "2.2 TiB that compress well",
        paper: "511 GiB, 77 % saved, 4.8 chunks a block",
        band: "72..82 %, 4.3..5.3",
        causes: &[Cause {
            figure: "chunks a block",
            explains: |ours, _| ours < 4.3,
            told: "Two blocks of a group that become one chunk save 1 - 1 / (2 c) with c chunks a block, so 77 % \
                       are 2.2 chunks, and 4.8 save 90 %. Both published figures together are those of blocks with a \
                       chunk each, which the garden does not compress one by one.",
        }],
    },
    Published {
        name: "E10",
        setup: "overwrites until 27 % are saved, reads of 80 MB/s, then recompaction",
        paper: "3.78 GiB a minute; 0.63 to 2.07 ms; 1.25 more cores",
        band: "the same direction",
        causes: &[],
    },
    Published {
        name: "E11",
        setup: "cold blocks in objects, at list prices",
        paper: "breaks even within a month",
        band: "the decision is the formula's; the ledger is never negative over 30 days",
        causes: &[
            Cause { figure: "S3: cash, least", explains: |ours, _| ours < 0.0, told: CASH_BEFORE_A_MONTH },
            Cause { figure: "Azure: cash, least", explains: |ours, _| ours < 0.0, told: CASH_BEFORE_A_MONTH },
        ],
    },
    Published {
        name: "E12",
        setup: "a sweep of fullness",
        paper: "about 40 % of systems that are 75 % full or more have chains below 11",
        band: "chains fall with fullness",
        causes: &[],
    },
    Published {
        name: "E13",
        setup: "a load of days and nights",
        paper: "most fragmented systems have idle processors",
        band: "gardening fits the idle periods, p99 of clients + < 5 %",
        causes: &[Cause {
            figure: "the same by day",
            explains: |ours, _| (1.05..1.1).contains(&ours),
            told: "By day nothing is gardened, but two things are left of the nights, and without either the day is \
                   inside the band: blocks that moved have stale pointers, so some reads are redirected; and drives \
                   were written in another order, so flash collects more and holds blocks otherwise.",
        }],
    },
    Published {
        name: "E14",
        setup: "secondary volumes: large overwrites, snapshots in turn",
        paper: "they fragment slowly",
        band: "clearly longer chains than E1",
        causes: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn find(experiment: &str, figure: &str, ours: f64, scale: Scale) -> Option<&'static str> {
        PUBLISHED.iter().find(|published| published.name == experiment)?.find_cause(figure, ours, scale)
    }

    #[test]
    fn a_cause_is_told_of_its_figure_where_it_explains_what_came_out() {
        let chain = "write chain of the disks, last turnover";
        for (experiment, figure, ours, scale, known) in [
            ("E2", chain, 3.8, Scale::EIGHTH, Some("holes")),
            ("E2", chain, 63.0, Scale::EIGHTH, None),
            ("E2", "write chain", 3.8, Scale::EIGHTH, None),
            ("E3", "write chain with cleaning, in the trace", 22.3, Scale::EIGHTH, Some("stock of empty ones")),
            ("E3", "write chain with cleaning, in the trace", 22.3, Scale::QUARTER, None),
            ("E4", "write chain with cleaning", 20.0, Scale::EIGHTH, None),
            ("E4", "read chain with cleaning, times that without", 0.89, Scale::EIGHTH, Some("emptiest areas")),
            ("E4", "with cleaning over without, highest load", f64::NAN, Scale::EIGHTH, Some("Neither keeps up")),
            ("E4", "with cleaning over without, highest load", 1.2, Scale::SMALL, Some("follows from the cores")),
            ("E5", "parity reads without, over those with cleaning", 4.6, Scale::SMALL, Some("too large a part")),
            ("E5", "parity reads without, over those with cleaning", 4.6, Scale::EIGHTH, None),
            ("E5", "parity reads without, over those with cleaning", 25.0, Scale::FULL, Some("whole stripes")),
            ("E9", "chunks a block, four fifths zeros", 2.0, Scale::EIGHTH, Some("2.2 chunks")),
            (
                "E11",
                "Azure: cash, least of all days, millionths of a dollar",
                -439.0,
                Scale::EIGHTH,
                Some("whoever decides"),
            ),
            ("E13", "the same by day", 1.075, Scale::EIGHTH, Some("stale pointers")),
            ("E13", "the same by day", 1.3, Scale::EIGHTH, None),
            ("E13", "the same by night", 1.075, Scale::EIGHTH, None),
            ("E14", "the same without snapshots", 1.0, Scale::EIGHTH, None),
        ] {
            let found = find(experiment, figure, ours, scale);
            assert_eq!(found.is_some(), known.is_some(), "{experiment} {figure} {ours}: {found:?}");
            assert!(found.unwrap_or_default().contains(known.unwrap_or_default()), "{found:?}");
        }
    }
}
