//! Packing in a consistency point: blocks of a file that are compressed together, and partial
//! blocks that share a block.
//!
//! A *group* is a run of consecutive blocks of a file that all changed since the last consistency
//! point. Its length is in the volume's record, and it starts at a multiple of that. Compressed, it
//! needs fewer VVBNs, and the other pointers become saved holes. A group that saves less than a
//! quarter of a block stays plain. So does one with an unchanged part, because reading the rest
//! would take too long.
//!
//! A *chunk* is the part of a block before the zeros at its end. It must leave at least a quarter
//! of the block free. The last block of a group, and a plain block, may be stored as chunks of
//! *compacted blocks*. These are built after the volumes' blocks and the moving blocks have VVBNs.
//! Their places are allocated with their first chunks, so that pointers can name them. New and
//! moved chunks do not share blocks, because new ones are more likely to be overwritten soon.

use std::collections::BTreeMap;

use senesce_fsapi::FileKind;

use super::{
    AGGREGATE, Key, Store, aggregate,
    cache::{At, State},
    container_of,
    tree::container_key,
    volume,
};
use crate::{
    Medium,
    error::Result,
    format::{
        BLOCK,
        compacted::{self, Builder, MAX_CHUNK},
        compression_group,
        page::Page,
        pointer::{Form, Part, Physical, Pointer},
        slot::{Context, Kind},
    },
    raid::Place,
};

/// A block that has a place: its position in memory, and its trailer.
pub(super) type Written = (Place, At, Context);
/// The blocks that the consistency point has placed so far.
pub(super) type Placed = Vec<Written>;

/// Bytes that the compression of a group must save.
const LEAST_SAVED: usize = BLOCK / 4;
/// Open compacted blocks of a container, at most. With more, the fullest one is closed.
const OPEN_BLOCKS: usize = 8;

/// A compacted block that has a place and accepts chunks.
#[derive(Debug)]
struct Open {
    pvbn: u64,
    builder: Builder,
    /// The consistency point that wrote the youngest chunk. Chunks that only move keep their age.
    cp: u64,
}

/// The packing of the running consistency point.
#[derive(Debug, Default)]
pub(super) struct Packing {
    /// Open blocks, by container, by whether their chunks only move, and by medium.
    open: BTreeMap<(u64, bool, Medium), Vec<Open>>,
    /// Closed blocks, with their containers.
    full: Vec<(u64, Open)>,
    /// Blocks of files that are packed, and equal the drives after the point.
    packed: Vec<Key>,
    /// Blocks that are in memory only to be written.
    written: Vec<Key>,
}

impl Packing {
    /// Compacted blocks that have places.
    pub fn blocks(&self) -> usize {
        self.full.len() + self.open.values().map(Vec::len).sum::<usize>()
    }
}

impl Store {
    /// Places a group that starts with this block. Returns `false` if there is no group to
    /// compress.
    pub(super) fn place_group(&mut self, key: Key, placed: &mut Placed) -> Result<bool> {
        let packing = self.volume(key.space())?.record.packing;
        let Some(keys) = self.changed_group(key, packing.group_blocks)? else { return Ok(false) };
        let of = keys.len();
        let mut bytes = Vec::with_capacity(of * BLOCK);
        for &key in &keys {
            bytes.extend_from_slice(self.get(key)?);
        }
        let Some(stored) = compression_group::compress(&bytes, of * BLOCK - LEAST_SAVED) else { return Ok(false) };
        let tail = stored.len() % BLOCK;
        let is_chunk = packing.compaction && (1..=MAX_CHUNK).contains(&tail);
        let used = stored.len().div_ceil(BLOCK);
        if used == of && !is_chunk {
            return Ok(false);
        }
        let mut first = None;
        let medium = self.choose_medium(key);
        for (at, &key) in keys.iter().enumerate() {
            let old = self.pointer(key)?;
            let (number, group) = (at as u8, of as u8);
            let pointer = match stored.get(at * BLOCK..) {
                Some(rest) if !rest.is_empty() => {
                    let rest = &rest[..rest.len().min(BLOCK)];
                    let vvbn = self.alloc_vvbn(key.space())?;
                    first.get_or_insert(vvbn);
                    let place = if is_chunk && at + 1 == used {
                        self.pack(container_of(key.space()), None, vvbn, rest)?
                    } else {
                        self.place_stored(key, vvbn, medium, rest, placed)?
                    };
                    self.set_container(key.space(), vvbn, Some(place))?;
                    Pointer { vvbn: Some(vvbn), at: place, part: Part::Stored { at: number, of: group } }
                }
                _ => Pointer::saved(number, group, first.unwrap_or_default()),
            };
            self.set_pointer(key, Some(pointer))?;
            self.free_old(key, old)?;
            self.cache.set_state(key, State::Placed);
            self.dirty.remove(key);
        }
        self.volume_mut(key.space())?.dirty -= of as u64;
        self.counts.groups_written += 1;
        self.counts.blocks_saved += (of - used) as u64;
        self.packing.packed.extend(keys);
        Ok(true)
    }

    /// The changed blocks of the group that starts here. `None` if an unchanged block or a hole
    /// precedes a block of the group.
    fn changed_group(&mut self, key: Key, blocks: u8) -> Result<Option<Vec<Key>>> {
        let blocks = u64::from(blocks);
        if blocks < 2 || key.level() > 0 || !key.index().is_multiple_of(blocks) || !self.is_packable(key)? {
            return Ok(None);
        }
        let all: Vec<Key> = (key.index()..key.index() + blocks).map(|index| key.neighbour(index)).collect();
        let changes = |key: &&Key| self.dirty.contains(**key) && !self.fakes.contains_key(key);
        let count = all.iter().take_while(changes).count();
        for &key in &all[count..] {
            if self.has_block(key)? {
                return Ok(None);
            }
        }
        Ok((count > 1).then(|| all[..count].to_vec()))
    }

