//! The settings of a trial in words, for readers of its figures.

use schemars::JsonSchema;
use senesce_garden::{FixUp, Gardening};
use serde::{Deserialize, Serialize};

use crate::{FlashTier, LoadKind, Rotation, Setup};

/// A setting, in contrast to a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The name of the setting. All experiments use the same name for it.
    pub what: String,
    /// The value, with its unit.
    pub told: String,
}

impl Fact {
    /// Makes a fact.
    pub fn new(what: &str, told: impl Into<String>) -> Self {
        Self { what: what.to_owned(), told: told.into() }
    }
}

/// A number in groups of three digits.
pub fn tell_count(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        _ => format!("{},{:03}", tell_count(count / 1000), count % 1000),
    }
}

impl Setup {
    /// The aggregate in words.
    pub fn facts(&self) -> Vec<Fact> {
        let before = self.flash.map_or(String::new(), |FlashTier { data_drives, areas }| {
            format!("; before them {data_drives} SSDs of data and 1 of parity, {areas} areas")
        });
        let snapshots = self.snapshots.map_or("none".to_owned(), |Rotation { every_percent, kept }| {
            format!("one for each {every_percent} % of the file that is written, {kept} kept")
        });
        let (points, areas) = (tell_count(self.blocks_per_point()), self.areas_per_point);
        vec![
            Fact::new("drives", format!("{} of data and 1 of parity{before}", self.data_drives)),
            Fact::new("areas", format!("{} of {} stripes, as deep as a tetris", self.areas, self.area_stripes)),
            Fact::new("blocks of data drives", tell_count(self.blocks())),
            Fact::new("consistency point", format!("after {points} blocks of clients, those of {areas} area(s)")),
            Fact::new(
                "fill",
                format!("{} % of all blocks: {:.0} % of the capacity", self.fill as f64 / 10.0, self.full_percent()),
            ),
            Fact::new("cache", format!("{} % of all blocks, besides those that wait", self.cache_percent)),
            Fact::new(
                "read-ahead",
                match self.read_ahead {
                    1 => "none by the runner".to_owned(),
                    blocks => format!("{blocks} blocks by the runner, where clients read in order"),
                },
            ),
            Fact::new("snapshots", snapshots),
            Fact::new("seed", self.seed.to_string()),
        ]
    }
}

impl LoadKind {
    /// The load of the clients in words.
    pub fn tell(self) -> String {
        match self {
            Self::Random => "single blocks overwritten at random".to_owned(),
            Self::Oltp { units } => format!("OLTP, eight streams, {units} unit(s) of capacity"),
            Self::OltpAtRandom { units } => {
                format!("the five streams of OLTP that go at random, {units} unit(s) of capacity")
            }
            Self::Runs { longest } => {
                format!("runs of {} to {} blocks overwritten in order", longest / 8, tell_count(longest))
            }
            Self::Streams { readers, writers, blocks } => {
                format!("{readers} clients read and {writers} write in order, {blocks} blocks at once")
            }
        }
    }
}

/// The gardening of an aggregate in words.
pub fn tell_gardening(gardening: &Gardening) -> String {
    let Gardening { cleaning, fix_up, demotion, write_after_read } = gardening;
    let mut said = Vec::new();
    if let Some(cleaning) = cleaning {
        let disks = if cleaning.disks_too { ", disks too" } else { "" };
        said.push(format!(
            "continuous cleaning (quota {} % of what volumes write, worth {} % of a request a block{disks})",
            tell_count(cleaning.quota_percent),
            cleaning.worth_percent
        ));
    }
    if let Some(demotion) = demotion {
        said.push(format!("cold blocks leave flash that is more than {} % full", demotion.full_percent));
    }
    if let Some(war) = write_after_read {
        said.push(format!(
            "writing after reads ({} blocks a consistency point, with {} % of processors and {} % of drives idle)",
            tell_count(war.blocks_per_point),
            war.least_cpu_percent,
            war.least_io_percent
        ));
    }
    match fix_up {
        FixUp::Never => {}
        FixUp::OnRead => said.push("pointers put right when read".to_owned()),
        FixUp::Scan => said.push("pointers put right by a scan".to_owned()),
    }
    if said.is_empty() { "none".to_owned() } else { said.join("; ") }
}

#[cfg(test)]
mod tests {
    use senesce_garden::{Cleaning, Demotion, WriteAfterRead};

    use super::*;
    use crate::Scale;

    #[test]
    fn setup_facts_have_their_numbers() {
        let told = |setup: &Setup, what: &str| {
            setup.facts().into_iter().find(|fact| fact.what == what).unwrap_or_else(|| panic!("no {what}")).told
        };
        let published = Setup::published(Scale::EIGHTH);
        for (what, said) in [
            ("drives", "20 of data and 1 of parity"),
            ("areas", "256 of 64 stripes"),
            ("blocks of data drives", "327,680"),
            ("consistency point", "after 5,120 blocks of clients, those of 4 area(s)"),
            ("fill", "65 % of all blocks: 85 % of the capacity"),
            ("cache", "3 % of all blocks"),
            ("read-ahead", "32 blocks by the runner"),
            ("snapshots", "none"),
            ("seed", "1"),
        ] {
            assert!(told(&published, what).contains(said), "{what}: {}", told(&published, what));
        }
        let flash = Some(FlashTier { data_drives: 11, areas: 51 });
        let snapshots = Some(Rotation { every_percent: 10, kept: 2 });
        let other = Setup { flash, snapshots, read_ahead: 1, ..published };
        assert!(told(&other, "drives").ends_with("before them 11 SSDs of data and 1 of parity, 51 areas"));
        assert_eq!(told(&other, "snapshots"), "one for each 10 % of the file that is written, 2 kept");
        assert_eq!(told(&other, "read-ahead"), "none by the runner");
    }

    #[test]
    fn gardening_facts_have_their_quotas() {
        assert_eq!(tell_gardening(&Gardening::default()), "none");
        let all = Gardening {
            cleaning: Some(Cleaning { quota_percent: 123, disks_too: true, ..Cleaning::default() }),
            fix_up: FixUp::OnRead,
            demotion: Some(Demotion { full_percent: 75 }),
            write_after_read: Some(WriteAfterRead { blocks_per_point: 4096, ..WriteAfterRead::default() }),
        };
        let told = tell_gardening(&all);
        for said in ["quota 123 %", "disks too", "more than 75 % full", "4,096 blocks", "put right when read"] {
            assert!(told.contains(said), "{told}");
        }
    }
}
