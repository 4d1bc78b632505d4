//! The cost of objects, and whether a rewrite of the live part of one pays off.
//!
//! The storage of an object costs the same for live and dead blocks. A move of its live blocks into
//! another object costs a GET for each and for the list of its contents, and their share of a PUT.
//! Deleting the old object costs nothing, and the storage of the dead blocks is saved. All
//! sums are integers, so the decision follows the formula exactly.
//!
//! The share of a PUT is that in a new full object. The last new object is not full, so its blocks
//! count with a whole PUT and with all of its bytes.

/// The units of a price in a dollar.
const NANO: f64 = 1e9;
/// The bytes of a gigabyte in price lists.
const GB: u128 = 1_000_000_000;

/// The prices of a store, in 10^-9 US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceList {
    /// The store and its class.
    pub name: &'static str,
    /// The month in which the prices were valid.
    pub date: &'static str,
    /// The price of a gigabyte (10^9 bytes) for a month.
    pub gb_month: u64,
    /// The price of a PUT.
    pub put: u64,
    /// The price of a GET.
    pub get: u64,
}

/// Amazon S3 Standard, US East (N. Virginia), the first 50 TB: 0.023 dollars for a gigabyte-month,
/// 0.005 for 1,000 PUTs, 0.0004 for 1,000 GETs.
pub const S3_STANDARD: PriceList =
    PriceList { name: "s3", date: "2026-11", gb_month: 23_000_000, put: 5_000, get: 400 };

/// Azure Blob Storage, hot, locally redundant: 0.0184 dollars for a gigabyte-month, 0.05 for 10,000
/// writes, 0.004 for 10,000 reads.
pub const AZURE_HOT: PriceList =
    PriceList { name: "azure", date: "2026-11", gb_month: 18_400_000, put: 5_000, get: 400 };

/// An object with dead blocks, and the size of a full object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emptied {
    /// Its bytes.
    pub bytes: u64,
    /// Its live blocks.
    pub live: u64,
    /// The bytes of a full object.
    pub full_bytes: u64,
    /// The blocks of a full object.
    pub full_blocks: u64,
}

impl PriceList {
    /// Whether moving its live blocks into another object, with others, costs at most the savings
    /// of a month.
    pub fn is_worth(&self, object: &Emptied) -> bool {
        self.gain(object) >= 0
    }

    /// The savings of a month minus the cost. Among objects with the same full size, a larger gain
    /// pays off sooner.
    pub fn gain(&self, object: &Emptied) -> i128 {
        let (saved, cost) = self.scaled(object);
        saved - cost
    }

    /// The number of objects, from the first one on, that are best rewritten together. For this
    /// number the savings of a month exceed the cost, with whole PUTs, by the largest amount. 0 if
    /// there is never a gain. `bytes` returns the size of an object with a number of blocks. Cost:
    /// linear in objects.
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

    /// The largest live part of a full object for which a rewrite pays off.
    ///
    /// It is (*S* - *g*) / (*S* + *N* *g* + *p*): a full object of *N* blocks costs *S* for a month
    /// of storage, a GET costs *g*, and a PUT costs *p*.
    pub fn threshold(&self, full_bytes: u64, full_blocks: u64) -> f64 {
        let storage = self.gb_month as f64 * full_bytes as f64 / GB as f64;
        (storage - self.get as f64) / (storage + full_blocks as f64 * self.get as f64 + self.put as f64)
    }

    /// The cost of storage for some months, in dollars.
    pub fn storage(&self, bytes: u64, months: f64) -> f64 {
        bytes as f64 / GB as f64 * self.gb_month as f64 / NANO * months
    }

    /// The cost of requests, in dollars.
    pub fn requests(&self, puts: u64, gets: u64) -> f64 {
        (puts as f64 * self.put as f64 + gets as f64 * self.get as f64) / NANO
    }

    /// The savings of a month and the cost, both times the blocks of a full object and the bytes of
    /// a gigabyte.
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
    fn cost_and_savings_of_one_object() {
        // 4.194304e-3 GB for 0.023 dollars, of which 0.9 is dead; 101 GETs, and a tenth of a PUT.
        let tenth = Emptied { full_blocks: 1000, ..object(100) };
        let gain = S3_STANDARD.gain(&tenth) as f64 / (1000.0 * GB as f64 * NANO);
        assert!((gain - (86.822e-6 - 40.9e-6)).abs() < 1e-9);
        assert!((S3_STANDARD.storage(BYTES, 1.0) - 96.469e-6).abs() < 1e-9);
        assert!((S3_STANDARD.requests(1, 10) - 9e-6).abs() < 1e-15);
    }

    /// The bytes of an object with this number of blocks, and four blocks of header.
    fn bytes(blocks: u64) -> u64 {
        (4 + blocks) * 4096
    }

    #[test]
    fn a_single_object_pays_a_whole_put() {
        let object = |live| Emptied { bytes: bytes(1000), live, full_bytes: bytes(1000), full_blocks: 1000 };
        let alone = |live: u64| S3_STANDARD.best(&[object(live)], bytes);
        let together = |live: u64| S3_STANDARD.best(&vec![object(live); 1000], bytes);
        // 0.023 * 4,096 (1,000 - live) must exceed 400 (1 + live) + 5,000.
        assert_eq!((alone(179), alone(180)), (1, 0));
        // If all new objects are full, the formula decides.
        let most = (0..1000).rev().find(|&live| S3_STANDARD.is_worth(&object(live))).unwrap();
        assert_eq!((most, together(most), together(most + 1)), (188, 1000, 0));
        // Five objects nearly fill one; a sixth would start another one.
        assert_eq!(S3_STANDARD.best(&[object(180); 6], bytes), 5);
        assert_eq!(S3_STANDARD.best(&[], bytes), 0);
    }

    proptest::proptest! {
        /// No other number of objects from the first one on is better. The test computes each gain
        /// itself.
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

        /// For any prices, the threshold decides.
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
            // An object that is worth it stays so with fewer live blocks.
            if live > 0 && prices.is_worth(&object) {
                let fewer = Emptied { live: live - 1, ..object };
                proptest::prop_assert!(prices.is_worth(&fewer));
            }
        }
    }
}
