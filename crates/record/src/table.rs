//! The names of the backing directory and their files, from which the log's paths are built.
//!
//! Files are identified by the backing file system's inode numbers. All names are known: the whole
//! tree is read first, and every change passes through the recorder. Memory: about 200 bytes per
//! name.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use senesce_core::RelPath;

use crate::sink::HIDDEN;

/// Number of the root, fixed by FUSE.
pub(crate) const ROOT: u64 = 1;

/// One file or directory.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The names, each with the number of its directory.
    pub names: Vec<(u64, OsString)>,
    /// Open handles.
    pub open: u32,
    /// Number of its hidden name: from the removal of an open file's last name to its close, or
    /// until its first name.
    pub hidden: Option<u64>,
    /// Distinguishes it from an earlier file with the same number.
    pub generation: u64,
    /// In the log the owner may write, because a program that may not by mode has the file open for
    /// writing.
    pub lent_write: bool,
    /// It has no file capabilities, which the kernel requests before every write.
    pub no_capabilities: bool,
}

/// All nodes and names.
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

    /// Returns the node of a file, and adds a new one if necessary.
    fn entry(&mut self, ino: u64) -> &mut Node {
        let next = &mut self.next;
        self.nodes.entry(ino).or_insert_with(|| {
            *next += 1;
            Node { generation: *next, ..Node::default() }
        })
    }

    /// Adds a new file without a name, which will be opened. Returns its hidden path.
    pub fn add_nameless(&mut self, ino: u64) -> RelPath {
        self.entry(ino);
        self.hide(ino)
    }

    /// Adds a name for a known or new file.
    pub fn add(&mut self, parent: u64, name: &OsStr, ino: u64) {
        let node = self.entry(ino);
        node.names.push((parent, name.to_owned()));
        self.names.insert((parent, name.to_owned()), ino);
    }

    /// Removes a name. A file without names is removed too unless it is open.
    pub fn remove(&mut self, parent: u64, name: &OsStr) {
        let Some(ino) = self.names.remove(&(parent, name.to_owned())) else { return };
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        node.names.retain(|(dir, known)| *dir != parent || known != name);
        self.forget_if_gone(ino);
    }

    /// Removes a node with neither names nor users.
    pub fn forget_if_gone(&mut self, ino: u64) {
        if ino != ROOT && self.nodes.get(&ino).is_some_and(|node| node.names.is_empty() && node.open == 0) {
            self.nodes.remove(&ino);
        }
    }

    /// Moves a name and replaces the one at the new place.
    pub fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let Some(ino) = self.find(from.0, from.1) else { return };
        self.remove(to.0, to.1);
        // Added first, so that the file always has a name.
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

    /// Gives a file a new hidden name.
    pub fn hide(&mut self, ino: u64) -> RelPath {
        self.next += 1;
        let number = self.next;
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.hidden = Some(number);
        }
        hidden_path(number)
    }

    /// Returns the hidden paths of the files without names.
    pub fn hidden(&self) -> Vec<RelPath> {
        let mut numbers: Vec<u64> = self.nodes.values().filter_map(|node| node.hidden).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(hidden_path).collect()
    }

    /// Returns the path of a name in a directory. `None` if the directory has no name, or the path
    /// is invalid.
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

    /// Returns a path of a file in the backing directory, from any of its names.
    pub fn path(&self, ino: u64) -> Option<RelPath> {
        if ino == ROOT {
            return Some(RelPath::root());
        }
        let (parent, name) = self.node(ino)?.names.first()?;
        self.path_of(*parent, name)
    }

    /// Returns its path in the log: that of [`path`](Self::path), or the hidden one.
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
    /// Files with a name whose mode in the log is not yet the actual one.
    pub fn lent(&self) -> Vec<u64> {
        let is_lent = |node: &Node| node.lent_write && node.hidden.is_none();
        let mut lent: Vec<u64> = self.nodes.iter().filter(|(_, node)| is_lent(node)).map(|(ino, _)| *ino).collect();
        lent.sort_unstable();
        lent
    }
}
