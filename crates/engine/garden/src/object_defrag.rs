//! Objects of which little is wanted: their living blocks go to new ones, if that pays for itself within a month.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use senesce_objects::{Emptied, PriceList};

use crate::{
    engine::Garden,
    error::{Error, Result},
    format::{
        SLOT,
        object::{HEAD, ObjectRecord, SLOTS, slot_at},
    },
    store::{Cold, Filling},
};

/// What a pass over the objects did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectDefrag {
    /// Objects that were looked at, by their counts only.
    pub objects: u64,
    /// Objects that it paid to empty, and that nothing names any more.
    pub emptied: u64,
    /// These blocks.
    pub blocks: u64,
    /// Objects that were put.
    pub puts: u64,
    /// Objects that could not be read, or not whole; they stay.
    pub unread: u64,
    /// What the requests cost by the price list, in dollars.
    pub cost: f64,
    /// What a month of the bytes of the emptied objects costs, less that of the new ones, in dollars.
    pub saved_in_a_month: f64,
}

impl Garden {
    /// Looks at all objects, and puts the living blocks of those into new ones where a month of the space that is saved is worth more
    /// than one GET for each block, one for the list of them, and the PUT; of which those that only begin another new object pay for
    /// the whole. The old ones can be deleted after the next consistency point, which the caller makes.
    ///
    /// Errors: `ColdStore`, `NoSpace` for maps. Cost: with the number of objects; for those that it pays for, reads all living
    /// blocks.
    pub fn defrag_objects(&self, prices: &PriceList) -> Result<ObjectDefrag> {
        self.defrag_objects_step(prices, u64::MAX)
    }

    /// The same with those objects only that pay most, and have so many living blocks together, or the first of them, if that alone
    /// pays for itself.
    pub fn defrag_objects_step(&self, prices: &PriceList, blocks: u64) -> Result<ObjectDefrag> {
        self.defrag_but(prices, blocks, &mut BTreeSet::new())
    }

    /// The same, without these objects; those that could not be read now are among them then.
    pub(crate) fn defrag_but(
        &self,
        prices: &PriceList,
        blocks: u64,
        unread: &mut BTreeSet<u64>,
    ) -> Result<ObjectDefrag> {
        let turn = self.lock_objects();
        let (mut done, mut filling) = (ObjectDefrag::default(), Filling::default());
        let records = self.shared().lock().objects.records().clone();
        done.objects = records.len() as u64;
        let mut readable = records.clone();
        readable.retain(|number, _| !unread.contains(number));
        let chosen = choose(&readable, prices, blocks);
        let (mut gets, mut new_bytes) = (0, 0);
        for &number in &chosen {
            let blocks = match self.read_living(number) {
                Ok(blocks) => blocks,
                Err(Error::Damaged { .. }) => {
                    done.unread += 1;
                    unread.insert(number);
                    continue;
                }
                Err(error) => return Err(error),
            };
            gets += 1 + blocks.len() as u64;
            for block in blocks {
                filling.push(block);
                if filling.room() == 0 {
                    done.blocks += self.put_object(&turn, &filling)?;
                    (done.puts, new_bytes) = (done.puts + 1, new_bytes + slot_at(filling.blocks()));
                    filling = Filling::default();
                }
            }
        }
        if !filling.is_empty() {
            done.blocks += self.put_object(&turn, &filling)?;
            (done.puts, new_bytes) = (done.puts + 1, new_bytes + slot_at(filling.blocks()));
        }
        // Some may live on: blocks of deleted volumes, those that could not be read.
        let store = self.shared().lock();
        let now = store.objects.records();
        let is_empty = |number: &&u64| now.get(number).is_none_or(|record| record.live == 0);
        let emptied: Vec<u64> = chosen.iter().filter(is_empty).map(|number| records[number].blocks.into()).collect();
        done.emptied = emptied.len() as u64;
        done.cost = prices.requests(done.puts, gets);
        let old_bytes = emptied.into_iter().map(slot_at).sum();
        done.saved_in_a_month = prices.storage(old_bytes, 1.0) - prices.storage(new_bytes, 1.0);
        Ok(done)
    }

    /// The blocks of an object that the container maps name. What becomes of them meanwhile is seen when they are named elsewhere.
    /// Errors: `ColdStore`, damage. Cost: a GET for the list of its blocks and one for each that lives; reads maps.
    fn read_living(&self, number: u64) -> Result<Vec<Cold>> {
        let head = self.get_range(number, 0..HEAD as u64)?;
        let found = self.shared().lock().find_living(number, &head)?;
        let mut living = Vec::new();
        for block in found {
            let at = slot_at(block.place.slot);
            let bytes = self.get_range(number, at..at + SLOT as u64)?;
            living.push(self.shared().lock().judge_living(&block, &bytes)?);
        }
        Ok(living)
    }
}

/// The objects that it pays to write anew together, those first that pay most, with `most` living blocks, or the first of them.
fn choose(records: &BTreeMap<u64, ObjectRecord>, prices: &PriceList, most: u64) -> Vec<u64> {
    let mut worthy: Vec<(Emptied, u64)> = Vec::new();
    for (&number, record) in records.iter().filter(|(_, record)| record.live > 0) {
        let object = Emptied {
            bytes: slot_at(record.blocks.into()),
            live: record.live.into(),
            full_bytes: slot_at(SLOTS as u64),
            full_blocks: SLOTS as u64,
        };
        if prices.is_worth(&object) {
            worthy.push((object, number));
        }
    }
    worthy.sort_by_key(|(object, number)| (Reverse(prices.gain(object)), *number));
    let mut living = 0u64;
    let within = worthy.iter().take_while(|(object, _)| {
        living += object.live;
        living <= most
    });
    worthy.truncate(within.count().max(1));
    let (objects, mut numbers): (Vec<Emptied>, Vec<u64>) = worthy.into_iter().unzip();
    numbers.truncate(prices.best(&objects, slot_at));
    numbers
}
