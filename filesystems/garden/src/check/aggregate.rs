//! The files of the aggregate: from the superblock to the maps of the volumes.

use std::{collections::BTreeMap, sync::Arc};

use senesce_fsapi::FileKind;
use senesce_objects::ObjectStore;

use super::{
    BITS, Bits, CheckReport, chunks,
    media::Media,
    objects::{self, ColdBlocks, Named},
    snapshots, top_areas, volume,
};
use crate::{
    Damage,
    error::Result as Looked,
    format::{
        BLOCK, Block,
        inode::{INODE, Inode, PER_BLOCK},
        pointer::{Form, Physical, Pointer, Shape},
        slot::Kind,
        volume::{VOLUME, VolumeRecord},
    },
    raid::Want,
    store::{aggregate, container_of},
};

/// The place of each of a volume's blocks.
pub(super) type Map = BTreeMap<u64, Physical>;

/// The places of the blocks of a volume: its own, and those of the origins of a clone.
pub(super) struct Places<'a> {
    /// For the volume and each of its origins: the first own VVBN, the container, and its map.
    homes: Vec<(u64, u64, &'a Map)>,
    /// Blocks in objects.
    pub cold: &'a ColdBlocks,
}

impl<'a> Places<'a> {
    fn of(
        space: u32,
        records: &BTreeMap<u32, VolumeRecord>,
        maps: &'a BTreeMap<u32, Map>,
        snapshots: &snapshots::Snapshots,
        cold: &'a ColdBlocks,
        report: &mut CheckReport,
    ) -> Self {
        let (mut homes, mut at) = (Vec::new(), space);
        while let (Some(record), Some(map)) = (records.get(&at), maps.get(&at)) {
            homes.push((record.first_own(), container_of(at), map));
            let Some(origin) = record.origin.filter(|_| homes.len() <= records.len()) else { break };
            let is_there = |(slot, _): &(u32, _)| *slot == origin.snapshot;
            let known = snapshots.get(&origin.volume).is_some_and(|own| own.iter().any(is_there));
            if !known || records.get(&origin.volume).is_none_or(|of| of.blocks != origin.blocks) {
                let found = format!("snapshot {} of volume {}", origin.snapshot, origin.volume);
                let damage = Damage::new("volume record", "origin", found, "a snapshot of a volume of that size");
                report.find(format!("volume {at}"), damage);
            }
            at = origin.volume;
        }
        Self { homes, cold }
    }

    /// The place of a block, and the container that its trailer must name.
    pub fn get(&self, vvbn: u64) -> Option<(Physical, u64)> {
        let (_, container, map) = self.homes.iter().find(|(first, ..)| vvbn >= *first)?;
        Some((*map.get(&vvbn)?, *container))
    }

    /// The VVBNs with a place in the volume's own map.
    pub fn own(&self) -> impl Iterator<Item = u64> {
        self.homes.iter().take(1).flat_map(|(.., map)| map.keys().copied())
    }
}

