//! Compares the layouts of two inspections. The files are untrusted input.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use senesce_core::{
    Bytes, Printable, Seed,
    names::{list, with_more},
    numbers::count,
    statistics::compute_comparison,
};
use serde::Deserialize;

use super::{
    super::inspections::{Inspected, read_inspections, shorten},
    Row,
    figures::{FREE_EXTENTS, Kind, LAYOUT_SCORE, Missing, SLOWDOWN},
    names::of_device,
    unlike::Unlike,
};
use crate::{args::CompareArgs, exit::usage};

/// An inspection has at most this number of modelled devices. The built-in models are fewer.
const MOST_COSTS: usize = 64;
/// A message names at most this number of figures.
const NAMED: usize = 12;

/// The parts of an inspection that are compared.
#[derive(Deserialize)]
struct Document {
    schema: String,
    target: Target,
    tree: Tree,
    costs: Vec<Cost>,
    free_space: Option<FreeSpace>,
}

#[derive(Deserialize)]
struct Target {
    file_system: String,
    kernel: String,
    /// `None` if the tree was read without a mount.
    mount_options: Option<String>,
    capacity_bytes: u64,
    read_ahead_kib: u64,
}

#[derive(Deserialize)]
struct Tree {
    files: u64,
    directories: u64,
    not_looked_at: u64,
    content_bytes: u64,
    layout: Layout,
}

#[derive(Deserialize)]
struct Layout {
    layout_score: Option<f64>,
    extents_per_file: Option<f64>,
    adjacent_files_share: Option<f64>,
}

#[derive(Deserialize)]
struct Cost {
    device: String,
    slowdown: Option<f64>,
    seconds_per_gib: Option<AsFound<f64>>,
    requests: AsFound<u64>,
}

/// The value of the layout as it was found.
#[derive(Deserialize)]
struct AsFound<T> {
    as_it_lies: T,
}

#[derive(Deserialize)]
struct FreeSpace {
    figures: FreeFigures,
}

#[derive(Deserialize)]
struct FreeFigures {
    extents: u64,
}

impl Inspected for Document {
    fn schema(&self) -> &str {
        &self.schema
    }
}

/// A figure: its name, its origin, whether more is better, and its value.
type Figure = (String, Kind, bool, f64);

impl Document {
    /// The costs on each device, then the layout, then the free space.
    fn figures(&self) -> Vec<Figure> {
        let mut found: Vec<Figure> = Vec::new();
        for Cost { device, slowdown, seconds_per_gib, requests } in &self.costs {
            let mut add =
                |figure: &str, value: f64| found.push((format!("{device} {figure}"), Kind::Modelled, false, value));
            if let Some(cost) = seconds_per_gib {
                add("s/GiB", cost.as_it_lies);
            }
            slowdown.iter().for_each(|slowdown| add(SLOWDOWN, *slowdown));
            add("requests", requests.as_it_lies as f64);
        }
        let Layout { layout_score, extents_per_file, adjacent_files_share } = self.tree.layout;
        let mut add = |figure: &str, is_better: bool, value: Option<f64>| {
            found.extend(value.map(|value| (figure.to_owned(), Kind::Counted, is_better, value)));
        };
        add(LAYOUT_SCORE, true, layout_score);
        add("extents per file", false, extents_per_file);
        add("share of files with the next file adjacent", true, adjacent_files_share);
        let free = self.free_space.as_ref().map(|free| &free.figures);
        add(FREE_EXTENTS, false, free.map(|free| free.extents as f64));
        found.retain(|(.., value)| value.is_finite());
        found
    }

    /// Errors: costs that could make a false row, or let a gate pass. `inspect` writes two costs of
    /// one device only if it is named twice.
    fn check(&self) -> Result<(), String> {
        if self.costs.len() > MOST_COSTS {
            return Err(format!("it has {} modelled devices; at most {MOST_COSTS} are compared", self.costs.len()));
        }
        let mut devices = BTreeSet::new();
        if let Some(twice) = self.costs.iter().find(|cost| !devices.insert(&cost.device)) {
            return Err(format!("it has two costs on the device {:?}: name each device once", twice.device));
        }
        match self.figures().into_iter().find(|(.., value)| *value < 0.0) {
            Some((name, .., value)) => Err(format!("the figure {name:?} is {value}, which is below 0")),
            None => Ok(()),
        }
    }

    /// The entries of the tree that could not be read. `None` if all were read.
    fn unread(&self, name: &str) -> Option<Missing> {
        let reason = match self.tree.not_looked_at {
            0 => return None,
            1 => format!("{name} lacks 1 entry that could not be read"),
            unread => format!("{name} lacks {} entries that could not be read", count(unread)),
        };
        Some(Missing::new(&["tree"], reason))
    }

