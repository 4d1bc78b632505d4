//! The address space: PVBN to drive and stripe, stripe to allocation area.
//!
//! PVBNs count group by group, drive by drive, stripe by stripe. So consecutive PVBNs are adjacent
//! on one drive.

use std::ops::Range;

use crate::{
    Group, Medium,
    error::{Error, Result},
    format::{SLOT, label::Aggregate, label::MAX_GROUPS, pointer::PVBN_END},
};

/// Slots before the first stripe of a drive: label, superblock, label, superblock.
pub(crate) const FIXED_SLOTS: u64 = 4;
/// The slots of the labels. No block of 4,096 bytes touches both labels, or both superblocks.
pub(crate) const LABELS: [u64; 2] = [0, 2];

/// The slot of superblock 0 or 1.
pub(crate) fn superblock_slot(half: u64) -> u64 {
    1 + 2 * half
}

/// Data drives of a RAID group, at most: the log names those of a stripe by bits.
const MAX_DATA_DRIVES: u16 = 64;

/// The shape of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub groups: Vec<Group>,
    pub tetris_stripes: u64,
    bases: Vec<u64>,
}

/// A place: a group, one of its drives, and a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub group: usize,
    pub stripe: u64,
    pub drive: usize,
}

impl Geometry {
    pub fn new(groups: Vec<Group>, tetris_stripes: u32) -> Result<Self> {
        if groups.is_empty() || groups.len() > MAX_GROUPS {
            return Err(Error::invalid(format!("{} RAID groups; from 1 to {MAX_GROUPS}", groups.len())));
        }
        if tetris_stripes == 0 || groups.iter().any(|group| group.area_stripes == 0) {
            return Err(Error::invalid("an allocation area and a tetris have one stripe at least"));
        }
        let mut bases = vec![0_u64];
        for (index, group) in groups.iter().enumerate() {
            if group.data_drives == 0 || group.stripes == 0 {
                return Err(Error::invalid(format!("RAID group {index} has no blocks")));
            }
            if group.data_drives > MAX_DATA_DRIVES {
                let drives = group.data_drives;
                return Err(Error::invalid(format!(
                    "RAID group {index} has {drives} data drives; {MAX_DATA_DRIVES} at most"
                )));
            }
            let areas = group.stripes.div_ceil(group.area_stripes.into());
            let area_blocks = u64::from(group.area_stripes) * u64::from(group.data_drives);
            if areas.max(area_blocks) > u32::MAX.into() {
                return Err(Error::invalid(format!(
                    "RAID group {index}: {areas} allocation areas of {area_blocks} blocks; less than 2^32 of either"
                )));
            }
            let next = bases[index].checked_add(group.blocks()).filter(|&end| end <= PVBN_END);
            bases.push(next.ok_or_else(|| Error::invalid("more than 2^44 blocks"))?);
        }
        Ok(Self { groups, tetris_stripes: tetris_stripes.into(), bases })
    }

    pub fn of(aggregate: &Aggregate) -> Result<Self> {
        Self::new(aggregate.groups.clone(), aggregate.tetris_stripes)
    }

    /// All blocks, without parity.
    pub fn blocks(&self) -> u64 {
        self.bases[self.groups.len()]
    }

    pub fn drives(&self) -> usize {
        self.groups.iter().map(Group::drives).sum()
    }

    /// The number of the first drive of a group among all drives.
    pub fn first_drive(&self, group: usize) -> usize {
        self.groups[..group].iter().map(Group::drives).sum()
    }

    /// The group of a drive.
    pub fn group_of(&self, drive: usize) -> usize {
        let next = (0..self.groups.len()).find(|&group| drive < self.first_drive(group) + self.groups[group].drives());
        next.unwrap_or(self.groups.len() - 1)
    }

    /// Whether a drive holds parity.
    pub fn is_parity(&self, drive: usize) -> bool {
        let group = self.group_of(drive);
        drive - self.first_drive(group) >= usize::from(self.groups[group].data_drives)
    }

    /// The place of a block; `None` beyond the end.
    pub fn locate(&self, pvbn: u64) -> Option<Place> {
        let group = self.bases.partition_point(|&base| base <= pvbn).checked_sub(1)?;
        let shape = self.groups.get(group)?;
        let within = pvbn - self.bases[group];
        Some(Place { group, stripe: within % shape.stripes, drive: (within / shape.stripes) as usize })
    }

    pub fn pvbn(&self, place: Place) -> u64 {
        self.bases[place.group] + place.drive as u64 * self.groups[place.group].stripes + place.stripe
    }

    /// The number of blocks from this one to the end of its drive, itself included; 0 beyond the
    /// end.
    pub fn stripes_behind(&self, pvbn: u64) -> u64 {
        self.locate(pvbn).map_or(0, |place| self.groups[place.group].stripes - place.stripe)
    }

