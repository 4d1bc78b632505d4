//! The aggregate of a trial.

use std::{str::FromStr, sync::Arc};

use schemars::JsonSchema;
use senesce_block::BlockDevice;
use senesce_core::{Bytes, Seed};
use senesce_garden::{FormatOptions, Limits, Medium};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

pub(crate) const BLOCK: u64 = 4096;
/// A block on a drive, with its trailer.
pub(crate) const SLOT: u64 = 4160;
/// Slots of a drive before its first stripe.
const FIXED_SLOTS: u64 = 4;

/// The size of a trial. The structure does not depend on it: drives, depth of a tetris, raw fill,
/// parts of the working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scale {
    /// Allocation areas.
    pub areas: u64,
    /// Areas whose blocks clients write between two consistency points.
    pub areas_per_point: u64,
    /// Percent of the experiment's turnovers that are run. A turnover writes the number of blocks
    /// of the file.
    pub turnover_percent: u64,
}

impl Scale {
    /// The scale of figures: 2,048 areas, 10 GiB of data drives.
    pub const FULL: Self = Self { areas: 2048, areas_per_point: 8, turnover_percent: 100 };
    /// A quarter of the full scale.
    pub const QUARTER: Self = Self { areas: 512, areas_per_point: 8, turnover_percent: 100 };
    /// For a first impression: some seconds for each turnover.
    pub const SMALL: Self = Self { areas: 128, areas_per_point: 4, turnover_percent: 100 };
    /// A consistency point has the same part of the aggregate as at `QUARTER`, in half of the time.
    pub const EIGHTH: Self = Self { areas: 256, areas_per_point: 4, turnover_percent: 100 };
    /// For tests. Its figures have no meaning, because it has too few turnovers.
    pub const TINY: Self = Self { areas: 16, areas_per_point: 1, turnover_percent: 3 };
}

/// The least number of consistency points that fill an aggregate. With fewer there is too little
/// space for blocks that are freed only after the next one.
const LEAST_POINTS: u64 = 16;
/// Sixteen times the full scale.
const MOST_AREAS: u64 = 32_768;

impl FromStr for Scale {
    type Err = Error;

    /// Parses a name, or the areas and the areas of a consistency point: `256/4`.
    fn from_str(text: &str) -> Result<Self> {
        let number = |digits: &str| digits.parse::<u64>().ok();
        match text {
            "tiny" => Ok(Self::TINY),
            "small" => Ok(Self::SMALL),
            "eighth" => Ok(Self::EIGHTH),
            "quarter" => Ok(Self::QUARTER),
            "full" => Ok(Self::FULL),
            other => {
                let numbers = other.split_once('/').and_then(|(areas, each)| number(areas).zip(number(each)));
                let (areas, areas_per_point) = numbers.ok_or_else(|| Error::Setup {
                    what: format!(
                        "there is no scale {other:?}; write tiny, small, eighth, quarter, full, or AREAS/POINT such as 256/4"
                    ),
                })?;
                if areas_per_point == 0 || areas / LEAST_POINTS < areas_per_point || areas > MOST_AREAS {
                    let what = format!(
                        "scale {other}: a consistency point takes an area at least and a {LEAST_POINTS}th of all at most, of \
                         {MOST_AREAS} at most"
                    );
                    return Err(Error::Setup { what });
                }
                Ok(Self { areas, areas_per_point, turnover_percent: 100 })
            }
        }
    }
}

/// An aggregate in memory with one volume and a file in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Drives of the RAID group that hold data; one more holds parity.
    pub data_drives: u16,
    /// Stripes of an allocation area, and of a tetris.
    pub area_stripes: u32,
    /// Allocation areas.
    pub areas: u64,
    /// A tier of SSDs before these drives; then these drives are disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashTier>,
    /// Blocks in use over all blocks of data drives, in thousandths: the file and its metadata.
    pub fill: u64,
    /// Blocks that clients write between two consistency points, in areas.
    pub areas_per_point: u64,
    /// Blocks of the cache, in hundredths of all blocks, without those that wait for a consistency
    /// point.
    pub cache_percent: u64,
    /// Blocks that are read together when a client reads in order; 1 for no read-ahead.
    pub read_ahead: u64,
    /// The rotation of snapshots, if there are any.
    pub snapshots: Option<Rotation>,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// SSDs before disks in one aggregate: a RAID group with one drive of parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashTier {
    /// Drives that hold data.
    pub data_drives: u16,
    /// Allocation areas, of the same depth as those of the disks.
    pub areas: u64,
}

/// A rotation of snapshots, as on a secondary volume that is updated. After each period one
/// snapshot is made. If `kept` snapshots exist, the oldest is deleted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Blocks written between two snapshots, in hundredths of the file. A period ends with a
    /// consistency point, so it can be longer.
    pub every_percent: u64,
    /// The most snapshots at a time.
    pub kept: u64,
}

impl Rotation {
    /// The most blocks that only snapshots use, in hundredths of the file. The bound assumes that
    /// every write is to a different block.
    fn most_held(self) -> u64 {
        self.every_percent * self.kept
    }
}

impl Setup {
    /// Blocks in use of most experiments, in thousandths of all: the paper's "85 % of its
    /// capacity". The paper does not state the part of all blocks that an aggregate offers as
    /// capacity. This fill is **calibrated** once, to the write chain of 3 of experiment E5 without
    /// cleaning. A steady chain under random overwrites depends on the fill alone.
    pub const PUBLISHED_FILL: u64 = 650;
    /// The same fill in percent of the capacity.
    const PUBLISHED_PERCENT: u64 = 85;

