//! Files: inodes, the pointers of their trees, directories.

use senesce_fsapi::FileKind;

use super::{
    aggregate::{place, shown},
    field_offsets::{DIRECTORY, INODE as FIELDS, kind_word},
    reader::{Reader, Tree, Volume},
    value::{Dump, DumpTable, DumpValue, hex, read_fields, text},
    walk::{Met, walk},
};
use crate::{
    Damage,
    error::{Error, Result},
    format::{
        BLOCK, Block,
        directory::{Entry, Node},
        inode::Inode,
        pointer::{Form, Part, Physical, Pointer},
    },
    store::volume::ROOT,
};

/// An inode of a volume, and the places of all blocks below it.
pub(super) fn inode(reader: &Reader, name: &[u8], ino: u64, most: u64) -> Result<Dump> {
    let volume = reader.volume(name)?;
    let title = format!("inode {ino} of volume {} ({})", volume.space, text(name));
    Ok(file(reader, title, &volume.inodes(), ino, |inode| volume.tree(ino, inode), most))
}

/// The inode at a path.
pub(super) fn by_path(reader: &Reader, name: &[u8], path: &[u8], most: u64) -> Result<Dump> {
    let volume = reader.volume(name)?;
    let ino = find_path(reader, &volume, path)?;
    let mut dump = inode(reader, name, ino, most)?;
    dump.title = format!("{}: {}", text(path), dump.title);
    Ok(dump)
}

/// A file of the aggregate.
pub(super) fn of_aggregate(reader: &Reader, number: u64, most: u64) -> Dump {
    if number == 0 {
        let mut dump = Dump::new("file 0 of the aggregate (its inode is in the superblock)");
        pointers(reader, &reader.aggregate_root(), most, &mut dump);
        return dump;
    }
    let title = format!("file {number} of the aggregate");
    let tree = |inode| Tree { volume: None, file: number, inode };
    file(reader, title, &reader.aggregate_root(), number, tree, most)
}

fn file(
    reader: &Reader,
    title: String,
    inodes: &Tree,
    number: u64,
    tree: impl FnOnce(Inode) -> Tree,
    most: u64,
) -> Dump {
    let mut dump = Dump::new(title);
    let bytes = match reader.inode_bytes(inodes, number) {
        Ok(bytes) => bytes,
        Err(damage) => {
            dump.wrong(damage);
            return dump;
        }
    };
    read_fields(&mut dump, &bytes, FIELDS);
    match Inode::decode(&bytes) {
        Ok(Some(inode)) if inode.inline => {
            let mut contents = Dump::new("contents");
            contents.table = Some(hex(&inode.area[..inode.size as usize]));
            dump.parts.push(contents);
        }
        Ok(Some(inode)) => pointers(reader, &tree(inode), most, &mut dump),
        Ok(None) => {}
        Err(damage) => dump.wrong(damage),
    }
    dump
}

/// A row of the table of pointers: blocks of one level whose numbers are all consecutive.
struct Chain {
    first: Met,
    blocks: u64,
}

/// Adds the pointers of all levels, those of the inode first.
fn pointers(reader: &Reader, tree: &Tree, most: u64, dump: &mut Dump) {
    let columns =
        ["level", "block", "blocks", "VVBN", "PVBN", "tag", "PVBN in the map", "RAID group", "drive", "stripe", "kind"];
    let mut table = DumpTable::new(&columns);
    for level in (0..=tree.inode.height).rev() {
        let mut open: Option<Chain> = None;
        let wrong = walk(reader, tree, level, &mut |met| match &mut open {
            _ if met.level != level => {}
            Some(before) if before.goes_on_with(reader, &met) => before.blocks += 1,
            _ => {
                if let Some(done) = open.replace(Chain { first: met, blocks: 1 }) {
                    table.push(most, done.row(reader, tree));
                }
            }
        });
        if let Some(last) = open {
            table.push(most, last.row(reader, tree));
        }
        if level == 0 {
            dump.wrong.extend(wrong); // includes the damage of the other levels
        }
    }
    if !table.rows.is_empty() {
        dump.table = Some(table);
    }
}

impl Chain {
    fn goes_on_with(&self, reader: &Reader, next: &Met) -> bool {
        let Self { first, blocks } = self;
        first.index + blocks == next.index
            && first.pointer.is_plain()
            && next.pointer.is_plain()
            && first.pointer.vvbn.map(|vvbn| vvbn + blocks) == next.pointer.vvbn
            && first.pointer.at.pvbn + blocks == next.pointer.at.pvbn
            && first.pointer.at.tag == next.pointer.at.tag
            && first.at.pvbn + blocks == next.at.pvbn
            && (first.at.in_object().is_some() || reader.media.geometry.stripes_behind(first.at.pvbn) > *blocks)
    }