    /// Allocation areas of a group.
    pub fn areas(&self, group: usize) -> u64 {
        self.groups[group].stripes.div_ceil(self.groups[group].area_stripes.into())
    }

    /// The stripes of an allocation area.
    pub fn area_stripes(&self, group: usize, area: u64) -> Range<u64> {
        let Group { area_stripes, stripes, .. } = self.groups[group];
        let start = area * u64::from(area_stripes);
        start..(start + u64::from(area_stripes)).min(stripes)
    }

    /// The group and the allocation area of a block; `None` beyond the end.
    pub fn area_of(&self, pvbn: u64) -> Option<(usize, u32)> {
        let place = self.locate(pvbn)?;
        Some((place.group, self.area_at(place)))
    }

    /// The allocation area of a place, in its group.
    pub fn area_at(&self, place: Place) -> u32 {
        (place.stripe / u64::from(self.groups[place.group].area_stripes)) as u32
    }

    /// `wanted` if the aggregate has groups of both media, else its only medium.
    pub fn pool(&self, wanted: Medium) -> Medium {
        if self.is_mixed() { wanted } else { self.groups[0].medium }
    }

    /// The groups of a medium.
    pub fn groups_of(&self, medium: Medium) -> Vec<usize> {
        (0..self.groups.len()).filter(|&group| self.groups[group].medium == medium).collect()
    }

    /// Whether the aggregate has groups of disks and of flash.
    pub fn is_mixed(&self) -> bool {
        self.groups.iter().any(|group| group.medium != self.groups[0].medium)
    }

    /// The medium of a block; beyond the end, that of the last group.
    pub fn medium_of(&self, pvbn: u64) -> Medium {
        let group = self.bases[1..].partition_point(|&end| end <= pvbn).min(self.groups.len() - 1);
        self.groups[group].medium
    }

    /// The size of a drive of the group, in bytes.
    pub fn drive_bytes(&self, group: usize) -> u64 {
        slot_offset(self.groups[group].stripes)
    }
}

/// The offset of a stripe's slot on a drive.
pub(crate) fn slot_offset(stripe: u64) -> u64 {
    (FIXED_SLOTS + stripe) * SLOT as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_pvbns_are_one_to_one() {
        use Medium::{Hdd, Ssd};
        let group = |data_drives, parity, medium, area_stripes, stripes| Group {
            data_drives,
            parity,
            medium,
            area_stripes,
            stripes,
        };
        let groups = vec![group(3, true, Hdd, 3, 7), group(1, false, Ssd, 2, 5), group(2, true, Hdd, 9, 4)];
        let geometry = Geometry::new(groups, 2).unwrap();
        assert_eq!(geometry.blocks(), 21 + 5 + 8);
        assert_eq!(geometry.drives(), 4 + 1 + 3);
        let places: Vec<Place> = (0..geometry.blocks()).map(|pvbn| geometry.locate(pvbn).unwrap()).collect();
        for (pvbn, &place) in places.iter().enumerate() {
            assert_eq!(geometry.pvbn(place), pvbn as u64);
        }
        assert_eq!(places[8], Place { group: 0, stripe: 1, drive: 1 });
        assert_eq!(geometry.locate(geometry.blocks()), None);
        assert_eq!([0, 6, 7, 25, 34].map(|pvbn| geometry.stripes_behind(pvbn)), [7, 1, 7, 1, 0]);
        assert_eq!([0, 1, 2].map(|group| geometry.areas(group)), [3, 3, 1]);
        assert_eq!(
            [(0, 2), (1, 1), (1, 2), (2, 0)].map(|(group, area)| geometry.area_stripes(group, area)),
            [6..7, 2..4, 4..5, 0..4]
        );
        // Every block is in exactly one area.
        for pvbn in 0..geometry.blocks() {
            let (place, (group, area)) = (geometry.locate(pvbn).unwrap(), geometry.area_of(pvbn).unwrap());
            assert!(group == place.group && geometry.area_stripes(group, area.into()).contains(&place.stripe));
        }
        assert_eq!([5, 6, 13, 34].map(|pvbn| geometry.area_of(pvbn)), [Some((0, 1)), Some((0, 2)), Some((0, 2)), None]);
        assert_eq!([0, 20, 21, 25, 26, 33].map(|pvbn| geometry.medium_of(pvbn)), [Hdd, Hdd, Ssd, Ssd, Hdd, Hdd]);
        assert!(geometry.is_mixed() && geometry.pool(Ssd) == Ssd);
        assert_eq!(Geometry::new(vec![group(1, false, Ssd, 3, 5)], 2).unwrap().pool(Hdd), Ssd);
        Geometry::new(vec![group(1, false, Ssd, 0, 5)], 2).unwrap_err();
        assert_eq!((geometry.group_of(3), geometry.group_of(4), geometry.group_of(5)), (0, 1, 2));
    }
}
