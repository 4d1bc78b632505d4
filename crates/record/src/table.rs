//! The names of the backing directory, and which file each stands for: what the log's paths are made from.
//!
//! Files are known by the backing file system's inode numbers. All names are known from the start, because the whole
//! tree is looked at first, and every change passes here. Memory: some 200 bytes a name.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use senesce_core::RelPath;

use crate::sink::HIDDEN;

/// Number of the root, as FUSE wants it.
pub(crate) const ROOT: u64 = 1;

/// One file or directory.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Directories they are in, and the names.
    pub names: Vec<(u64, OsString)>,
    /// Open handles.
    pub open: u32,
    /// Its hidden name's number, once it was removed while open, or until it gets its first name.
    pub hidden: Option<u64>,
    /// Tells it from an earlier one with the same number.
    pub generation: u64,
    /// The log says that its owner may write, because somebody who may not has it open for that.
    pub lent_write: bool,
    /// It has no file capabilities; the kernel asks before every write.
    pub no_capabilities: bool,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Table {
    nodes: HashMap<u64, Node>,
    names: HashMap<(u64, OsString), u64>,
    next: u64,
}

impl Table {
    pub fn new() -> Self {
        Self { nodes: HashMap::from([(ROOT, Node::default())]), names: HashMap::new(), next: 1 }
    }

    pub fn node(&self, ino: u64) -> Option<&Node> {
        self.nodes.get(&ino)
    }

    pub fn node_mut(&mut self, ino: u64) -> Option<&mut Node> {
        self.nodes.get_mut(&ino)
    }

    pub fn find(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.names.get(&(parent, name.to_owned())).copied()
    }

    pub fn generation(&self, ino: u64) -> u64 {
        self.node(ino).map_or(0, |node| node.generation)
    }

    /// The node of a file, known or new.
    fn entry(&mut self, ino: u64) -> &mut Node {
        let next = &mut self.next;
        self.nodes.entry(ino).or_insert_with(|| {
            *next += 1;
            Node { generation: *next, ..Node::default() }
        })
    }

    /// A new file without a name, soon to be open. Gives its hidden one.
    pub fn add_nameless(&mut self, ino: u64) -> RelPath {
        self.entry(ino);
        self.hide(ino)
    }

    /// A name for a file, known or new.
    pub fn add(&mut self, parent: u64, name: &OsStr, ino: u64) {
        let node = self.entry(ino);
        node.names.push((parent, name.to_owned()));
        self.names.insert((parent, name.to_owned()), ino);
    }

    /// Takes a name away. A file without names is forgotten unless it is open.
    pub fn remove(&mut self, parent: u64, name: &OsStr) {
        let Some(ino) = self.names.remove(&(parent, name.to_owned())) else { return };
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        node.names.retain(|(dir, known)| *dir != parent || known != name);
        self.forget_if_gone(ino);
    }

    /// Forgets what has neither a name nor a user.
    pub fn forget_if_gone(&mut self, ino: u64) {
        if ino != ROOT && self.nodes.get(&ino).is_some_and(|node| node.names.is_empty() && node.open == 0) {
            self.nodes.remove(&ino);
        }
    }

    /// Moves a name; what was at the new place is gone.
    pub fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let Some(ino) = self.find(from.0, from.1) else { return };
        self.remove(to.0, to.1);
        // Added first, so that it always has a name.
        self.add(to.0, to.1, ino);
        self.remove(from.0, from.1);
    }

    /// Exchanges two names.
    pub fn exchange(&mut self, one: (u64, &OsStr), other: (u64, &OsStr)) {
        let (Some(first), Some(second)) = (self.find(one.0, one.1), self.find(other.0, other.1)) else { return };
        for ((dir, name), old, new) in [(one, first, second), (other, second, first)] {
            self.names.insert((dir, name.to_owned()), new);
            if let Some(node) = self.nodes.get_mut(&old) {
                node.names.retain(|(parent, known)| *parent != dir || known != name);
            }
        }
        for ((dir, name), new) in [(one, second), (other, first)] {
            if let Some(node) = self.nodes.get_mut(&new) {
                node.names.push((dir, name.to_owned()));
            }
        }
    }

    /// A new number for a hidden name.
    pub fn hide(&mut self, ino: u64) -> RelPath {
        self.next += 1;
        let number = self.next;
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.hidden = Some(number);
        }
        hidden_path(number)
    }

    /// Files that have no name and are still open.
    pub fn hidden(&self) -> Vec<RelPath> {
        let mut numbers: Vec<u64> = self.nodes.values().filter_map(|node| node.hidden).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(hidden_path).collect()
    }

    /// The path of a name in a directory. `None` for a directory without a name, and a path that cannot be.
    pub fn path_of(&self, parent: u64, name: &OsStr) -> Option<RelPath> {
        let mut parts = vec![name.as_bytes()];
        let mut at = parent;
        while at != ROOT {
            let (above, name) = self.node(at)?.names.first()?;
            parts.push(name.as_bytes());
            at = *above;
        }
        parts.reverse();
        RelPath::new(&parts.join(&b'/')).ok()
    }

    /// A path of a file in the backing directory: any of its names.
    pub fn path(&self, ino: u64) -> Option<RelPath> {
        if ino == ROOT {
            return Some(RelPath::root());
        }
        let (parent, name) = self.node(ino)?.names.first()?;
        self.path_of(*parent, name)
    }

    /// Its path in the log: as [`path`](Self::path), or the hidden one.
    pub fn log_path(&self, ino: u64) -> Option<RelPath> {
        match self.node(ino).and_then(|node| node.hidden) {
            Some(number) => Some(hidden_path(number)),
            None => self.path(ino),
        }
    }
}

fn hidden_path(number: u64) -> RelPath {
    RelPath::new(&[HIDDEN, number.to_string().as_bytes()].concat()).expect("letters and digits")
}

impl Table {
    /// Files with a name whose mode in the log is not yet theirs.
    pub fn lent(&self) -> Vec<u64> {
        let is_lent = |node: &Node| node.lent_write && node.hidden.is_none();
        let mut lent: Vec<u64> = self.nodes.iter().filter(|(_, node)| is_lent(node)).map(|(ino, _)| *ino).collect();
        lent.sort_unstable();
        lent
    }
}
