//! What an operation needs to itself, and what it only needs to stay: the order that a replay by many must keep.
//!
//! Two operations keep their order if one of them needs something alone that the other needs too:
//!
//! - what a path stands for: alone by whatever changes it, in common by all that lies below it;
//! - the entries of a directory: alone by whatever adds or removes one, so that a directory is filled in its order;
//! - all files with several names together, since a change by one name is a change by the others.

use std::collections::{BTreeSet, HashMap};

use senesce_core::RelPath;
use senesce_oplog::Op;

/// Something that can be needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Thing {
    /// What the path stands for.
    Name(Vec<u8>),
    /// The entries of the directory.
    Entries(Vec<u8>),
    /// Every file that has, or had, several names.
    Linked,
}

/// Needs of operations in the log's order, which is how it learns of links.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    linked: BTreeSet<Vec<u8>>,
}

#[derive(Default)]
struct List(HashMap<Thing, bool>);

impl List {
    fn add(&mut self, thing: Thing, alone: bool) {
        *self.0.entry(thing).or_default() |= alone;
    }

    fn name(&mut self, path: &[u8], alone: bool) {
        self.add(Thing::Name(path.to_vec()), alone);
        for (at, _) in path.iter().enumerate().filter(|&(_, &byte)| byte == b'/') {
            self.add(Thing::Name(path[..at].to_vec()), false);
        }
        if !path.is_empty() {
            self.add(Thing::Name(Vec::new()), false);
        }
    }

    fn entry(&mut self, path: &[u8]) {
        self.name(path, true);
        if !path.is_empty() {
            let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            self.add(Thing::Entries(path[..end].to_vec()), true);
        }
    }
}

impl Needs {
    /// What an operation needs, and whether alone. To be asked in the log's order, once for each operation.
    pub fn of(&mut self, root: &RelPath, op: &Op) -> HashMap<Thing, bool> {
        let at = |path: &RelPath| root.join(path).as_bytes().to_vec();
        let mut list = List::default();
        let mut alone = true;
        let paths = match op {
            Op::Mkdir { path, .. }
            | Op::Rmdir { path }
            | Op::Create { path, .. }
            | Op::Unlink { path }
            | Op::Symlink { path, .. }
            | Op::RemoveTree { path }
            | Op::Allocate { path, .. }
            | Op::Mknod { path, .. } => {
                list.entry(&at(path));
                [Some(at(path)), None]
            }
            Op::Rename { from, to } | Op::Exchange { first: from, second: to } => {
                let (from, to) = (at(from), at(to));
                list.entry(&from);
                list.entry(&to);
                self.move_links(&from, &to);
                if let Op::Exchange { .. } = op {
                    self.move_links(&to, &from);
                }
                [Some(from), Some(to)]
            }
            Op::Link { existing, path } => {
                let (existing, path) = (at(existing), at(path));
                list.name(&existing, true);
                list.entry(&path);
                self.linked.insert(existing.clone());
                self.linked.insert(path.clone());
                [Some(existing), Some(path)]
            }
            Op::Read { path, .. } => {
                alone = false;
                list.name(&at(path), false);
                [Some(at(path)), None]
            }
            Op::Write { path, .. }
            | Op::Truncate { path, .. }
            | Op::Chmod { path, .. }
            | Op::Fsync { path }
            | Op::SetModified { path, .. }
            | Op::Fallocate { path, .. }
            | Op::SetXattr { path, .. }
            | Op::RemoveXattr { path, .. }
            | Op::SetTimes { path, .. }
            | Op::Chown { path, .. } => {
                list.name(&at(path), true);
                [Some(at(path)), None]
            }
            // Everything before it is what it is about.
            Op::SyncFs => {
                list.name(b"", true);
                [None, None]
            }
        };
        if paths.iter().flatten().any(|path| self.linked.contains(path)) {
            list.add(Thing::Linked, alone);
        }
        list.0
    }

    /// Names that move take with them that they are linked; the old ones stay known too, which costs only speed.
    fn move_links(&mut self, from: &[u8], to: &[u8]) {
        let moved = |name: &[u8]| {
            let rest = name.strip_prefix(from)?;
            (rest.is_empty() || rest.starts_with(b"/")).then(|| [to, rest].concat())
        };
        let names: Vec<Vec<u8>> = self
            .linked
            .range(from.to_vec()..)
            .map_while(|name| name.starts_with(from).then(|| moved(name)))
            .flatten()
            .collect();
        self.linked.extend(names);
    }
}
