//! An open file system: its superblock, its groups, and the reads of its blocks.

use crate::{
    Damage, Error, ReadAt, Structure, Superblock, Warning,
    checksum::crc32c,
    features::ro_compat,
    groups::{GroupDescriptor, find_overlap},
    report::DamageCounts,
    superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_OFFSET_BYTES},
};

/// Receives the number of a group, the position of its descriptor on the device, and the
/// descriptor's bytes.
type DescriptorVisitor<'a> = &'a mut dyn FnMut(u32, u64, &[u8]) -> Result<(), Error>;

/// The reaction to damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// Stop if no process writes the device, report if it may be changing (see
    /// [`Superblock::may_change`]).
    #[default]
    Automatic,
    /// Stop with [`Error::Damaged`] at the first damage.
    Stop,
    /// Count it in [`Warning::Damaged`], leave out what it describes, and continue.
    Report,
}

/// The options for opening a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether checksums of metadata are verified, if the file system has them.
    pub verify_checksums: bool,
    /// The reaction to damage.
    pub on_damage: OnDamage,
    /// The number of retries for a damaged structure of a device that may be changing.
    pub retries: u32,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { verify_checksums: true, on_damage: OnDamage::Automatic, retries: 3 }
    }
}

/// An ext2, ext3 or ext4 file system on a device or image, read-only.
#[derive(Debug)]
pub struct FileSystem<D> {
    device: D,
    pub(crate) superblock: Superblock,
    /// The descriptors. `None` if a descriptor is damaged and damage is reported.
    pub(crate) groups: Vec<Option<GroupDescriptor>>,
    /// The damage of descriptors.
    pub(crate) damage: DamageCounts,
    superblock_digest: u32,
    group_digests: Vec<u32>,
    pub(crate) options: OpenOptions,
}

impl<D: ReadAt> FileSystem<D> {
    /// Opens with verification of checksums; see [`FileSystem::open_with`].
    pub fn open(device: D) -> Result<Self, Error> {
        Self::open_with(device, OpenOptions::default())
    }

