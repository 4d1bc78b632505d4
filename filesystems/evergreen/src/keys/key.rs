//! Encodes and decodes keys.

use std::ops::Range;

use super::{
    MOST_INO,
    home::Home,
    number::{put_number, take_number},
};

const METADATA: u8 = b'm';
const DATA: u8 = b'd';
const SYSTEM: u8 = b's';

const INODE: u8 = 0;
const NAME: u8 = 1;
const XATTR: u8 = 2;
/// Ends the keys of an object; the keys of its children follow.
const CHILDREN: u8 = 3;

const LAYOUT: u8 = 0;
const NEXT_INO: u8 = 1;
const HOME_OF: u8 = 2;
const ORPHAN: u8 = 3;

/// The meaning of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The inode of an object.
    Inode(Home),
    /// The target of a symbolic link.
    Target(Home),
    /// A name in a directory.
    Name(Home, Vec<u8>),
    /// A name in a directory that has no place in the order of names, by its number.
    Unordered(Home, u64),
    /// A piece of an extended attribute.
    Xattr(Home, Vec<u8>, u8),
    /// A block of a file.
    Block(Home, u64),
    /// The record with the key order.
    Layout,
    /// The record with the number below which inode numbers may be in use.
    NextIno,
    /// The home of an inode.
    HomeOf(u64),
    /// Marks an inode without a name.
    Orphan(u64),
}

impl Home {
    fn with(&self, zone: u8, rest: &[&[u8]]) -> Vec<u8> {
        let mut key = Vec::with_capacity(1 + self.byte_count() + 16);
        key.push(zone);
        key.extend_from_slice(self.bytes());
        rest.iter().for_each(|rest| key.extend_from_slice(rest));
        key
    }

    /// The key of the inode.
    pub fn inode_key(&self) -> Vec<u8> {
        self.with(METADATA, &[&[INODE]])
    }

    /// The key of a symbolic link's target; it follows its inode.
    pub fn target_key(&self) -> Vec<u8> {
        self.with(METADATA, &[&[INODE, 0]])
    }

    /// The key of a name in a directory.
    pub fn name_key(&self, name: &[u8]) -> Vec<u8> {
        self.with(METADATA, &[&[NAME], name])
    }

    /// The key of a name without a place in the order.
    pub fn unordered_key(&self, number: u64) -> Vec<u8> {
        let mut key = self.with(METADATA, &[&[NAME, 0]]);
        put_number(&mut key, number);
        key
    }

    /// The keys of all names in a directory, in their order.
    pub fn names(&self) -> Range<Vec<u8>> {
        self.with(METADATA, &[&[NAME, 1]])..self.with(METADATA, &[&[XATTR]])
    }

    /// The keys of all names without a place in the order, in the order of their numbers.
    pub fn unordered(&self) -> Range<Vec<u8>> {
        self.with(METADATA, &[&[NAME]])..self.with(METADATA, &[&[NAME, 1]])
    }

    /// The key of a piece of an extended attribute.
    pub fn xattr_key(&self, name: &[u8], piece: u8) -> Vec<u8> {
        self.with(METADATA, &[&[XATTR], name, &[0, piece]])
    }

    /// The keys of all pieces of an extended attribute.
    pub fn xattr(&self, name: &[u8]) -> Range<Vec<u8>> {
        self.with(METADATA, &[&[XATTR], name, &[0]])..self.with(METADATA, &[&[XATTR], name, &[1]])
    }

    /// The keys of all extended attributes, in the order of their names.
    pub fn xattrs(&self) -> Range<Vec<u8>> {
        self.with(METADATA, &[&[XATTR]])..self.with(METADATA, &[&[CHILDREN]])
    }

    /// The keys of all metadata of the object, without its children.
    pub fn metadata(&self) -> Range<Vec<u8>> {
        self.with(METADATA, &[&[INODE]])..self.with(METADATA, &[&[CHILDREN]])
    }

    /// The key of a block of a file.
    pub fn block_key(&self, number: u64) -> Vec<u8> {
        let mut key = self.with(DATA, &[&[0]]);
        put_number(&mut key, number);
        key
    }

    /// The keys of all blocks from `number` on.
    pub fn blocks_from(&self, number: u64) -> Range<Vec<u8>> {
        self.block_key(number)..self.with(DATA, &[&[1]])
    }

    /// The keys of the blocks from `from` up to `to` (exclusive).
    pub fn blocks(&self, from: u64, to: u64) -> Range<Vec<u8>> {
        self.block_key(from)..self.block_key(to)
    }
}

/// The key of the record with the key order.
pub fn layout_key() -> Vec<u8> {
    vec![SYSTEM, LAYOUT]
}

