//! Identification of drives whose labels are both damaged.
//!
//! A superblock shows that a device belongs to the aggregate. Each block in use has its own PVBN in
//! its trailer, which names its drive. Slots of parity are sums, and most of them name none. The
//! only drive left has the only place left.

use std::{collections::BTreeMap, sync::Arc};

use senesce_block::BlockDevice;

use super::find_drives::{of_version, read_superblock};
use crate::{
    format::{
        SLOT,
        label::Aggregate,
        slot::{self, Slot},
    },
    raid::{Geometry, slot_offset},
};

/// A device without a readable label.
pub(crate) struct Stranger {
    pub device: Arc<dyn BlockDevice>,
    pub why: String,
}

/// A device and its place.
type Known = (Arc<dyn BlockDevice>, u32);

/// Slots of each read.
const AT_ONCE: u64 = 64;
/// Slots in use that suffice to identify a drive.
const ENOUGH: u64 = 256;

/// The percentage of slots that must support a place if not every place has a drive: for a parity
/// drive, for a data drive. Parity of a stripe with one block in use equals that block. So for a
/// data drive all slots must name it.
const CLEAR: [u64; 2] = [98, 100];

/// The evidence in the slots of a device.
#[derive(Clone, Debug, Default)]
struct Votes {
    /// For each drive, the slots that name it and are at its stripe.
    named: BTreeMap<u32, u64>,
    /// Slots in use that name no place of theirs.
    sums: u64,
}

impl Votes {
    fn all(&self) -> u64 {
        self.named.values().sum::<u64>() + self.sums
    }

    /// The percentage of slots that support a place. `parities` is the number of free parity
    /// places.
    ///
    /// A data drive has slots that name it, and few others, which are damaged. A parity drive has
    /// sums. It also has slots that name drives of its group, where only one block of a stripe is
    /// in use.
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

/// Assigns strangers that belong to the aggregate to free places. Also returns the strangers that
/// remain.
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
    // The best place for each device.
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
        // If each place has a drive, the better fit decides. Otherwise a parity drive may look like
        // an absent data drive.
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

/// Reads the slots of a device until enough are in use, or all of them if several devices must be
/// distinguished.
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
        // Slots that cannot be read do not count.
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
