//! The positions of passes that go through all of an aggregate.

use crate::{
    engine::Garden,
    store::{Fixing, Store},
};

/// Where the steps of a scrub, of a scan over areas and of scans over pointers continue. The
/// default is the beginning of all.
///
/// Steps of two passes must not alternate, because both move one position: each would skip what the
/// other one did. So a second pass takes the positions of the first one away, and puts them back at
/// its end.
#[derive(Debug, Default)]
pub struct Positions {
    scrub: u64,
    scan: u64,
    pointers: Fixing,
}

impl Garden {
    /// Continues passes from these positions. Returns the positions until now.
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