/// The key of the record with the next inode number.
pub fn next_ino_key() -> Vec<u8> {
    vec![SYSTEM, NEXT_INO]
}

/// The number of inode numbers that are reserved at a time. Unused ones are lost when the file
/// system is opened again.
pub const INOS_AT_ONCE: u64 = 1024;

/// Decodes the record at [`next_ino_key`]. Errors: a text with the rule that is violated.
pub fn next_ino_of(value: &[u8]) -> Result<u64, String> {
    let number = u64::from_le_bytes(value.try_into().map_err(|_| "it is no number")?);
    // A reservation may exceed the greatest inode number.
    if number <= MOST_INO + INOS_AT_ONCE {
        Ok(number)
    } else {
        Err(format!("inodes below {number}; none has more than {MOST_INO}"))
    }
}

/// The key of an inode's home.
pub fn home_of_key(ino: u64) -> Vec<u8> {
    system_key(HOME_OF, ino)
}

/// The key that marks an inode without a name.
pub fn orphan_key(ino: u64) -> Vec<u8> {
    system_key(ORPHAN, ino)
}

/// The keys of all inodes without a name.
pub fn orphans() -> Range<Vec<u8>> {
    vec![SYSTEM, ORPHAN]..vec![SYSTEM, ORPHAN + 1]
}

fn system_key(what: u8, ino: u64) -> Vec<u8> {
    let mut key = vec![SYSTEM, what];
    put_number(&mut key, ino);
    key
}

impl Key {
    /// Decodes a key. Errors: a text with the rule that is violated.
    pub fn decode(key: &[u8]) -> Result<Self, String> {
        let (zone, rest) = key.split_first().ok_or("an empty key")?;
        match *zone {
            METADATA => Self::decode_metadata(rest),
            DATA => {
                let (home, rest) = Home::take(rest)?;
                let number = rest.strip_prefix(&[0]).ok_or("a block without a number")?;
                Ok(Self::Block(home, whole_number(number)?))
            }
            SYSTEM => match rest {
                [LAYOUT] => Ok(Self::Layout),
                [NEXT_INO] => Ok(Self::NextIno),
                [HOME_OF, ino @ ..] => Ok(Self::HomeOf(whole_ino(ino)?)),
                [ORPHAN, ino @ ..] => Ok(Self::Orphan(whole_ino(ino)?)),
                _ => Err(format!("an unknown system record: {}", rest.escape_ascii())),
            },
            other => Err(format!("a key that begins with {other}")),
        }
    }

    /// The home at the start of a key, even if the rest of the key is invalid.
    pub fn home(key: &[u8]) -> Option<Home> {
        let rest = key.strip_prefix(&[METADATA]).or(key.strip_prefix(&[DATA]))?;
        Home::take(rest).ok().map(|(home, _)| home)
    }

    fn decode_metadata(rest: &[u8]) -> Result<Self, String> {
        let (home, rest) = Home::take(rest)?;
        match rest {
            [INODE] => Ok(Self::Inode(home)),
            [INODE, 0] => Ok(Self::Target(home)),
            [NAME, 0, number @ ..] => Ok(Self::Unordered(home, whole_number(number)?)),
            [NAME, name @ ..] if !name.is_empty() && !name.contains(&0) => Ok(Self::Name(home, name.to_vec())),
            [XATTR, name @ .., 0, piece] if !name.is_empty() && !name.contains(&0) => {
                Ok(Self::Xattr(home, name.to_vec(), *piece))
            }
            _ => Err(format!("an unknown key after a home: {}", rest.escape_ascii())),
        }
    }
}

fn whole_ino(bytes: &[u8]) -> Result<u64, String> {
    whole_number(bytes).and_then(|ino| match ino {
        ..=MOST_INO => Ok(ino),
        _ => Err(format!("an inode {ino}; none has more than {MOST_INO}")),
    })
}