    fn row(&self, reader: &Reader, tree: &Tree) -> Vec<DumpValue> {
        let Met { level, index, pointer, at } = self.first;
        let is_saved = matches!(pointer.part, Part::Saved { .. });
        let place_of = |at: Physical| (!is_saved).then_some(at);
        let told = |at: Option<Physical>| at.and_then(place_of).map_or(DumpValue::None, shown);
        let mut row: Vec<DumpValue> = vec![
            u64::from(level).into(),
            index.into(),
            self.blocks.into(),
            pointer.vvbn.into(),
            told(Some(pointer.at)),
            place_of(pointer.at).map(|at| u64::from(at.tag)).into(),
            told(tree.volume.is_some().then_some(at)),
        ];
        row.extend(place(reader, place_of(at).map(|at| at.pvbn)));
        row.push(kind_of(&pointer, at).into());
        row
    }
}

/// The kind of a pointer, in words.
fn kind_of(pointer: &Pointer, at: Physical) -> String {
    let form = match at.form {
        Form::Block => "block",
        Form::Compacted => "chunk",
        Form::Object => "cold",
    };
    match pointer.part {
        Part::Whole => form.to_owned(),
        Part::Stored { at, of } => format!("{form}, {} of a group of {of}", at + 1),
        Part::Saved { at, of, .. } => format!("saved, {} of a group of {of}", at + 1),
    }
}

/// All blocks of a directory.
pub(super) fn directory(reader: &Reader, name: &[u8], path: &[u8], most: u64) -> Result<Dump> {
    let volume = reader.volume(name)?;
    let ino = find_path(reader, &volume, path)?;
    let tree = find_directory(reader, &volume, ino)?;
    let title = format!("{}: directory {ino} of volume {} ({})", text(path), volume.space, text(name));
    let mut all = Dump::new(title);
    if tree.inode.size != tree.inode.blocks.saturating_mul(BLOCK as u64) {
        all.wrong(Damage::new("directory", "size", tree.inode.size, format!("{} blocks", tree.inode.blocks)));
    }
    for index in 0..tree.directory_blocks() {
        let mut dump = Dump::new(format!("block {index}"));
        match reader.contents(&tree, index) {
            Ok(Some(block)) => directory_block(&mut dump, &block, most),
            Ok(None) => dump.wrong(Damage::new("directory", "block", "a hole", "a block")),
            Err(damage) => dump.wrong(damage),
        }
        all.parts.push(dump);
    }
    Ok(all)
}

fn directory_block(dump: &mut Dump, block: &Block, most: u64) {
    read_fields(dump, &block[..], DIRECTORY);
    match Node::decode(block) {
        Ok(Node::Leaf(entries)) => {
            let mut table = DumpTable::new(&["cookie", "inode", "kind", "length", "name"]);
            for entry in entries {
                let kind = kind_word(entry.kind);
                let length = entry.name.len() as u64;
                let row =
                    vec![entry.cookie.into(), entry.ino.into(), kind.into(), length.into(), text(&entry.name).into()];
                table.push(most, row);
            }
            dump.table = Some(table);
        }
        Ok(Node::Index { children, .. }) => {
            let mut table = DumpTable::new(&["first cookie", "block"]);
            for child in children {
                table.push(most, vec![child.first.into(), u64::from(child.block).into()]);
            }
            dump.table = Some(table);
        }
        Ok(Node::Free { .. }) => {}
        Err(damage) => dump.wrong(damage),
    }
}

/// The inode at a path from the root. Does not follow links.
fn find_path(reader: &Reader, volume: &Volume, path: &[u8]) -> Result<u64> {
    let mut ino = ROOT;
    for part in path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        let tree = find_directory(reader, volume, ino)?;
        let (entries, wrong) = entries(reader, &tree);
        ino = match entries.into_iter().find(|entry| entry.name == part) {
            Some(entry) => entry.ino,
            None => {
                let also = wrong.first().map(|wrong| format!("; and {wrong}")).unwrap_or_default();
                return Err(Error::invalid(format!("no {} in directory {ino}{also}", text(part))));
            }
        };
    }
    Ok(ino)
}

fn find_directory(reader: &Reader, volume: &Volume, ino: u64) -> Result<Tree> {
    let place = || format!("inode {ino} of volume {}", volume.space);
    match reader.inode(&volume.inodes(), ino).map_err(|damage| Error::damaged(place(), damage))? {
        Some(inode) if inode.kind == FileKind::Directory => Ok(volume.tree(ino, inode)),
        Some(inode) => Err(Error::invalid(format!("{} is no directory but {}", place(), kind_word(inode.kind)))),
        None => Err(Error::invalid(format!("{} is free", place()))),
    }
}

/// All names of a directory in the order of their cookies, from the readable blocks, and the damage
/// of the others.
pub(super) fn entries(reader: &Reader, tree: &Tree) -> (Vec<Entry>, Vec<String>) {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for index in 0..tree.directory_blocks() {
        let node = reader.contents(tree, index).and_then(|block| match block {
            Some(block) => Node::decode(&block).map(Some),
            None => Ok(None),
        });
        match node {
            Ok(Some(Node::Leaf(entries))) => all.extend(entries),
            Ok(_) => {}
            Err(damage) => wrong.push(format!("block {index} of directory {}: {damage}", tree.file)),
        }
    }
    all.sort_by_key(|entry: &Entry| entry.cookie);
    (all, wrong)
}
