//! Checks the rules of the file system for all entries of a store. It uses only the codecs of the
//! file system.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use bytes::Bytes;
use senesce_fsapi::{FileKind, Ino};

use super::{
    evergreen::{SYSTEM_BYTES, orphan_bytes},
    inode_record::{BLOCK, Body, Inode},
    labels::LABELS,
    name_record::Entry,
    names::{entry_bytes, unordered_bytes},
};
use crate::{
    KeyValue, Result,
    disk::KeyOrder,
    keys::{Home, Key, next_ino_of},
};

/// The entries of one home.
#[derive(Default)]
struct Found {
    inode: Option<Inode>,
    target: Option<usize>,
    names: Vec<(Vec<u8>, Entry)>,
    unordered: BTreeMap<u64, Vec<u8>>,
    xattr_pieces: u32,
    xattr_bytes: u64,
    blocks: u64,
    /// The end of the last block's value, as an offset in the file.
    end: u64,
}

#[derive(Default)]
struct Files {
    layout: KeyOrder,
    next_ino: u64,
    homes: BTreeMap<Home, Found>,
    home_of: BTreeMap<u64, Home>,
    orphans: BTreeSet<u64>,
    findings: Vec<String>,
}

/// Reads all entries and returns the violated rules; an empty list if there are none. The store
/// must not be in use.
///
/// Errors: those of the store. Cost: reads all entries; memory for each inode and name.
pub fn check_files(store: &impl KeyValue) -> Result<Vec<String>> {
    let mut files = Files::default();
    store.scan(&[], &[u8::MAX], &mut |key, value| {
        if let Err(problem) = files.take(key, &value) {
            files.findings.push(format!("{}: {problem}", key.escape_ascii()));
        }
        ControlFlow::Continue(())
    })?;
    files.check_homes();
    let links = files.walk();
    let claimed = files.check_inodes(&links);
    let live = store.live().bytes;
    if claimed != live as i64 {
        files.findings.push(format!("the entries need {claimed} bytes, and {live} are claimed"));
    }
    Ok(files.findings)
}

impl Files {
    fn take(&mut self, key: &[u8], value: &Bytes) -> std::result::Result<(), String> {
        match Key::decode(key)? {
            Key::Layout => {
                self.layout = match value[..] {
                    [1, 0] => KeyOrder::BirthPath,
                    [1, 1] => KeyOrder::InodeNumber,
                    _ => return Err(format!("a layout {value:?}")),
                }
            }
            Key::NextIno => self.next_ino = next_ino_of(value)?,
            Key::HomeOf(ino) => drop(self.home_of.insert(ino, Home::from_bytes(value)?)),
            Key::Orphan(ino) => drop(self.orphans.insert(ino)),
            Key::Inode(home) => self.at(home).inode = Some(Inode::decode(value)?),
            Key::Target(home) => self.at(home).target = Some(value.len()),
            Key::Name(home, name) => {
                let entry = Entry::decode(value)?;
                self.at(home).names.push((name, entry));
            }
            Key::Unordered(home, number) => drop(self.at(home).unordered.insert(number, value.to_vec())),
            Key::Xattr(home, name, _) => {
                let found = self.at(home);
                found.xattr_pieces += 1;
                found.xattr_bytes += (name.len() + 3 + value.len()) as u64;
            }
            Key::Block(home, block) => {
                let found = self.at(home);
                found.blocks += 1;
                found.end = block.saturating_mul(BLOCK).saturating_add(value.len() as u64);
            }
        }
        Ok(())
    }

    fn at(&mut self, home: Home) -> &mut Found {
        self.homes.entry(home).or_default()
    }

    fn find(&mut self, what: String) {
        self.findings.push(what);
    }

    /// Checks that inodes and the records of their homes match.
    fn check_homes(&mut self) {
        let mut findings = Vec::new();
        let of_home: BTreeMap<&Home, u64> = self.home_of.iter().map(|(ino, home)| (home, *ino)).collect();
        for (home, found) in &self.homes {
            match (of_home.get(home), found.inode) {
                (None, _) => findings.push(format!("{home:?} is the home of no inode")),
                (Some(ino), None) => findings.push(format!("inode {ino} has no record")),
                (Some(ino), _) if *ino >= self.next_ino => {
                    findings.push(format!("inode {ino} is in use, and {} is the next", self.next_ino));
                }
                _ => {}
            }
        }
        for (ino, home) in &self.home_of {
            if !self.homes.contains_key(home) || of_home.get(home) != Some(ino) {
                findings.push(format!("inode {ino} has a home that is not its own"));
            }
        }
        self.findings.append(&mut findings);
    }