    /// Whether a block belongs to the contents of a regular file of a user.
    fn is_packable(&mut self, key: Key) -> Result<bool> {
        if key.space() == AGGREGATE || key.level() > 0 || key.file() < volume::FIRST_USER {
            return Ok(false);
        }
        let inode = self.try_inode(key.space(), key.file())?;
        Ok(inode.is_some_and(|inode| inode.kind == FileKind::File && inode.parent == 0))
    }

    /// Places a whole block of a compressed group.
    fn place_stored(
        &mut self,
        key: Key,
        vvbn: u64,
        medium: Medium,
        bytes: &[u8],
        placed: &mut Placed,
    ) -> Result<Physical> {
        let at = Physical::block(self.alloc_pvbn(medium)?, self.sb.cp as u16);
        let mut block = Page::zeros();
        block[..bytes.len()].copy_from_slice(bytes);
        let context = Context {
            kind: Kind::Volume,
            level: 0,
            tag: at.tag,
            owner: container_of(key.space()),
            block: vvbn,
            pvbn: at.pvbn,
            cp: self.sb.cp,
            hint_file: key.file(),
            hint_block: key.index(),
        };
        self.write_only(container_key(key.space(), vvbn), block, context, placed)?;
        Ok(at)
    }

    /// Adds a block to be written that is not in the cache under a file.
    fn write_only(&mut self, key: Key, block: impl Into<Page>, context: Context, placed: &mut Placed) -> Result<()> {
        let at = self.cache.insert(key, block);
        self.cache.set_state(key, State::Placed);
        self.packing.written.push(key);
        placed.push((self.place_of(context.pvbn)?, at, context));
        Ok(())
    }

    /// Places a plain block as a chunk, if it is short enough and the volume has compaction.
    pub(super) fn place_chunk(&mut self, key: Key, vvbn: u64) -> Result<Option<Physical>> {
        if key.space() == AGGREGATE || !self.volume(key.space())?.record.packing.compaction || !self.is_packable(key)? {
            return Ok(None);
        }
        let chunk = compacted::trim(self.get(key)?);
        if chunk.len() > MAX_CHUNK {
            return Ok(None);
        }
        let chunk = chunk.to_vec();
        self.packing.packed.push(key);
        self.pack(container_of(key.space()), None, vvbn, &chunk).map(Some)
    }

    /// Puts a chunk into the open compacted block of its container with the tightest fit. `moves`
    /// is set for a chunk that only moves: the target medium, and the consistency point that wrote
    /// it.
    pub(super) fn pack(
        &mut self,
        container: u64,
        moves: Option<(Medium, u64)>,
        vvbn: u64,
        chunk: &[u8],
    ) -> Result<Physical> {
        let (medium, cp) = moves.unwrap_or((Medium::Ssd, self.sb.cp));
        let kind = (container, moves.is_some(), medium);
        let tag = self.sb.cp as u16;
        self.counts.chunks_written += 1;
        let chunk = &chunk[..chunk.iter().rposition(|&byte| byte != 0).unwrap_or(0) + 1];
        let open = self.packing.open.entry(kind).or_default();
        let fits = open.iter_mut().filter(|open| open.builder.room() >= chunk.len());
        if let Some(best) = fits.min_by_key(|open| open.builder.room()) {
            best.builder.push(vvbn, chunk);
            best.cp = best.cp.max(cp);
            return Ok(Physical { pvbn: best.pvbn, tag, form: Form::Compacted });
        }
        let pvbn = self.alloc_pvbn(medium)?;
        self.counts.compacted_blocks_written += 1;
        let mut builder = Builder::default();
        builder.push(vvbn, chunk);
        let open = self.packing.open.entry(kind).or_default();
        open.push(Open { pvbn, builder, cp });
        if open.len() > OPEN_BLOCKS
            && let Some(fullest) = (0..open.len()).min_by_key(|&at| open[at].builder.room())
        {
            self.packing.full.push((container, open.swap_remove(fullest)));
        }
        Ok(Physical { pvbn, tag, form: Form::Compacted })
    }

    /// Closes all compacted blocks, because no more chunks follow. Returns whether there were any.
    pub(super) fn close_compacted(&mut self, placed: &mut Placed) -> Result<bool> {
        let mut all = std::mem::take(&mut self.packing.full);
        for ((container, ..), open) in std::mem::take(&mut self.packing.open) {
            all.extend(open.into_iter().map(|open| (container, open)));
        }
        for (container, Open { pvbn, builder, cp }) in &all {
            let context = Context { cp: *cp, ..compacted_context(*container, *pvbn, self.sb.cp) };
            let key = Key::new(AGGREGATE, aggregate::COMPACTED, 0, *pvbn);
            self.write_only(key, builder.encode(), context, placed)?;
            self.set_chunks(*pvbn, (builder.len() as u8, builder.len() as u8))?;
        }
        Ok(!all.is_empty())
    }

    /// Ends the packing of a durable consistency point.
    pub(super) fn end_packing(&mut self) {
        let Packing { packed, written, .. } = std::mem::take(&mut self.packing);
        packed.into_iter().for_each(|key| self.cache.set_state(key, State::Clean));
        written.into_iter().for_each(|key| self.cache.remove(key));
    }
}

fn compacted_context(container: u64, pvbn: u64, cp: u64) -> Context {
    Context {
        kind: Kind::Compacted,
        level: 0,
        tag: cp as u16,
        owner: container,
        block: 0,
        pvbn,
        cp,
        hint_file: 0,
        hint_block: 0,
    }
}
