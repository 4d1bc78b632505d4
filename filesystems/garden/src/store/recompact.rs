//! Recompaction: compacted blocks with few remaining chunks are merged.
//!
//! A pass visits the container map of a volume in the order of VVBNs, so it includes blocks that
//! only snapshots use. The counts of chunks select the compacted blocks to read. Then the actual
//! bytes of the chunks decide. The chunks move like all blocks of containers: they become dirty,
//! and the next consistency point packs them again.

use std::{collections::BTreeSet, ops::AddAssign};

use senesce_fsapi::FileKind;

use super::{AGGREGATE, Key, Store, container_of, tree::container_key, volume};
use crate::{
    error::Result,
    format::{
        BLOCK,
        compacted::{self, Tuple},
        pointer::{Form, Part, Physical},
        slot::{Context, Kind},
    },
    raid::Want,
};

/// A block whose chunks use more than this percentage of it stays, whatever number of chunks is
/// gone, because merging gains nothing.
const MOST_TAKEN_PERCENT: u64 = 75;

/// The result of a step of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecompactStep {
    /// VVBNs with a place that were scanned.
    pub looked_at: u64,
    /// Compacted blocks that were read because enough of their chunks are gone.
    pub read: u64,
    /// Compacted blocks that are given up: their chunks move at the next consistency point.
    pub rewritten: u64,
    /// Chunks of these blocks.
    pub chunks: u64,
    /// Compacted blocks that could not be read; they stay as they are.
    pub unread: u64,
    /// Whether the pass has ended. Then the next step starts another one.
    pub is_done: bool,
}

impl AddAssign for RecompactStep {
    fn add_assign(&mut self, other: Self) {
        self.looked_at += other.looked_at;
        self.read += other.read;
        self.rewritten += other.rewritten;
        self.chunks += other.chunks;
        self.unread += other.unread;
        self.is_done |= other.is_done;
    }
}

/// The size of the contents of a volume's regular files, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackingSurvey {
    /// Blocks of the files.
    pub blocks: u64,
    /// Blocks without a VVBN, because they were compressed with others.
    pub saved_holes: u64,
    /// PVBNs that hold one block each.
    pub whole: u64,
    /// Chunks of compacted blocks.
    pub chunks: u64,
    /// PVBNs that hold compacted blocks with chunks of these files.
    pub compacted: u64,
}

impl PackingSurvey {
    /// Blocks of the drives that the files use.
    pub fn taken(&self) -> u64 {
        self.whole + self.compacted
    }

    /// The percentage of the files' blocks that packing saves; `None` without blocks.
    pub fn saved_percent(&self) -> Option<f64> {
        let saved = self.blocks as f64 - self.taken() as f64;
        (self.blocks > 0).then(|| 100.0 * saved / self.blocks as f64)
    }

    /// The mean number of chunks in use of a compacted block; `None` without compacted blocks.
    pub fn chunks_a_block(&self) -> Option<f64> {
        (self.compacted > 0).then(|| self.chunks as f64 / self.compacted as f64)
    }
}

impl Store {
    /// Scans up to `most` VVBNs from the position of the last step. Reads a compacted block if less
    /// than `threshold_percent` of its chunks are left. Stops early when a consistency point is
    /// due, and with `NoSpace` if one must come first.
    ///
    /// Errors: also those of maps that cannot be read.
    pub fn recompact_step(&mut self, space: u32, most: u64, threshold_percent: u64) -> (RecompactStep, Result<()>) {
        let mut step = RecompactStep::default();
        let done = self.recompact(space, most, threshold_percent, &mut step);
        (step, done)
    }

