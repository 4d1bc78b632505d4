//! Directories: their trees and lists of free blocks, read completely.

use std::collections::BTreeSet;

use super::{aggregate::Contents, volume::Files};
use crate::{
    Damage,
    format::{
        BLOCK, Block,
        directory::{Entry, Node, first_cookie, free_head, last_cookie, set_free_head},
        inode::Inode,
        zero_block,
    },
};

struct Tree<'a> {
    contents: &'a Contents,
    met: BTreeSet<u32>,
    entries: Vec<Entry>,
    problems: Vec<Damage>,
}

/// Returns all names, and reports the damage of the tree.
pub(super) fn check(files: &mut Files<'_>, seed: u64, ino: u64, inode: &Inode, contents: &Contents) -> Vec<Entry> {
    let mut tree = Tree { contents, met: BTreeSet::new(), entries: Vec::new(), problems: Vec::new() };
    let blocks = inode.size / BLOCK as u64;
    if !inode.size.is_multiple_of(BLOCK as u64) || contents.len() as u64 != blocks {
        let found = format!("{} bytes, {} blocks", inode.size, contents.len());
        tree.problems.push(Damage::new("directory", "size", found, "whole blocks without holes"));
    }
    if let Some(root) = contents.get(&0) {
        tree.walk(0, None, 0, u64::MAX);
        tree.free_list(free_head(root));
        if tree.entries.is_empty() {
            tree.problems.push(Damage::new("directory", "names", 0, "one at least, or no blocks"));
        }
    }
    if tree.met.len() as u64 != blocks {
        let expected = format!("{blocks}, in the tree or free");
        tree.problems.push(Damage::new("directory", "blocks that are reached", tree.met.len(), expected));
    }
    let mut names = BTreeSet::new();
    for entry in &tree.entries {
        let first = first_cookie(seed, &entry.name);
        if !(first..=last_cookie(first)).contains(&entry.cookie) {
            let expected = format!("{first} and up, by its name");
            tree.problems.push(Damage::new("directory entry", "cookie", entry.cookie, expected));
        }
        if senesce_fsapi::check_name(&entry.name).is_err() || !names.insert(&entry.name) {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            tree.problems.push(Damage::new("directory entry", "name", name, "a name, and once"));
        }
    }
    for problem in tree.problems {
        files.find(ino, problem);
    }
    tree.entries
}

/// Bytes that the node does not define must be zeros, except the head of the list of free blocks,
/// which is in the root.
fn check_padding(data: &Block, node: &Node, block: u32) -> Result<(), Damage> {
    let mut again = zero_block();
    node.encode(&mut again);
    if block == 0 {
        set_free_head(&mut again, free_head(data));
    }
    match again.iter().zip(data.iter()).position(|(again, found)| again != found) {
        None => Ok(()),
        Some(at) => Err(Damage::new("directory block", "padding", format!("not zero at byte {at}"), "zeros")),
    }
}

impl Tree<'_> {
    fn node(&mut self, block: u32) -> Option<Node> {
        if !self.met.insert(block) {
            self.problems.push(Damage::new("directory block", "number", block, "one that is met once"));
            return None;
        }
        let none = || Damage::new("directory block", "number", block, "a block of the directory");
        let found = self.contents.get(&u64::from(block)).ok_or_else(none);
        let found = found.and_then(|data| {
            let node = Node::decode(data)?;
            check_padding(data, &node, block).map(|()| node)
        });
        found.map_err(|damage| self.problems.push(damage)).ok()
    }

    /// All cookies below must be in `first..end`, and all leaves on level 0.
    fn walk(&mut self, block: u32, level: Option<u8>, first: u64, end: u64) {
        match self.node(block) {
            None => {}
            Some(Node::Free { .. }) => {
                self.problems.push(Damage::new("directory block", "level", "free", "one of the tree"));
            }
            Some(Node::Leaf(entries)) => {
                if level.is_some_and(|level| level != 0) {
                    self.problems.push(Damage::new("directory block", "level", 0, level.unwrap_or(0)));
                }
                if level.is_some() && entries.is_empty() {
                    self.problems.push(Damage::new("directory block", "count", 0, "1 at least"));
                }
                for entry in &entries {
                    if !(first..end).contains(&entry.cookie) {
                        let expected = format!("{first} to {end}");
                        self.problems.push(Damage::new("directory entry", "cookie", entry.cookie, expected));
                    }
                }
                self.entries.extend(entries);
            }
            Some(Node::Index { level: own, children }) => {
                if level.is_some_and(|level| level != own) {
                    self.problems.push(Damage::new("directory block", "level", own, level.unwrap_or(0)));
                    return;
                }
                if children[0].first != first {
                    self.problems.push(Damage::new("directory block", "first cookie", children[0].first, first));
                }
                for (at, child) in children.iter().enumerate() {
                    let next = children.get(at + 1).map_or(end, |next| next.first);
                    self.walk(child.block, Some(own - 1), child.first, next);
                }
            }
        }
    }

    fn free_list(&mut self, head: u32) {
        let mut next = head;
        while next != 0 {
            match self.node(next) {
                Some(Node::Free { next: after }) => next = after,
                Some(_) => {
                    self.problems.push(Damage::new("directory block", "level", "one of the tree", "free"));
                    return;
                }
                None => return,
            }
        }
    }
}
