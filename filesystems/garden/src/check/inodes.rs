//! The inodes of a volume: names, links, sizes, attributes, and inodes without a name.

use std::collections::{BTreeMap, BTreeSet};

use senesce_fsapi::FileKind;

use super::{
    Bits,
    aggregate::{Contents, concatenate},
    directory,
    volume::Files,
};
use crate::{
    Damage,
    format::{
        BLOCK,
        directory::Entry,
        inode::{Inode, PER_BLOCK},
        pointer::Shape,
        volume::VolumeRecord,
    },
    store::volume,
    volume::decode_xattrs,
};

/// The names found for an inode.
#[derive(Debug, Default)]
struct Named {
    names: u64,
    /// Subdirectories of a directory.
    directories: u64,
    /// The directory of the last name.
    parent: u64,
}

pub(super) fn check(files: &mut Files<'_>, record: &VolumeRecord, table: &Contents, inode_map: &Bits) {
    let mut inodes = BTreeMap::new();
    let mut in_use = Bits::default();
    for file in table.keys().flat_map(|block| block * PER_BLOCK..(block + 1) * PER_BLOCK) {
        let at = (file % PER_BLOCK) as usize * crate::format::inode::INODE;
        let bytes = &table[&(file / PER_BLOCK)][at..at + crate::format::inode::INODE];
        if bytes.iter().all(|&byte| byte == 0) {
            continue;
        }
        in_use.insert(file);
        if let Some(inode) = files.decode_inode(table, file) {
            inodes.insert(file, inode);
        }
    }
    let Files { report, tree, .. } = files;
    inode_map.compare(&in_use, report, "inode in use", &|ino| format!("inode {ino} of {tree}"));
    let used = in_use.count();
    report.expect(|| tree.clone(), "volume record", "inodes in use", record.inodes_used, used);
    files.report.inodes += inodes.keys().filter(|ino| is_users(**ino)).count() as u64;

    for file in [volume::ACTIVE_MAP, volume::INODE_MAP, volume::ORPHANS, volume::SUMMARY_MAP, volume::REFERENCES] {
        if let Some(inode) = inodes.get(&file) {
            check_fixed(files, file, inode);
        }
    }
    let orphans = read_orphans(files, &inodes);
    let mut named: BTreeMap<u64, Named> = BTreeMap::new();
    let mut holders: BTreeMap<u64, u64> = BTreeMap::new();
    for (&ino, inode) in inodes.iter().filter(|(ino, _)| is_users(**ino)) {
        if inode.xattrs != 0 && holders.insert(inode.xattrs, ino).is_some() {
            files.find(ino, Damage::new("inode", "attributes", inode.xattrs, "a file of its own"));
        }
    }
    for (&ino, inode) in inodes.iter().filter(|(ino, _)| is_users(**ino)) {
        for entry in check_contents(files, record, ino, inode, holders.contains_key(&ino)) {
            match inodes.get(&entry.ino).filter(|_| is_users(entry.ino)) {
                Some(target) if target.kind == entry.kind => {}
                target => {
                    let found = target.map_or("free".to_owned(), |inode| format!("{:?}", inode.kind));
                    let expected = format!("{:?}", entry.kind);
                    files.find(entry.ino, Damage::new("directory entry", "inode", found, expected));
                }
            }
            let of = named.entry(entry.ino).or_default();
            (of.names, of.parent) = (of.names + 1, ino);
            named.entry(ino).or_default().directories += u64::from(entry.kind == FileKind::Directory);
        }
    }
    for (&ino, inode) in inodes.iter().filter(|(ino, _)| is_users(**ino)) {
        check_links(files, ino, inode, named.get(&ino), orphans.contains(&ino), holders.get(&ino));
    }
    for (ino, owner) in holders.iter().filter(|(ino, _)| !inodes.contains_key(ino)) {
        files.find(*owner, Damage::new("inode", "attributes", ino, "an inode in use"));
    }
    for ino in orphans.iter().filter(|ino| !inodes.contains_key(ino)) {
        files.find(*ino, Damage::new("orphans", "inode", "free", "in use, without a name"));
    }
}

/// Checks a file of metadata: a regular file without names. Blocks of bitmaps are not counted.
fn check_fixed(files: &mut Files<'_>, file: u64, inode: &Inode) {
    if inode.kind != FileKind::File {
        files.find(file, Damage::new("inode", "kind", format!("{:?}", inode.kind), "File"));
    }
    files.expect(file, "links", inode.links.into(), 1);
    files.expect(file, "inline", inode.inline.into(), 0);
    files.expect(file, "attributes", inode.xattrs, 0);
    files.expect(file, "parent", inode.parent, 0);
    files.expect(file, "height", inode.height.into(), Shape::Volume.height(inode.size.div_ceil(BLOCK as u64)).into());
    if file != volume::ORPHANS {
        files.expect(file, "blocks", inode.blocks, 0);
    }
}

