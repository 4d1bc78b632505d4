//! What objects cost, and when it pays to write the living part of one anew.
//!
//! An object is one price for its bytes, whoever still wants them. Its blocks that live, written into another object, cost a
//! GET each, one more for the list of what it holds, and their part of a PUT; deleting the old one costs nothing, and what is
//! saved is the storage of the others. All sums are whole numbers, so the decision is the formula's, to the last digit.
//!
//! The part of a PUT is what it comes to in a new object that is full. The last one is not, so what goes there is judged by a whole
//! PUT and by all of its bytes.

/// Thousand millionths of a dollar in a dollar.
const NANO: f64 = 1e9;
/// Bytes of a gigabyte, as price lists have it.
const GB: u128 = 1_000_000_000;

/// What a store charges. Amounts are in thousand millionths of a US dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceList {
    /// Whose, and for what.
    pub name: &'static str,
    /// Since when it is known to hold.
    pub date: &'static str,
    /// For a gigabyte (10^9 bytes) that is kept for a month.
    pub gb_month: u64,
    /// For an object that is put.
    pub put: u64,
    /// For a range that is read.
    pub get: u64,
}

/// Amazon S3 Standard, US East (N. Virginia), the first 50 TB: 0.023 dollars for a gigabyte-month, 0.005 for 1,000 PUTs, 0.0004
/// for 1,000 GETs.
pub const S3_STANDARD: PriceList =
    PriceList { name: "s3", date: "2026-11", gb_month: 23_000_000, put: 5_000, get: 400 };

/// Azure Blob Storage, hot, locally redundant: 0.0184 dollars for a gigabyte-month, 0.05 for 10,000 writes, 0.004 for 10,000
/// reads.
pub const AZURE_HOT: PriceList =
    PriceList { name: "azure", date: "2026-11", gb_month: 18_400_000, put: 5_000, get: 400 };

/// An object of which a part is not wanted any more, and what a full one is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emptied {
    /// Its bytes.
    pub bytes: u64,
    /// Its blocks that are still wanted.
    pub live: u64,
    /// Bytes of a full object.
    pub full_bytes: u64,
    /// Blocks of a full object.
    pub full_blocks: u64,
}

impl PriceList {
    /// Whether writing its living blocks into another object, with others, costs no more than a month of what is saved.
    pub fn is_worth(&self, object: &Emptied) -> bool {
        self.gain(object) >= 0
    }

    /// What is saved in a month less the cost: the larger, the sooner it pays, among objects that are held against the same full one.
    pub fn gain(&self, object: &Emptied) -> i128 {
        let (saved, cost) = self.scaled(object);
        saved - cost
    }

    /// How many of these objects, from the first one on, are best written into new ones together: with so many, what is saved in a month
    /// exceeds the cost most, with every PUT as a whole. `bytes` says how large an object of so many blocks is. 0 if it
    /// is never above 0. Linear in objects.
    pub fn best(&self, objects: &[Emptied], bytes: impl Fn(u64) -> u64) -> usize {
        let (mut best, mut most) = (0, 0);
        let (mut old_bytes, mut gets, mut live) = (0, 0, 0);
        for (number, object) in (1..).zip(objects) {
            old_bytes += object.bytes;
            gets += 1 + object.live;
            live += object.live;
            let (full, rest) = (live / object.full_blocks, live % object.full_blocks);
            let (puts, last) = if rest > 0 { (full + 1, bytes(rest)) } else { (full, 0) };
            let fewer = i128::from(old_bytes) - i128::from(full * object.full_bytes + last);
            let cost = i128::from(puts) * i128::from(self.put) + i128::from(gets) * i128::from(self.get);
            let gain = fewer * i128::from(self.gb_month) - cost * GB as i128;
            if gain > most {
                (best, most) = (number, gain);
            }
        }
        best
    }

    /// The part of a full object that may live at most for it to be worth it: with the storage *S* of a full object of *N* blocks for
    /// a month, a GET *g* and a PUT *p*, (*S* - *g*) / (*S* + *N* *g* + *p*).
    pub fn threshold(&self, full_bytes: u64, full_blocks: u64) -> f64 {
        let storage = self.gb_month as f64 * full_bytes as f64 / GB as f64;
        (storage - self.get as f64) / (storage + full_blocks as f64 * self.get as f64 + self.put as f64)
    }

    /// What keeping bytes for a part of a month costs, in dollars.
    pub fn storage(&self, bytes: u64, months: f64) -> f64 {
        bytes as f64 / GB as f64 * self.gb_month as f64 / NANO * months
    }

    /// What requests cost, in dollars.
    pub fn requests(&self, puts: u64, gets: u64) -> f64 {
        (puts as f64 * self.put as f64 + gets as f64 * self.get as f64) / NANO
    }