    /// Reads the superblock and the group descriptors.
    ///
    /// Errors: not ext4; unknown features, with their names; a truncated device; damage, with its
    /// block. Cost: reads the descriptors (32 or 64 bytes per group). 64 bytes per group (usually
    /// of 128 MiB) stay in memory.
    pub fn open_with(device: D, options: OpenOptions) -> Result<Self, Error> {
        let device_bytes = device.length_bytes().map_err(|source| Error::Length { source })?;
        let (superblock, superblock_digest) = read_superblock(&device, options)?;
        let whole_blocks = device_bytes / superblock.block_bytes;
        if whole_blocks < superblock.blocks {
            return Err(Error::DeviceTooShort {
                blocks: superblock.blocks,
                needed_bytes: superblock.blocks.saturating_mul(superblock.block_bytes),
                device_bytes,
                first_missing_block: whole_blocks,
            });
        }
        let mut fs = Self {
            device,
            superblock,
            groups: Vec::new(),
            damage: DamageCounts::default(),
            superblock_digest,
            group_digests: Vec::new(),
            options,
        };
        fs.read_groups()?;
        Ok(fs)
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The warnings that are known before a scan. Every [`crate::Report`] repeats them.
    pub fn warnings(&self) -> Vec<Warning> {
        let superblock = &self.superblock;
        let known = [
            (superblock.needs_recovery, Warning::JournalNotReplayed),
            (!superblock.clean, Warning::NotUnmounted),
            (superblock.errors_recorded, Warning::ErrorsRecorded),
            (superblock.has_ro_compat(ro_compat::SHARED_BLOCKS), Warning::BlocksMayBeShared),
        ];
        known.into_iter().filter_map(|(holds, warning)| holds.then_some(warning)).collect()
    }

    /// Whether damage is counted instead of being an error.
    pub(crate) fn reports_damage(&self) -> bool {
        match self.options.on_damage {
            OnDamage::Automatic => self.superblock.may_change(),
            OnDamage::Stop => false,
            OnDamage::Report => true,
        }
    }

    /// The number of retries for a damaged structure. Only a device that may be changing has any.
    pub(crate) fn retries(&self) -> u32 {
        if self.superblock.may_change() { self.options.retries } else { 0 }
    }

    pub(crate) fn verifies(&self) -> bool {
        self.options.verify_checksums && self.superblock.has_metadata_csum()
    }

    /// Fills the buffer with whole or partial blocks from `block` on.
    pub(crate) fn read_blocks(&self, block: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.read_bytes(block * self.superblock.block_bytes, buffer)
    }

    /// Fills the buffer from a position on. The error names the block of that position.
    pub(crate) fn read_bytes(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.device.read_at(offset_bytes, buffer).map_err(|source| Error::Read {
            block: offset_bytes / self.superblock.block_bytes,
            offset_bytes,
            length_bytes: buffer.len() as u64,
            source,
        })
    }

    /// Reads the table of group descriptors. If damage is reported, damaged descriptors become
    /// `None`.
    fn read_groups(&mut self) -> Result<(), Error> {
        let mut damage = DamageCounts::default();
        let mut groups = Vec::with_capacity(self.superblock.groups as usize);
        let mut digests = Vec::with_capacity(self.superblock.groups as usize);
        self.visit_descriptors(&mut |group, offset_bytes, bytes| {
            let verify = self.options.verify_checksums;
            let mut parsed = GroupDescriptor::parse(bytes, group, &self.superblock, verify);
            let mut bytes = bytes.to_vec();
            for _ in 0..self.retries() {
                if parsed.is_ok() {
                    break;
                }
                self.read_bytes(offset_bytes, &mut bytes)?;
                parsed = GroupDescriptor::parse(&bytes, group, &self.superblock, verify);
            }
            digests.push(crc32c(!0, &bytes));
            groups.push(match parsed {
                Ok(descriptor) => Some(descriptor),
                Err(problem) => {
                    let block = offset_bytes / self.superblock.block_bytes;
                    let found = Damage::of_group(block, Structure::GroupDescriptor, group, problem);
                    if !self.reports_damage() {
                        return Err(found.into());
                    }
                    damage.add(found);
                    None
                }
            });
            Ok(())
        })?;
        // Overlapping tables of a small image could make a scan endless.
        if let Some((first, second, block)) = find_overlap(&groups, &self.superblock) {
            let text = format!("the inode tables of groups {first} and {second} overlap");
            return Err(Damage::of_group(block, Structure::InodeTable, second, text).into());
        }
        (self.groups, self.group_digests, self.damage) = (groups, digests, damage);
        Ok(())
    }

    /// Passes to `visit` the number of every group, and the position and bytes of its descriptor.
    fn visit_descriptors(&self, visit: DescriptorVisitor<'_>) -> Result<(), Error> {
        let mut buffer = vec![0; self.superblock.block_bytes as usize];
        let mut group = 0;
        for n in 0..self.superblock.descriptor_blocks() {
            let block = self.superblock.descriptor_block(n);
            if block >= self.superblock.blocks {
                let text = format!("they would be after the last of {} blocks", self.superblock.blocks);
                return Err(Damage::of_group(block, Structure::GroupDescriptor, group, text).into());
            }
            self.read_blocks(block, &mut buffer)?;
            let mut offset_bytes = block * self.superblock.block_bytes;
            for bytes in buffer.chunks_exact(self.superblock.descriptor_bytes) {
                if group == self.superblock.groups {
                    break;
                }
                visit(group, offset_bytes, bytes)?;
                offset_bytes += bytes.len() as u64;
                group += 1;
            }
        }
        Ok(())
    }

    /// Reads the current descriptor of one group. `None` if it is damaged.
    pub(crate) fn read_descriptor(&self, group: u32) -> Result<Option<GroupDescriptor>, Error> {
        let length = self.superblock.descriptor_bytes as u64;
        let per_block = self.superblock.block_bytes / length;
        let block = self.superblock.descriptor_block(u64::from(group) / per_block);
        let mut bytes = vec![0; length as usize];
        self.read_bytes(block * self.superblock.block_bytes + u64::from(group) % per_block * length, &mut bytes)?;
        Ok(GroupDescriptor::parse(&bytes, group, &self.superblock, self.options.verify_checksums).ok())
    }

    /// Reads the superblock and all descriptors again. Returns whether the superblock was written,
    /// and the groups that changed.
    pub(crate) fn find_changes(&self) -> Result<(bool, Vec<u32>), Error> {
        let mut bytes = vec![0; SUPERBLOCK_BYTES];
        self.read_bytes(SUPERBLOCK_OFFSET_BYTES, &mut bytes)?;
        let superblock_changed = compute_superblock_digest(&bytes) != self.superblock_digest;
        let mut changed = Vec::new();
        self.visit_descriptors(&mut |group, _, bytes| {
            if self.group_digests.get(group as usize) != Some(&crc32c(!0, bytes)) {
                changed.push(group);
            }
            Ok(())
        })?;
        Ok((superblock_changed, changed))
    }

    /// Uses the current superblock and descriptors from now on.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        let (superblock, digest) = read_superblock(&self.device, self.options)?;
        if superblock.blocks == self.superblock.blocks && superblock.groups == self.superblock.groups {
            (self.superblock, self.superblock_digest) = (superblock, digest);
        }
        self.read_groups()
    }
}

/// Reads the superblock. On a mounted device it retries, because the superblock may be being
/// written.
fn read_superblock(device: &impl ReadAt, options: OpenOptions) -> Result<(Superblock, u32), Error> {
    let mut bytes = vec![0; SUPERBLOCK_BYTES];
    let mut attempts = 0;
    loop {
        let length_bytes = bytes.len() as u64;
        device.read_at(SUPERBLOCK_OFFSET_BYTES, &mut bytes).map_err(|source| Error::Read {
            block: 0,
            offset_bytes: SUPERBLOCK_OFFSET_BYTES,
            length_bytes,
            source,
        })?;
        match Superblock::parse(&bytes, options.verify_checksums) {
            Ok(superblock) => return Ok((superblock, compute_superblock_digest(&bytes))),
            Err(Error::Damaged(_)) if attempts < options.retries => attempts += 1,
            Err(error) => return Err(error),
        }
    }
}

/// A digest of the superblock without its checksum: bytes followed by their CRC all have the same
/// CRC.
fn compute_superblock_digest(bytes: &[u8]) -> u32 {
    crc32c(!0, bytes.get(..0x3FC).unwrap_or(bytes))
}