fn whole_number(bytes: &[u8]) -> Result<u64, String> {
    match take_number(bytes) {
        Some((number, [])) => Ok(number),
        _ => Err(format!("no number: {}", bytes.escape_ascii())),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::{super::home::MAX_HOME_BYTES, *};
    use crate::disk::KeyOrder;

    /// Names with low bytes, with equal prefixes, and with any bytes.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        let byte = || prop_oneof![4 => 1..6u8, 2 => b'a'..b'd', 1 => 0xf0..=0xffu8];
        prop_oneof![
            prop::collection::vec(byte(), 1..5),
            prop::collection::vec(byte(), 1..4).prop_map(|end| [&[b'x'; 15][..], &end].concat()),
        ]
    }

    /// A path at birth: names and numbers from the root on. Numbers repeat under other names.
    type Path = Vec<(Vec<u8>, u64)>;

    fn path() -> impl Strategy<Value = Path> {
        prop::collection::vec((name(), prop_oneof![0..4u64, 238..260u64, Just(1 << 40)]), 0..4)
    }

    fn home(path: &Path) -> Home {
        path.iter().fold(Home::root(), |home, (name, ino)| home.child(KeyOrder::BirthPath, name, *ino))
    }

    /// Compares paths; each name is cut as in a home.
    fn compare(a: &Path, b: &Path) -> Ordering {
        let shown = |path: &Path| {
            path.iter().map(|(name, ino)| (name[..name.len().min(16)].to_vec(), *ino)).collect::<Vec<_>>()
        };
        shown(a).cmp(&shown(b))
    }

    fn all_keys(home: &Home, name: &[u8]) -> Vec<Vec<u8>> {
        vec![
            home.inode_key(),
            home.target_key(),
            home.unordered_key(7),
            home.name_key(name),
            home.xattr_key(name, 3),
            home.block_key(0),
            home.block_key(u64::MAX),
        ]
    }

    proptest! {
        #[test]
        fn keys_have_the_order_of_paths(a in path(), b in path()) {
            let want = compare(&a, &b);
            prop_assert_eq!(home(&a).inode_key().cmp(&home(&b).inode_key()), want);
            prop_assert_eq!(home(&a).block_key(3).cmp(&home(&b).block_key(3)), want);
        }

        #[test]
        fn keys_of_an_object_are_adjacent(a in path(), b in path(), name in name()) {
            prop_assume!(compare(&a, &b) != Ordering::Equal);
            let (a, b) = (home(&a), home(&b));
            for key in all_keys(&b, &name) {
                prop_assert!(!a.metadata().contains(&key) && !a.blocks_from(0).contains(&key), "{a:?}: {key:?}");
            }
            for key in all_keys(&a, &name) {
                prop_assert!(a.metadata().contains(&key) != a.blocks_from(0).contains(&key), "{a:?}: {key:?}");
            }
        }

        #[test]
        fn keys_round_trip(path in path(), name in name(), number in any::<u64>(), piece in any::<u8>()) {
            let home = home(&path);
            prop_assert_eq!(Home::from_bytes(home.bytes()), Ok(home.clone()));
            let keys = [
                (home.inode_key(), Key::Inode(home.clone())),
                (home.target_key(), Key::Target(home.clone())),
                (home.unordered_key(number), Key::Unordered(home.clone(), number)),
                (home.name_key(&name), Key::Name(home.clone(), name.clone())),
                (home.xattr_key(&name, piece), Key::Xattr(home.clone(), name.clone(), piece)),
                (home.block_key(number), Key::Block(home.clone(), number)),
                (layout_key(), Key::Layout),
                (next_ino_key(), Key::NextIno),
                (home_of_key(number), Key::HomeOf(number)),
                (orphan_key(number), Key::Orphan(number)),
            ];
            for (key, want) in keys {
                let is_inode = matches!(want, Key::HomeOf(_) | Key::Orphan(_));
                let found = Key::decode(&key);
                prop_assert!(if is_inode && number > MOST_INO { found.is_err() } else { found == Ok(want) }, "{:?}", key);
            }
        }

        #[test]
        fn a_key_has_one_encoding(key in prop::collection::vec(prop_oneof![0..5u8, b'a'..=b't', 0xee..=0xf8u8], 0..14)) {
            let again = match Key::decode(&key) {
                Err(_) => return Ok(()),
                Ok(Key::Inode(home)) => home.inode_key(),
                Ok(Key::Target(home)) => home.target_key(),
                Ok(Key::Unordered(home, number)) => home.unordered_key(number),
                Ok(Key::Name(home, name)) => home.name_key(&name),
                Ok(Key::Xattr(home, name, piece)) => home.xattr_key(&name, piece),
                Ok(Key::Block(home, number)) => home.block_key(number),
                Ok(Key::Layout) => layout_key(),
                Ok(Key::NextIno) => next_ino_key(),
                Ok(Key::HomeOf(ino)) => home_of_key(ino),
                Ok(Key::Orphan(ino)) => orphan_key(ino),
            };
            prop_assert_eq!(again, key);
        }
    }

    #[test]
    fn long_homes_start_a_zone() {
        let (mut home, mut anew) = (Home::root(), 0);
        for ino in 1000..1200 {
            let child = home.child(KeyOrder::BirthPath, &[b'n'; 255], ino);
            anew += u64::from(child.byte_count() < home.byte_count());
            assert!(child.byte_count() <= MAX_HOME_BYTES);
            home = child;
        }
        assert_eq!(anew, 3, "200 levels of 20 bytes start three zones");
        assert_eq!(home.child(KeyOrder::InodeNumber, b"name", 5).bytes(), [3, 5]);
    }
}