    /// Savings of a month and the cost, both times the blocks of a full object and the bytes of a gigabyte.
    fn scaled(&self, object: &Emptied) -> (i128, i128) {
        let (live, full) = (i128::from(object.live), i128::from(object.full_blocks));
        let fewer = i128::from(object.bytes) * full - live * i128::from(object.full_bytes);
        let cost = (1 + live) * i128::from(self.get) * full + live * i128::from(self.put);
        (fewer * i128::from(self.gb_month), cost * GB as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 4 << 20;

    fn object(live: u64) -> Emptied {
        Emptied { bytes: BYTES, live, full_bytes: BYTES, full_blocks: 1004 }
    }

    #[test]
    fn list_prices_give_the_published_thresholds() {
        for (prices, published) in [(S3_STANDARD, 0.19), (AZURE_HOT, 0.16)] {
            let threshold = prices.threshold(BYTES, 1004);
            assert!((threshold - published).abs() < 0.005, "{}: {threshold}", prices.name);
        }
    }

    #[test]
    fn what_one_object_costs_and_saves() {
        // 4.194304e-3 GB for 0.023 dollars, 0.9 of which is not wanted; 101 GETs, a tenth of a PUT.
        let tenth = Emptied { full_blocks: 1000, ..object(100) };
        let gain = S3_STANDARD.gain(&tenth) as f64 / (1000.0 * GB as f64 * NANO);
        assert!((gain - (86.822e-6 - 40.9e-6)).abs() < 1e-9);
        assert!((S3_STANDARD.storage(BYTES, 1.0) - 96.469e-6).abs() < 1e-9);
        assert!((S3_STANDARD.requests(1, 10) - 9e-6).abs() < 1e-15);
    }

    /// Bytes of an object of so many blocks, with a head of four more.
    fn bytes(blocks: u64) -> u64 {
        (4 + blocks) * 4096
    }

    #[test]
    fn one_by_itself_pays_for_a_whole_put() {
        let object = |live| Emptied { bytes: bytes(1000), live, full_bytes: bytes(1000), full_blocks: 1000 };
        let alone = |live: u64| S3_STANDARD.best(&[object(live)], bytes);
        let together = |live: u64| S3_STANDARD.best(&vec![object(live); 1000], bytes);
        // 0.023 * 4,096 (1,000 - live) is to be above 400 (1 + live) + 5,000.
        assert_eq!((alone(179), alone(180)), (1, 0));
        // Whatever the formula says is done, if the new ones are all full.
        let most = (0..1000).rev().find(|&live| S3_STANDARD.is_worth(&object(live))).unwrap();
        assert_eq!((most, together(most), together(most + 1)), (188, 1000, 0));
        // Five fill an object nearly, a sixth would begin another one.
        assert_eq!(S3_STANDARD.best(&[object(180); 6], bytes), 5);
        assert_eq!(S3_STANDARD.best(&[], bytes), 0);
    }

    proptest::proptest! {
        /// No choice of fewer or more, from the first one on, is better; all is counted anew here.
        #[test]
        fn the_best_number_is(lives in proptest::collection::vec(0u64..60, 0..12), put in 0u64..9_000, get in 0u64..500) {
            let prices = PriceList { name: "any", date: "any", gb_month: 23_000_000, put, get };
            let object = |&live: &u64| Emptied { bytes: bytes(100), live, full_bytes: bytes(100), full_blocks: 100 };
            let objects: Vec<Emptied> = lives.iter().map(object).collect();
            let gain = |number: usize| {
                let live: u64 = lives[..number].iter().sum();
                let after: u64 = (0..live.div_ceil(100)).map(|new| bytes((live - 100 * new).min(100))).sum();
                let before = number as u64 * bytes(100);
                let cost = prices.requests(live.div_ceil(100), number as u64 + live);
                prices.storage(before, 1.0) - prices.storage(after, 1.0) - cost
            };
            let best = gain(prices.best(&objects, bytes));
            for number in 0..=objects.len() {
                proptest::prop_assert!(best >= gain(number) - 1e-12, "{number}: {}, not {best}", gain(number));
            }
        }

        /// The decision is where the threshold is, for any prices.
        #[test]
        fn worth_it_below_the_threshold_only(
            gb_month in 1u64..1_000_000_000, put in 0u64..100_000, get in 0u64..10_000,
            bytes in 1u64 << 12..1 << 26, blocks in 1u64..4096, part in 0u64..=4096,
        ) {
            let prices = PriceList { name: "any", date: "any", gb_month, put, get };
            let live = part.min(blocks);
            let object = Emptied { bytes, live, full_bytes: bytes, full_blocks: blocks };
            let (fraction, threshold) = (live as f64 / blocks as f64, prices.threshold(bytes, blocks));
            if (fraction - threshold).abs() > 1e-9 {
                proptest::prop_assert_eq!(prices.is_worth(&object), fraction < threshold);
            }
            // Whatever is worth it stays so with fewer living blocks.
            if live > 0 && prices.is_worth(&object) {
                let fewer = Emptied { live: live - 1, ..object };
                proptest::prop_assert!(prices.is_worth(&fewer));
            }
        }
    }
}
