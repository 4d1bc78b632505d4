//! The names of a volume in memory, and the operations on them.

use std::{
    collections::{BTreeMap, HashMap},
    io,
};

use rustix::io::Errno;
use senesce_core::{Bytes, RelPath, StopFn, never};
use senesce_oplog::{Content, Op, Payload, SpaceChange};

use super::contents::{Contents, to_memory};
use crate::{
    ExecError, OpFailure, SpaceLeft, Target,
    tree::{Entry, Tree},
};

const BLOCK_BYTES: u64 = 4096;

/// A volume in memory with a given capacity.
///
/// Space is counted in blocks of 4 KiB. A file needs its length rounded up (with holes), a
/// directory one block, other entries none. A write that does not fit writes the blocks that do.
#[derive(Clone, Debug)]
pub struct ModelTarget {
    /// The entries by path. The root is the empty path and always exists.
    names: BTreeMap<Vec<u8>, Node>,
    files: HashMap<u64, FileNode>,
    next_id: u64,
    capacity_blocks: Option<u64>,
    used_blocks: u64,
}

#[derive(Clone, Debug)]
enum Node {
    Directory { mode: u32 },
    Symlink { id: u64, target: Vec<u8> },
    File { id: u64 },
    Special { id: u64, mode: u32 },
}

#[derive(Clone, Debug)]
struct FileNode {
    mode: u32,
    links: u32,
    contents: Contents,
}

type Done = Result<(), OpFailure>;

fn refuse<T>(errno: Errno) -> Result<T, OpFailure> {
    Err(OpFailure::Io(errno.into()))
}

const NOTHING_DONE: OpFailure = OpFailure::NoSpace { written: None };

impl Default for ModelTarget {
    fn default() -> Self {
        Self::new(None)
    }
}

impl ModelTarget {
    /// An empty volume. Without a capacity it is never full.
    pub fn new(capacity: Option<Bytes>) -> Self {
        Self {
            names: BTreeMap::from([(Vec::new(), Node::Directory { mode: 0o755 })]),
            files: HashMap::new(),
            next_id: 0,
            capacity_blocks: capacity.map(|bytes| bytes.0 / BLOCK_BYTES),
            used_blocks: 0,
        }
    }

    /// The tree of the volume, for comparisons.
    pub fn tree(&self) -> Tree {
        self.tree_until(never).expect("a model in memory can be read, and nothing stops it")
    }

    /// Returns the tree as [`tree`](Self::tree) does. Fails with [`ExecError::Stopped`] if `stop`
    /// returns true.
    ///
    /// Cost: hashes all contents, with holes.
    pub fn tree_until(&self, stop: StopFn) -> Result<Tree, ExecError> {
        let entry = |node: &Node| -> io::Result<Entry> {
            Ok(match node {
                Node::Directory { mode } => Entry::Directory { mode: *mode },
                Node::Symlink { target, .. } => Entry::Symlink { target: target.clone() },
                Node::File { id } => {
                    let file = &self.files[id];
                    let hash = file.contents.hash(stop)?;
                    Entry::File { mode: file.mode, size_bytes: file.contents.len(), hash }
                }
                Node::Special { mode, .. } => Entry::Other { mode: *mode },
            })
        };
        let path = |bytes: &[u8]| RelPath::new(bytes).expect("every name came as a RelPath");
        let entries = self.names.iter().filter(|(name, _)| !name.is_empty());
        let entries = entries.map(|(name, node)| Ok((path(name), entry(node)?)));
        // Only `stop` can cause an error here.
        let entries = entries.collect::<io::Result<_>>().map_err(|_| ExecError::Stopped)?;
        Ok(Tree { entries })
    }

    /// The space that files and directories use.
    pub fn used(&self) -> Bytes {
        Bytes(self.used_blocks.saturating_mul(BLOCK_BYTES))
    }

    /// The number of names, with the root.
    pub fn names(&self) -> u64 {
        self.names.len() as u64
    }

