//! A volume: the trees of its files, and its maps.

use std::collections::BTreeMap;

use super::{
    Bits, CheckReport,
    aggregate::{Contents, Places},
    compression_groups::Group,
    inodes,
    media::Media,
    snapshots,
};
use crate::{
    Damage,
    format::{
        Block,
        inode::{INODE, Inode, PER_BLOCK},
        pointer::{Form, Part, Pointer, Shape},
        snapshot::SnapshotRecord,
        volume::VolumeRecord,
    },
    store::volume,
};

/// Reads files of one volume or snapshot, and records the blocks that it meets.
pub(super) struct Files<'a> {
    media: &'a Media,
    pub report: &'a mut CheckReport,
    space: u32,
    /// The volume or the snapshot in words.
    pub tree: String,
    places: &'a Places<'a>,
    reached: Bits,
    /// VVBNs that several files may name: the counted pointers, and the pointers that were met.
    shared: BTreeMap<u64, (u64, u64)>,
    /// With several trees: the file and the block number at which one of them proved a VVBN right.
    seen: Option<BTreeMap<u64, (u64, u64)>>,
    /// Whether the volume's record allows compression groups.
    pub(super) may_have_groups: bool,
    /// The compression group that the walk is in.
    pub(super) group: Option<Group>,
}

/// The result of a walk over a file.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub contents: Contents,
    /// Existing blocks of contents.
    pub blocks: u64,
    /// The last existing block, plus one.
    pub end: u64,
}

/// Checks a volume and its snapshots, whose trees use blocks of the same container.
pub(super) fn check(
    media: &Media,
    report: &mut CheckReport,
    space: u32,
    record: &VolumeRecord,
    snapshots: &[(u32, SnapshotRecord)],
    places: &Places<'_>,
) {
    let volume = format!("volume {space}");
    let seen = (!snapshots.is_empty()).then(BTreeMap::new);
    let mut files = Files {
        media,
        report,
        space,
        tree: volume.clone(),
        places,
        reached: Bits::default(),
        shared: BTreeMap::new(),
        seen,
        may_have_groups: record.packing.was_on,
        group: None,
    };
    let (live, summary) = check_tree(&mut files, record);
    let inodes = files.report.inodes;
    let mut held = Vec::new();
    for (_, snapshot) in snapshots {
        files.tree = snapshots::place(space, snapshot);
        held.push(check_tree(&mut files, &snapshot.as_volume(record)).0);
    }
    report.inodes = inodes;

    snapshots::check_records(report, media.sb.point, space, snapshots);
    snapshots::check_summary(report, space, record, &summary, &held);
    let mut used = live.clone();
    used.insert_all(&summary);
    // Blocks of the origin of a clone are in another map.
    let (first_own, mut own) = (record.first_own(), Bits::default());
    used.iter().filter(|vvbn| *vvbn >= first_own).for_each(|vvbn| {
        own.insert(vvbn);
    });
    let mut mapped = Bits::default();
    places.own().for_each(|vvbn| {
        mapped.insert(vvbn);
    });
    mapped.compare(&own, report, "container map's place", &|vvbn| format!("VVBN {vvbn} of volume {space}"));
    let gone = first_own - (used.count() - own.count());
    let found = record.origin.map_or(0, |origin| origin.gone);
    report.expect(|| volume.clone(), "volume record", "VVBNs of the origin that are gone", found, gone);
    report.expect(|| volume, "volume record", "held", record.held, used.count() - live.count());
}

/// Checks one tree alone; returns the VVBNs that it reaches, and its summary map.
fn check_tree(files: &mut Files<'_>, record: &VolumeRecord) -> (Bits, Bits) {
    let table = files.walk(volume::INODES, &record.inode_file, true).contents;
    let bits = |files: &mut Files<'_>, file: u64, bits: u64| {
        let Some(inode) = files.decode_inode(&table, file) else { return Bits::default() };
        files.expect(file, "size", inode.size, bits.div_ceil(8));
        Bits::of_contents(&files.walk(file, &inode, true).contents)
    };
    let active = bits(files, volume::ACTIVE_MAP, record.blocks);
    files.read_references(&table, record);
    let inode_map = bits(files, volume::INODE_MAP, record.inodes);
    let summary = bits(files, volume::SUMMARY_MAP, record.blocks);
    files.expect(volume::INODES, "size", record.inode_file.size, record.inodes.saturating_mul(INODE as u64));
    inodes::check(files, record, &table, &inode_map);
    check_shared(files, record);

    let reached = std::mem::take(&mut files.reached);
    let Files { report, tree, .. } = files;
    active.compare(&reached, report, "VVBN in use", &|vvbn| format!("VVBN {vvbn} of {tree}"));
    report.expect(|| tree.clone(), "volume record", "used", record.used, reached.count());
    (reached, summary)
}

/// Checks the counts of references, and their sums in the record.
fn check_shared(files: &mut Files<'_>, record: &VolumeRecord) {
    let (space, shared) = (files.space, std::mem::take(&mut files.shared));
    for (vvbn, (counted, met)) in &shared {
        let place = || format!("VVBN {vvbn} of volume {space}");
        files.report.expect(place, "references", "pointers", *counted, *met);
    }
    let saved = shared.values().map(|(counted, _)| counted - 1).sum();
    for (field, found, expected) in [("shared", record.shared, shared.len() as u64), ("saved", record.saved, saved)] {
        files.report.expect(|| format!("volume {space}"), "volume record", field, found, expected);
    }
}

