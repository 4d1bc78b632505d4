//! Directories: trees of names in the order of cookies (see [`crate::format::directory`]).

use senesce_fsapi::FileKind;

use crate::{
    error::{Error, Result},
    format::{
        BLOCK,
        directory::{Child, Entry, Node, first_cookie, free_head, last_cookie, set_free_head},
    },
    store::{Key, Store},
};

/// The path from the root to a leaf.
struct Descent {
    /// Index blocks from the root on, each with the position of the next child.
    path: Vec<(u32, usize)>,
    leaf: u32,
    entries: Vec<Entry>,
    /// All cookies of the leaf are below this.
    end: u64,
}

impl Store {
    /// Finds the entry of a name.
    pub fn find_name(&mut self, space: u32, directory: u64, name: &[u8]) -> Result<Option<Entry>> {
        let first = first_cookie(self.volume(space)?.record.hash_seed, name);
        let mut found = None;
        self.scan_names(space, directory, first - 1, &mut |entry| {
            if entry.name == name {
                found = Some(entry.clone());
            }
            found.is_none() && entry.cookie <= last_cookie(first)
        })?;
        Ok(found)
    }

    /// Passes the entries after a cookie to `sink`, in order, until it returns `false`.
    pub fn scan_names(
        &mut self,
        space: u32,
        directory: u64,
        behind: u64,
        sink: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<()> {
        if self.is_empty_directory(space, directory)? {
            return Ok(());
        }
        let mut at = behind + 1;
        loop {
            let descent = self.descend(space, directory, at)?;
            for entry in descent.entries.iter().filter(|entry| entry.cookie >= at) {
                if !sink(entry) {
                    return Ok(());
                }
            }
            if descent.end == u64::MAX {
                return Ok(());
            }
            at = descent.end;
        }
    }

    pub fn is_empty_directory(&mut self, space: u32, directory: u64) -> Result<bool> {
        Ok(self.inode(space, directory)?.size == 0)
    }

    /// Adds a name that does not exist yet.
    pub fn add_name(&mut self, space: u32, directory: u64, name: &[u8], ino: u64, kind: FileKind) -> Result<()> {
        let first = first_cookie(self.volume(space)?.record.hash_seed, name);
        let mut cookie = first;
        self.scan_names(space, directory, first - 1, &mut |entry| {
            cookie += u64::from(entry.cookie == cookie);
            entry.cookie <= cookie
        })?;
        if cookie > last_cookie(first) {
            return Err(Error::NoSpace { wanted: 1, free: 0 });
        }
        let entry = Entry { cookie, ino, kind, name: name.to_vec() };
        if self.is_empty_directory(space, directory)? {
            self.append_node(space, directory, &Node::Leaf(vec![entry]))?;
            return Ok(());
        }
        let Descent { path, leaf, mut entries, .. } = self.descend(space, directory, cookie)?;
        entries.insert(entries.partition_point(|other| other.cookie < cookie), entry);
        self.store_split(space, directory, path, leaf, Node::Leaf(entries))
    }

    /// Makes an existing name point to another inode. Its cookie stays.
    pub fn redirect_name(&mut self, space: u32, directory: u64, old: &Entry, ino: u64, kind: FileKind) -> Result<()> {
        let Descent { leaf, mut entries, .. } = self.descend(space, directory, old.cookie)?;
        for entry in entries.iter_mut().filter(|entry| entry.cookie == old.cookie) {
            (entry.ino, entry.kind) = (ino, kind);
        }
        self.store_node(space, directory, leaf, &Node::Leaf(entries))
    }

    /// Removes a name. An empty leaf leaves the tree; an empty directory has no blocks.
    pub fn remove_name(&mut self, space: u32, directory: u64, cookie: u64) -> Result<()> {
        let Descent { mut path, leaf, mut entries, .. } = self.descend(space, directory, cookie)?;
        entries.retain(|entry| entry.cookie != cookie);
        if !entries.is_empty() {
            return self.store_node(space, directory, leaf, &Node::Leaf(entries));
        }
        let mut empty = leaf;
        while let Some((block, taken)) = path.pop() {
            self.free_node(space, directory, empty)?;
            let Node::Index { level, mut children } = self.node(space, directory, block)? else {
                return Err(Error::invalid(format!("directory {directory}: block {block} changed its level")));
            };
            let gone = children.remove(taken);
            if let Some(first) = children.first_mut().filter(|_| taken == 0) {
                first.first = gone.first; // every cookie needs a child
            }
            if !children.is_empty() {
                self.store_node(space, directory, block, &Node::Index { level, children })?;
                return self.lower_root(space, directory);
            }
            empty = block;
        }
        self.resize(space, directory, 0)
    }

    /// Replaces a root that has a single child by that child.
    fn lower_root(&mut self, space: u32, directory: u64) -> Result<()> {
        while let Node::Index { level, children } = self.node(space, directory, 0)?
            && let [only] = children[..]
        {
            let child = self.node(space, directory, only.block)?;
            if child.level() != Some(level - 1) {
                return Err(wrong_level(space, directory, only.block));
            }
            self.store_node(space, directory, 0, &child)?;
            self.free_node(space, directory, only.block)?;
        }
        Ok(())
    }

    fn descend(&mut self, space: u32, directory: u64, cookie: u64) -> Result<Descent> {
        let (mut path, mut block, mut end, mut above) = (Vec::new(), 0, u64::MAX, None);
        loop {
            let node = self.node(space, directory, block)?;
            if above.is_some_and(|above: u8| node.level() != Some(above - 1)) {
                return Err(wrong_level(space, directory, block));
            }
            above = node.level();
            match node {
                Node::Leaf(entries) => return Ok(Descent { path, leaf: block, entries, end }),
                Node::Index { children, .. } => {
                    let taken = children.partition_point(|child| child.first <= cookie).saturating_sub(1);
                    end = children.get(taken + 1).map_or(end, |next| next.first);
                    path.push((block, taken));
                    block = children[taken].block;
                }
                Node::Free { .. } => return Err(wrong_level(space, directory, block)),
            }
        }
    }

    /// Writes a node, which may be too large by one entry. Then splits it, and adds the new block
    /// to the index above.
    fn store_split(
        &mut self,
        space: u32,
        directory: u64,
        mut path: Vec<(u32, usize)>,
        mut block: u32,
        mut node: Node,
    ) -> Result<()> {
        while !node.fits() {
            let (left, first, right) = split(node);
            let Some((parent, taken)) = path.pop() else {
                // The root stays block 0, so both halves move down.
                let level = match &left {
                    Node::Index { level, .. } => level + 1,
                    _ => 1,
                };
                let left = Child { first: 0, block: self.append_node(space, directory, &left)? };
                let right = Child { first, block: self.append_node(space, directory, &right)? };
                return self.store_node(space, directory, 0, &Node::Index { level, children: vec![left, right] });
            };
            self.store_node(space, directory, block, &left)?;
            let new = Child { first, block: self.append_node(space, directory, &right)? };
            let mut above = self.node(space, directory, parent)?;
            if let Node::Index { children, .. } = &mut above {
                children.insert(taken + 1, new);
            }
            (block, node) = (parent, above);
        }
        self.store_node(space, directory, block, &node)
    }

    fn node(&mut self, space: u32, directory: u64, block: u32) -> Result<Node> {
        let decoded = Node::decode(self.get(Key::new(space, directory, 0, block.into()))?);
        decoded
            .map_err(|damage| Error::damaged(format!("directory {directory} of volume {space}, block {block}"), damage))
    }

    fn store_node(&mut self, space: u32, directory: u64, block: u32, node: &Node) -> Result<()> {
        node.encode(self.modify(Key::new(space, directory, 0, block.into()))?);
        Ok(())
    }

    /// Stores a node in a free block, or in a new one at the end.
    fn append_node(&mut self, space: u32, directory: u64, node: &Node) -> Result<u32> {
        let size = self.inode(space, directory)?.size;
        let root = Key::new(space, directory, 0, 0);
        let head = if size == 0 { 0 } else { free_head(self.get(root)?) };
        if head == 0 {
            let mut data = crate::format::zero_block();
            node.encode(&mut data);
            self.write_file(space, directory, size, &data[..])?;
            return Ok((size / BLOCK as u64) as u32);
        }
        let Node::Free { next } = self.node(space, directory, head)? else {
            return Err(Error::invalid(format!("directory {directory}: block {head} is free and in use")));
        };
        set_free_head(self.modify(root)?, next);
        let data = self.modify(Key::new(space, directory, 0, head.into()))?;
        set_free_head(data, 0);
        node.encode(data);
        Ok(head)
    }

    fn free_node(&mut self, space: u32, directory: u64, block: u32) -> Result<()> {
        let root = self.modify(Key::new(space, directory, 0, 0))?;
        let next = free_head(root);
        set_free_head(root, block);
        self.store_node(space, directory, block, &Node::Free { next })
    }
}

fn wrong_level(space: u32, directory: u64, block: u32) -> Error {
    let damage = crate::Damage::new("directory block", "level", "another", "one less than its parent's");
    Error::damaged(format!("directory {directory} of volume {space}, block {block}"), damage)
}

/// Splits a node. Returns both halves and the first cookie of the right one.
fn split(node: Node) -> (Node, u64, Node) {
    match node {
        Node::Leaf(mut left) => {
            let half = left.iter().map(Entry::bytes).sum::<usize>() / 2;
            let mut bytes = 0;
            let at = left.iter().position(|entry| {
                bytes += entry.bytes();
                bytes > half
            });
            let right = left.split_off(at.unwrap_or(1).max(1));
            (Node::Leaf(left), right[0].cookie, Node::Leaf(right))
        }
        Node::Index { level, children: mut left } => {
            let right = left.split_off(left.len() / 2);
            (Node::Index { level, children: left }, right[0].first, Node::Index { level, children: right })
        }
        Node::Free { .. } => unreachable!("a free block is never too large"),
    }
}
