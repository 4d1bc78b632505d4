//! What objects cost, and when it pays to write the living part of one anew.
//!
//! An object is one price for its bytes, whoever still wants them. Its blocks that live, written into another object, cost a
//! GET each, one more for the list of what it holds, and their part of a PUT; deleting the old one costs nothing, and what is
//! saved is the storage of the others. All sums are whole numbers, so the decision is the formula's, to the last digit.

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
        let (saved, cost) = self.scaled(object);
        saved >= cost
    }

    /// What the next month costs less, in dollars; below 0 if nothing is saved.
    pub fn saved_in_a_month(&self, object: &Emptied) -> f64 {
        self.scaled(object).0 as f64 / Self::scale(object)
    }

    /// What writing it anew costs, in dollars.
    pub fn cost(&self, object: &Emptied) -> f64 {
        self.scaled(object).1 as f64 / Self::scale(object)
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

    fn scale(object: &Emptied) -> f64 {
        object.full_blocks as f64 * GB as f64 * NANO
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
        assert!((S3_STANDARD.saved_in_a_month(&tenth) - 86.822e-6).abs() < 1e-9);
        assert!((S3_STANDARD.cost(&tenth) - 40.9e-6).abs() < 1e-12);
        assert!((S3_STANDARD.storage(BYTES, 1.0) - 96.469e-6).abs() < 1e-9);
        assert!((S3_STANDARD.requests(1, 10) - 9e-6).abs() < 1e-15);
    }

    proptest::proptest! {
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
            proptest::prop_assert_eq!(
                prices.is_worth(&object),
                prices.saved_in_a_month(&object) >= prices.cost(&object)
            );
            // Whatever is worth it stays so with fewer living blocks.
            if live > 0 && prices.is_worth(&object) {
                let fewer = Emptied { live: live - 1, ..object };
                proptest::prop_assert!(prices.is_worth(&fewer));
            }
        }
    }
}
