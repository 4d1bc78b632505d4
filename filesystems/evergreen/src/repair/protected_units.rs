//! The units that a repair must not overwrite before the repaired state is durable.
//!
//! After a loss of power, a second repair needs the state that the first one started from. So a
//! repair overwrites nothing that superblocks name: neither the map nor its nodes, even if the
//! repaired tree does not have them.

use std::{cell::OnceCell, sync::Arc};

use senesce_block::BlockDevice;

use super::{
    nodes::Nodes,
    scan::{Found, scan},
    start_superblocks::Base,
};
use crate::{
    Error,
    disk::{Area, Extent, NodeMap, Superblock},
};

/// The units to keep: the sources of the repaired tree of `superblock`, and all that superblocks
/// name. `found`: the nodes on the device, if it was searched.
pub(super) fn kept_units(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    sources: &[Extent],
    bases: &[Base],
    found: &OnceCell<Found>,
) -> Vec<Extent> {
    let geometry = superblock.geometry;
    let area = Area::new(device.clone(), geometry);
    let mut kept = sources.to_vec();
    kept.extend(superblock.map.all());
    let named = bases.iter().filter(|base| base.is_certain).map(|base| &base.superblock);
    for other in named.filter(|other| other.geometry == geometry) {
        kept.extend(other.map.all());
        match NodeMap::load(&area, other) {
            Ok(map) => kept.extend(map.iter().flat_map(|(_, place)| place.all())),
            // A later read may succeed, and a mount then needs the nodes of the map.
            Err(Error::Device(_)) => {
                let known = bases.first().map(|base| base.superblock.identity().copied());
                let found = found.get_or_init(|| scan(device, known));
                kept.extend(Nodes::by_headers(&area, found, other, false).extents());
            }
            // No mount can open this superblock.
            Err(_) => {}
        }
    }
    let unit_of = |at: &u64| at.checked_sub(geometry.data_at).map(|from| from / u64::from(geometry.unit_bytes));
    // An interrupted repair can leave later maps in most of the free space. Apart from the map of
    // the attempt, no superblock names them.
    let last = bases.iter().filter(|base| base.is_certain).map(|base| base.superblock.generation).max();
    let is_named = |generation: u64| generation == superblock.generation || last.is_none_or(|last| generation <= last);
    let chunks = found.get().map_or(&[][..], |found| &found.chunks);
    let named = chunks.iter().filter(|(_, generation)| is_named(*generation)).map(|(at, _)| at);
    let units = named.filter_map(unit_of).filter(|unit| *unit < u64::from(geometry.units));
    kept.extend(units.map(|unit| Extent { first: unit as u32, count: 1 }));
    kept
}
