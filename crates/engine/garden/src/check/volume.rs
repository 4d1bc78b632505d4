//! A volume: its files' trees, and its maps.

use super::{
    Bits, CheckReport,
    aggregate::{Contents, Map},
    inodes,
    media::Media,
};
use crate::{
    Damage,
    format::{
        Block,
        inode::{INODE, Inode, PER_BLOCK},
        pointer::{Pointer, Shape},
        slot::Kind,
        volume::VolumeRecord,
    },
    raid::Want,
    store::{container_of, volume},
};

/// Reads files of one volume, and keeps account of the blocks it has met.
pub(super) struct Files<'a> {
    media: &'a Media,
    pub report: &'a mut CheckReport,
    pub space: u32,
    map: &'a Map,
    reached: Bits,
}

/// What a walk over a file met.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub contents: Contents,
    /// Blocks of contents that exist.
    pub blocks: u64,
    /// The last of them, plus one.
    pub end: u64,
}

pub(super) fn check(media: &Media, report: &mut CheckReport, space: u32, record: &VolumeRecord, map: &Map) {
    let mut files = Files { media, report, space, map, reached: Bits::default() };
    let table = files.walk(volume::INODES, &record.inode_file, true).contents;
    let inode = |files: &mut Files<'_>, file: u64| files.decode_inode(&table, file);
    let bits = |files: &mut Files<'_>, file: u64, bits: u64| {
        let Some(inode) = inode(files, file) else { return Bits::default() };
        files.expect(file, "size", inode.size, bits.div_ceil(8));
        Bits::of_contents(&files.walk(file, &inode, true).contents)
    };
    let active = bits(&mut files, volume::ACTIVE_MAP, record.blocks);
    let inode_map = bits(&mut files, volume::INODE_MAP, record.inodes);
    files.expect(volume::INODES, "size", record.inode_file.size, record.inodes.saturating_mul(INODE as u64));
    inodes::check(&mut files, record, &table, &inode_map);

    let reached = std::mem::take(&mut files.reached);
    let place = |vvbn| format!("VVBN {vvbn} of volume {space}");
    active.compare(&reached, report, "VVBN in use", &place);
    let mut mapped = Bits::default();
    map.keys().for_each(|&vvbn| {
        mapped.insert(vvbn);
    });
    mapped.compare(&reached, report, "container map's place", &place);
    report.expect(|| format!("volume {space}"), "volume record", "used", record.used, reached.count());
}

impl Files<'_> {
    pub fn find(&mut self, file: u64, damage: Damage) {
        self.report.find(format!("inode {file} of volume {}", self.space), damage);
    }

    pub fn expect(&mut self, file: u64, field: &'static str, found: u64, expected: u64) {
        let space = self.space;
        self.report.expect(|| format!("inode {file} of volume {space}"), "inode", field, found, expected);
    }

    /// The inode of a file that must be in use.
    pub fn decode_inode(&mut self, table: &Contents, file: u64) -> Option<Inode> {
        let at = (file % PER_BLOCK) as usize * INODE;
        let found = table.get(&(file / PER_BLOCK)).map_or(Ok(None), |block| Inode::decode(&block[at..at + INODE]));
        match found {
            Ok(Some(inode)) => Some(inode),
            Ok(None) => {
                self.find(file, Damage::new("inode", "kind", "free", "in use"));
                None
            }
            Err(damage) => {
                self.find(file, damage);
                None
            }
        }
    }

    /// Reads all blocks of a file; keeps contents only if asked to.
    pub fn walk(&mut self, file: u64, inode: &Inode, keep: bool) -> Walked {
        let mut walked = Walked::default();
        for slot in 0..Shape::Volume.roots() {
            let pointer = Shape::Volume.decode(&inode.area, slot);
            self.pointer(file, inode.height, slot, pointer, keep, &mut walked);
        }
        walked
    }

    fn pointer(
        &mut self,
        file: u64,
        level: u8,
        index: u64,
        pointer: Result<Option<Pointer>, Damage>,
        keep: bool,
        walked: &mut Walked,
    ) {
        let read = match pointer {
            Ok(None) => return,
            Ok(Some(pointer)) => self.block(file, level, index, pointer),
            Err(damage) => Err(damage),
        };
        if level == 0 {
            walked.blocks += 1;
            walked.end = walked.end.max(index + 1);
        }
        let data = match read {
            Ok(data) => data,
            Err(damage) => {
                let place = format!("inode {file} of volume {}, level {level}, block {index}", self.space);
                return self.report.find(place, damage);
            }
        };
        if level == 0 {
            if keep {
                walked.contents.insert(index, data);
            }
            return;
        }
        let fanout = Shape::Volume.fanout();
        for slot in 0..fanout {
            let pointer = Shape::Volume.decode(&data[..], slot);
            self.pointer(file, level - 1, index * fanout + slot, pointer, keep, walked);
        }
    }

    /// A block, read where the container map says it is.
    fn block(&mut self, file: u64, level: u8, index: u64, pointer: Pointer) -> Result<Box<Block>, Damage> {
        let vvbn = pointer.vvbn.ok_or_else(|| Damage::new("volume pointer", "VVBN", "none", "one"))?;
        let at = self
            .map
            .get(&vvbn)
            .ok_or_else(|| Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}")))?;
        if !self.reached.insert(vvbn) {
            return Err(Damage::new("volume pointer", "VVBN", vvbn, "one that nothing else uses"));
        }
        self.report.stale_pointers += u64::from(*at != pointer.at);
        let (context, data) = self.media.read(at.pvbn)?;
        let owner = container_of(self.space);
        let want = Want { kind: Kind::Volume, level: Some(level), owner, block: vvbn, tag: at.tag };
        want.check(&context, at.pvbn)?;
        for (field, found, expected) in
            [("hint of the file", context.hint_file, file), ("hint of the block", context.hint_block, index)]
        {
            if found != expected {
                return Err(Damage::new("trailer", field, found, expected));
            }
        }
        Ok(data)
    }
}
