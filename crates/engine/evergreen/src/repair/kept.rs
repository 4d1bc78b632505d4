//! The units that a repair must not overwrite before the repaired state is durable.
//!
//! After a loss of power, a second repair needs the state that the first one began with. So a
//! repair overwrites nothing that superblocks name: not the map, and not its nodes, even if the
//! repaired tree no longer has them.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::bases::Base;
use crate::disk::{Area, Extent, NodeMap, Superblock};

/// Units that are not written to: what the repaired tree was built from, as `superblock` says, and what superblocks name. `chunks`: blocks
/// of maps of this file system, if they were searched.
pub(super) fn kept_units(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    sources: &[Extent],
    bases: &[Base],
    chunks: &[u64],
) -> Vec<Extent> {
    let geometry = superblock.geometry;
    let area = Area::new(device.clone(), geometry);
    let mut kept = sources.to_vec();
    kept.extend(superblock.map.all());
    let named = bases.iter().filter(|base| base.is_certain).map(|base| &base.superblock);
    for other in named.filter(|other| other.geometry == geometry) {
        kept.extend(other.map.all());
        // If a map cannot be read even chunk by chunk, no mount can open it.
        if let Ok(map) = NodeMap::load(&area, other) {
            kept.extend(map.iter().flat_map(|(_, place)| place.all()));
        }
    }
    let unit_of = |at: &u64| at.checked_sub(geometry.data_at).map(|from| from / u64::from(geometry.unit_bytes));
    let units = chunks.iter().filter_map(unit_of).filter(|unit| *unit < u64::from(geometry.units));
    kept.extend(units.map(|unit| Extent { first: unit as u32, count: 1 }));
    kept
}
