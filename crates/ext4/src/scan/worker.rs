//! Reads one part of an inode table: inodes in use, their maps and their entries.

use super::{ScanOptions, unit::Unit};
use crate::{
    Damage, Error, FileSystem, InodeFlags, InodeRecord, ReadAt, Structure,
    bitmap::{BitmapKind, BitmapReader, is_set},
    directory::collect_directories,
    inline::parse_inline_value,
    inode::{FileKind, Inode, compute_digest},
    map::{Budget, MapJob, collect_maps},
    report::DamageCounts,
};

/// The inode of the root directory. It is below the first inode that is not reserved, but a
/// directory like others.
pub(crate) const ROOT_INODE: u32 = 2;

/// Up to this length, unused inodes between used ones are read too.
const MAX_GAP_BYTES: usize = 64 << 10;

/// Receives the number of an inode, its position on the device, and its bytes.
type InodeVisitor<'a, D> = &'a mut dyn FnMut(&FileSystem<D>, u32, u64, &[u8]);

/// The contents of a part.
#[derive(Debug, Default)]
pub(super) struct UnitResult {
    pub(super) records: Vec<InodeRecord>,
    pub(super) special: u64,
    pub(super) unlinked: u64,
    pub(super) damage: DamageCounts,
    /// Directories whose order is not certain, and the first one.
    pub(super) uncertain: u64,
    pub(super) first_uncertain: Option<u32>,
    /// A digest of the inodes of the part; 0 if not requested.
    pub(super) digest: u32,
}

