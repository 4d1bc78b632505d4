//! All entries of a store, grouped by home.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use bytes::Bytes;

use crate::fs::{
    inode_record::{BLOCK, Inode},
    name_record::Entry,
};
use crate::{
    KeyValue, Result,
    disk::KeyOrder,
    keys::{Home, Key, next_ino_of},
};

/// The entries of one home.
#[derive(Default)]
pub(super) struct Object {
    pub inode: Option<Inode>,
    pub target: Option<usize>,
    pub names: BTreeMap<Vec<u8>, Entry>,
    pub unordered: BTreeMap<u64, Vec<u8>>,
    /// For each extended attribute: the length in its first piece, and the bytes of its pieces.
    pub xattrs: BTreeMap<Vec<u8>, Xattr>,
    pub blocks: u64,
    /// The end of the last block's value, as an offset in the file.
    pub end: u64,
    /// The path by which it was first reached.
    pub path: Option<Vec<u8>>,
    /// The names that lead to it, and the directories in it.
    pub names_of: u32,
    pub directories: u32,
    /// Whether its names receive new labels.
    pub is_relabelled: bool,
}

/// An extended attribute.
#[derive(Default)]
pub(super) struct Xattr {
    pub told: Option<u32>,
    pub pieces: u32,
    pub last: u8,
    pub bytes: u64,
}

/// All entries.
#[derive(Default)]
pub(super) struct Gathered {
    pub order: KeyOrder,
    pub is_order_known: bool,
    pub next_ino: Option<u64>,
    pub stored_next_ino: Option<u64>,
    pub objects: BTreeMap<Home, Object>,
    pub home_of: BTreeMap<u64, Home>,
    pub orphans: BTreeSet<u64>,
    pub nonsense: Vec<(Vec<u8>, String)>,
}

impl Gathered {
    pub fn read(store: &impl KeyValue, order: KeyOrder) -> Result<Self> {
        let mut files = Self { order, ..Self::default() };
        store.scan(&[], &[u8::MAX], &mut |key, value| {
            if let Err(problem) = files.take(key, &value) {
                files.nonsense.push((key.to_vec(), problem));
            }
            ControlFlow::Continue(())
        })?;
        Ok(files)
    }

    fn take(&mut self, key: &[u8], value: &Bytes) -> std::result::Result<(), String> {
        match Key::decode(key)? {
            Key::Layout => {
                self.order = match value[..] {
                    [1, 0] => KeyOrder::BirthPath,
                    [1, 1] => KeyOrder::InodeNumber,
                    _ => return Err(format!("a layout {value:?}")),
                };
                self.is_order_known = true;
            }
            Key::NextIno => {
                self.stored_next_ino = Some(next_ino_of(value)?);
                self.next_ino = self.stored_next_ino;
            }
            Key::HomeOf(ino) => drop(self.home_of.insert(ino, Home::from_bytes(value)?)),
            Key::Orphan(ino) => drop(self.orphans.insert(ino)),
            Key::Inode(home) => {
                let inode = Inode::decode(value)?;
                self.object(&home).inode = Some(inode);
            }
            Key::Target(home) => self.object(&home).target = Some(value.len()),
            Key::Name(home, name) => {
                let entry = Entry::decode(value)?;
                self.object(&home).names.insert(name, entry);
            }
            Key::Unordered(home, number) => drop(self.object(&home).unordered.insert(number, value.to_vec())),
            Key::Xattr(home, name, piece) => {
                let xattr = self.object(&home).xattrs.entry(name).or_default();
                if piece == 0 {
                    xattr.told = value.first_chunk().map(|told| u32::from_le_bytes(*told));
                }
                xattr.pieces += 1;
                xattr.last = piece;
                xattr.bytes += value.len() as u64;
            }
            Key::Block(home, block) => {
                let object = self.object(&home);
                object.blocks += 1;
                object.end = block.saturating_mul(BLOCK).saturating_add(value.len() as u64);
            }
        }
        Ok(())
    }

    pub fn object(&mut self, home: &Home) -> &mut Object {
        self.objects.entry(home.clone()).or_default()
    }

    /// A number that no inode has.
    pub fn first_free_ino(&self) -> u64 {
        let used = self.objects.keys().map(Home::ino).max().unwrap_or(1);
        let named = self.home_of.last_key_value().map_or(1, |(ino, _)| *ino);
        self.next_ino.unwrap_or(0).max(used.saturating_add(1)).max(named.saturating_add(1))
    }

    pub fn inode(&self, home: &Home) -> Option<Inode> {
        self.objects.get(home)?.inode
    }
}