    /// Walks from the root along the names. Returns the number of names of each inode, and the
    /// number of directories in it.
    fn walk(&mut self) -> BTreeMap<u64, (u32, u32)> {
        let mut links: BTreeMap<u64, (u32, u32)> = BTreeMap::from([(Ino::ROOT.0, (0, 0))]);
        let mut open = vec![(Ino::ROOT, Home::root())];
        let mut findings = Vec::new();
        let root = self.homes.get(&Home::root()).and_then(|found| found.inode);
        if root.is_none_or(|root| !matches!(root.parent(), Ok(Ino::ROOT))) {
            findings.push("the root is no directory, or has another parent".to_owned());
        }
        while let Some((ino, home)) = open.pop() {
            let Some(found) = self.homes.get(&home) else { continue };
            for (name, entry) in &found.names {
                let shown = format!("{} in directory {}", name.escape_ascii(), ino.0);
                let given = home.child(self.layout, name, entry.ino.0);
                if entry.home.as_ref() == Some(&given) {
                    findings.push(format!("{shown} has a home that its name gives"));
                }
                let child = entry.home.clone().unwrap_or(given);
                if self.home_of.get(&entry.ino.0) != Some(&child) {
                    findings.push(format!("{shown} leads to inode {}, which is not at home there", entry.ino.0));
                    continue;
                }
                let inode = self.homes.get(&child).and_then(|found| found.inode);
                if inode.is_none_or(|inode| inode.kind != entry.kind) {
                    findings.push(format!("{shown} is a {:?}, and its inode is {inode:?}", entry.kind));
                    continue;
                }
                let is_new = !links.contains_key(&entry.ino.0);
                links.entry(entry.ino.0).or_default().0 += 1;
                if entry.kind == FileKind::Directory {
                    links.entry(ino.0).or_default().1 += 1;
                    if inode.and_then(|inode| inode.parent().ok()) != Some(ino) || !is_new {
                        findings.push(format!("{shown} is a directory that has another parent"));
                    }
                    if is_new {
                        open.push((entry.ino, child));
                    }
                }
            }
        }
        self.findings.append(&mut findings);
        links
    }

    /// Checks the counts in each inode. Returns the sum of all claims.
    fn check_inodes(&mut self, links: &BTreeMap<u64, (u32, u32)>) -> i64 {
        let mut claimed = SYSTEM_BYTES;
        for (ino, home) in self.home_of.clone() {
            let Some(found) = self.homes.remove(&home) else { continue };
            let Some(inode) = found.inode else { continue };
            claimed += inode.claim(Ino(ino), &home);
            claimed += found.names.iter().map(|(name, entry)| entry_bytes(&home, name, entry)).sum::<i64>();
            claimed += found.unordered.iter().map(|(at, name)| unordered_bytes(&home, *at, name)).sum::<i64>();
            let names = links.get(&ino);
            let want = match names {
                None => 0,
                Some((_, directories)) if inode.is_directory() => 2 + directories,
                Some((names, _)) => *names,
            };
            if inode.links != want || self.orphans.contains(&ino) != names.is_none() {
                let orphan = if self.orphans.contains(&ino) { ", and is known to have none" } else { "" };
                self.find(format!("inode {ino} has {} links and not {want}{orphan}", inode.links));
            }
            if (found.xattr_pieces, found.xattr_bytes) != (inode.xattr_pieces, inode.xattr_bytes) {
                self.find(format!(
                    "inode {ino} has attributes of {} pieces and {} bytes, and says {} and {}",
                    found.xattr_pieces, found.xattr_bytes, inode.xattr_pieces, inode.xattr_bytes
                ));
            }
            let problem = match inode.body {
                Body::File { blocks, .. } if blocks != found.blocks => {
                    Some(format!("has {} blocks and says {blocks}", found.blocks))
                }
                Body::File { .. } if found.end > inode.size => {
                    Some(format!("has bytes up to {} and a size of {}", found.end, inode.size))
                }
                Body::Symlink if found.target.map(|bytes| bytes as u64) != Some(inode.size) => {
                    let target = found.target.map_or("no target,".into(), |bytes| format!("a target of {bytes} bytes"));
                    Some(format!("has {target} and a size of {}", inode.size))
                }
                Body::Directory { last_label, unordered, .. } => {
                    check_labels(&found, last_label, unordered).or_else(|| {
                        (inode.size != found.names.len() as u64)
                            .then(|| format!("has {} names and says {}", found.names.len(), inode.size))
                    })
                }
                _ => None,
            };
            let is_only = (matches!(inode.body, Body::File { .. }) || found.blocks == 0)
                && (inode.is_directory() || found.names.is_empty())
                && (inode.kind == FileKind::Symlink || found.target.is_none());
            if !is_only {
                self.find(format!("inode {ino} is a {:?} and has what another kind has", inode.kind));
            }
            problem.into_iter().for_each(|problem| self.find(format!("inode {ino} {problem}")));
        }
        for ino in self.orphans.clone() {
            claimed += orphan_bytes(Ino(ino));
            if !self.home_of.contains_key(&ino) {
                self.find(format!("inode {ino} has no name, and is not there"));
            }
        }
        claimed
    }
}

/// Checks that labels ascend with the names. Each must exceed its floor, and the floor must not be
/// below the previous label.
fn check_labels(found: &Found, last_label: u64, unordered: u64) -> Option<String> {
    let (mut before, mut numbers) = (0, 0);
    for (name, entry) in &found.names {
        let name_shown = name.escape_ascii();
        if let Some(number) = entry.label.checked_sub(LABELS) {
            numbers += 1;
            if number >= unordered || found.unordered.get(&number) != Some(name) {
                return Some(format!("has a name {name_shown} with a number {number} that is not its own"));
            }
        } else if entry.floor < before || entry.floor >= entry.label {
            return Some(format!(
                "has a name {name_shown} with label {}, above {} and {before}",
                entry.label, entry.floor
            ));
        } else {
            before = entry.label;
        }
    }
    if last_label < before || last_label >= LABELS || numbers != found.unordered.len() {
        return Some(format!("has labels up to {before} and says {last_label}, and {numbers} names without one"));
    }
    None
}
