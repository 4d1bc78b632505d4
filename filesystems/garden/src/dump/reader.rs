//! Reads blocks from the superblock on, for tools that inspect an aggregate that is not open. It
//! uses the check's access to devices, without the engine.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

use senesce_block::BlockDevice;

use crate::{
    Damage,
    check::{CheckReport, Media},
    error::{Error, Result},
    format::{
        BLOCK, Block, Decoded, compacted,
        inode::{INODE, Inode, PER_BLOCK},
        pointer::{Form, Physical, Pointer, Shape},
        slot::{Context, Kind},
        superblock::MAX_VOLUMES,
        volume::{PER_BLOCK as RECORDS, VOLUME, VolumeRecord},
    },
    log::LogDevices,
    raid::Want,
    store::{aggregate, container_of},
};

/// Cached blocks, at most. With more, the cache is cleared.
const KEPT_BLOCKS: usize = 16 << 10;

/// Reads blocks of the last consistency point.
pub(super) struct Reader {
    pub media: Media,
    /// Findings of the opening of the devices.
    pub notes: Vec<String>,
    /// Operations in the log, which no block shows.
    pub waiting: u64,
    /// By place, owner and number.
    kept: RefCell<HashMap<(u64, u64, u64), Rc<Block>>>,
    /// Blocks that were restored from the other drives of their group.
    pub repaired: Cell<u64>,
}

/// A file: its volume, its number, its inode.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// The container of its volume; `None` for a file of the aggregate.
    pub volume: Option<Rc<Container>>,
    pub file: u64,
    pub inode: Inode,
}

/// The container map of a volume.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub file: u64,
    inode: Inode,
    /// For a clone: the container of the blocks with VVBNs below the number.
    origin: Option<(u64, Rc<Container>)>,
}

/// A volume.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    pub space: u32,
    pub record: VolumeRecord,
    pub container: Rc<Container>,
}

impl Reader {
    /// Errors: no label or no superblock can be read, devices of different aggregates, a failing
    /// device.
    pub fn open(drives: &[Arc<dyn BlockDevice>], log: &LogDevices) -> Result<Self> {
        let mut report = CheckReport::default();
        let media = Media::open(drives, log, &mut report)?;
        let mut notes: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        if !report.missing_drives.is_empty() {
            notes.push(format!("drives {:?} are missing; their blocks come from parity", report.missing_drives));
        }
        let waiting = report.log_operations;
        Ok(Self { media, notes, waiting, kept: RefCell::default(), repaired: Cell::new(0) })
    }

    /// The aggregate's file with the inodes of the others.
    pub fn aggregate_root(&self) -> Tree {
        Tree { volume: None, file: aggregate::INODES, inode: self.media.sb.root.clone() }
    }

    /// A file of the aggregate. Errors: its inode is free, or it cannot be read.
    pub fn aggregate_file(&self, file: u64) -> Decoded<Tree> {
        let root = self.aggregate_root();
        if file == aggregate::INODES {
            return Ok(root);
        }
        let inode = self.inode(&root, file)?.ok_or_else(|| Damage::new("inode", "kind", "free", "in use"))?;
        Ok(Tree { volume: None, file, inode })
    }

    /// The 256 bytes of an inode in a file of inodes; zeros in a hole.
    pub fn inode_bytes(&self, inodes: &Tree, number: u64) -> Decoded<[u8; INODE]> {
        let mut bytes = [0; INODE];
        if let Some(block) = self.contents(inodes, number / PER_BLOCK)? {
            let at = (number % PER_BLOCK) as usize * INODE;
            bytes.copy_from_slice(&block[at..at + INODE]);
        }
        Ok(bytes)
    }

    /// An inode; `None` if it is free.
    pub fn inode(&self, inodes: &Tree, number: u64) -> Decoded<Option<Inode>> {
        Inode::decode(&self.inode_bytes(inodes, number)?)
    }

