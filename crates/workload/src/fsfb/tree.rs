//! The tree of directories, with random descents and random free slots.

use senesce_core::{RelPath, Rng};

use crate::generated_paths::path;

/// One directory.
#[derive(Clone, Debug)]
struct Directory {
    path: RelPath,
    parent: u32,
    /// Its slot in the parent.
    slot: u32,
    /// By slot; `None` is free.
    children: Vec<Option<u32>>,
}

/// Directories by number; 0 is the root. A parent always has a lower number than its children.
#[derive(Clone, Debug)]
pub(super) struct DirectoryTree {
    directories: Vec<Directory>,
    /// The largest number of children of a directory.
    slots: usize,
    /// The number of directories at which descents stop making new ones.
    most: usize,
}

impl DirectoryTree {
    /// A tree of the root alone.
    pub fn new(slots: u64, most: u64) -> Self {
        let root = Directory { path: RelPath::root(), parent: 0, slot: 0, children: Vec::new() };
        let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Self { directories: vec![root], slots: size(slots), most: size(most) }
    }

    /// The number of directories, the root included.
    pub fn len(&self) -> usize {
        self.directories.len()
    }

    /// The path of a directory.
    pub fn path(&self, directory: u32) -> &RelPath {
        &self.directories[directory as usize].path
    }

    /// Returns a random directory for a file. At each directory the descent chooses among: stop
    /// here, each child, and a new child if one is allowed. All choices have the same probability.
    /// New directories have the numbers from the former `len()` on.
    pub fn descend(&mut self, rng: &mut Rng) -> u32 {
        let mut at = 0;
        loop {
            let children = self.children(at);
            let new = usize::from(children.len() < self.slots && self.len() < self.most);
            match rng.below((1 + children.len() + new) as u64) as usize {
                0 => return at,
                choice if choice <= children.len() => at = children[choice - 1],
                _ => at = self.make(at, children.len()),
            }
        }
    }

    /// Makes a directory at a random free slot. At each directory every slot has the same
    /// probability. The descent continues through a used slot and stops at a free one.
    pub fn make_at_free_slot(&mut self, rng: &mut Rng) -> u32 {
        let mut at = 0;
        loop {
            let slot = rng.below(self.slots as u64) as usize;
            match self.directories[at as usize].children.get(slot).copied().flatten() {
                Some(child) => at = child,
                None => return self.make(at, slot),
            }
        }
    }

    /// Removes the directories from number `len` on.
    pub fn truncate(&mut self, len: usize) {
        while self.len() > len.max(1) {
            let Some(gone) = self.directories.pop() else { return };
            self.directories[gone.parent as usize].children[gone.slot as usize] = None;
        }
    }

    fn children(&self, of: u32) -> Vec<u32> {
        self.directories[of as usize].children.iter().copied().flatten().collect()
    }

    /// Makes a child of `parent`, in the slot if it is free, otherwise in the first free one.
    fn make(&mut self, parent: u32, slot: usize) -> u32 {
        let number = self.directories.len() as u32;
        let of = &mut self.directories[parent as usize];
        let taken = of.children.get(slot).is_some_and(Option::is_some);
        let slot = if taken { of.children.iter().position(Option::is_none).unwrap_or(of.children.len()) } else { slot };
        if of.children.len() <= slot {
            of.children.resize(slot + 1, None);
        }
        of.children[slot] = Some(number);
        let path = of.path.join(&path(&format!("d{slot}")));
        self.directories.push(Directory { path, parent, slot: slot as u32, children: Vec::new() });
        number
    }

    /// The number of children of each directory; for tests.
    #[cfg(test)]
    pub fn child_counts(&self) -> Vec<usize> {
        (0..self.len() as u32).map(|directory| self.children(directory).len()).collect()
    }
}
