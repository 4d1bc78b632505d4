//! The areas of a RAID group with most free blocks: one block for each group, written by every
//! consistency point.
//!
//! With this list an opening can allocate without reading a bitmap. Nothing else depends on it. If
//! it is damaged or of another consistency point, the engine counts the bitmap.

use super::{
    Block, Damage, Decoded, INNER_VERSION,
    bytes::{put, u32_at, u64_at},
};

const MAGIC: &[u8; 8] = b"SNSCareA";
const LIST_AT: usize = 40;
const ENTRY: usize = 8;
/// Areas that one block lists, at most.
pub(crate) const MAX_LISTED: usize = (super::BLOCK - LIST_AT) / ENTRY;

/// The list of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopAreas {
    pub group: u32,
    /// The consistency point that wrote the list.
    pub cp: u64,
    /// Areas of the group.
    pub areas: u32,
    /// No unlisted area has more free blocks than this.
    pub rest: u32,
    /// Areas and their free blocks, those with most first. Areas with equal counts are in the order
    /// of their numbers.
    pub listed: Vec<(u32, u32)>,
}

impl TopAreas {
    pub fn encode(&self) -> Box<Block> {
        let mut out = super::zero_block();
        put(&mut out[..], 0, MAGIC);
        put(&mut out[..], 8, &INNER_VERSION.to_le_bytes());
        put(&mut out[..], 12, &self.group.to_le_bytes());
        put(&mut out[..], 16, &self.cp.to_le_bytes());
        put(&mut out[..], 24, &self.areas.to_le_bytes());
        put(&mut out[..], 28, &(self.listed.len() as u32).to_le_bytes());
        put(&mut out[..], 32, &self.rest.to_le_bytes());
        for (at, (area, free)) in (LIST_AT..).step_by(ENTRY).zip(&self.listed) {
            put(&mut out[..], at, &area.to_le_bytes());
            put(&mut out[..], at + 4, &free.to_le_bytes());
        }
        out
    }

    pub fn decode(block: &Block) -> Decoded<Self> {
        let damage = |field, found: String, expected: String| Err(Damage::new("top areas", field, found, expected));
        if block[..8] != MAGIC[..] {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            return damage("magic", text(&block[..8]), text(MAGIC));
        }
        if u32_at(block, 8) != INNER_VERSION {
            return damage("version", u32_at(block, 8).to_string(), INNER_VERSION.to_string());
        }
        let (areas, count, rest) = (u32_at(block, 24), u32_at(block, 28), u32_at(block, 32));
        if count as usize > MAX_LISTED || count > areas {
            return damage("listed", count.to_string(), format!("at most {MAX_LISTED}, and at most {areas}"));
        }
        let entry = |at| (u32_at(block, at), u32_at(block, at + 4));
        let listed: Vec<(u32, u32)> = (LIST_AT..).step_by(ENTRY).take(count as usize).map(entry).collect();
        if let Some((area, _)) = listed.iter().find(|(area, _)| *area >= areas) {
            return damage("area", area.to_string(), format!("less than {areas}"));
        }
        let in_order = |pair: &[(u32, u32)]| pair[0].1 > pair[1].1 || (pair[0].1 == pair[1].1 && pair[0].0 < pair[1].0);
        if let Some(pair) = listed.windows(2).find(|pair| !in_order(pair)) {
            return damage("order", format!("{:?} before {:?}", pair[0], pair[1]), "most free blocks first".to_owned());
        }
        if let Some((_, least)) = listed.last().filter(|(_, least)| *least < rest) {
            return damage("rest", rest.to_string(), format!("at most {least}"));
        }
        Ok(Self { group: u32_at(block, 12), cp: u64_at(block, 16), areas, rest, listed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top() -> TopAreas {
        TopAreas { group: 2, cp: 0x0102_0304_0506, areas: 600, rest: 3, listed: vec![(17, 9), (599, 9), (5, 4)] }
    }

    #[test]
    fn golden() {
        let block = top().encode();
        assert_eq!(TopAreas::decode(&block).unwrap(), top());
        let head: String = block[..64].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(head, GOLDEN);
        assert!(block[64..].iter().all(|&byte| byte == 0));
        let full = TopAreas { areas: 507, listed: (0..507).map(|area| (area, 3)).collect(), ..top() };
        assert_eq!(TopAreas::decode(&full.encode()).unwrap(), full);
    }
    const GOLDEN: &str = "534e5343617265410700000002000000060504030201000058020000030000000300000000000000110000000900000057020000090000000500000004000000";

    #[test]
    fn forged_blocks_are_refused_by_field() {
        let cases: [(&str, usize, u8); 7] = [
            ("magic", 0, 0),
            ("version", 8, 9),
            ("listed", 29, 2),
            ("area", 41, 3),
            ("order", 44, 8),
            ("order", 40, 255),
            ("rest", 32, 5),
        ];
        for (field, at, byte) in cases {
            let mut block = top().encode();
            block[at] = byte;
            if (field, at) == ("order", 40) {
                (block[40], block[41]) = (0x57, 2); // the same area twice
            }
            assert_eq!(TopAreas::decode(&block).unwrap_err().field, field, "byte {at}");
        }
    }
}
