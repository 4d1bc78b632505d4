//! Exclusive and shared access of operations: the ordering constraints of a parallel replay.
//!
//! Two operations keep their order if one needs exclusive access to something that the other also
//! accesses:
//!
//! - the meaning of a path: exclusive for an operation that changes it, shared for operations on
//!   entries below it;
//! - the entries of a directory: exclusive for an operation that adds or removes one. This keeps
//!   the order of the directory;
//! - all files with several names: one unit, because a change by one name changes the others.

use std::collections::{BTreeSet, HashMap};

use senesce_core::RelPath;
use senesce_oplog::Op;

/// Something that operations access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResourceKey {
    /// The entry that the path names.
    Name(PathNumber),
    /// The entries of the directory.
    Entries(PathNumber),
    /// All files that have, or had, several names.
    Linked,
}

/// The number of a path. A deep path has as many ancestors as components, so copies of all of them
/// would need memory quadratic in the depth.
pub(crate) type PathNumber = u32;

const ROOT: PathNumber = 0;

/// The numbered paths, as a tree. Each component is stored once.
#[derive(Debug)]
struct Paths {
    /// For each path number, the names below the path.
    below: Vec<HashMap<Box<[u8]>, PathNumber>>,
}

impl Default for Paths {
    fn default() -> Self {
        Self { below: vec![HashMap::new()] }
    }
}

impl Paths {
    fn number_below(&mut self, parent: PathNumber, name: &[u8]) -> PathNumber {
        if let Some(&number) = self.below[parent as usize].get(name) {
            return number;
        }
        let number = self.below.len() as PathNumber;
        self.below[parent as usize].insert(name.into(), number);
        self.below.push(HashMap::new());
        number
    }
}

/// Finds the accesses of operations, which must come in the order of the log. It remembers hard
/// links.
#[derive(Debug, Default)]
pub(crate) struct ConflictTracker {
    linked: BTreeSet<Vec<u8>>,
    paths: Paths,
}

struct List<'a> {
    needs: HashMap<ResourceKey, bool>,
    paths: &'a mut Paths,
}

impl List<'_> {
    fn add(&mut self, key: ResourceKey, exclusive: bool) {
        *self.needs.entry(key).or_default() |= exclusive;
    }

    /// Adds the accesses to a path. Returns the path of its directory, or `None` for the root.
    fn name(&mut self, path: &[u8], exclusive: bool) -> Option<PathNumber> {
        let (mut parent, mut at) = (None, ROOT);
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            self.add(ResourceKey::Name(at), false);
            parent = Some(at);
            at = self.paths.number_below(at, name);
        }
        self.add(ResourceKey::Name(at), exclusive);
        parent
    }

    fn entry(&mut self, path: &[u8]) {
        if let Some(parent) = self.name(path, true) {
            self.add(ResourceKey::Entries(parent), true);
        }
    }
}

impl ConflictTracker {
    /// Forgets the numbers of paths. Earlier results have no meaning afterwards.
    pub fn forget_paths(&mut self) {
        self.paths = Paths::default();
    }

    /// The keys that an operation accesses, and whether exclusively. Must be called once for each
    /// operation, in the order of the log.
    ///
    /// Cost: one lookup for each component of its paths.
    pub fn of(&mut self, root: &RelPath, op: &Op) -> HashMap<ResourceKey, bool> {
        let at = |path: &RelPath| root.join(path).as_bytes().to_vec();
        let mut list = List { needs: HashMap::new(), paths: &mut self.paths };
        let mut exclusive = true;
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
                move_links(&mut self.linked, &from, &to);
                if let Op::Exchange { .. } = op {
                    move_links(&mut self.linked, &to, &from);
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
                exclusive = false;
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
            // A sync concerns all earlier operations.
            Op::SyncFs => {
                list.name(b"", true);
                [None, None]
            }
        };
        if paths.iter().flatten().any(|path| self.linked.contains(path)) {
            list.add(ResourceKey::Linked, exclusive);
        }
        list.needs
    }
}

/// Marks moved names as linked. Old names stay marked, which costs only speed.
fn move_links(linked: &mut BTreeSet<Vec<u8>>, from: &[u8], to: &[u8]) {
    let moved = |name: &[u8]| {
        let rest = name.strip_prefix(from)?;
        (rest.is_empty() || rest.starts_with(b"/")).then(|| [to, rest].concat())
    };
    let names: Vec<Vec<u8>> =
        linked.range(from.to_vec()..).map_while(|name| name.starts_with(from).then(|| moved(name))).flatten().collect();
    linked.extend(names);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mkdir(path: &[u8]) -> Op {
        Op::Mkdir { path: RelPath::new(path).unwrap(), mode: 0o755 }
    }

    #[test]
    fn deep_chain_stores_each_component_once() {
        let (mut needs, mut path, mut levels) = (ConflictTracker::default(), Vec::new(), Vec::new());
        for level in 0..400 {
            path.extend_from_slice(if level == 0 { b"dd" } else { b"/dd" });
            levels.push(needs.of(&RelPath::root(), &mkdir(&path)));
        }
        let held: usize = needs.paths.below.iter().flat_map(|below| below.keys()).map(|name| name.len()).sum();
        assert_eq!((needs.paths.below.len(), held), (401, 800));
        // Its own operation accesses the first directory exclusively, all operations below it share
        // it.
        let first =
            levels[0].iter().find(|(key, exclusive)| matches!(key, ResourceKey::Name(_)) && **exclusive).unwrap().0;
        assert!(levels[1..].iter().all(|needs| needs.get(first) == Some(&false)));
        assert!(levels.iter().enumerate().all(|(level, needs)| needs.len() == level + 3));
        needs.forget_paths();
        assert_eq!(needs.paths.below.len(), 1);
    }

    #[test]
    fn filling_a_directory_needs_exclusive_entries() {
        let mut needs = ConflictTracker::default();
        let entries = |found: &HashMap<ResourceKey, bool>| -> Vec<ResourceKey> {
            found.keys().filter(|key| matches!(key, ResourceKey::Entries(_))).copied().collect()
        };
        let mut of = |path: &[u8]| needs.of(&RelPath::root(), &mkdir(path));
        let (first, second, other, top) = (of(b"d/a"), of(b"d/b"), of(b"e/a"), of(b"d"));
        assert_eq!((entries(&first).len(), entries(&first)), (1, entries(&second)));
        assert_ne!(entries(&first), entries(&other));
        assert_ne!(entries(&first), entries(&top));
        assert!(entries(&first).iter().all(|key| first[key]));
    }
}
