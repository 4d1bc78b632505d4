//! `senesce fs diff`: what became of the files of a volume since a snapshot.

use std::collections::BTreeSet;

use crate::version;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_fsapi::FileKind;
use senesce_garden::{Change, InodeChange};
use senesce_volume::install_signal_cleanup;
use serde::Serialize;

use super::{
    name_arguments::{explain, show, split},
    paths::{self, Paths},
    send_request::with_format,
};
use crate::{args::FsDiffArgs, table::render_table};

/// A change with the names that its inode had and has.
struct Named {
    change: InodeChange,
    before: Vec<String>,
    after: Vec<String>,
}

/// Compares two snapshots of a volume, or one with the volume as opening makes it. Nothing is
/// written.
pub fn diff(args: &FsDiffArgs) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, names) = split(&args.words, &args.drives, 2..=3)?;
    let (volume, from, to) = (&names[0], &names[1], names.get(2).map(|name| &name[..]));
    let garden = place.garden(&place.look()?)?;
    let changes = garden.diff(volume, from, to).map_err(|error| explain(&garden, volume, error))?;
    let (earlier, later) = (
        garden.snapshot(volume, from)?,
        match to {
            Some(name) => garden.snapshot(volume, name)?,
            None => garden.volume(volume)?,
        },
    );
    let wanted: BTreeSet<u64> = changes.iter().map(|change| change.ino).collect();
    let cannot = || format!("cannot find the paths of the files that differ in volume {}", show(volume));
    let (before, after) = match wanted.is_empty() {
        true => (Paths::new(), Paths::new()),
        false => {
            (paths::find(&earlier, &wanted).with_context(cannot)?, paths::find(&later, &wanted).with_context(cannot)?)
        }
    };
    let mut named: Vec<Named> = changes.into_iter().map(|change| name(change, &before, &after)).collect();
    named.sort_by(|one, other| one.path().cmp(other.path()));
    if args.json {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let changes = named.iter().map(ChangeDocument::of).collect();
        let document = DiffDocument { volume: text(volume), from: text(from), to: to.map(text), changes };
        println!("{}", with_format(version::DIFF, &document)?);
        return Ok(());
    }
    print!("{}", render_table(&named.iter().map(line).collect::<Vec<_>>()));
    println!("{}", total(&named));
    Ok(())
}

fn name(change: InodeChange, before: &Paths, after: &Paths) -> Named {
    let of = |paths: &Paths| paths.get(&change.ino).into_iter().flatten().map(|path| show(path)).collect();
    let (before, after) = match change.change {
        Change::Created => (Vec::new(), of(after)),
        Change::Removed => (of(before), Vec::new()),
        Change::Changed { .. } => (of(before), of(after)),
    };
    Named { change, before, after }
}

impl Named {
    /// The first of its names.
    fn path(&self) -> &str {
        self.after.first().or(self.before.first()).map_or("", String::as_str)
    }

    fn word(&self) -> &'static str {
        match self.change.change {
            Change::Created => "created",
            Change::Removed => "removed",
            Change::Changed { .. } => "changed",
        }
    }

    fn has_other_attributes(&self) -> bool {
        matches!(self.change.change, Change::Changed { attributes: true })
    }

    /// Its names, and those that it had if they were others.
    fn names(&self) -> String {
        let list = |names: &[String]| match names.is_empty() {
            true => format!("inode {} without a name", self.change.ino),
            false => names.join(" = "),
        };
        match self.change.change {
            Change::Created => list(&self.after),
            Change::Removed => list(&self.before),
            Change::Changed { .. } if self.before == self.after => list(&self.after),
            Change::Changed { .. } => format!("{}, was {}", list(&self.after), list(&self.before)),
        }
    }
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "char device",
        FileKind::BlockDevice => "block device",
    }
}

fn line(named: &Named) -> Vec<String> {
    let ranges = named.change.blocks.iter().map(|blocks| match blocks.end - blocks.start {
        1 => blocks.start.to_string(),
        _ => format!("{}..{}", blocks.start, blocks.end),
    });
    let ranges: Vec<String> = ranges.collect();
    let mut what = Vec::new();
    if named.has_other_attributes() {
        what.push("attributes".to_owned());
    }
    if !ranges.is_empty() {
        what.push(format!("blocks {}", ranges.join(", ")));
    }
    vec![named.word().to_owned(), kind(named.change.kind).to_owned(), named.names(), what.join("; ")]
}

fn total(named: &[Named]) -> String {
    let count = |word| named.iter().filter(|named| named.word() == word).count();
    let blocks: u64 = named.iter().flat_map(|named| &named.change.blocks).map(|blocks| blocks.end - blocks.start).sum();
    let (created, removed, changed) = (count("created"), count("removed"), count("changed"));
    format!("{created} created, {removed} removed, {changed} changed; {blocks} blocks of 4,096 bytes")
}

/// The JSON output of `fs diff`.
#[derive(Serialize, JsonSchema)]
pub struct DiffDocument {
    /// The volume.
    volume: String,
    /// The earlier snapshot.
    from: String,
    /// The later snapshot. `None` for the volume itself.
    to: Option<String>,
    /// The files that differ, by path.
    changes: Vec<ChangeDocument>,
}

/// A file that differs.
#[derive(Serialize, JsonSchema)]
struct ChangeDocument {
    /// `created`, `removed` or `changed`.
    change: &'static str,
    /// `file`, `directory`, `symlink`, `fifo`, `socket`, `char device` or `block device`.
    kind: &'static str,
    /// Its inode.
    inode: u64,
    /// Its paths. Empty if it was removed.
    paths: Vec<String>,
    /// Its paths before. Empty if it was created.
    paths_before: Vec<String>,
    /// Whether its attributes changed.
    attributes: bool,
    /// The ranges of blocks of 4096 bytes that differ: the first block, and the block after the
    /// last.
    blocks: Vec<[u64; 2]>,
}

impl ChangeDocument {
    fn of(named: &Named) -> Self {
        Self {
            change: named.word(),
            kind: kind(named.change.kind),
            inode: named.change.ino,
            paths: named.after.clone(),
            paths_before: named.before.clone(),
            attributes: named.has_other_attributes(),
            blocks: named.change.blocks.iter().map(|blocks| [blocks.start, blocks.end]).collect(),
        }
    }
}