    /// The 512 bytes of each used place in the volume table, with its number.
    pub fn volume_records(&self) -> Decoded<Vec<(u32, [u8; VOLUME])>> {
        let table = self.aggregate_file(aggregate::VOLUMES)?;
        let mut records = Vec::new();
        for space in 0..self.media.sb.volumes {
            let Some(block) = self.contents(&table, u64::from(space) / RECORDS)? else { continue };
            let at = (u64::from(space) % RECORDS) as usize * VOLUME;
            let mut bytes = [0; VOLUME];
            bytes.copy_from_slice(&block[at..at + VOLUME]);
            if bytes.iter().any(|&byte| byte != 0) {
                records.push((space, bytes));
            }
        }
        Ok(records)
    }

    /// The volume with this name. Errors: `Invalid`, with the existing names; damage on the path to
    /// it.
    pub fn volume(&self, name: &[u8]) -> Result<Volume> {
        let at = |damage| Error::damaged("the volume table", damage);
        let mut names = Vec::new();
        for (space, bytes) in self.volume_records().map_err(at)? {
            let Ok(Some(record)) = VolumeRecord::decode(&bytes) else { continue };
            if record.deleted {
                continue;
            }
            if record.name != name {
                names.push(super::value::text(&record.name));
                continue;
            }
            let container = self.container(space, &record, 0).map_err(at)?;
            return Ok(Volume { space, record, container });
        }
        Err(Error::invalid(format!("no volume {}; there are: {}", super::value::text(name), names.join(", "))))
    }

    /// The container of a volume, with those of its origins. `below` is the depth of the recursion.
    fn container(&self, space: u32, record: &VolumeRecord, below: u32) -> Decoded<Rc<Container>> {
        let file = container_of(space);
        let inode = self.aggregate_file(file)?.inode;
        let origin = record.origin.map(|origin| {
            let none = || Damage::new("volume record", "origin", origin.volume, "the number of a volume");
            let records = self.volume_records()?;
            let found = records.iter().find(|(space, _)| *space == origin.volume && below < MAX_VOLUMES);
            let of = VolumeRecord::decode(&found.ok_or_else(none)?.1)?.ok_or_else(none)?;
            Ok((origin.blocks, self.container(origin.volume, &of, below + 1)?))
        });
        Ok(Rc::new(Container { file, inode, origin: origin.transpose()? }))
    }

    /// The place of a VVBN, if the container map has one, and the file of the container.
    pub fn map(&self, container: &Rc<Container>, vvbn: u64) -> Decoded<(Option<Physical>, u64)> {
        match &container.origin {
            Some((end, origin)) if vvbn < *end => self.map(origin, vvbn),
            _ => Ok((self.pointer(&container.tree(), 0, vvbn)?.map(|pointer| pointer.at), container.file)),
        }
    }

    /// The pointer to a block of a tree, on any level; `None` in a hole and beyond the end.
    ///
    /// Cost: reads the blocks above.
    pub fn pointer(&self, tree: &Tree, level: u8, index: u64) -> Decoded<Option<Pointer>> {
        let (shape, height) = (tree.shape(), tree.inode.height);
        let above = |at: u8| index / shape.fanout().saturating_pow(u32::from(at - level));
        if level > height || above(height) >= shape.roots() || tree.inode.inline {
            return Ok(None);
        }
        let mut pointer = shape.decode(&tree.inode.area, above(height))?;
        for at in (level..height).rev() {
            let Some(up) = pointer else { return Ok(None) };
            let block = self.block(tree, at + 1, above(at + 1), up)?;
            pointer = shape.decode(&block[..], above(at) % shape.fanout())?;
        }
        Ok(pointer)
    }

    /// The first block after the hole around a block of contents, as far as one absent pointer
    /// shows; `None` if the block is in no hole.
    pub fn hole_end(&self, tree: &Tree, index: u64) -> Decoded<Option<u64>> {
        let (shape, height) = (tree.shape(), tree.inode.height);
        if index >= shape.capacity(height) {
            return Ok(Some(u64::MAX));
        }
        for level in (0..=height).rev() {
            let span = shape.fanout().saturating_pow(u32::from(level));
            if self.pointer(tree, level, index / span)?.is_none() {
                return Ok(Some((index / span + 1).saturating_mul(span)));
            }
        }
        Ok(None)
    }

