//! The names of a tree's entries, by their numbers in the order of the tree. No whole path is
//! stored.

use senesce_core::RelPath;

/// Names and parents of the entries so far. Memory: 8 bytes and the length of the name per entry.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// For each entry, the number of its directory and the start of its name.
    entries: Vec<(u32, u32)>,
    /// All names, adjacent to each other.
    names: Vec<u8>,
    /// The directories on the path to the current entry, with their numbers; the innermost is last.
    directories: Vec<(RelPath, u32)>,
}

impl Names {
    /// Adds the next entry in the order of the tree, a directory before its entries. Returns its
    /// number.
    pub fn add(&mut self, path: &RelPath, is_directory: bool) -> u32 {
        let holds = |directory: &RelPath| {
            let (directory, path) = (directory.as_bytes(), path.as_bytes());
            directory.is_empty() || (path.starts_with(directory) && path.get(directory.len()) == Some(&b'/'))
        };
        while self.directories.last().is_some_and(|(directory, _)| !holds(directory)) {
            self.directories.pop();
        }
        let number = self.entries.len() as u32;
        let parent = self.directories.last().map_or(0, |(_, number)| *number);
        self.entries.push((parent, self.names.len() as u32));
        self.names.extend_from_slice(path.name());
        if is_directory {
            self.directories.push((path.clone(), number));
        }
        number
    }

    /// The number of an entry's directory. The root is its own directory.
    pub fn parent(&self, number: u32) -> u32 {
        self.entries[number as usize].0
    }

    /// The name of an entry. Invalid UTF-8 becomes replacement characters.
    pub fn name(&self, number: u32) -> String {
        let from = self.entries[number as usize].1 as usize;
        let to = self.entries.get(number as usize + 1).map_or(self.names.len(), |next| next.1 as usize);
        String::from_utf8_lossy(&self.names[from..to]).into_owned()
    }

    /// The path of an entry from the root; empty for the root.
    pub fn path(&self, number: u32) -> String {
        let mut parts = Vec::new();
        let mut at = number;
        while at != 0 {
            parts.push(self.name(at));
            at = self.parent(at);
        }
        parts.reverse();
        parts.join("/")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_with_a_common_prefix_are_not_parents() {
        let mut names = Names::default();
        let entries =
            [("", true), ("a", true), ("a/x", false), ("a.c", false), ("ab", true), ("ab/a", true), ("ab/a/x", false)];
        for (number, (path, is_directory)) in entries.iter().enumerate() {
            let path = if path.is_empty() { RelPath::root() } else { RelPath::new(path.as_bytes()).unwrap() };
            assert_eq!(names.add(&path, *is_directory), number as u32);
        }
        let found: Vec<String> = (0..entries.len() as u32).map(|number| names.path(number)).collect();
        assert!(found.iter().zip(entries).all(|(found, (path, _))| found == path), "{found:?}");
        assert_eq!((0..7).map(|number| names.parent(number)).collect::<Vec<_>>(), [0, 0, 1, 0, 0, 4, 5]);
    }

    proptest! {
        #[test]
        fn every_path_is_found(shape in prop::collection::vec((0u8..4, "[a-c]{1,2}", any::<bool>()), 0..60)) {
            let (mut names, mut paths) = (Names::default(), vec![String::new()]);
            names.add(&RelPath::root(), true);
            // Down into a new directory, or up again by some levels.
            let mut way: Vec<String> = Vec::new();
            for (number, (up, name, is_directory)) in shape.into_iter().enumerate() {
                way.truncate(way.len().saturating_sub(usize::from(up)));
                let path = way.iter().cloned().chain([format!("{name}{number}")]).collect::<Vec<_>>().join("/");
                names.add(&RelPath::new(path.as_bytes()).unwrap(), is_directory);
                if is_directory {
                    way.push(format!("{name}{number}"));
                }
                paths.push(path);
            }
            for (number, path) in paths.iter().enumerate() {
                prop_assert_eq!(&names.path(number as u32), path);
            }
        }
    }
}
