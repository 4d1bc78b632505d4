//! Random names that replace recorded ones.
//!
//! The n-th new name gets the n-th random alias of its length from the seed. An alias reveals only
//! the length of the name, so no dictionary attack works. Equal names have equal aliases
//! everywhere.

use std::collections::{HashMap, HashSet};

use senesce_core::{RelPath, Rng, Seed};

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Assigns aliases and remembers them.
pub(crate) struct Aliases {
    rng: Rng,
    known: HashMap<Vec<u8>, Vec<u8>>,
    taken: HashSet<Vec<u8>>,
}

impl Aliases {
    pub fn new(seed: Seed) -> Self {
        Self { rng: Rng::for_purpose(seed, "aliases"), known: HashMap::new(), taken: HashSet::new() }
    }

    /// Returns the alias of one name. It is one letter longer if probably all aliases of its length
    /// are in use.
    pub fn name(&mut self, name: &[u8]) -> Vec<u8> {
        if let Some(alias) = self.known.get(name) {
            return alias.clone();
        }
        let mut length = name.len();
        let alias = 'found: loop {
            for _ in 0..64 {
                let draw = |_| LETTERS[self.rng.below(LETTERS.len() as u64) as usize];
                let alias: Vec<u8> = (0..length).map(draw).collect();
                if self.taken.insert(alias.clone()) {
                    break 'found alias;
                }
            }
            // A name has at most 255 bytes, and the aliases of that length never run out.
            length += 1;
        };
        self.known.insert(name.to_vec(), alias.clone());
        alias
    }

    /// Returns the alias of a path, name by name.
    pub fn path(&mut self, path: &RelPath) -> RelPath {
        RelPath::new(&self.bytes(path.as_bytes())).expect("aliases are letters and digits")
    }

    /// Returns the alias of a symbolic link's target. `.`, `..` and slashes stay.
    pub fn bytes(&mut self, target: &[u8]) -> Vec<u8> {
        let parts = target.split(|&byte| byte == b'/').map(|part| match part {
            b"" | b"." | b".." => part.to_vec(),
            name => self.name(name),
        });
        parts.collect::<Vec<_>>().join(&b'/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_keep_structure_and_lengths_only() {
        let mut aliases = Aliases::new(Seed(7));
        let path = RelPath::new(b"secret/project/secret/a.c").unwrap();
        let alias = aliases.path(&path);
        let parts: Vec<&[u8]> = alias.as_bytes().split(|&b| b == b'/').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [6, 7, 6, 3]);
        assert_eq!(parts[0], parts[2]);
        assert!(!alias.to_string().contains("secret") && !alias.to_string().contains("a.c"));
        assert_eq!(aliases.path(&path), alias);
        assert_eq!(aliases.bytes(b"../project/./x")[..3], *b"../");
    }

    #[test]
    fn short_names_have_different_aliases() {
        let mut aliases = Aliases::new(Seed(1));
        let names: HashSet<Vec<u8>> = (0..=255u8).map(|byte| aliases.name(&[byte])).collect();
        assert_eq!(names.len(), 256);
    }

    #[test]
    fn alias_depends_on_order_and_not_on_name() {
        let alias = |name: &[u8]| Aliases::new(Seed(3)).name(name);
        assert_eq!(alias(b"passwords"), alias(b"shoppings"));
    }
}
