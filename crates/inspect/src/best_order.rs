//! The places of contents in the best order.

use senesce_core::Extent;

/// Places contents one after the other, in the order of reading. The first content keeps its place,
/// so that contents stay as near to the metadata as they are now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BestOrder {
    /// The byte at which the next content starts. `None` before the first content.
    end: Option<u64>,
}

impl BestOrder {
    /// The extents of the next content. A content that does not fit before the end of the volume
    /// starts at byte 0.
    pub fn place(&mut self, extents: &[Extent], volume_bytes: u64) -> Vec<Extent> {
        let Some(first) = extents.first() else { return Vec::new() };
        let mut next = self.end.unwrap_or(first.physical);
        let bytes: u64 = extents.iter().map(|extent| extent.length).fold(0, u64::saturating_add);
        if next.saturating_add(bytes) > volume_bytes {
            next = 0;
        }
        let place = |extent: &Extent| {
            let placed = Extent { physical: next, ..*extent };
            next = next.saturating_add(extent.length);
            placed
        };
        let best = extents.iter().map(place).collect();
        self.end = Some(next);
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_follow_each_other_until_the_end_of_the_volume() {
        let extent = |logical, physical, length| Extent { logical, physical, length };
        let mut order = BestOrder::default();
        assert_eq!(order.place(&[extent(0, 40, 10), extent(20, 90, 5)], 100), [extent(0, 40, 10), extent(20, 50, 5)]);
        assert_eq!(order.place(&[], 100), []);
        assert_eq!(order.place(&[extent(0, 7, 30)], 100), [extent(0, 55, 30)]);
        assert_eq!(order.place(&[extent(0, 7, 30)], 100), [extent(0, 0, 30)]);
    }
}
