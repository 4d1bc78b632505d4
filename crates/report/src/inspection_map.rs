//! The map of an inspection as an SVG of its own.

use std::{collections::BTreeMap, fmt::Write as _, str::FromStr};

use serde_json::Value as Json;

use crate::{
    chart::{colour, hilbert_place},
    figures::light_css,
    format::{bytes, count, escape},
};

/// The meaning of a cell's colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapColour {
    /// The place in the tree of the file that has most of the cell.
    #[default]
    Tree,
    /// That file's directory.
    Directory,
    /// That file, by a colour of its own.
    File,
    /// When its content was modified.
    Age,
    /// The number of extents of that file.
    Extents,
    /// The free share of the cell.
    Free,
}

impl MapColour {
    /// Every one.
    pub const ALL: [MapColour; 6] =
        [MapColour::Tree, MapColour::Directory, MapColour::File, MapColour::Age, MapColour::Extents, MapColour::Free];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            MapColour::Tree => "tree",
            MapColour::Directory => "directory",
            MapColour::File => "file",
            MapColour::Age => "age",
            MapColour::Extents => "extents",
            MapColour::Free => "free",
        }
    }
}

impl FromStr for MapColour {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|by| by.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("{name:?} is none of {known}")
        })
    }
}

const SIDE: f64 = 768.0;
const MARGIN: f64 = 24.0;
const HEAD: f64 = 74.0;
const FOOT: f64 = 74.0;
/// The number of characters that fit into a line.
const LETTERS: usize = 92;
/// Steps of a scale of colours, and of how pale a cell with few bytes of files is.
const STEPS: f64 = 24.0;
const SHADES: f64 = 4.0;

/// Hatches the cells after the end of the volume, as the page does.
const HATCH: &str = ".beyond { fill: url(#beyond); } .beyond-patch { fill: url(#beyond-patch); } .hatch { stroke: #98a2ac; stroke-width: 1.5; fill: none; }";

/// How a cell is drawn: a class, or a colour and how strong it is, in parts of [`SHADES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fill {
    Class(&'static str),
    Colour([u8; 3], u8),
}