impl Files<'_> {
    pub fn find(&mut self, file: u64, damage: Damage) {
        self.report.find(format!("inode {file} of {}", self.tree), damage);
    }

    pub fn expect(&mut self, file: u64, field: &'static str, found: u64, expected: u64) {
        let tree = &self.tree;
        self.report.expect(|| format!("inode {file} of {tree}"), "inode", field, found, expected);
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

    /// Reads the counts of pointers to VVBNs that are or were shared.
    fn read_references(&mut self, table: &Contents, record: &VolumeRecord) {
        let Some(inode) = self.decode_inode(table, volume::REFERENCES) else { return };
        self.expect(volume::REFERENCES, "size", inode.size, record.blocks.saturating_mul(2));
        for (block, data) in self.walk(volume::REFERENCES, &inode, true).contents {
            let first = block * (data.len() / 2) as u64;
            for (vvbn, count) in (first..).zip(data.as_chunks::<2>().0) {
                let count = u16::from_le_bytes(*count);
                if count > 0 {
                    self.shared.insert(vvbn, (count.into(), 0));
                }
            }
        }
    }

    /// Reads all blocks of a file; keeps contents only if `keep`.
    pub fn walk(&mut self, file: u64, inode: &Inode, keep: bool) -> Walked {
        let mut walked = Walked::default();
        self.group = None;
        for slot in 0..Shape::Volume.roots() {
            let pointer = Shape::Volume.decode(&inode.area, slot);
            self.pointer(file, inode.height, slot, pointer, keep, &mut walked);
        }
        self.end_groups(file);
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
        if level == 0 {
            self.meet_in_group(file, index, pointer.as_ref().ok().copied().flatten(), keep, walked);
        }
        let read = match pointer {
            Ok(None) => return,
            Ok(Some(pointer)) if level == 0 && pointer.part != Part::Whole => {
                walked.blocks += 1;
                walked.end = walked.end.max(index + 1);
                return;
            }
            Ok(Some(pointer)) => self.block(file, level, index, pointer, keep),
            Err(damage) => Err(damage),
        };
        if level == 0 {
            walked.blocks += 1;
            walked.end = walked.end.max(index + 1);
        }
        let data = match read {
            Ok(Some(data)) => data,
            Ok(None) => return,
            Err(damage) => {
                let place = format!("inode {file} of {}, level {level}, block {index}", self.tree);
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

    /// Reads a block from its place in the container map. `None` if another tree has it at the same
    /// place, and it is not kept.
    pub(super) fn block(
        &mut self,
        file: u64,
        level: u8,
        index: u64,
        pointer: Pointer,
        keep: bool,
    ) -> Result<Option<Box<Block>>, Damage> {
        let vvbn = pointer.vvbn.ok_or_else(|| Damage::new("volume pointer", "VVBN", "none", "one"))?;
        let (at, owner) = self
            .places
            .get(vvbn)
            .ok_or_else(|| Damage::new("container map", "place", "none", format!("one for VVBN {vvbn}")))?;
        let may_be_shared = level == 0 && file >= volume::FIRST_USER;
        let shared = self.shared.get_mut(&vvbn).filter(|_| may_be_shared);
        let is_shared = shared.is_some();
        if let Some((_, met)) = shared {
            *met += 1;
        }
        if !self.reached.insert(vvbn) && !is_shared {
            return Err(Damage::new("volume pointer", "VVBN", vvbn, "one that nothing else uses"));
        }
        self.report.stale_pointers += u64::from(at != pointer.at);
        let seen = self.seen.as_mut().filter(|_| level == 0 && !keep);
        if seen.as_ref().is_some_and(|seen| seen.get(&vvbn) == Some(&(file, index))) {
            return Ok(None);
        }
        let (context, data) = match at.form {
            Form::Block | Form::Compacted => self.media.read_volume_block(vvbn, owner, at)?,
            // Kept blocks are metadata, which are on drives.
            Form::Object if keep || level > 0 => {
                return Err(Damage::new("container map", "place", "an object", "a drive"));
            }
            Form::Object => match self.places.cold.get(at.pvbn) {
                Some(context) => (*context, crate::format::zero_block()),
                None => {
                    self.report.cold_unread += u64::from(!self.places.cold.is_seen(at.pvbn));
                    return Ok(None);
                }
            },
        };
        if context.level != level {
            return Err(Damage::new("trailer", "level", context.level, level));
        }
        if at.form == Form::Compacted {
            if level > 0 || file < volume::FIRST_USER {
                return Err(Damage::new("container map", "flags", 2, "1, for this is no contents of a user"));
            }
            return Ok(Some(data));
        }
        for (field, found, expected) in
            [("hint of the file", context.hint_file, file), ("hint of the block", context.hint_block, index)]
        {
            // The hint of a block that is or was shared is that of its first pointer.
            if found != expected && !is_shared {
                return Err(Damage::new("trailer", field, found, expected));
            }
        }
        if let Some(seen) = seen {
            seen.insert(vvbn, (file, index));
        }
        // For blocks in objects only the trailer is needed. The check of the object compared it
        // with the bytes.
        Ok((at.form != Form::Object).then_some(data))
    }
}