    /// The length of a file. `None` if the path is not that of a file.
    pub fn file_bytes(&self, path: &RelPath) -> Option<u64> {
        match self.names.get(path.as_bytes())? {
            Node::File { id } => Some(self.files[id].contents.len()),
            _ => None,
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn free_blocks(&self) -> u64 {
        // Holes count with their length. Without a capacity, the sum must not overflow.
        self.capacity_blocks.unwrap_or(u64::MAX).saturating_sub(self.used_blocks)
    }

    /// Checks that a new name can be added: the parent is a directory, and the name does not exist.
    fn new_name(&self, path: &[u8]) -> Done {
        self.parent(path)?;
        if self.names.contains_key(path) { refuse(Errno::EXIST) } else { Ok(()) }
    }

    fn parent(&self, path: &[u8]) -> Done {
        let parent = match path.iter().rposition(|&b| b == b'/') {
            Some(at) => &path[..at],
            None => &[],
        };
        match self.names.get(parent) {
            Some(Node::Directory { .. }) => Ok(()),
            Some(_) => refuse(Errno::NOTDIR),
            None => refuse(Errno::NOENT),
        }
    }

    fn node(&self, path: &[u8]) -> Result<&Node, OpFailure> {
        self.parent(path)?;
        self.names.get(path).ok_or(OpFailure::Io(Errno::NOENT.into()))
    }

    fn file_id(&self, path: &[u8]) -> Result<u64, OpFailure> {
        match self.node(path)? {
            Node::File { id } => Ok(*id),
            Node::Directory { .. } => refuse(Errno::ISDIR),
            Node::Symlink { .. } => refuse(Errno::LOOP),
            Node::Special { .. } => refuse(Errno::INVAL),
        }
    }

    fn file(&mut self, id: u64) -> &mut FileNode {
        self.files.get_mut(&id).expect("a name's file exists as long as the name")
    }

    /// The names below a directory.
    fn below(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let (mut from, mut to) = (path.to_vec(), path.to_vec());
        from.push(b'/');
        to.push(b'/' + 1);
        self.names.range(from..to).map(|(name, _)| name.clone()).collect()
    }

    /// Removes a name, and the file with its last name.
    fn drop_name(&mut self, path: &[u8]) {
        match self.names.remove(path) {
            Some(Node::File { id }) => {
                let file = self.file(id);
                file.links -= 1;
                if file.links == 0 {
                    let blocks = file.contents.len().div_ceil(BLOCK_BYTES);
                    self.files.remove(&id);
                    self.used_blocks -= blocks;
                }
            }
            Some(Node::Directory { .. }) => self.used_blocks -= 1,
            Some(Node::Symlink { .. } | Node::Special { .. }) | None => {}
        }
    }

    fn set_len(&mut self, id: u64, len: u64) -> Done {
        if i64::try_from(len).is_err() {
            return refuse(Errno::INVAL);
        }
        let old = self.file(id).contents.len().div_ceil(BLOCK_BYTES);
        let new = len.div_ceil(BLOCK_BYTES);
        if new > old && new - old > self.free_blocks() {
            return Err(NOTHING_DONE);
        }
        self.file(id).contents.set_len(len);
        self.used_blocks = self.used_blocks - old + new;
        Ok(())
    }

    fn write(&mut self, id: u64, offset: u64, op: &Op, payload: Option<&Payload>) -> Done {
        let Some(payload) = payload else { return Ok(()) };
        let len = payload.len();
        let Some(end) = offset.checked_add(len).filter(|&end| i64::try_from(end).is_ok()) else {
            return refuse(Errno::FBIG);
        };
        // Seeded bytes are kept as their seed.
        let payload = match op.content() {
            Some(Content::Seeded { seed, .. }) => Payload::Seeded { seed: *seed, len },
            _ => to_memory(payload)?,
        };
        let old = self.file(id).contents.len().div_ceil(BLOCK_BYTES);
        let reach = old.saturating_add(self.free_blocks()).saturating_mul(BLOCK_BYTES);
        let written = end.min(reach).saturating_sub(offset);
        let contents = &mut self.file(id).contents;
        contents.write(offset, payload, written);
        let new = contents.len().div_ceil(BLOCK_BYTES);
        self.used_blocks = self.used_blocks - old + new;
        if written < len { Err(OpFailure::NoSpace { written: Some(written) }) } else { Ok(()) }
    }

    fn change_space(&mut self, id: u64, how: SpaceChange, offset: u64, len: u64) -> Done {
        if len == 0 {
            return refuse(Errno::INVAL);
        }
        let Some(end) = offset.checked_add(len).filter(|&end| i64::try_from(end).is_ok()) else {
            return refuse(Errno::FBIG);
        };
        if how.grows() && end > self.file(id).contents.len() {
            self.set_len(id, end)?;
        }
        if how.clears() {
            self.file(id).contents.clear(offset, len);
        }
        Ok(())
    }

    fn exchange(&mut self, first: &[u8], second: &[u8]) -> Done {
        self.node(first)?;
        self.node(second)?;
        let is_below = |path: &[u8], above: &[u8]| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
        if first == second {
            return Ok(());
        }
        if is_below(first, second) || is_below(second, first) {
            return refuse(Errno::INVAL);
        }
        let mut moved = Vec::new();
        for (from, to) in [(first, second), (second, first)] {
            for name in self.below(from).into_iter().chain([from.to_vec()]) {
                let node = self.names.remove(&name).expect("listed just now");
                moved.push(([to, &name[from.len()..]].concat(), node));
            }
        }
        self.names.extend(moved);
        Ok(())
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Done {
        let moved = self.node(from)?.clone();
        self.parent(to)?;
        if from == to {
            return Ok(());
        }
        if to.strip_prefix(from).is_some_and(|rest| rest.starts_with(b"/")) {
            return refuse(Errno::INVAL);
        }
        match (&moved, self.names.get(to)) {
            (_, None) => {}
            (Node::Directory { .. }, Some(Node::Directory { .. })) if self.below(to).is_empty() => {}
            (Node::Directory { .. }, Some(Node::Directory { .. })) => return refuse(Errno::NOTEMPTY),
            (Node::Directory { .. }, Some(_)) => return refuse(Errno::NOTDIR),
            (_, Some(Node::Directory { .. })) => return refuse(Errno::ISDIR),
            // Two names of one file or symbolic link: POSIX requires that nothing happens.
            (
                Node::File { id: a } | Node::Symlink { id: a, .. } | Node::Special { id: a, .. },
                Some(Node::File { id: b } | Node::Symlink { id: b, .. } | Node::Special { id: b, .. }),
            ) if a == b => {
                return Ok(());
            }
            _ => {}
        }
        self.drop_name(to);
        let mut names = self.below(from);
        names.push(from.to_vec());
        for name in names {
            let node = self.names.remove(&name).expect("listed just now");
            self.names.insert([to, &name[from.len()..]].concat(), node);
        }
        Ok(())
    }
}

impl Target for ModelTarget {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        let at = |path: &RelPath| root.join(path).as_bytes().to_vec();
        match op {
            Op::Mkdir { path, mode } => {
                let path = at(path);
                self.new_name(&path)?;
                if self.free_blocks() == 0 {
                    return Err(NOTHING_DONE);
                }
                self.used_blocks += 1;
                self.names.insert(path, Node::Directory { mode: mode & 0o7777 });
            }
            Op::Rmdir { path } => {
                let path = at(path);
                match self.node(&path)? {
                    Node::Directory { .. } if path.is_empty() => return refuse(Errno::INVAL),
                    Node::Directory { .. } if !self.below(&path).is_empty() => return refuse(Errno::NOTEMPTY),
                    Node::Directory { .. } => self.drop_name(&path),
                    _ => return refuse(Errno::NOTDIR),
                }
            }
            Op::Create { path, mode, .. } => {
                let path = at(path);
                self.new_name(&path)?;
                let id = self.new_id();
                let file = FileNode { mode: mode & 0o7777, links: 1, contents: Contents::default() };
                self.files.insert(id, file);
                self.names.insert(path, Node::File { id });
                self.write(id, 0, op, payload)?;
            }
            Op::Write { path, offset, .. } => {
                let id = self.file_id(&at(path))?;
                self.write(id, *offset, op, payload)?;
            }
            Op::Truncate { path, len } => {
                let id = self.file_id(&at(path))?;
                self.set_len(id, *len)?;
            }
            Op::Rename { from, to } => self.rename(&at(from), &at(to))?,
            Op::Unlink { path } => {
                let path = at(path);
                match self.node(&path)? {
                    Node::Directory { .. } => return refuse(Errno::ISDIR),
                    _ => self.drop_name(&path),
                }
            }
            Op::Symlink { path, target } => {
                let path = at(path);
                self.new_name(&path)?;
                if target.is_empty() {
                    return refuse(Errno::NOENT);
                }
                let id = self.new_id();
                self.names.insert(path, Node::Symlink { id, target: target.to_vec() });
            }
            Op::Link { existing, path } => {
                let (existing, path) = (at(existing), at(path));
                let node = match self.node(&existing)? {
                    Node::Directory { .. } => return refuse(Errno::PERM),
                    node => node.clone(),
                };
                self.new_name(&path)?;
                if let Node::File { id } = node {
                    self.file(id).links += 1;
                }
                self.names.insert(path, node);
            }
            Op::Chmod { path, mode } => {
                let path = at(path);
                let mode = mode & 0o7777;
                match self.node(&path)? {
                    Node::Symlink { .. } => return refuse(Errno::LOOP),
                    Node::File { id } => {
                        let id = *id;
                        self.file(id).mode = mode;
                    }
                    Node::Directory { .. } => {
                        self.names.insert(path, Node::Directory { mode });
                    }
                    Node::Special { id, .. } => {
                        let id = *id;
                        for node in self.names.values_mut() {
                            if let Node::Special { id: other, mode: old } = node
                                && *other == id
                            {
                                *old = *old & !0o7777 | mode;
                            }
                        }
                    }
                }
            }
            Op::RemoveTree { path } => {
                let path = at(path);
                match self.node(&path)? {
                    Node::Directory { .. } if path.is_empty() => return refuse(Errno::INVAL),
                    Node::Directory { .. } => {}
                    _ => return refuse(Errno::NOTDIR),
                }
                for name in self.below(&path) {
                    self.drop_name(&name);
                }
                self.drop_name(&path);
            }
            Op::Fsync { path } => match self.node(&at(path))? {
                Node::Symlink { .. } => return refuse(Errno::LOOP),
                Node::Special { .. } => return refuse(Errno::INVAL),
                _ => {}
            },
            Op::SyncFs => {}
            Op::Allocate { path, mode, len } => {
                let path = at(path);
                self.new_name(&path)?;
                if i64::try_from(*len).is_err() {
                    return refuse(Errno::FBIG);
                }
                if len.div_ceil(BLOCK_BYTES) > self.free_blocks() {
                    return Err(NOTHING_DONE);
                }
                let id = self.new_id();
                let file = FileNode { mode: mode & 0o7777, links: 1, contents: Contents::default() };
                self.files.insert(id, file);
                self.names.insert(path, Node::File { id });
                self.set_len(id, *len)?;
            }
            Op::SetModified { path, .. } => {
                // Times are not part of a compared tree.
                self.node(&at(path))?;
            }
            Op::Read { path, offset, len } => {
                let id = self.file_id(&at(path))?;
                if offset.checked_add(*len).is_none_or(|end| end > self.file(id).contents.len()) {
                    return Err(OpFailure::Io(io::ErrorKind::UnexpectedEof.into()));
                }
            }
            Op::Fallocate { path, how, offset, len } => {
                let id = self.file_id(&at(path))?;
                self.change_space(id, *how, *offset, *len)?;
            }
            Op::Exchange { first, second } => self.exchange(&at(first), &at(second))?,
            // Attributes, times and owners are not part of a compared tree.
            Op::SetXattr { path, .. }
            | Op::RemoveXattr { path, .. }
            | Op::SetTimes { path, .. }
            | Op::Chown { path, .. } => {
                self.node(&at(path))?;
            }
            Op::Mknod { path, mode, .. } => {
                let path = at(path);
                self.new_name(&path)?;
                let id = self.new_id();
                self.names.insert(path, Node::Special { id, mode: *mode });
            }
        }
        Ok(())
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        let bytes = |blocks: u64| Bytes(blocks.saturating_mul(BLOCK_BYTES));
        Ok(SpaceLeft { capacity: bytes(self.capacity_blocks.unwrap_or(u64::MAX)), free: bytes(self.free_blocks()) })
    }
}
