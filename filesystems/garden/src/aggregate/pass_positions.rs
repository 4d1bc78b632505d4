//! The positions of passes over the whole aggregate.

use crate::{
    aggregate::Garden,
    store::{Fixing, Store},
};

/// The positions at which the steps of a scrub, of a scan over areas and of scans over pointers
/// continue. The default is the start of each.
///
/// Two passes must not run in turn, because both move one position: each would skip the steps of
/// the other. So a second pass saves the positions of the first one, and restores them at its end.
#[derive(Debug, Default)]
pub struct Positions {
    scrub: u64,
    scan: u64,
    pointers: Fixing,
}

impl Garden {
    /// Sets the positions at which passes continue, and returns the previous ones.
    pub fn exchange_positions(&self, positions: Positions) -> Positions {
        self.shared().lock().exchange_positions(positions)
    }
}

impl Store {
    fn exchange_positions(&mut self, positions: Positions) -> Positions {
        let Positions { scrub, scan, mut pointers } = positions;
        self.gardener.fixing.exchange_scans(&mut pointers);
        Positions {
            scrub: std::mem::replace(&mut self.scrub.done, scrub),
            scan: self.gardener.exchange_scanned(scan),
            pointers,
        }
    }
}
