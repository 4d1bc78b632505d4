//! Objects of which little is wanted: their living blocks go to new ones, if that pays for itself within a month.

use senesce_objects::{Emptied, PriceList};

use crate::{
    engine::Garden,
    error::{Error, Result},
    format::{
        SLOT,
        object::{HEAD, SLOTS, slot_at},
    },
    store::{Cold, Filling},
};

/// What a pass over the objects did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectDefrag {
    /// Objects that were looked at, by their counts only.
    pub objects: u64,
    /// Objects that it pays to empty, and all of whose living blocks are elsewhere from now on.
    pub emptied: u64,
    /// These blocks.
    pub blocks: u64,
    /// Objects that were put.
    pub puts: u64,
    /// Objects that could not be read, or not whole; they stay.
    pub unread: u64,
    /// What this costs by the price list, in dollars.
    pub cost: f64,
    /// What a month will cost less, in dollars.
    pub saved_in_a_month: f64,
}

impl Garden {
    /// Looks at all objects, and puts the living blocks of those into new ones where a month of the space that is saved is worth more
    /// than one GET for each block, one for the list of them, and the PUT. The old ones can be deleted after the next
    /// consistency point, which the caller makes.
    ///
    /// Errors: `ColdStore`, `NoSpace` for maps. Cost: with the number of objects; for those that it pays for, reads all living
    /// blocks.
    pub fn defrag_objects(&self, prices: &PriceList) -> Result<ObjectDefrag> {
        let turn = self.lock_objects();
        let (mut done, mut filling) = (ObjectDefrag::default(), Filling::default());
        let records = self.shared().lock().objects.records().clone();
        for (number, record) in records {
            done.objects += 1;
            let object = Emptied {
                bytes: slot_at(record.blocks.into()),
                live: record.live.into(),
                full_bytes: slot_at(SLOTS as u64),
                full_blocks: SLOTS as u64,
            };
            if record.live == 0 || !prices.is_worth(&object) {
                continue;
            }
            let blocks = match self.read_living(number) {
                Ok(blocks) => blocks,
                Err(Error::Damaged { .. }) => {
                    done.unread += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            done.emptied += 1;
            done.cost += prices.cost(&object);
            done.saved_in_a_month += prices.saved_in_a_month(&object);
            for block in blocks {
                filling.push(block);
                if filling.room() == 0 {
                    done.blocks += self.put_object(&turn, &filling)?;
                    done.puts += 1;
                    filling = Filling::default();
                }
            }
        }
        if !filling.is_empty() {
            done.blocks += self.put_object(&turn, &filling)?;
            done.puts += 1;
        }
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
