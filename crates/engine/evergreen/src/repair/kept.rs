//! What a repair must not write to before the repaired state is durable.
//!
//! A repair that loses power begins again with what it began with. So everything that superblocks name stays as it is: the map, and
//! the nodes of it, also those that the repaired tree has no more.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::bases::Base;
use crate::disk::{Area, Extent, NodeMap, Superblock};

/// Units that are not written to.
#[derive(Clone, Default)]
pub(super) struct Kept {
    /// What the repaired tree was built from.
    own: Vec<Extent>,
    /// The same with what other superblocks name, and with what is left of maps.
    all: Vec<Extent>,
    is_less: bool,
}

impl Kept {
    /// For a tree that was built from `sources`, as `superblock` says. `chunks`: blocks of maps, if they were searched.
    pub fn of(
        device: &Arc<dyn BlockDevice>,
        superblock: &Superblock,
        sources: Vec<Extent>,
        bases: &[Base],
        chunks: &[u64],
    ) -> Self {
        let geometry = superblock.geometry;
        let area = Area::new(device.clone(), geometry);
        let mut own = sources;
        own.extend(superblock.map.all());
        let mut all = own.clone();
        let named = bases.iter().filter(|base| base.is_certain).map(|base| &base.superblock);
        for other in named.filter(|other| other.geometry == geometry) {
            all.extend(other.map.all());
            if let Ok(map) = NodeMap::load(&area, other) {
                let nodes = map.iter().flat_map(|(_, place)| place.all());
                if other == superblock {
                    own.extend(nodes);
                } else {
                    all.extend(nodes);
                }
            }
        }
        all.extend(&own);
        let unit_of = |at: &u64| at.checked_sub(geometry.data_at).map(|from| from / u64::from(geometry.unit_bytes));
        let units = chunks.iter().filter_map(unit_of).filter(|unit| *unit < u64::from(geometry.units));
        all.extend(units.map(|unit| Extent { first: unit as u32, count: 1 }));
        Self { own, all, is_less: false }
    }

    pub fn units(&self) -> &[Extent] {
        if self.is_less { &self.own } else { &self.all }
    }

    /// Keeps only what the repaired tree was built from, and its map. Returns whether it kept more before.
    pub fn shrink(&mut self) -> bool {
        !std::mem::replace(&mut self.is_less, true)
    }
}