/// The reader of one thread.
pub(super) struct Worker<'a, D> {
    fs: &'a FileSystem<D>,
    budget: &'a Budget,
    options: &'a ScanOptions,
    bitmaps: BitmapReader,
    table: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'a, D: ReadAt> Worker<'a, D> {
    pub(super) fn new(fs: &'a FileSystem<D>, budget: &'a Budget, options: &'a ScanOptions) -> Self {
        let bitmaps = BitmapReader::new(BitmapKind::Inodes);
        Self { fs, budget, options, bitmaps, table: Vec::new(), buffer: Vec::new() }
    }

    /// Reads a part.
    ///
    /// Errors: a block cannot be read; the first damage by inode number, if damage is not reported.
    pub(super) fn read_unit(&mut self, unit: Unit, digest: bool) -> Result<UnitResult, Error> {
        let mut result = UnitResult::default();
        let used = match self.find_used(unit)? {
            Ok(used) => used,
            Err(damage) => {
                if !self.fs.reports_damage() {
                    return Err(damage.into());
                }
                // The bitmap of a group counts once, whatever number of parts its table has.
                if unit.first == 0 {
                    result.damage.add(damage);
                }
                return Ok(result);
            }
        };
        let mut damaged = Vec::new();
        result.digest = self.read_inodes(unit.group, &used, digest, &mut damaged, &mut result)?;
        if self.fs.retries() > 0 {
            self.read_again(unit.group, &mut damaged, &mut result)?;
        }
        damaged.sort_by_key(|(number, _)| *number);
        for (_, damage) in damaged {
            if !self.fs.reports_damage() {
                return Err(damage.into());
            }
            result.damage.add(damage);
        }
        result.records.sort_unstable_by_key(|record| record.inode);
        Ok(result)
    }

    /// A number that changes with any field of the part's inodes except access times.
    pub(super) fn compute_unit_digest(&mut self, unit: Unit) -> Result<u32, Error> {
        let Ok(used) = self.find_used(unit)? else { return Ok(0) };
        let mut crc = 0;
        self.visit_inodes(unit.group, &used, &mut |_, number, _, bytes| crc = compute_digest(crc ^ number, bytes))?;
        Ok(crc)
    }

    /// The places in the table of inodes that are in use and not reserved.
    fn find_used(&mut self, unit: Unit) -> Result<Result<Vec<u32>, Damage>, Error> {
        let superblock = &self.fs.superblock;
        let Some(descriptor) = self.fs.groups.get(unit.group as usize).copied().flatten() else {
            return Ok(Ok(Vec::new()));
        };
        let bitmap = match self.bitmaps.read(self.fs, unit.group, &descriptor)? {
            Ok(bitmap) => bitmap,
            Err(damage) => return Ok(Err(damage)),
        };
        let before = unit.group * superblock.group_inodes; // below the number of inodes
        let is_wanted = |place: u32| {
            let number = before + place + 1;
            is_set(bitmap, place as usize) && (number == ROOT_INODE || number >= superblock.first_inode)
        };
        Ok(Ok((unit.first..unit.first + unit.count).filter(|&place| is_wanted(place)).collect()))
    }

    /// Passes number, position and bytes of the inodes at these places of a group's table to
    /// `visit`. Neighbours are read together.
    fn visit_inodes(&mut self, group: u32, places: &[u32], visit: InodeVisitor<'_, D>) -> Result<(), Error> {
        let superblock = &self.fs.superblock;
        let inode_bytes = superblock.inode_bytes;
        let Some(descriptor) = self.fs.groups.get(group as usize).copied().flatten() else { return Ok(()) };
        let table_bytes = descriptor.inode_table * superblock.block_bytes;
        let max_gap = (MAX_GAP_BYTES / inode_bytes) as u32;
        for together in places.chunk_by(|before, next| next - before <= max_gap) {
            let (first, last) = (together[0], together[together.len() - 1]);
            let length = (last - first + 1) as usize * inode_bytes;
            self.table.resize(length, 0);
            let start_bytes = table_bytes + u64::from(first) * inode_bytes as u64;
            self.fs.read_bytes(start_bytes, &mut self.table)?;
            for &place in together {
                let at = (place - first) as usize * inode_bytes;
                let number = group * superblock.group_inodes + place + 1;
                visit(self.fs, number, start_bytes + at as u64, &self.table[at..at + inode_bytes]);
            }
        }
        Ok(())
    }

    /// Reads inodes with their maps and entries, and makes records of the sound ones. Returns the
    /// digest, if it is requested.
    fn read_inodes(
        &mut self,
        group: u32,
        places: &[u32],
        digest: bool,
        damaged: &mut Vec<(u32, Damage)>,
        result: &mut UnitResult,
    ) -> Result<u32, Error> {
        let mut jobs = Vec::with_capacity(places.len());
        let mut crc = 0;
        self.visit_inodes(group, places, &mut |fs, number, position_bytes, bytes| {
            if digest {
                crc = compute_digest(crc ^ number, bytes);
            }
            match parse_job(fs, number, position_bytes, bytes) {
                Ok(Some(job)) if job.inode.kind == FileKind::Special => result.special += 1,
                Ok(Some(job)) => jobs.push(job),
                Ok(None) => result.unlinked += 1,
                Err(damage) => damaged.push((number, damage)),
            }
        })?;
        collect_maps(self.fs, self.budget, &mut jobs, &mut self.buffer)?;
        let listed = match self.options.entries {
            Some(order) => collect_directories(self.fs, self.budget, order, &mut jobs, &mut self.buffer)?,
            None => Vec::new(),
        };
        let mut listed = listed.into_iter();
        result.records.reserve(jobs.len());
        for mut job in jobs {
            let listed = listed.next().flatten();
            if let Some(damage) = job.damage.take() {
                damaged.push((job.number, *damage));
                continue;
            }
            if listed.as_ref().is_some_and(|listed| !listed.certain) {
                result.uncertain += 1;
                result.first_uncertain.get_or_insert(job.number);
            }
            let entries = listed.map(|listed| listed.entries);
            result.records.push(InodeRecord::new(job, self.fs.superblock.block_bytes, entries));
        }
        Ok(crc)
    }

    /// Reads each damaged inode again, with its map and entries, because it may have been written
    /// at that time.
    fn read_again(
        &mut self,
        group: u32,
        damaged: &mut Vec<(u32, Damage)>,
        result: &mut UnitResult,
    ) -> Result<(), Error> {
        for (number, _) in std::mem::take(damaged) {
            let place = number - 1 - group * self.fs.superblock.group_inodes;
            for left in (0..self.fs.retries()).rev() {
                let mut still = Vec::new();
                self.read_inodes(group, &[place], false, &mut still, result)?;
                match still.pop() {
                    None => break,
                    Some((_, found)) if left == 0 => {
                        damaged.push((number, found));
                        break;
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// Parses the bytes of an inode. `None` if it is unused.
fn parse_job<D: ReadAt>(
    fs: &FileSystem<D>,
    number: u32,
    position_bytes: u64,
    bytes: &[u8],
) -> Result<Option<MapJob>, Damage> {
    let block = position_bytes / fs.superblock.block_bytes;
    let damage = |problem| Damage::of_inode(block, Structure::Inode, number, problem);
    let Some(inode) = Inode::parse(bytes, number, &fs.superblock, fs.verifies()).map_err(damage)? else {
        return Ok(None);
    };
    let is_inline = inode.flags.contains(InodeFlags::INLINE_DATA);
    let mut job = MapJob::new(number, position_bytes, block, inode);
    if is_inline {
        job.inline_value = parse_inline_value(bytes).map_err(damage)?.to_vec();
    }
    Ok(Some(job))
}