fn is_users(ino: u64) -> bool {
    ino == volume::ROOT || ino >= volume::FIRST_USER
}

fn read_orphans(files: &mut Files<'_>, inodes: &BTreeMap<u64, Inode>) -> BTreeSet<u64> {
    let Some(inode) = inodes.get(&volume::ORPHANS) else {
        files.find(volume::ORPHANS, Damage::new("inode", "kind", "free", "in use"));
        return BTreeSet::new();
    };
    let walked = files.walk(volume::ORPHANS, inode, true);
    files.expect(volume::ORPHANS, "blocks", inode.blocks, walked.blocks);
    let bytes = concatenate(&walked.contents, inode.size.min(1 << 32));
    let listed = &bytes[..inode.size.min(bytes.len() as u64) as usize];
    let all: Vec<u64> = listed.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let set: BTreeSet<u64> = all.iter().copied().collect();
    files.expect(volume::ORPHANS, "different numbers", set.len() as u64, inode.size / 8);
    set
}

/// Checks the contents of a file; returns the names in a directory.
fn check_contents(files: &mut Files<'_>, record: &VolumeRecord, ino: u64, inode: &Inode, holder: bool) -> Vec<Entry> {
    if inode.inline {
        if inode.area[inode.size as usize..].iter().any(|&byte| byte != 0) {
            files.find(ino, Damage::new("inode", "contents after the end", "not zero", "zeros"));
        }
        files.expect(ino, "blocks", inode.blocks, 0);
        if holder && let Err(damage) = decode_xattrs(&inode.area[..inode.size as usize]) {
            files.find(ino, damage);
        }
        return Vec::new();
    }
    let has_contents = matches!(inode.kind, FileKind::File | FileKind::Directory | FileKind::Symlink);
    if !has_contents && inode.area.iter().any(|&byte| byte != 0) {
        files.find(ino, Damage::new("inode", "pointers", "some", "none, for it has no contents"));
    }
    let is_directory = inode.kind == FileKind::Directory;
    let walked = files.walk(ino, inode, is_directory || holder || inode.kind == FileKind::Symlink);
    files.expect(ino, "blocks", inode.blocks, walked.blocks);
    let blocks = inode.size.div_ceil(BLOCK as u64);
    if walked.end > blocks {
        files.find(ino, Damage::new("inode", "size", inode.size, format!("{} blocks at least", walked.end)));
    }
    files.expect(ino, "height", inode.height.into(), Shape::Volume.height(blocks).into());
    if is_directory {
        return directory::check(files, record.hash_seed, ino, inode, &walked.contents);
    }
    let bytes = concatenate(&walked.contents, if holder { inode.size.min(1 << 20) } else { 0 });
    if holder && let Err(damage) = decode_xattrs(&bytes[..inode.size.min(bytes.len() as u64) as usize]) {
        files.find(ino, damage);
    }
    Vec::new()
}

fn check_links(
    files: &mut Files<'_>,
    ino: u64,
    inode: &Inode,
    named: Option<&Named>,
    orphan: bool,
    holder_of: Option<&u64>,
) {
    let nothing = Named::default();
    let named = named.unwrap_or(&nothing);
    if let Some(&owner) = holder_of {
        files.expect(ino, "names of a file of attributes", named.names, 0);
        files.expect(ino, "links", inode.links.into(), 1);
        files.expect(ino, "inode whose attributes it holds", inode.parent, owner);
        return;
    }
    if orphan {
        files.expect(ino, "names of an orphan", named.names, 0);
        files.expect(ino, "links", inode.links.into(), 0);
        return;
    }
    if inode.kind == FileKind::Directory {
        let names = if ino == volume::ROOT { 1 } else { named.names };
        files.expect(ino, "names of a directory", names, 1);
        files.expect(ino, "links", inode.links.into(), 2 + named.directories);
        let parent = if ino == volume::ROOT { volume::ROOT } else { named.parent };
        files.expect(ino, "parent", inode.parent, parent);
        return;
    }
    if named.names == 0 {
        files.find(ino, Damage::new("inode", "names", 0, "one at least, or a place among the orphans"));
    }
    files.expect(ino, "links", inode.links.into(), named.names);
    files.expect(ino, "parent", inode.parent, 0);
}