    /// A block of contents; `None` in a hole.
    pub fn contents(&self, tree: &Tree, index: u64) -> Decoded<Option<Rc<Block>>> {
        let pointer = self.pointer(tree, 0, index)?;
        pointer.map(|pointer| self.block(tree, 0, index, pointer)).transpose()
    }

    /// The places of the blocks on the path to a block of contents, which is the last one; empty
    /// for a hole.
    pub fn way(&self, tree: &Tree, index: u64) -> Decoded<Vec<u64>> {
        let (shape, mut places) = (tree.shape(), Vec::new());
        for level in (0..=tree.inode.height).rev() {
            let above = index / shape.fanout().saturating_pow(u32::from(level));
            match self.pointer(tree, level, above)? {
                Some(pointer) => places.push(self.wanted(tree, level, above, pointer)?.0.pvbn),
                None => return Ok(Vec::new()),
            }
        }
        Ok(places)
    }

    /// The block of a pointer, at its place in the container map.
    pub fn block(&self, tree: &Tree, level: u8, index: u64, pointer: Pointer) -> Decoded<Rc<Block>> {
        let (at, want) = self.wanted(tree, level, index, pointer)?;
        let name = (at.pvbn, want.owner, pointer.vvbn.unwrap_or(index));
        if let Some(block) = self.kept.borrow().get(&name) {
            return Ok(block.clone());
        }
        let fits = |(context, block): (Context, Box<Block>)| {
            want.check(&context, at.pvbn)?;
            match (at.form, pointer.vvbn) {
                (Form::Compacted, Some(vvbn)) => compacted::extract(&block, vvbn),
                _ => Ok(block),
            }
        };
        let block = self.media.read(at.pvbn).and_then(fits).or_else(|damage| {
            let again = self.media.rebuilt(at.pvbn).and_then(fits).map_err(|_| damage)?;
            self.repaired.set(self.repaired.get() + 1);
            Ok::<_, Damage>(again)
        })?;
        let block: Rc<Block> = block.into();
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= KEPT_BLOCKS {
            kept.clear();
        }
        kept.insert(name, block.clone());
        Ok(block)
    }

    /// The place of a block, and the identity that its trailer must have.
    pub fn wanted(&self, tree: &Tree, level: u8, index: u64, pointer: Pointer) -> Decoded<(Physical, Want)> {
        let Some(container) = &tree.volume else {
            let tag = pointer.at.tag;
            let want = Want { kind: Kind::Aggregate, level: Some(level), owner: tree.file, block: index, tag };
            return Ok((pointer.at, want));
        };
        let vvbn = pointer.vvbn.ok_or_else(|| Damage::new("volume pointer", "VVBN", "none", "one"))?;
        let none = || Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}"));
        let (at, owner) = self.map(container, vvbn)?;
        let at = at.ok_or_else(none)?;
        if at.form == Form::Compacted {
            return Ok((at, Want::compacted(owner, at.tag)));
        }
        Ok((at, Want { kind: Kind::Volume, level: Some(level), owner, block: vvbn, tag: at.tag }))
    }
}

impl Container {
    /// The container as a file of the aggregate.
    pub fn tree(&self) -> Tree {
        Tree { volume: None, file: self.file, inode: self.inode.clone() }
    }
}

impl Volume {
    /// The file with the volume's inodes.
    pub fn inodes(&self) -> Tree {
        let inode = self.record.inode_file.clone();
        Tree { volume: Some(self.container.clone()), file: crate::store::volume::INODES, inode }
    }

    /// A file of the volume.
    pub fn tree(&self, file: u64, inode: Inode) -> Tree {
        Tree { volume: Some(self.container.clone()), file, inode }
    }
}

impl Tree {
    pub fn shape(&self) -> Shape {
        if self.volume.is_some() { Shape::Volume } else { Shape::Aggregate }
    }

    /// Blocks of a directory, which has no holes. If its size and its count of blocks differ, the
    /// smaller number.
    pub fn directory_blocks(&self) -> u64 {
        self.inode.size.div_ceil(BLOCK as u64).min(self.inode.blocks)
    }
}
