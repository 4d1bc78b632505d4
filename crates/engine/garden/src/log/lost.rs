//! A consistency point whose superblock cannot be read: what was written to the log behind it, or that it is durable, tells that
//! there was one.

use super::halves::{HalfCopies, Halves};
use crate::format::{
    half::Half,
    lap::{self, Lap},
};

/// The last consistency point that a half of the log followed.
pub(super) struct Later {
    point: u64,
    /// If nothing came behind it: whoever has all operations up to this record has what it holds.
    logged_up_to: Option<u64>,
    /// The laps that follow it.
    pub laps: Vec<Lap>,
}

impl Later {
    /// `point`: the last consistency point of which there is a superblock.
    pub fn find(halves: &[HalfCopies; 2], uuid: [u8; 16], point: u64) -> Option<Self> {
        let later = |half: &HalfCopies| {
            let of_copy = |bytes: &[u8]| lap::find_later(bytes, half.unit, uuid, half.stamps, point);
            half.each().filter_map(of_copy).max_by_key(|lap| lap.point)
        };
        let laps = halves.each_ref().map(later);
        let logged_up_to = |half: &HalfCopies, lap: &Lap| {
            let half = Half::read(&half.merged(lap), lap, half.unit);
            half.only_durable().filter(|(durable, _)| durable.is_logged).map(|(_, record)| record.sequence)
        };
        let (point, logged_up_to) = match &laps {
            [None, None] => return None,
            [Some(lap), None] => (lap.point, logged_up_to(&halves[0], lap)),
            [None, Some(lap)] => (lap.point, logged_up_to(&halves[1], lap)),
            [Some(one), Some(other)] => (one.point.max(other.point), None),
        };
        Some(Self { point, logged_up_to, laps: laps.into_iter().flatten().collect() })
    }
}

impl Halves {
    /// A later consistency point, which was durable.
    pub fn later_point(&self) -> Option<u64> {
        Some(self.later.as_ref()?.point)
    }

    /// The same, if it held more than the operations behind the record `applied` that are here, or something came behind it.
    pub fn find_lost_point(&self, applied: u64) -> Option<u64> {
        let later = self.later.as_ref()?;
        let last = self.live(applied).into_iter().flatten().last().map_or(applied, |record| record.sequence);
        (later.logged_up_to != Some(last)).then_some(later.point)
    }
}