    fn recompact(&mut self, space: u32, most: u64, threshold_percent: u64, step: &mut RecompactStep) -> Result<()> {
        let end = self.volume(space)?.record.blocks;
        let height = self.inode(AGGREGATE, container_of(space))?.height;
        while step.looked_at < most {
            let vvbn = self.volume(space)?.recompacted;
            if vvbn >= end {
                self.volume_mut(space)?.recompacted = 0;
                step.is_done = true;
                break;
            }
            let key = container_key(space, vvbn);
            let hole = self.hole_around(key, height)?;
            if hole == 1
                && let Some(at) = self.pointer(key)?.map(|pointer| pointer.at)
            {
                if at.form == Form::Compacted && !self.moves.contains_key(&key) {
                    self.recompact_block(key, at, threshold_percent, step)?;
                }
                step.looked_at += 1;
            }
            self.volume_mut(space)?.recompacted = vvbn + hole;
            // One block may make hundreds of chunks move. The check comes after it, so that every
            // step advances.
            if self.is_due() {
                break;
            }
        }
        Ok(())
    }

    /// Makes the chunks of a compacted block move if that is worth it.
    fn recompact_block(&mut self, key: Key, at: Physical, threshold: u64, step: &mut RecompactStep) -> Result<()> {
        let (initial, left) = self.chunks(at.pvbn)?;
        if u64::from(left) * 100 >= u64::from(initial) * threshold {
            return Ok(());
        }
        let want = Want::compacted(key.file(), at.tag);
        let read = self.raid.read(at.pvbn, &want).or_else(|why| self.raid.repair(at.pvbn, &want, why));
        let Ok(block) = read else {
            // The block stays, and the step reports the number of such blocks.
            step.unread += 1;
            return Ok(());
        };
        step.read += 1;
        let context = Context {
            kind: Kind::Compacted,
            level: 0,
            tag: at.tag,
            owner: key.file(),
            block: 0,
            pvbn: at.pvbn,
            cp: 0,
            hint_file: 0,
            hint_block: 0,
        };
        let live = self.live_chunks(&context, &block)?;
        let bytes: u64 = live.iter().map(Tuple::bytes).sum();
        if bytes * 100 > BLOCK as u64 * MOST_TAKEN_PERCENT
            || live.len() == compacted::decode(&block).map_or(0, |all| all.len())
        {
            return Ok(());
        }
        let to = self.raid.geometry.medium_of(context.pvbn);
        self.move_chunks(&context, &block, to)?;
        step.rewritten += 1;
        step.chunks += live.len() as u64;
        Ok(())
    }

    /// The size of the contents of a volume's regular files, by the container map.
    ///
    /// Cost: reads all pointers, and the container map for each.
    pub fn survey_packing(&mut self, space: u32) -> Result<PackingSurvey> {
        let (mut found, mut compacted, mut whole) = (PackingSurvey::default(), BTreeSet::new(), BTreeSet::new());
        let (mut from, inodes) = (volume::FIRST_USER, self.volume(space)?.record.inodes);
        while let Some(ino) = self.find_bit(space, volume::INODE_MAP, from..inodes, true)? {
            from = ino + 1;
            let inode = self.inode(space, ino)?;
            if inode.kind != FileKind::File || inode.parent != 0 || inode.inline {
                continue;
            }
            let (end, mut at) = (super::shape_of(space).capacity(inode.height), 0);
            while let Some(block) = self.find_block(space, ino, at, end, true)? {
                at = block + 1;
                found.blocks += 1;
                let Some(pointer) = self.pointer(Key::new(space, ino, 0, block))? else { continue };
                found.saved_holes += u64::from(matches!(pointer.part, Part::Saved { .. }));
                let Some(vvbn) = pointer.vvbn else { continue };
                match self.container(space, vvbn)? {
                    Some(Physical { form: Form::Compacted, pvbn, .. }) => {
                        found.chunks += 1;
                        compacted.insert(pvbn);
                    }
                    Some(Physical { form: Form::Block, pvbn, .. }) => drop(whole.insert(pvbn)),
                    // Blocks in objects use no space on the drives.
                    Some(Physical { form: Form::Object, .. }) | None => {}
                }
            }
        }
        (found.whole, found.compacted) = (whole.len() as u64, compacted.len() as u64);
        Ok(found)
    }
}
