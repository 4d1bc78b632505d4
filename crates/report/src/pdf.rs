//! Drawings as PDF, with the glyphs of their fonts embedded, for papers.
//!
//! The input is the same SVG that other files hold, as resvg's parser reads it. The drawings have
//! paths and texts only: no gradients, filters or clips. Texts stay texts, so that they can be
//! searched. A font without TrueType outlines is drawn as shapes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use resvg::tiny_skia::{PathSegment, Transform};
use resvg::usvg::{self, Node, Paint, fontdb};

use crate::pdf_font::Font;

/// Points of PDF in a millimetre.
const POINTS: f64 = 72.0 / 25.4;

/// The drawing as a PDF of one page, `width_mm` wide.
pub(crate) fn pdf(tree: &usvg::Tree, width_mm: f64) -> Vec<u8> {
    let (width, height) = (f64::from(tree.size().width()), f64::from(tree.size().height()));
    let scale = width_mm * POINTS / width;
    let mut page = Page { content: String::new(), fonts: BTreeMap::new(), alphas: Vec::new(), tree };
    let _ = writeln!(page.content, "{} 0 0 {} 0 {} cm", short(scale), short(-scale), short(height * scale));
    page.group(tree.root(), 1.0);
    page.finish(width * scale, height * scale)
}

/// A number with at most four decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn matrix(transform: Transform) -> String {
    [transform.sx, transform.ky, transform.kx, transform.sy, transform.tx, transform.ty]
        .map(|value| short_matrix(f64::from(value)))
        .join(" ")
}

/// Matrices of glyphs have small factors, so they have more decimals.
fn short_matrix(value: f64) -> String {
    let text = format!("{value:.7}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

struct Page<'t> {
    content: String,
    /// Fonts by their number in the database; none of those that cannot be embedded.
    fonts: BTreeMap<String, Option<Font>>,
    /// Opacities of fills and strokes, in thousandths.
    alphas: Vec<(u32, u32)>,
    tree: &'t usvg::Tree,
}

impl Page<'_> {
    fn group(&mut self, group: &usvg::Group, opacity: f32) {
        let opacity = opacity * group.opacity().get();
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group, opacity),
                Node::Path(path) => self.path(path, opacity),
                Node::Text(text) => self.text(text, opacity),
                Node::Image(_) => {}
            }
        }
    }

    fn path(&mut self, path: &usvg::Path, opacity: f32) {
        let fill = path.fill().and_then(|fill| Some((colour(fill.paint())?, fill.opacity().get(), fill.rule())));
        let stroke = path.stroke().and_then(|stroke| Some((colour(stroke.paint())?, stroke)));
        if !path.is_visible() || (fill.is_none() && stroke.is_none()) {
            return;
        }
        let alpha = (
            fill.as_ref().map_or(1.0, |(_, alpha, _)| *alpha) * opacity,
            stroke.as_ref().map_or(1.0, |(_, stroke)| stroke.opacity().get()) * opacity,
        );
        let state = self.alpha(alpha);
        let _ = writeln!(self.content, "q {state}{} cm", matrix(path.abs_transform()));
        if let Some((colour, ..)) = &fill {
            let _ = writeln!(self.content, "{colour} rg");
        }
        if let Some((colour, stroke)) = &stroke {
            let dashes = stroke.dasharray().unwrap_or_default();
            let dashes: Vec<String> = dashes.iter().map(|dash| short(f64::from(*dash))).collect();
            let _ = writeln!(
                self.content,
                "{colour} RG {} w {} J {} j [{}] {} d",
                short(f64::from(stroke.width().get())),
                stroke.linecap() as u8,
                match stroke.linejoin() {
                    usvg::LineJoin::Round => 1,
                    usvg::LineJoin::Bevel => 2,
                    _ => 0,
                },
                dashes.join(" "),
                short(f64::from(stroke.dashoffset())),
            );
        }
        self.outline(path.data());
        let is_even_odd = fill.as_ref().is_some_and(|(.., rule)| *rule == usvg::FillRule::EvenOdd);
        let paint = match (fill.is_some(), stroke.is_some(), is_even_odd) {
            (true, true, false) => "B",
            (true, true, true) => "B*",
            (true, false, false) => "f",
            (true, false, true) => "f*",
            _ => "S",
        };
        let _ = writeln!(self.content, "{paint} Q");
    }

    fn outline(&mut self, data: &resvg::tiny_skia::Path) {
        let mut last = (0.0, 0.0);
        let point = |x: f32, y: f32| format!("{} {}", short(f64::from(x)), short(f64::from(y)));
        for segment in data.segments() {
            let line = match segment {
                PathSegment::MoveTo(to) => format!("{} m", point(to.x, to.y)),
                PathSegment::LineTo(to) => format!("{} l", point(to.x, to.y)),
                // PDF has cubic curves only.
                PathSegment::QuadTo(by, to) => {
                    let toward = |from: f32, by: f32| from + (by - from) * 2.0 / 3.0;
                    let first = point(toward(last.0, by.x), toward(last.1, by.y));
                    let second = point(toward(to.x, by.x), toward(to.y, by.y));
                    format!("{first} {second} {} c", point(to.x, to.y))
                }
                PathSegment::CubicTo(a, b, to) => {
                    format!("{} {} {} c", point(a.x, a.y), point(b.x, b.y), point(to.x, to.y))
                }
                PathSegment::Close => "h".to_owned(),
            };
            if let PathSegment::MoveTo(to)
            | PathSegment::LineTo(to)
            | PathSegment::QuadTo(_, to)
            | PathSegment::CubicTo(_, _, to) = segment
            {
                last = (to.x, to.y);
            }
            let _ = writeln!(self.content, "{line}");
        }
    }

    fn text(&mut self, text: &usvg::Text, opacity: f32) {
        let glyphs = || text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
        let can_embed = glyphs().all(|glyph| self.font(glyph.font).is_some());
        if !can_embed {
            return self.group(text.flattened(), opacity);
        }
        for span in text.layouted().iter().filter(|span| span.visible) {
            let Some((fill, colour)) = span.fill.as_ref().and_then(|fill| Some((fill, colour(fill.paint())?))) else {
                continue;
            };
            let state = self.alpha((fill.opacity().get() * opacity, 1.0));
            let _ = writeln!(self.content, "q {state}{} cm {colour} rg BT", matrix(text.abs_transform()));
            for glyph in &span.positioned_glyphs {
                let Some(font) = self.font(glyph.font) else { continue };
                let Ok(number) = u16::try_from(glyph.id.0) else { continue };
                let code = font.code(number, &glyph.text);
                let (name, em) = (font.name().to_owned(), f32::from(font.units_per_em()));
                let place = glyph.outline_transform().pre_scale(em, em);
                let _ = writeln!(self.content, "/{name} 1 Tf {} Tm <{code:04x}> Tj", matrix(place));
            }
            self.content.push_str("ET Q\n");
        }
    }

    fn font(&mut self, id: fontdb::ID) -> Option<&mut Font> {
        let number = self.fonts.len();
        let fonts = self.tree.fontdb();
        let font = self.fonts.entry(id.to_string()).or_insert_with(|| {
            let post_script = fonts.face(id).map_or_else(String::new, |face| face.post_script_name.clone());
            fonts.with_face_data(id, |data, index| Font::read(number, &post_script, data, index)).flatten()
        });
        font.as_mut()
    }

    /// The operator that sets opacities; nothing if all is opaque.
    fn alpha(&mut self, (fill, stroke): (f32, f32)) -> String {
        let thousandths = |alpha: f32| (alpha * 1000.0).round() as u32;
        let wanted = (thousandths(fill), thousandths(stroke));
        if wanted == (1000, 1000) {
            return String::new();
        }
        let at = self.alphas.iter().position(|alpha| *alpha == wanted).unwrap_or_else(|| {
            self.alphas.push(wanted);
            self.alphas.len() - 1
        });
        format!("/A{at} gs ")
    }

    fn finish(self, width: f64, height: f64) -> Vec<u8> {
        let mut file = File::default();
        let (catalog, pages, page) = (file.reserve(), file.reserve(), file.reserve());
        let content = file.reserve();
        file.stream(content, "", self.content.as_bytes());
        let mut names = String::new();
        for font in self.fonts.values().flatten() {
            let _ = write!(names, "/{} {} 0 R ", font.name(), font.write(&mut file));
        }
        let mut states = String::new();
        for (at, (fill, stroke)) in self.alphas.iter().enumerate() {
            let share = |thousandths: u32| short(f64::from(thousandths) / 1000.0);
            let _ = write!(states, "/A{at} << /ca {} /CA {} >> ", share(*fill), share(*stroke));
        }
        file.object(catalog, &format!("<< /Type /Catalog /Pages {pages} 0 R >>"));
        file.object(pages, &format!("<< /Type /Pages /Kids [{page} 0 R] /Count 1 >>"));
        file.object(
            page,
            &format!(
                "<< /Type /Page /Parent {pages} 0 R /MediaBox [0 0 {} {}] /Contents {content} 0 R /Resources << /Font << \
                 {names}>> /ExtGState << {states}>> >> >>",
                short(width),
                short(height)
            ),
        );
        file.finish(catalog)
    }
}

