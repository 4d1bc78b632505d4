//! Blocks that several files share.

use std::collections::BTreeSet;

use senesce_probe::{collect::Surveyed, map::ExtentFlags};

/// Notes the shared blocks of a file. Returns whether any were known.
pub(crate) fn has_seen(shared: &mut BTreeSet<u64>, entry: &Surveyed) -> bool {
    let blocks = entry.extents.iter().filter(|raw| raw.flags.contains(ExtentFlags::SHARED));
    let known = shared.len();
    let count = blocks.map(|raw| shared.insert(raw.extent.physical)).count();
    shared.len() < known + count
}