/// Checks everything except parity; returns the reached PVBNs. Errors: those of the object store.
pub(super) fn check(media: &Media, report: &mut CheckReport, store: Option<&Arc<dyn ObjectStore>>) -> Looked<Bits> {
    let mut walk = Walk { media, report, used: Bits::default(), cold: Named::new() };
    let inodes = walk.contents(aggregate::INODES, &media.sb.root.clone());
    let inode = |walk: &mut Walk<'_>, file: u64| walk.inode(&inodes, file);
    let bitmap = inode(&mut walk, aggregate::BITMAP).map(|inode| walk.contents(aggregate::BITMAP, &inode));
    let table = inode(&mut walk, aggregate::VOLUMES).map(|inode| walk.contents(aggregate::VOLUMES, &inode));
    let table = table.unwrap_or_default();
    let snapshots = inode(&mut walk, aggregate::SNAPSHOTS).map(|inode| walk.contents(aggregate::SNAPSHOTS, &inode));
    let mut snapshots = snapshots::read(walk.report, &snapshots.unwrap_or_default());
    let areas = inode(&mut walk, aggregate::TOP_AREAS).map(|inode| walk.contents(aggregate::TOP_AREAS, &inode));
    let counts = inode(&mut walk, aggregate::CHUNKS).map(|inode| walk.contents(aggregate::CHUNKS, &inode));
    let objects = inode(&mut walk, aggregate::OBJECTS).map(|inode| walk.contents(aggregate::OBJECTS, &inode));
    let (mut records, mut maps) = (BTreeMap::new(), BTreeMap::new());
    use aggregate::{BITMAP, CHUNKS, OBJECTS, SNAPSHOTS, TOP_AREAS, VOLUMES};
    let mut known = vec![BITMAP, VOLUMES, TOP_AREAS, SNAPSHOTS, CHUNKS, OBJECTS];
    for space in 0..aggregate::MAX_VOLUMES {
        let (block, at) = (u64::from(space) / 8, space as usize % 8 * VOLUME);
        let Some(bytes) = table.get(&block) else { continue };
        let place = format!("volume {space}");
        let record = match VolumeRecord::decode(&bytes[at..at + VOLUME]) {
            Ok(Some(record)) => record,
            Ok(None) => continue,
            Err(damage) => {
                walk.report.find(place, damage);
                continue;
            }
        };
        if space >= media.sb.volumes {
            walk.report
                .find(place.clone(), Damage::new("superblock", "volumes", media.sb.volumes, "more than its number"));
        }
        let container = container_of(space);
        known.push(container);
        let Some(inode) = walk.inode(&inodes, container) else { continue };
        walk.report.expect(
            || format!("container of volume {space}"),
            "inode",
            "size",
            inode.size,
            record.blocks * BLOCK as u64,
        );
        let map = walk.container(container, &inode);
        if !record.packing.was_on && map.values().any(|at| at.form == Form::Compacted) {
            let damage = Damage::new("volume record", "packing", "never on", "on once, for there are chunks");
            walk.report.find(place.clone(), damage);
        }
        // Nothing else of a deleted volume is read any more.
        if record.deleted {
            let end = record.reclaim.saturating_sub(1).saturating_mul(BITS);
            if let Some((last, _)) = map.last_key_value().filter(|(last, _)| **last >= end) {
                walk.report.find(place, Damage::new("container map", "last VVBN", last, format!("one below {end}")));
            }
        } else {
            records.insert(space, record);
        }
        maps.insert(space, map);
    }
    for pvbn in chunks::check(media, walk.report, &maps, &counts.unwrap_or_default()) {
        if !walk.used.insert(pvbn) {
            let damage = Damage::new("container map", "PVBN", pvbn, "one that only chunks use");
            walk.report.find(format!("compacted block at PVBN {pvbn}"), damage);
        }
    }
    let cold = objects::check(media, walk.report, &objects.unwrap_or_default(), &walk.cold, store)?;
    for (&space, record) in &records {
        walk.report.volumes += 1;
        let places = Places::of(space, &records, &maps, &snapshots, &cold, walk.report);
        let own = snapshots.get(&space).map_or(&[][..], |own| own);
        volume::check(media, walk.report, space, record, own, &places);
    }
    snapshots.retain(|space, _| !records.contains_key(space));
    for (_, record) in snapshots.into_values().flatten() {
        let damage = Damage::new("snapshot record", "volume", record.volume, "the number of a volume");
        walk.report.find(snapshots::place(record.volume, &record), damage);
    }
    for file in inodes.keys().flat_map(|block| block * PER_BLOCK..(block + 1) * PER_BLOCK) {
        let in_use = inode_bytes(&inodes, file).is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0));
        if in_use && !known.contains(&file) {
            let damage = Damage::new("inode", "kind", "in use", "free: no volume has this file");
            walk.report.find(format!("file {file} of the aggregate"), damage);
        }
    }
    let used = walk.used;
    if let Some(bitmap) = bitmap {
        Bits::of_contents(&bitmap).compare(&used, report, "PVBN in use", &|pvbn| format!("PVBN {pvbn}"));
    }
    if let Some(areas) = areas {
        top_areas::check(media, report, &areas, &used);
    }
    report.expect(
        || "superblock".to_owned(),
        "superblock",
        "free",
        media.sb.free,
        media.geometry.blocks().saturating_sub(used.count()),
    );
    report.blocks = used.count();
    Ok(used)
}

/// The blocks of a file's contents that are no holes.
pub(super) type Contents = BTreeMap<u64, Box<Block>>;

/// Contents in one piece, with zeros for holes.
pub(super) fn concatenate(contents: &Contents, bytes: u64) -> Vec<u8> {
    let mut all = vec![0; bytes.next_multiple_of(BLOCK as u64) as usize];
    for (block, data) in contents {
        if let Some(place) = all.as_chunks_mut::<BLOCK>().0.get_mut(*block as usize) {
            place.copy_from_slice(&data[..]);
        }
    }
    all
}