    /// Blocks in use, in thousandths of all, for a fullness in percent of the capacity.
    pub fn fill_for(full_percent: u64) -> u64 {
        full_percent * Self::PUBLISHED_FILL / Self::PUBLISHED_PERCENT
    }

    /// Percent of the capacity that is in use.
    pub fn full_percent(&self) -> f64 {
        (self.fill * Self::PUBLISHED_PERCENT) as f64 / Self::PUBLISHED_FILL as f64
    }

    /// The aggregate of most experiments: 20 drives of data and one of parity, areas and tetrises
    /// of 64 stripes, 85 % full.
    pub fn published(scale: Scale) -> Self {
        Self {
            data_drives: 20,
            area_stripes: 64,
            areas: scale.areas,
            flash: None,
            fill: Self::PUBLISHED_FILL,
            areas_per_point: scale.areas_per_point,
            cache_percent: 3,
            read_ahead: 32,
            snapshots: None,
            seed: 1,
        }
    }

    /// Blocks of all data drives, with those of flash.
    pub fn blocks(&self) -> u64 {
        let flash = self.flash.map_or(0, |flash| flash.areas * u64::from(flash.data_drives));
        (self.areas * u64::from(self.data_drives) + flash) * u64::from(self.area_stripes)
    }

    /// Blocks that clients write between two consistency points.
    pub fn blocks_per_point(&self) -> u64 {
        self.areas_per_point * u64::from(self.area_stripes) * u64::from(self.data_drives)
    }

    /// Blocks of the file. Its pointers and those of its container (one block of 170), the bitmaps
    /// of both, and the blocks of snapshots also need space. Together they give the configured
    /// fill.
    pub fn file_blocks(&self) -> u64 {
        let bits = 3 * self.blocks() / (8 * BLOCK) + 16;
        let held = self.snapshots.map_or(0, Rotation::most_held);
        (self.blocks() * self.fill / 1000).saturating_sub(bits) * 169 / 170 * 100 / (100 + held)
    }

    /// Checks that the runner supports the set-up. Errors: `Setup`.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Setup { what });
        if self.areas < 8 || self.areas_per_point == 0 || self.areas_per_point > self.areas / 8 {
            let (areas, per_point) = (self.areas, self.areas_per_point);
            return wrong(format!(
                "{per_point} of {areas} areas in a consistency point; need 1 to an eighth of at least 8 areas"
            ));
        }
        if !(50..=950).contains(&self.fill) || self.read_ahead == 0 {
            return wrong(format!(
                "{} thousandths full, {} blocks read ahead; need 50 to 950, and at least 1",
                self.fill, self.read_ahead
            ));
        }
        if let Some(FlashTier { data_drives, areas }) = self.flash
            && (data_drives == 0 || areas < 2)
        {
            return wrong(format!("{data_drives} SSDs with {areas} areas; need at least one SSD and two areas"));
        }
        if let Some(Rotation { every_percent, kept }) = self.snapshots
            && (every_percent == 0 || kept == 0)
        {
            return wrong(format!("{kept} snapshots, one for each {every_percent} % written; both must be at least 1"));
        }
        Ok(())
    }

    pub(crate) fn format_options(&self) -> FormatOptions {
        FormatOptions {
            uuid: [1; 16],
            groups: std::iter::once(self.data_drives)
                .chain(self.flash.map(|flash| flash.data_drives))
                .map(|drives| (drives, true))
                .collect(),
            media: if self.flash.is_some() { vec![Medium::Hdd, Medium::Ssd] } else { vec![] },
            aa_stripes: vec![self.area_stripes],
            tetris_stripes: self.area_stripes,
            zeroed: true,
        }
    }

    /// The drives, made by `make` from name and size; those of parity are last in their group.
    pub(crate) fn drives(&self, make: &dyn Fn(String, Bytes) -> Arc<dyn BlockDevice>) -> Vec<Arc<dyn BlockDevice>> {
        let drive = |(number, bytes)| make(format!("drive {number}"), bytes);
        self.drive_bytes().into_iter().enumerate().map(drive).collect()
    }

    /// The size of each drive.
    fn drive_bytes(&self) -> Vec<Bytes> {
        let bytes = |areas| Bytes((FIXED_SLOTS + areas * u64::from(self.area_stripes)) * SLOT);
        let flash = self.flash.map(|flash| (flash.data_drives, flash.areas));
        let groups = std::iter::once((self.data_drives, self.areas)).chain(flash);
        groups.flat_map(|(drives, areas)| vec![bytes(areas); usize::from(drives) + 1]).collect()
    }

    /// Each half of the log holds the records of a consistency point with a reserve. A write of one
    /// block takes nine units of 512 bytes.
    pub(crate) fn log_bytes(&self) -> Bytes {
        Bytes(2 * ((8 << 20) + self.blocks_per_point() * 6144))
    }

    /// The limit is high, because only the runner starts consistency points.
    pub(crate) fn limits(&self) -> Limits {
        let waiting = 4 * self.blocks_per_point() * BLOCK;
        Limits { cache_bytes: self.blocks() * self.cache_percent / 100 * BLOCK + waiting, dirty_bytes: waiting }
    }

    pub(crate) fn seed(&self) -> Seed {
        Seed(self.seed)
    }
}
