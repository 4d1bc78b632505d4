//! Drives whose labels are both damaged: which places are theirs.
//!
//! A superblock shows that a device belongs to the aggregate. Every block in use has its own PVBN in its trailer, which names its drive;
//! slots of parity are sums, and most of them name none. The only drive that is left has the only place that is left.

use std::{collections::BTreeMap, sync::Arc};

use senesce_block::BlockDevice;

use super::find::{of_version, read_superblock};
use crate::{
    format::{
        SLOT,
        label::Aggregate,
        slot::{self, Slot},
    },
    raid::{Geometry, slot_offset},
};

/// A device without a label that can be read.
pub(crate) struct Stranger {
    pub device: Arc<dyn BlockDevice>,
    pub why: String,
}

/// A device and its place.
type Known = (Arc<dyn BlockDevice>, u32);

/// Slots that are read at once.
const AT_ONCE: u64 = 64;
/// Slots that say something after which a drive is known.
const ENOUGH: u64 = 256;

/// Percent of slots that speak for a place where not every place has a drive: one of parity, one of data. Parity of stripes with one block
/// in use looks like that block's drive, so a drive of data has no slot that does not name it.
const CLEAR: [u64; 2] = [98, 100];

/// What the slots of a device say.
#[derive(Clone, Debug, Default)]
struct Votes {
    /// By drive: slots that name it, at the stripe where they are.
    named: BTreeMap<u32, u64>,
    /// Slots that are in use and name no place of theirs.
    sums: u64,
}

impl Votes {
    fn all(&self) -> u64 {
        self.named.values().sum::<u64>() + self.sums
    }

    /// Of a hundred slots, those that speak for a place. `parities`: places of parity that are free.
    ///
    /// A drive of data has slots that name it, and few that do not: those are damaged. One of parity has sums, and slots that name
    /// drives of its group where only one block of a stripe is in use.
    fn percent_for(&self, place: u32, geometry: &Geometry, parities: usize) -> u64 {
        if self.all() == 0 {
            return 0;
        }
        let of = |count: u64| count * 100 / self.all();
        if !geometry.is_parity(place as usize) {
            return of(self.named.get(&place).copied().unwrap_or(0));
        }
        let group = geometry.group_of(place as usize);
        let of_group = |drive: u32| geometry.group_of(drive as usize) == group;
        let (own, others): (Vec<(&u32, &u64)>, Vec<_>) = self.named.iter().partition(|(drive, _)| of_group(**drive));
        if !others.is_empty() || own.is_empty() && parities > 1 {
            return 0;
        }
        100 - of(own.iter().map(|(_, count)| **count).max().unwrap_or(0))
    }
}

/// Gives strangers that belong to the aggregate their places, of those that are not taken. Also returns the strangers that stay such.
pub(crate) fn identify(
    strangers: Vec<Stranger>,
    taken: Vec<u32>,
    aggregate: &Aggregate,
    geometry: &Geometry,
) -> (Vec<Known>, Vec<Stranger>) {
    let mut free: Vec<u32> = (0..geometry.drives() as u32).filter(|drive| !taken.contains(drive)).collect();
    let (mut known, mut rest) = (Vec::new(), Vec::new());
    let mut members = Vec::new();
    for stranger in strangers {
        let device = of_version(stranger.device.clone(), aggregate.version);
        let is_member = (0..2).any(|half| read_superblock(&device, half, aggregate.uuid).is_ok());
        if is_member { members.push((stranger, device)) } else { rest.push(stranger) }
    }
    // The place that fits each best.
    let mut pairs = Vec::new();
    let parities = free.iter().filter(|place| geometry.is_parity(**place as usize)).count();
    let votes: Vec<Votes> =
        members.iter().map(|(_, device)| collect_votes(device, geometry, members.len() > 1)).collect();
    for (member, (_, device)) in members.iter().enumerate() {
        for &place in &free {
            let group = geometry.group_of(place as usize);
            if device.size().0 < geometry.drive_bytes(group) {
                continue;
            }
            pairs.push((votes[member].percent_for(place, geometry, parities), member, place));
        }
    }
    let is_complete = members.len() == free.len();
    pairs.sort_by_key(|&(percent, member, place)| (std::cmp::Reverse(percent), member, place));
    let mut placed: BTreeMap<usize, u32> = BTreeMap::new();
    for (percent, member, place) in pairs {
        let is_empty = votes[member].all() == 0;
        // With a drive for each place it is a question of which fits better. Else one of parity may look like one of data that is gone.
        let clear = CLEAR[usize::from(!geometry.is_parity(place as usize))];
        let is_clear = percent >= if is_complete { 1 } else { clear };
        let is_last = is_complete && free.len() == 1;
        let speaks = is_clear || is_last || is_empty && is_complete;
        if speaks && free.contains(&place) && !placed.contains_key(&member) {
            placed.insert(member, place);
            free.retain(|other| *other != place);
        }
    }
    for (member, (stranger, _)) in members.into_iter().enumerate() {
        match placed.get(&member) {
            Some(&place) => known.push((stranger.device, place)),
            None => rest.push(stranger),
        }
    }
    (known, rest)
}

/// Reads the slots of a device until enough say something; all of them if they have to be told from another device's.
fn collect_votes(device: &Arc<dyn BlockDevice>, geometry: &Geometry, reads_all: bool) -> Votes {
    let mut votes = Votes::default();
    let stripes = geometry.groups.iter().map(|group| group.stripes).max().unwrap_or(0);
    let mut bytes = vec![0; AT_ONCE as usize * SLOT];
    let mut first = 0;
    while first < stripes && (reads_all || votes.all() < ENOUGH) {
        let end = device.size().0.saturating_sub(slot_offset(first)) / SLOT as u64;
        let count = AT_ONCE.min(stripes - first).min(end);
        if count == 0 {
            break;
        }
        let part = &mut bytes[..count as usize * SLOT];
        // What the device does not give says nothing.
        if device.read_at(slot_offset(first), part).is_ok() {
            for (stripe, slot) in (first..).zip(part.as_chunks::<SLOT>().0) {
                votes.add(stripe, slot, geometry);
            }
        }
        first += count;
    }
    votes
}

impl Votes {
    fn add(&mut self, stripe: u64, bytes: &[u8; SLOT], geometry: &Geometry) {
        if bytes.iter().all(|&byte| byte == 0) {
            return;
        }
        let slot = Slot::from(bytes);
        let place = slot::decode(&slot).ok().and_then(|context| geometry.locate(context.pvbn));
        match place.filter(|place| place.stripe == stripe) {
            Some(place) => {
                let drive = (geometry.first_drive(place.group) + place.drive) as u32;
                *self.named.entry(drive).or_default() += 1;
            }
            None => self.sums += 1,
        }
    }
}
