//! Detection of a consistency point without a readable superblock. Records of a later lap, or a
//! record of kind 5, prove that the point existed.

use super::halves::{HalfCopies, Halves};
use crate::format::{
    log_half::Half,
    log_lap::{self, Lap},
};

/// The last consistency point that a half of the log follows.
pub(super) struct Later {
    point: u64,
    /// The last operation that the point includes. Only known if operations alone made the point,
    /// and nothing was logged after it.
    logged_up_to: Option<u64>,
    /// The laps that follow the point.
    pub laps: Vec<Lap>,
}

impl Later {
    /// Finds a consistency point after `point`, which is the last one with a superblock.
    pub fn find(halves: &[HalfCopies; 2], uuid: [u8; 16], point: u64) -> Option<Self> {
        let later = |half: &HalfCopies| {
            let of_copy = |bytes: &[u8]| log_lap::find_later(bytes, half.unit, uuid, half.stamps, point);
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
    /// A later consistency point that was durable.
    pub fn later_point(&self) -> Option<u64> {
        Some(self.later.as_ref()?.point)
    }

    /// A later consistency point that cannot be recreated: it holds more than the readable
    /// operations after `applied`, or something was logged after it.
    pub fn find_lost_point(&self, applied: u64) -> Option<u64> {
        let later = self.later.as_ref()?;
        let last = self.live(applied).into_iter().flatten().last().map_or(applied, |record| record.sequence);
        (later.logged_up_to != Some(last)).then_some(later.point)
    }
}