/// A colour as three shares; `None` if there is no colour.
fn colour(paint: &Paint) -> Option<String> {
    let Paint::Color(colour) = paint else { return None };
    Some([colour.red, colour.green, colour.blue].map(|channel| short(f64::from(channel) / 255.0)).join(" "))
}

/// The objects of a PDF file.
#[derive(Default)]
pub(crate) struct File {
    bytes: Vec<u8>,
    /// Where each object begins.
    places: Vec<usize>,
}

impl File {
    /// The number of an object that is written later.
    pub(crate) fn reserve(&mut self) -> usize {
        self.places.push(0);
        self.places.len()
    }

    pub(crate) fn object(&mut self, number: usize, content: &str) {
        self.begin(number);
        self.bytes.extend(format!("{content}\nendobj\n").bytes());
    }

    pub(crate) fn stream(&mut self, number: usize, entries: &str, data: &[u8]) {
        self.begin(number);
        self.bytes.extend(format!("<< /Length {}{entries} >>\nstream\n", data.len()).bytes());
        self.bytes.extend(data);
        self.bytes.extend(b"\nendstream\nendobj\n");
    }

    fn begin(&mut self, number: usize) {
        if self.bytes.is_empty() {
            // The four bytes beyond ASCII say that the file is binary.
            self.bytes.extend(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n");
        }
        self.places[number - 1] = self.bytes.len();
        self.bytes.extend(format!("{number} 0 obj\n").bytes());
    }

    fn finish(mut self, catalog: usize) -> Vec<u8> {
        let start = self.bytes.len();
        let count = self.places.len() + 1;
        self.bytes.extend(format!("xref\n0 {count}\n0000000000 65535 f \n").bytes());
        for place in &self.places {
            self.bytes.extend(format!("{place:010} 00000 n \n").bytes());
        }
        self.bytes
            .extend(format!("trailer\n<< /Size {count} /Root {catalog} 0 R >>\nstartxref\n{start}\n%%EOF\n").bytes());
        self.bytes
    }
}
