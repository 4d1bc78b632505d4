//! An aggregate in memory that examples share: 20 data drives and a parity drive, allocation areas
//! and tetrises of 64 stripes, and one volume as large as the aggregate.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_garden::{FormatOptions, Garden, Limits, VolumeOptions};

pub const DRIVES: u64 = 20;
pub const STRIPES: u64 = 64;
pub const BLOCK: u64 = 4096;
const SLOT: u64 = 4160;
pub const VOLUME: &[u8] = b"volume";

pub type Failure = Box<dyn std::error::Error>;

/// Makes the aggregate on drives that `drive` returns for a name and a size. At most an eighth of
/// the areas, and at most eight, may be dirty. `cache_bytes` computes the size of the cache from
/// that.
pub fn make(
    areas: u64,
    drive: &dyn Fn(String, Bytes) -> Arc<dyn BlockDevice>,
    log_bytes: Bytes,
    cache_bytes: impl Fn(u64) -> u64,
) -> Result<Garden, Failure> {
    let size = Bytes((4 + areas * STRIPES) * SLOT);
    let drives: Vec<Arc<dyn BlockDevice>> = (0..=DRIVES).map(|number| drive(format!("drive {number}"), size)).collect();
    let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", log_bytes));
    let options = FormatOptions {
        uuid: [1; 16],
        groups: vec![(DRIVES as u16, true)],
        media: vec![],
        aa_stripes: vec![STRIPES as u32],
        tetris_stripes: STRIPES as u32,
        zeroed: true,
    };
    Garden::format(&options, drives.clone(), log.clone())?;
    let dirty_bytes = (areas / 8).clamp(1, 8) * STRIPES * DRIVES * BLOCK;
    let garden = Garden::open(&drives, log, Limits { cache_bytes: cache_bytes(dirty_bytes), dirty_bytes })?;
    garden.create_volume(VOLUME, &VolumeOptions { blocks: areas * STRIPES * DRIVES, inodes: 4096, seed: 1 })?;
    Ok(garden)
}
