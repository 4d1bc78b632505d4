//! Object defragmentation: the live blocks of sparse objects move to new objects, if that pays off
//! within a month.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use senesce_objects::{Emptied, PriceList};

use crate::{
    aggregate::Garden,
    error::{Error, Result},
    format::{
        SLOT,
        object::{HEAD, ObjectRecord, SLOTS, slot_at},
    },
    store::{Cold, Filling},
};

/// The result of a pass over the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectDefrag {
    /// Objects whose counts were checked.
    pub objects: u64,
    /// Objects that were emptied because it pays off, and that nothing names any more.
    pub emptied: u64,
    /// Blocks that were written to new objects.
    pub blocks: u64,
    /// Objects that were put.
    pub puts: u64,
    /// Objects that could not be read completely; they stay.
    pub unread: u64,
    /// The cost of the requests by the price list, in dollars.
    pub cost: f64,
    /// The monthly cost of the bytes of the emptied objects, less that of the new ones, in dollars.
    pub saved_in_a_month: f64,
}

impl Garden {
    /// Moves the live blocks of sparse objects to new ones. An object qualifies if a month of the
    /// saved space costs more than one GET for each block, one GET for the list, and a PUT. Objects
    /// that would only start another new object must pay for all of it. The old objects can be
    /// deleted after the next consistency point, which the caller makes.
    ///
    /// Errors: `ColdStore`, `NoSpace` for maps.
    ///
    /// Cost: proportional to the number of objects; reads all live blocks of the chosen ones.
    pub fn defrag_objects(&self, prices: &PriceList) -> Result<ObjectDefrag> {
        self.defrag_objects_step(prices, u64::MAX)
    }

    /// Like [`defrag_objects`](Self::defrag_objects), for the objects that pay off most and
    /// together have up to `blocks` live blocks. It takes the first object in any case, if that
    /// pays off alone.
    pub fn defrag_objects_step(&self, prices: &PriceList, blocks: u64) -> Result<ObjectDefrag> {
        self.defrag_but(prices, blocks, &mut BTreeSet::new())
    }

    /// Like [`defrag_objects_step`](Self::defrag_objects_step), without the objects in `unread`.
    /// Adds those that cannot be read.
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
        // Some objects may keep live blocks: blocks of deleted volumes, and unreadable ones.
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

    /// The blocks of an object that container maps name. A block that changes meanwhile is detected
    /// when its new place is named.
    ///
    /// Errors: `ColdStore`, damage.
    ///
    /// Cost: a GET for the list of blocks, and one for each live block; reads maps.
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

/// The objects that pay off to rewrite together, the best ones first, with up to `most` live
/// blocks, or the first one.
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
