//! File contents: source-like text, stored as a list of pieces and generated from seeds on demand.

use std::io::{self, Write};

use super::words::WORDS;

/// Text is generated in blocks of this size, bytes. Access to any part costs one block.
const BLOCK_BYTES: usize = 1024;

/// The bytes of one version of a file: pieces of texts that are generated from seeds.
///
/// Cost: 16 bytes of memory per piece, two more pieces per edit; the bytes themselves are not
/// stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<Piece>,
    len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    seed: u64,
    start: u32,
    len: u32,
}

impl Text {
    /// The first `len` bytes of the text of `seed`.
    pub(super) fn new(seed: u64, len: u32) -> Self {
        let mut text = Self { pieces: Vec::new(), len: 0 };
        text.push(Piece { seed, start: 0, len });
        text
    }

    /// Length, bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, piece: Piece) {
        if piece.len > 0 {
            self.len += u64::from(piece.len);
            self.pieces.push(piece);
        }
    }

    /// Replaces `removed` bytes from `at` on with the first `inserted` bytes of the text of `seed`.
    /// A range beyond the end is cut.
    pub(super) fn edited(&self, at: u64, removed: u64, seed: u64, inserted: u32) -> Self {
        let mut result = Self { pieces: Vec::with_capacity(self.pieces.len() + 2), len: 0 };
        let end = at + removed;
        let mut position = 0u64;
        let mut new = Some(Piece { seed, start: 0, len: inserted });
        for piece in &self.pieces {
            let piece_end = position + u64::from(piece.len);
            // Lengths within a piece fit its own 32 bits.
            let before = at.clamp(position, piece_end) - position;
            result.push(Piece { len: before as u32, ..*piece });
            if piece_end > at
                && let Some(new) = new.take()
            {
                result.push(new);
            }
            let after = piece_end - end.clamp(position, piece_end);
            result.push(Piece { start: piece.start + (piece.len - after as u32), len: after as u32, ..*piece });
            position = piece_end;
        }
        if let Some(new) = new {
            result.push(new);
        }
        result
    }

    /// Writes the bytes. Cost: a few hundred MB/s.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut block = Vec::with_capacity(BLOCK_BYTES + 128);
        for piece in &self.pieces {
            let (mut at, end) = (piece.start as usize, piece.start as usize + piece.len as usize);
            while at < end {
                grow_block(piece.seed, (at / BLOCK_BYTES) as u64, &mut block);
                let from = at % BLOCK_BYTES;
                let to = BLOCK_BYTES.min(from + end - at);
                out.write_all(&block[from..to])?;
                at += to - from;
            }
        }
        Ok(())
    }
}

/// The mixing function of splitmix64.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Lines: `0` to `3` stand for names of the file's own vocabulary, `#` for a number.
const LINES: [&str; 16] = [
    "\tif (0->1 != #)\n\t\treturn -2_3;\n",
    "\t0 = 1_2(3, #);\n",
    "static int 0_1(struct 2 *3)\n{\n",
    "}\n\n",
    "\t/* 0 the 1 before 2 is 3 */\n",
    "\tfor (i = 0; i < 0->1; i++)\n\t\t2[i] = 3;\n",
    "#define 0_1\t#\n",
    "\t1_0(&2->3);\n",
    "\treturn 0;\n}\n\n",
    "\tstruct 0_1 *2 = 3->0;\n",
    "\tcase #:\n\t\t0->1 = 2_3();\n\t\tbreak;\n",
    "\t\tgoto 0_1;\n",
    "\tunsigned long 0, 1;\n",
    " * The 0 of a 1 holds # entries of 2, each with its 3.\n",
    "\t\tprintk(\"0: 1 %d of 2\\n\", 3->#);\n",
    "\n",
];

/// Generates exactly one block; its last byte ends a line.
fn grow_block(seed: u64, index: u64, block: &mut Vec<u8>) {
    block.clear();
    let mut state = mix(seed ^ mix(index));
    while block.len() < BLOCK_BYTES {
        state = mix(state);
        let mut names = state >> 8;
        for &byte in LINES[(state & 15) as usize].as_bytes() {
            match byte {
                b'0'..=b'3' => {
                    // The vocabulary of a file has 16 names.
                    let name = mix(seed.wrapping_add((names & 15) ^ u64::from(byte & 1)));
                    names >>= 4;
                    block.extend_from_slice(WORDS[(name % WORDS.len() as u64) as usize].as_bytes());
                }
                b'#' if block.last().is_some_and(|&b| b != b'\n') => {
                    block.extend_from_slice(format!("{}", (names >> 16) & 1023).as_bytes());
                }
                _ => block.push(byte),
            }
        }
    }
    block.truncate(BLOCK_BYTES);
    block[BLOCK_BYTES - 1] = b'\n';
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &Text) -> Vec<u8> {
        let mut out = Vec::new();
        text.write_to(&mut out).expect("a vector takes everything");
        assert_eq!(out.len() as u64, text.len());
        out
    }

    proptest::proptest! {
        /// Any edits of the pieces give the same bytes as the same edits of the bytes.
        #[test]
        fn pieces_and_bytes_agree(
            len in 0u32..5000,
            edits in proptest::collection::vec((0u64..6000, 0u64..3000, 0u64..9, 0u32..2500), 0..12)
        ) {
            let mut text = Text::new(1, len);
            let mut model = bytes(&text);
            for (at, removed, seed, inserted) in edits {
                text = text.edited(at, removed, seed, inserted);
                let start = (at as usize).min(model.len());
                let end = ((at + removed) as usize).min(model.len());
                model.splice(start..end, bytes(&Text::new(seed, inserted)));
                proptest::prop_assert_eq!(bytes(&text), model.clone());
            }
        }
    }

    #[test]
    fn a_text_looks_like_source() {
        let text = bytes(&Text::new(7, 4096));
        assert!(text.iter().all(|&b| b == b'\n' || b == b'\t' || (0x20..0x7f).contains(&b)));
        let lines = text.iter().filter(|&&b| b == b'\n').count();
        assert!((100..400).contains(&lines), "{lines} lines in 4 KiB");
    }
}
