//! The parameters of an SSD.

use senesce_core::{Nanos, Seed};
use senesce_device::{DeviceKind, DeviceSpec};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The smallest number of erase blocks of a die: with fewer, garbage collection has no choice.
const LEAST_ERASE_BLOCKS: u32 = 32;

/// A description of an SSD. [`SsdSpec::from_device`] builds it from a device description with
/// sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SsdSpec {
    /// The name on axes.
    pub name: String,
    /// Blocks of 4 KiB that the host can address.
    pub blocks: u64,
    /// Buses between controller and flash.
    pub channels: u32,
    /// Dies on each; planes count as dies.
    pub dies_per_channel: u32,
    /// Blocks of a page, the unit of reads and programs.
    pub page_blocks: u32,
    /// Pages erased together.
    pub pages_per_erase: u32,
    /// Flash that the host cannot address, in thousandths of the addressable flash.
    pub spare_per_mille: u32,
    /// Time to read a page from the flash array.
    pub page_read: Nanos,
    /// Time to program a page.
    pub page_program: Nanos,
    /// Time of an erase.
    pub block_erase: Nanos,
    /// Time of controller and protocol, for each command in sequence.
    pub command: Nanos,
    /// Rate of a channel, 10^6 bytes a second.
    pub channel_rate: u32,
    /// Rate of the link to the host, 10^6 bytes a second.
    pub link_rate: u32,
    /// Pages of acknowledged writes that are not programmed yet.
    pub cache_pages: u32,
}

/// The content of an SSD when it is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SsdFill {
    /// Nothing.
    #[default]
    Erased,
    /// Every block, written in order.
    Sequential,
    /// Every block, then random overwrites.
    Random {
        /// Overwrites as a multiple of the capacity. From 3 on the amplification is nearly stable.
        rounds: u32,
        /// The seed of the blocks.
        seed: Seed,
    },
}

impl SsdSpec {
    /// An SSD of `blocks` blocks with the times, rates and parallelism of a description; pages of
    /// `page_blocks` blocks.
    ///
    /// For small drives of scaled experiments, erase blocks have fewer pages, so that each die
    /// keeps 32 of them. The erase time shrinks in proportion, so that the cost per page stays the
    /// same. Errors: a description of a disk, or of no device; a drive too small for its dies.
    pub fn from_device(device: &DeviceSpec, blocks: u64, page_blocks: u32) -> Result<Self, Error> {
        if device.kind != DeviceKind::Ssd {
            return Err(Error::absurd(
                "SSD",
                format!("{} is a disk; use an SSD such as sata-ssd or nvme", device.name),
            ));
        }
        device.check()?;
        let value = |key: &str| device.constants.get(key).map_or(0.0, |constant| constant.value);
        let us = |key| Nanos((value(key) * 1e3).round() as u64);
        let mut spec = Self {
            name: device.title.clone(),
            blocks,
            channels: value("channels") as u32,
            dies_per_channel: (value("chips") * value("dies") * value("planes")) as u32,
            page_blocks,
            pages_per_erase: value("pages_per_block") as u32,
            spare_per_mille: (value("spare") * 1000.0).round() as u32,
            page_read: us("page_read"),
            page_program: us("page_program"),
            block_erase: us("block_erase"),
            command: us("command_overhead"),
            channel_rate: value("channel_rate") as u32,
            link_rate: value("link_rate") as u32,
            cache_pages: (value("write_cache") * 256.0) as u32 / page_blocks.max(1),
        };
        while spec.check().is_err() && spec.pages_per_erase > 2 {
            spec.pages_per_erase /= 2;
            spec.block_erase = Nanos(spec.block_erase.0 / 2);
        }
        spec.check()?;
        Ok(spec)
    }

    /// Checks the parameters: no part is zero, and each die has at least 32 erase blocks.
    pub fn check(&self) -> Result<(), Error> {
        let parts = [self.channels, self.dies_per_channel, self.page_blocks, self.pages_per_erase, self.cache_pages];
        if parts.contains(&0) || self.channel_rate == 0 || self.link_rate == 0 || self.spare_per_mille < 10 {
            let problem =
                format!("{self:?} has a part of 0, or spare below 10 thousandths; use at least 1, and at least 10");
            return Err(Error::absurd("SSD", problem));
        }
        let most = u64::from(u32::MAX / 16) * u64::from(self.dies());
        let least = u64::from(LEAST_ERASE_BLOCKS) * u64::from(self.blocks_per_erase()) * u64::from(self.dies());
        if !(least..=most).contains(&self.blocks) {
            let problem = format!(
                "{} blocks on {} dies of erase blocks of {} are not possible; use {least} to {most}",
                self.blocks,
                self.dies(),
                self.blocks_per_erase()
            );
            return Err(Error::absurd("SSD", problem));
        }
        Ok(())
    }

    /// The number of dies.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Blocks that are erased together.
    pub fn blocks_per_erase(&self) -> u32 {
        self.page_blocks * self.pages_per_erase
    }

    /// Blocks of the host on each die.
    pub(super) fn blocks_per_die(&self) -> u32 {
        let pages = self.blocks.div_ceil(u64::from(self.page_blocks)).div_ceil(u64::from(self.dies()));
        pages as u32 * self.page_blocks
    }

    /// Nanoseconds for bytes on a channel. Bytes divided by 10^6 bytes a second are microseconds.
    pub(super) fn channel_time(&self, bytes: u64) -> u64 {
        bytes * 1000 / u64::from(self.channel_rate)
    }

    /// Nanoseconds for bytes on the link.
    pub(super) fn link_time(&self, bytes: u64) -> u64 {
        bytes * 1000 / u64::from(self.link_rate)
    }
}