fn inode_bytes(inodes: &Contents, file: u64) -> Option<&[u8]> {
    let at = (file % PER_BLOCK) as usize * INODE;
    inodes.get(&(file / PER_BLOCK)).map(|block| &block[at..at + INODE])
}

struct Walk<'a> {
    media: &'a Media,
    report: &'a mut CheckReport,
    used: Bits,
    /// Places in objects.
    cold: Named,
}

impl Walk<'_> {
    fn inode(&mut self, inodes: &Contents, file: u64) -> Option<Inode> {
        let found = inode_bytes(inodes, file).map_or(Ok(None), Inode::decode);
        let none = || Damage::new("inode", "kind", "free", "in use");
        match found.and_then(|inode| inode.ok_or_else(none)) {
            Ok(inode) if inode.kind == FileKind::File && !inode.inline => Some(inode),
            Ok(inode) => {
                let found = format!("{:?}, inline: {}", inode.kind, inode.inline);
                self.report.find(format!("file {file} of the aggregate"), Damage::new("inode", "kind", found, "File"));
                None
            }
            Err(damage) => {
                self.report.find(format!("file {file} of the aggregate"), damage);
                None
            }
        }
    }

    /// All blocks of contents of a file.
    fn contents(&mut self, file: u64, inode: &Inode) -> Contents {
        let mut contents = Contents::new();
        self.below(file, inode, &mut |walk, index, at| {
            if let Some(data) = walk.block(file, 0, index, at) {
                contents.insert(index, data);
            }
        });
        contents
    }

    /// The map of a container. Its contents are the volume's blocks, which are checked with the
    /// volume.
    fn container(&mut self, file: u64, inode: &Inode) -> Map {
        let mut map = Map::new();
        self.below(file, inode, &mut |walk, vvbn, at| {
            let is_new = match at.form {
                Form::Block => walk.used.insert(at.pvbn),
                Form::Compacted => true, // checked after all maps are known
                Form::Object => walk.cold.insert(at.pvbn, (file, vvbn, at.tag)).is_none(),
            };
            if !is_new {
                let damage = Damage::new("container map", "PVBN", at.pvbn, "one that nothing else uses");
                walk.report.find(format!("file {file} of the aggregate, VVBN {vvbn}"), damage);
            }
            map.insert(vvbn, at);
        });
        map
    }

    /// Passes all pointers to contents to `leaf`.
    fn below(&mut self, file: u64, inode: &Inode, leaf: &mut dyn FnMut(&mut Self, u64, Physical)) {
        for slot in 0..Shape::Aggregate.roots() {
            self.pointer(file, inode.height, slot, Shape::Aggregate.decode(&inode.area, slot), leaf);
        }
    }

    fn pointer(
        &mut self,
        file: u64,
        level: u8,
        index: u64,
        pointer: Result<Option<Pointer>, Damage>,
        leaf: &mut dyn FnMut(&mut Self, u64, Physical),
    ) {
        let at = match pointer {
            Ok(None) => return,
            Ok(Some(pointer)) => pointer.at,
            Err(damage) => return self.report.find(place(file, level, index), damage),
        };
        if level == 0 {
            return leaf(self, index, at);
        }
        let Some(data) = self.block(file, level, index, at) else { return };
        let fanout = Shape::Aggregate.fanout();
        for slot in 0..fanout {
            self.pointer(file, level - 1, index * fanout + slot, Shape::Aggregate.decode(&data[..], slot), leaf);
        }
    }

    fn block(&mut self, file: u64, level: u8, index: u64, at: Physical) -> Option<Box<Block>> {
        if at.form != Form::Block {
            let damage =
                Damage::new("pointer", "flags", at.form as u8, "1, for metadata have their places for themselves");
            self.report.find(place(file, level, index), damage);
            return None;
        }
        if !self.used.insert(at.pvbn) {
            let damage = Damage::new("pointer", "PVBN", at.pvbn, "one that nothing else uses");
            self.report.find(place(file, level, index), damage);
            return None;
        }
        let want = Want { kind: Kind::Aggregate, level: Some(level), owner: file, block: index, tag: at.tag };
        let read = self.media.read(at.pvbn).and_then(|(context, data)| want.check(&context, at.pvbn).map(|()| data));
        read.map_err(|damage| self.report.find(place(file, level, index), damage)).ok()
    }
}

fn place(file: u64, level: u8, index: u64) -> String {
    format!("file {file} of the aggregate, level {level}, block {index}")
}
