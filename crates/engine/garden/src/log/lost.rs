//! A consistency point whose superblock cannot be read: what was written to the log behind it, or that it is durable, tells that
//! there was one.

use super::halves::Halves;
use crate::format::{half::Half, lap};

/// The last consistency point that a half of the log followed.
pub(super) struct Later {
    point: u64,
    /// If nothing came behind it: whoever has all operations up to this record has what it holds.
    logged_up_to: Option<u64>,
}

impl Later {
    /// `point`: the last consistency point of which there is a superblock.
    pub fn find(halves: &[Vec<u8>; 2], unit: usize, uuid: [u8; 16], point: u64) -> Option<Self> {
        let laps = halves.each_ref().map(|half| lap::find_later(half, unit, uuid, point));
        let logged_up_to = |half: &[u8], lap| {
            let half = Half::read(half, lap, unit);
            half.only_durable().filter(|(durable, _)| durable.is_logged).map(|(_, record)| record.sequence)
        };
        match &laps {
            [None, None] => None,
            [Some(lap), None] => Some(Self { point: lap.point, logged_up_to: logged_up_to(&halves[0], lap) }),
            [None, Some(lap)] => Some(Self { point: lap.point, logged_up_to: logged_up_to(&halves[1], lap) }),
            [Some(one), Some(other)] => Some(Self { point: one.point.max(other.point), logged_up_to: None }),
        }
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
