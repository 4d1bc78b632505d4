//! Names that mean nothing, in place of those that were seen.
//!
//! The n-th new name gets the n-th alias of its length that the seed gives: nothing of a name but its length is in its
//! alias, so no dictionary finds it. Equal names have equal aliases, wherever they stand.

use std::collections::{HashMap, HashSet};

use senesce_core::{RelPath, Rng, Seed};

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Gives aliases and remembers them.
pub(crate) struct Aliases {
    rng: Rng,
    known: HashMap<Vec<u8>, Vec<u8>>,
    taken: HashSet<Vec<u8>>,
}

impl Aliases {
    pub fn new(seed: Seed) -> Self {
        Self { rng: Rng::for_purpose(seed, "aliases"), known: HashMap::new(), taken: HashSet::new() }
    }

    /// The alias of one name. One letter longer where all of its length are likely taken.
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
            // A name is at most 255 bytes, and so many of those are never taken.
            length += 1;
        };
        self.known.insert(name.to_vec(), alias.clone());
        alias
    }

    /// A path, name by name.
    pub fn path(&mut self, path: &RelPath) -> RelPath {
        RelPath::new(&self.bytes(path.as_bytes())).expect("aliases are letters and digits")
    }

    /// What a symbolic link points at: `.` and `..` and slashes stay.
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
    fn structure_and_lengths_stay_and_names_go() {
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
    fn no_two_names_share_an_alias_even_if_they_are_short() {
        let mut aliases = Aliases::new(Seed(1));
        let names: HashSet<Vec<u8>> = (0..=255u8).map(|byte| aliases.name(&[byte])).collect();
        assert_eq!(names.len(), 256);
    }

    #[test]
    fn an_alias_does_not_depend_on_the_name_but_on_its_turn() {
        let alias = |name: &[u8]| Aliases::new(Seed(3)).name(name);
        assert_eq!(alias(b"passwords"), alias(b"shoppings"));
    }
}
