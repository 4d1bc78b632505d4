//! The lists of areas with most free blocks, against the reached blocks.

use super::{Bits, CheckReport, aggregate::Contents, media::Media};
use crate::{Damage, format::top_areas::TopAreas};

/// Checks the list of every group: each listed area has the recorded number of free blocks, and no
/// other area has more than the rest.
pub(super) fn check(media: &Media, report: &mut CheckReport, contents: &Contents, used: &Bits) {
    let mut free: Vec<Vec<u64>> = Vec::new();
    for (group, shape) in media.geometry.groups.iter().enumerate() {
        let blocks = |area| {
            let stripes = media.geometry.area_stripes(group, area);
            (stripes.end - stripes.start) * u64::from(shape.data_drives)
        };
        free.push((0..media.geometry.areas(group)).map(blocks).collect());
    }
    for (group, area) in used.iter().filter_map(|pvbn| media.geometry.area_of(pvbn)) {
        free[group][area as usize] -= 1;
    }
    for (group, free) in (0..).zip(&free) {
        let place = || format!("top areas of RAID group {group}");
        let none = || Damage::new("top areas", "block", "a hole", "a block");
        let found = contents.get(&group).ok_or_else(none).and_then(|block| TopAreas::decode(block));
        let top = match found {
            Ok(top) => top,
            Err(damage) => {
                report.find(place(), damage);
                continue;
            }
        };
        report.expect(place, "top areas", "group", top.group.into(), group);
        report.expect(place, "top areas", "consistency point", top.cp, media.sb.point);
        report.expect(place, "top areas", "areas", top.areas.into(), free.len() as u64);
        let mut rest: Vec<Option<u64>> = free.iter().copied().map(Some).collect();
        for (area, listed) in top.listed {
            let counted = rest.get_mut(area as usize).and_then(Option::take).unwrap_or(0);
            report.expect(|| format!("{}, area {area}", place()), "top areas", "free", listed.into(), counted);
        }
        if let Some(most) = rest.into_iter().flatten().max().filter(|&most| most > top.rest.into()) {
            report.find(place(), Damage::new("top areas", "rest", top.rest, format!("{most} at least")));
        }
    }
}