    /// Facts that a reader of a comparison must know: group, key, value. Unread entries have notes.
    fn circumstances(&self) -> [(&'static str, &'static str, String); 8] {
        let Target { file_system, kernel, mount_options, capacity_bytes, read_ahead_kib } = &self.target;
        let Tree { files, directories, content_bytes, .. } = &self.tree;
        [
            ("tree", "files", files.to_string()),
            ("tree", "directories", directories.to_string()),
            ("tree", "contents", Bytes(*content_bytes).to_string()),
            ("file system", "kind", file_system.clone()),
            ("file system", "capacity", Bytes(*capacity_bytes).to_string()),
            ("file system", "mount_options", mount_options.clone().unwrap_or_else(|| "not mounted".to_owned())),
            ("machine", "read_ahead_kib", read_ahead_kib.to_string()),
            ("kernel", "release", kernel.clone()),
        ]
    }
}

/// The comparison of two inspections.
pub(super) struct Compared {
    /// The figures that both have.
    pub(super) rows: Vec<Row>,
    /// The facts in which they differ.
    pub(super) unlike: Vec<Unlike>,
    /// The sides that lack entries of their trees.
    pub(super) missing: Vec<Missing>,
    /// The figure that comes first: that of the first device.
    pub(super) headline: Option<String>,
}

/// Compares two inspections.
///
/// Errors: a file holds no inspection or several ones, or impossible figures; an option has no
/// effect on inspections; no selected figure is in both inspections.
pub(super) fn compare_inspections(args: &CompareArgs) -> Result<Compared> {
    refuse_options(args)?;
    let (a, b) = (read_one(&args.a)?, read_one(&args.b)?);
    let of_b: BTreeMap<String, f64> = b.figures().into_iter().map(|(name, .., value)| (name, value)).collect();
    let patterns = &args.select.figure;
    let is_selected = |name: &str| patterns.is_empty() || patterns.iter().any(|pattern| pattern.is_match(name));
    let mut rows = Vec::new();
    for (figure, kind, more_is_better, value) in a.figures().into_iter().filter(|figure| is_selected(&figure.0)) {
        let Some(other) = of_b.get(&figure) else { continue };
        let (figures_a, figures_b) = (vec![value], vec![*other]);
        rows.push(Row {
            of: vec!["tree".to_owned()],
            figure,
            kind,
            more_is_better,
            comparison: compute_comparison(&figures_a, &figures_b, Seed(1)),
            figures_a,
            figures_b,
            outcome: None,
            judgement: None,
        });
    }
    if rows.is_empty() {
        let names = |document: &Document| {
            let figures = document.figures();
            let all = figures.len();
            let names = with_more(figures.into_iter().take(NAMED).map(|figure| figure.0), all);
            Printable::new(&list(&names)).to_string()
        };
        let hint = format!("figures of A: {}; figures of B: {}", names(&a), names(&b));
        return Err(usage("the inspections have no figure in common that --figure selects", Some(&hint)));
    }
    let pairs = a.circumstances().into_iter().zip(b.circumstances());
    let unlike: Vec<Unlike> = pairs
        .filter(|(of_a, of_b)| of_a.2 != of_b.2)
        .map(|((group, key, of_a), (_, _, of_b))| Unlike::of_both(group, key, (shorten(&of_a), shorten(&of_b))))
        .collect();
    let missing = [("A", &a), ("B", &b)].into_iter().filter_map(|(name, document)| document.unread(name));
    let missing = missing.collect();
    let headline = a.costs.iter().find_map(|cost| of_device(&rows, &cost.device));
    Ok(Compared { rows, unlike, missing, headline })
}

/// Errors: an option is given that has an effect on runs or trees only.
fn refuse_options(args: &CompareArgs) -> Result<()> {
    if args.select.all || !args.select.role.is_empty() || !args.select.arm.is_empty() {
        let message = "--all, --role and --arm have an effect on runs only, and these are inspections";
        return Err(usage(message, Some("leave them out; --figure selects figures")));
    }
    if args.measured || args.cold || args.warmups.is_some() || args.runs.is_some() {
        let message = "--measured, --cold, --warmups and --runs are about wall times, and inspections have none";
        return Err(usage(message, Some("leave them out")));
    }
    Ok(())
}

/// The only inspection of a file.
fn read_one(path: &Path) -> Result<Document> {
    let mut found: Vec<Document> = read_inspections(path, "compare")?;
    match found.len() {
        1 => {
            let mut document = found.swap_remove(0);
            document.costs.iter_mut().for_each(|cost| cost.device = shorten(&cost.device));
            let hint = Some("write it again with `senesce inspect PLACE --json --no-map > FILE`");
            let refused = |problem: String| usage(format!("{}: {problem}", Printable::new(path)), hint);
            document.check().map_err(refused)?;
            Ok(document)
        }
        more => {
            let message = format!("{} has {more} inspections, and compare needs one", Printable::new(path));
            Err(usage(message, Some("write each inspection into a file of its own")))
        }
    }
}
