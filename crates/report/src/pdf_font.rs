//! A font of a PDF: the glyphs that a drawing uses, with their widths and texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use subsetter::{GlyphRemapper, subset};

use crate::pdf::File;

/// A TrueType font, and the glyphs of it that are used.
pub(crate) struct Font {
    name: String,
    /// Its PostScript name, with the tag that marks a subset.
    base: String,
    data: Vec<u8>,
    index: u32,
    units_per_em: u16,
    glyphs: GlyphRemapper,
    /// Width and text of each glyph, by its number in the subset.
    used: BTreeMap<u16, (f64, String)>,
}

/// The tables of a font that are read here.
struct Tables<'d> {
    data: &'d [u8],
    base: usize,
}

impl<'d> Tables<'d> {
    fn find(&self, tag: &[u8; 4]) -> Option<&'d [u8]> {
        let count = number(self.data, self.base + 4)?;
        (0..usize::from(count)).map(|at| self.base + 12 + at * 16).find_map(|entry| {
            let range = |at: usize| Some(u32::from_be_bytes(self.data.get(at..at + 4)?.try_into().ok()?) as usize);
            (self.data.get(entry..entry + 4)? == tag).then_some(())?;
            let (from, length) = (range(entry + 8)?, range(entry + 12)?);
            self.data.get(from..from.checked_add(length)?)
        })
    }
}

fn number(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?))
}

impl Font {
    /// The font; none if it has no TrueType outlines.
    pub(crate) fn read(number_of_font: usize, post_script: &str, data: &[u8], index: u32) -> Option<Self> {
        let base = match data.get(..4)? {
            b"ttcf" => {
                let at = 12 + index as usize * 4;
                u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize
            }
            _ => 0,
        };
        let tables = Tables { data, base };
        tables.find(b"glyf")?;
        let units_per_em = number(tables.find(b"head")?, 18).filter(|units| *units > 0)?;
        let is_name = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
        let name: String = post_script.chars().filter(is_name).collect();
        Some(Self {
            name: format!("F{number_of_font}"),
            base: format!("SENESC+{}", if name.is_empty() { "Font" } else { &name }),
            data: data.to_vec(),
            index,
            units_per_em,
            glyphs: GlyphRemapper::new(),
            used: BTreeMap::new(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn units_per_em(&self) -> u16 {
        self.units_per_em
    }

    fn tables(&self) -> Tables<'_> {
        let at = 12 + self.index as usize * 4;
        let base = match self.data.starts_with(b"ttcf") {
            true => {
                self.data.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes) as usize
            }
            false => 0,
        };
        Tables { data: &self.data, base }
    }

    /// The number of a glyph in the subset.
    pub(crate) fn code(&mut self, glyph: u16, text: &str) -> u16 {
        let code = self.glyphs.remap(glyph);
        let width = self.width(glyph);
        self.used.entry(code).or_insert_with(|| (width, text.to_owned()));
        code
    }

    /// The width of a glyph in thousandths of the font's size.
    fn width(&self, glyph: u16) -> f64 {
        let tables = self.tables();
        let units = || {
            let metrics = number(tables.find(b"hhea")?, 34)?.max(1);
            number(tables.find(b"hmtx")?, usize::from(glyph.min(metrics - 1)) * 4)
        };
        f64::from(units().unwrap_or(self.units_per_em)) * 1000.0 / f64::from(self.units_per_em)
    }

    /// Writes the font and returns the number of its object.
    pub(crate) fn write(&self, file: &mut File) -> usize {
        let subset = subset(&self.data, self.index, &self.glyphs).unwrap_or_else(|_| self.data.clone());
        let objects = [(); 5].map(|()| file.reserve());
        let [font, descendant, descriptor, program, texts] = objects;
        let base = &self.base;
        let mut widths = String::new();
        for (code, (width, _)) in &self.used {
            let _ = write!(widths, "{code} [{width:.0}] ");
        }
        file.object(
            font,
            &format!(
                "<< /Type /Font /Subtype /Type0 /BaseFont /{base} /Encoding /Identity-H /DescendantFonts [{descendant} 0 R] \
                 /ToUnicode {texts} 0 R >>"
            ),
        );
        file.object(
            descendant,
            &format!(
                "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{base} /CIDSystemInfo << /Registry (Adobe) /Ordering \
                 (Identity) /Supplement 0 >> /FontDescriptor {descriptor} 0 R /CIDToGIDMap /Identity /W [{widths}] >>"
            ),
        );
        let tables = self.tables();
        let scaled = |table: &[u8; 4], at: usize| {
            let units = tables.find(table).and_then(|table| number(table, at)).unwrap_or(0) as i16;
            (f64::from(units) * 1000.0 / f64::from(self.units_per_em)).round()
        };
        let (ascent, descent) = (scaled(b"hhea", 4), scaled(b"hhea", 6));
        let sides = [36, 38, 40, 42].map(|at| scaled(b"head", at).to_string()).join(" ");
        file.object(
            descriptor,
            &format!(
                "<< /Type /FontDescriptor /FontName /{base} /Flags 4 /FontBBox [{sides}] /ItalicAngle 0 /Ascent {ascent} \
                 /Descent {descent} /CapHeight {ascent} /StemV 80 /FontFile2 {program} 0 R >>"
            ),
        );
        file.stream(program, &format!(" /Length1 {}", subset.len()), &subset);
        file.stream(texts, "", self.to_unicode().as_bytes());
        font
    }

    /// The map from glyphs to texts, by which readers search and copy.
    fn to_unicode(&self) -> String {
        let mut map = String::from(
            "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CIDSystemInfo << /Registry (Adobe) /Ordering \
             (UCS) /Supplement 0 >> def\n/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n1 begincodespacerange\n<0000> \
             <FFFF>\nendcodespacerange\n",
        );
        let texts: Vec<_> = self.used.iter().filter(|(_, (_, text))| !text.is_empty()).collect();
        for some in texts.chunks(100) {
            let _ = writeln!(map, "{} beginbfchar", some.len());
            for (code, (_, text)) in some {
                let units: String = text.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
                let _ = writeln!(map, "<{code:04X}> <{units}>");
            }
            map.push_str("endbfchar\n");
        }
        map + "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
    }
}