/// Draws the map of an inspection as one SVG document, light, with its legend.
///
/// In: JSON of schema `senesce-inspect/2` with its map. Out: the same for the same input.
pub fn render_inspection_map(inspection: &Json, by: MapColour) -> String {
    let (width, height) = (SIDE + 2.0 * MARGIN, HEAD + SIDE + FOOT);
    let map = &inspection["map"];
    let side = map["side"].as_u64().unwrap_or(0) as u32;
    let cell_bytes = map["cell_bytes"].as_u64().unwrap_or(1).max(1);
    let title = format!("{}, {}", text(&inspection["target"]["path"]), text(&inspection["target"]["file_system"]));
    let caption = format!(
        "{} along a Hilbert curve: what is near on the volume is near here. Each of {} cells is {}.",
        bytes(inspection["volume_bytes"].as_f64().unwrap_or(0.0)),
        count(u64::from(side) * u64::from(side)),
        bytes(cell_bytes as f64),
    );
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"><title>{0}</title><style>{1}{HATCH}</style><rect class="paper" width="{width}" height="{height}"/><text class="figure-title" x="{MARGIN}" y="32">{0}</text><text class="tick" x="{MARGIN}" y="56">{2}</text>"#,
        escape(&shortened(&title)),
        light_css(""),
        escape(&caption),
    );
    let painter = Painter::new(inspection, by);
    let scale = SIDE / f64::from(side.max(1));
    // The scale of the cells is larger than that of the legend.
    for (id, scale) in [("beyond", 1.0 / scale), ("beyond-patch", 1.0)] {
        let _ = write!(
            svg,
            r#"<defs><pattern id="{id}" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="scale({scale:.5}) rotate(45)"><rect class="paper" width="7" height="7"/><path class="hatch" d="M1 0V7"/></pattern></defs>"#
        );
    }
    let _ = write!(
        svg,
        r#"<g transform="translate({MARGIN},{HEAD}) scale({scale:.4})" shape-rendering="crispEdges"><rect class="blank" width="{side}" height="{side}"/>"#
    );
    for (fill, path) in paths(side, |cell| painter.fill(cell)) {
        let _ = match fill {
            Fill::Class(class) => write!(svg, r#"<path class="{class}" d="{path}"/>"#),
            Fill::Colour(colour, shade) => {
                let opacity = f64::from(shade) / SHADES;
                write!(svg, r#"<path fill="{}" fill-opacity="{opacity}" d="{path}"/>"#, hex(colour))
            }
        };
    }
    svg.push_str("</g>");
    svg.push_str(&painter.legend(HEAD + SIDE));
    svg.push_str("</svg>\n");
    svg
}

/// One path for each fill; a run of equal cells of a row is one piece. Free cells are not drawn.
fn paths(side: u32, fill: impl Fn(usize) -> Option<Fill>) -> BTreeMap<Fill, String> {
    let width = side as usize;
    let mut square = vec![None; width * width];
    for cell in 0..square.len() {
        let (x, y) = hilbert_place(side, cell as u64);
        square[y as usize * width + x as usize] = fill(cell);
    }
    let mut paths: BTreeMap<Fill, String> = BTreeMap::new();
    for (y, row) in square.chunks(width.max(1)).enumerate() {
        let mut x = 0;
        for run in row.chunk_by(|a, b| a == b) {
            if let Some(fill) = run[0] {
                let _ = write!(paths.entry(fill).or_default(), "M{x} {y}h{}v1h-{}z", run.len(), run.len());
            }
            x += run.len();
        }
    }
    paths
}

/// The contents of the cells.
struct Painter {
    by: MapColour,
    cell_bytes: u64,
    volume_bytes: u64,
    knows_free: bool,
    used: Vec<u64>,
    free: Vec<u64>,
    owner: Vec<Option<u64>>,
    modified: Vec<i64>,
    /// The directory of each owner.
    directories: BTreeMap<u64, u64>,
    /// The extents of each owner, and the most of them.
    extents: BTreeMap<u64, u64>,
    most_extents: u64,
    last_owner: u64,
    /// When cells with files were modified, in order.
    times: Vec<i64>,
}

impl Painter {
    fn new(inspection: &Json, by: MapColour) -> Self {
        let map = &inspection["map"];
        let column = |name: &str| map[name].as_array().into_iter().flatten();
        let numbers = |name: &str| column(name).map(|value| value.as_u64().unwrap_or(0)).collect::<Vec<_>>();
        let (used, free) = (numbers("used"), numbers("free"));
        let owner: Vec<Option<u64>> = column("owner").map(Json::as_u64).collect();
        let modified: Vec<i64> = column("modified").map(|value| value.as_i64().unwrap_or(0)).collect();
        let of_files = |key: &str| -> BTreeMap<u64, u64> {
            let files = inspection["map_files"].as_array().into_iter().flatten();
            files.filter_map(|file| Some((file["number"].as_u64()?, file[key].as_u64()?))).collect()
        };
        let times = modified.iter().zip(&used).filter(|(_, used)| **used > 0).map(|(time, _)| *time);
        let mut times: Vec<i64> = times.collect();
        times.sort_unstable();
        let extents = of_files("extents");
        Self {
            by,
            cell_bytes: map["cell_bytes"].as_u64().unwrap_or(1).max(1),
            volume_bytes: inspection["volume_bytes"].as_u64().unwrap_or(0),
            knows_free: !inspection["free_space"].is_null(),
            directories: of_files("directory"),
            most_extents: extents.values().max().copied().unwrap_or(1),
            extents,
            last_owner: owner.iter().flatten().max().copied().unwrap_or(0).max(1),
            used,
            free,
            owner,
            modified,
            times,
        }
    }

    /// The fill of a cell; `None` for a free one.
    fn fill(&self, cell: usize) -> Option<Fill> {
        let at = |list: &[u64]| list.get(cell).copied().unwrap_or(0);
        let (used, free) = (at(&self.used), at(&self.free));
        if used == 0 && cell as u64 * self.cell_bytes >= self.volume_bytes {
            return Some(Fill::Class("beyond"));
        }
        let share = |bytes: u64| (bytes as f64 / self.cell_bytes as f64).min(1.0);
        if self.by == MapColour::Free {
            let shade = (share(free) * SHADES).round() as u8;
            return (shade > 0).then_some(Fill::Colour(FREE, shade));
        }
        if used == 0 {
            return (self.knows_free && free < self.cell_bytes / 2).then_some(Fill::Class("metadata"));
        }
        let owner = self.owner.get(cell).copied().flatten().unwrap_or(0);
        let colour = match self.by {
            MapColour::Directory => stranger(self.directories.get(&owner).copied().unwrap_or(0)),
            MapColour::File => stranger(owner),
            MapColour::Age => step(self.rank(self.modified.get(cell).copied().unwrap_or(0))),
            MapColour::Extents => {
                let extents = self.extents.get(&owner).copied().unwrap_or(1).max(1);
                step((extents as f64).log2() / (self.most_extents.max(2) as f64).log2())
            }
            MapColour::Tree | MapColour::Free => step(owner as f64 / self.last_owner as f64),
        };
        // As in the page: a cell with few bytes of files is pale.
        Some(Fill::Colour(colour, ((0.35 + 0.65 * share(used)) * SHADES).round() as u8))
    }

    /// A time's place among all, 0..=1.
    fn rank(&self, time: i64) -> f64 {
        match self.times.len() {
            0 | 1 => 0.5,
            count => self.times.partition_point(|other| *other < time) as f64 / (count - 1) as f64,
        }
    }

    fn legend(&self, top: f64) -> String {
        let says = match self.by {
            MapColour::Tree => {
                "Colour: place in the tree of the file that holds most of a cell, from the first to the last".to_owned()
            }
            MapColour::Directory => {
                "Colour: directory of the file that holds most of a cell; one colour may stand for several".to_owned()
            }
            MapColour::File => "Colour: file that holds most of a cell; one colour may stand for several".to_owned(),
            MapColour::Age => match (self.times.first(), self.times.last()) {
                (Some(&first), Some(&last)) => {
                    format!("Colour: when the content was modified, from {} to {} (UTC)", moment(first), moment(last))
                }
                _ => "Colour: when the content was modified".to_owned(),
            },
            MapColour::Extents => match self.most_extents {
                0 | 1 => "Colour: extents of the file that holds most of a cell; each file has one extent".to_owned(),
                most => format!(
                    "Colour: extents of the file that holds most of a cell, from 1 to {}, on a logarithmic scale",
                    count(most)
                ),
            },
            MapColour::Free if !self.knows_free => "What is free is not known".to_owned(),
            MapColour::Free => "Colour: how much of a cell is free, from nothing to all of it".to_owned(),
        };
        let mut svg = format!(r#"<text class="tick" x="{MARGIN}" y="{}">{}</text>"#, top + 26.0, escape(&says));
        let y = top + 40.0;
        let mut x = MARGIN;
        if self.by != MapColour::Free {
            const BAR: f64 = 240.0;
            for at in 0..STEPS as u32 {
                let share = f64::from(at) / (STEPS - 1.0);
                let colour = match self.by {
                    MapColour::Directory | MapColour::File => hue(share * 360.0, 0.55, 0.52),
                    _ => step(share),
                };
                let width = BAR / STEPS;
                let _ = write!(
                    svg,
                    r#"<rect fill="{}" x="{:.1}" y="{y}" width="{:.1}" height="12"/>"#,
                    hex(colour),
                    x + f64::from(at) * width,
                    width + 0.2
                );
            }
            x += BAR + 28.0;
        }
        let patches = match (self.by, self.knows_free) {
            (MapColour::Free, true) => vec![("", "free"), ("blank", "files and metadata")],
            (MapColour::Free, false) => vec![("blank", "not known")],
            (_, true) => vec![("blank", "free"), ("metadata", "metadata, other files")],
            (_, false) => vec![("blank", "free, metadata, other files")],
        };
        let has_beyond = self.used.len() as u64 * self.cell_bytes > self.volume_bytes;
        for (class, name) in
            patches.into_iter().chain(has_beyond.then_some(("beyond-patch", "beyond the volume's end")))
        {
            let style =
                if class.is_empty() { format!(r#"fill="{}""#, hex(FREE)) } else { format!(r#"class="{class}""#) };
            let _ = write!(
                svg,
                r#"<g><rect {style} x="{x}" y="{y}" width="12" height="12"/><rect class="axis" fill="none" x="{x}" y="{y}" width="12" height="12"/><text class="tick" x="{}" y="{}">{name}</text></g>"#,
                x + 18.0,
                y + 10.0
            );
            x += 42.0 + 7.0 * name.len() as f64;
        }
        svg
    }
}

const FREE: [u8; 3] = [29, 95, 168];

/// A colour of the scale, in steps.
fn step(share: f64) -> [u8; 3] {
    colour((share.clamp(0.0, 1.0) * (STEPS - 1.0)).round() / (STEPS - 1.0))
}

/// A colour that neighbours in number do not have.
fn stranger(number: u64) -> [u8; 3] {
    // Turns by the golden angle, in steps of five degrees, so that there are not too many colours.
    let degrees = ((number as f64 * 137.508) % 360.0 / 5.0).floor() * 5.0;
    let lightness = 0.42 + 0.05 * ((number as f64 * 0.618) % 1.0 * 5.0).floor();
    hue(degrees, 0.55, lightness)
}

fn hue(degrees: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    let chroma = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|n| {
        let k = (n + degrees / 30.0) % 12.0;
        (255.0 * (lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0))).round() as u8
    })
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or("–")
}

/// A line that fits, without its middle if it is too long.
fn shortened(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= LETTERS {
        return line.to_owned();
    }
    let (start, end) = (&letters[..LETTERS / 3], &letters[letters.len() - (LETTERS - LETTERS / 3 - 1)..]);
    start.iter().chain(['…'].iter()).chain(end).collect()
}

/// Seconds since 1970 as day and minute, UTC. `–`: no calendar has this second.
fn moment(seconds: i64) -> String {
    let at = jiff::Timestamp::from_second(seconds);
    at.map_or_else(|_| "–".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Json {
        json!({
            "target": { "path": "/srv/<data>", "file_system": "ext4" },
            "volume_bytes": 14 * 4096,
            "free_space": {},
            "map": {
                "side": 4, "cell_bytes": 4096,
                "used": [4096, 4096, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                "free": [0, 0, 0, 0, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 0, 0],
                "extents": [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                "owner": [1, 2, 3, null, null, null, null, null, null, null, null, null, null, null, null, null],
                "modified": [0, 86_400, 951_782_400, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            },
            "map_files": [
                { "number": 1, "directory": 0, "extents": 1 },
                { "number": 2, "directory": 0, "extents": 8 },
                { "number": 3, "directory": 7, "extents": 1 },
            ],
        })
    }

    fn cells(svg: &str) -> &str {
        &svg[svg.find(r#"<g transform"#).unwrap()..svg.find("</g>").unwrap()]
    }

    #[test]
    fn every_colouring_has_title_metadata_and_end() {
        for by in MapColour::ALL {
            let svg = render_inspection_map(&sample(), by);
            assert!(svg.contains("/srv/&lt;data&gt;, ext4") && svg.contains("Each of 16 cells is 4 KiB"), "{svg}");
            // The last two cells of the curve are after the volume's end; the fourth one holds
            // metadata.
            assert!(cells(&svg).contains(r#"<path class="beyond""#), "{svg}");
            assert_eq!(cells(&svg).contains(r#"<path class="metadata""#), by != MapColour::Free);
            assert_eq!(by.name().parse(), Ok(by));
        }
        assert!("colour".parse::<MapColour>().unwrap_err().contains("tree, directory, file, age, extents, free"));
    }

    #[test]
    fn files_of_a_directory_share_directory_colour() {
        let colours = |by| {
            let svg = render_inspection_map(&sample(), by);
            cells(&svg).matches("fill-opacity").count()
        };
        // By directory the first two cells are one piece, by file and place they are not.
        assert_eq!([MapColour::Directory, MapColour::File, MapColour::Tree].map(colours), [2, 3, 3]);
        assert_eq!(colours(MapColour::Free), 1);
        // The second file has eight extents, and the last cell is pale.
        assert_eq!(colours(MapColour::Extents), 3);
        assert!(render_inspection_map(&sample(), MapColour::Extents).contains("from 1 to 8, on a logarithmic scale"));
    }

    #[test]
    fn times_are_dates() {
        assert_eq!(moment(i64::MAX), "–");
        let found = [0, 951_782_399, 951_782_400, -1, 4_102_444_799].map(moment);
        let dates =
            ["1970-01-01 00:00", "2000-02-28 23:59", "2000-02-29 00:00", "1969-12-31 23:59", "2099-12-31 23:59"];
        assert_eq!(found, dates);
        let svg = render_inspection_map(&sample(), MapColour::Age);
        assert!(svg.contains("from 1970-01-01 00:00 to 2000-02-29 00:00 (UTC)"), "{svg}");
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        let line = format!("/{}/end", "x".repeat(200));
        let short = shortened(&line);
        assert!(short.chars().count() == LETTERS && short.ends_with("/end") && short.starts_with("/xx"), "{short}");
    }
}
