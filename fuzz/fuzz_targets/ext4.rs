//! The ext4 reader on damaged images: it ends with a result or with an error that names a block.
//!
//! The first byte of an input chooses one of the images in `bases/` and the options; each eight bytes after it change
//! the image: what to do, where (3 bytes), with what (4 bytes). So small inputs reach deep into whole file systems.
#![no_main]

use std::{io, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use senesce_ext4::{
    EntryOrder, Error, FileSystem, OnDamage, OpenOptions, ReadAt, ScanOptions, TreeOptions,
};

const BASES: [&[u8]; 5] = [
    include_bytes!("../bases/usual"),
    include_bytes!("../bases/block-maps"),
    include_bytes!("../bases/inline-data"),
    include_bytes!("../bases/clusters"),
    include_bytes!("../bases/many-groups"),
];

const BLOCK_BYTES: usize = 1024;

/// An image, and where its bytes are that are not zero.
struct Base {
    bytes: Vec<u8>,
    filled: Vec<u32>,
}

fn bases() -> &'static [Base] {
    static DECODED: OnceLock<Vec<Base>> = OnceLock::new();
    DECODED.get_or_init(|| BASES.iter().map(|encoded| decode(encoded)).collect())
}

/// See `crates/ext4/examples/fuzz_bases.rs` for the format.
fn decode(encoded: &[u8]) -> Base {
    let number = |at: usize| u32::from_le_bytes(encoded[at..at + 4].try_into().expect("four bytes")) as usize;
    let mut bytes = vec![0; number(0)];
    let mut filled = Vec::new();
    let mut at = 4;
    while at < encoded.len() {
        let (start, length) = (number(at), number(at + 4));
        bytes[start..start + length].copy_from_slice(&encoded[at + 8..at + 8 + length]);
        filled.extend(start as u32..(start + length) as u32);
        at += 8 + length;
    }
    Base { bytes, filled }
}

/// A base with changes, none of which is written into it.
struct Patched {
    base: &'static Base,
    /// Position and bytes, in the order of the changes.
    patches: Vec<(usize, Vec<u8>)>,
    length: usize,
}

impl Patched {
    fn new(base: &'static Base, changes: &[u8]) -> Self {
        let mut patched = Self { base, patches: Vec::new(), length: base.bytes.len() };
        for change in changes.chunks_exact(8).take(64) {
            let place = u32::from_le_bytes([change[1], change[2], change[3], 0]) as usize;
            let value: [u8; 4] = [change[4], change[5], change[6], change[7]];
            let filled = base.filled[place % base.filled.len()] as usize;
            let block = |n: usize| n % (base.bytes.len() / BLOCK_BYTES) * BLOCK_BYTES;
            let (position, bytes) = match change[0] % 8 {
                0 | 1 => (filled, value[..1].to_vec()),
                2 => (filled, value[..2].to_vec()),
                3 => (filled, value.to_vec()),
                4 => (filled, vec![base.bytes[filled] ^ 1 << (value[0] % 8)]),
                5 => (place % base.bytes.len(), value.to_vec()),
                // A block with the contents of another, or full of one number.
                6 => {
                    let from = block(u32::from_le_bytes(value) as usize);
                    (block(place), base.bytes[from..from + BLOCK_BYTES].to_vec())
                }
                _ if change[0] & 0x80 != 0 => {
                    patched.length = place % (base.bytes.len() + 1);
                    continue;
                }
                _ => (block(place), value.repeat(BLOCK_BYTES / 4)),
            };
            patched.patches.push((position, bytes));
        }
        patched
    }
}

impl ReadAt for &Patched {
    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = usize::try_from(offset_bytes).ok().and_then(|start| start.checked_add(buffer.len()));
        let Some(end) = end.filter(|&end| end <= self.length) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let start = end - buffer.len();
        buffer.copy_from_slice(&self.base.bytes[start..end]);
        for (position, bytes) in &self.patches {
            let (from, to) = (start.max(*position), end.min(position + bytes.len()));
            if from < to {
                buffer[from - start..to - start].copy_from_slice(&bytes[from - position..to - position]);
            }
        }
        Ok(())
    }

    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.length as u64)
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, changes)) = input.split_first() else { return };
    let device = Patched::new(&bases()[usize::from(choice & 15) % BASES.len()], changes);
    let options = OpenOptions {
        verify_checksums: choice & 0x80 != 0,
        on_damage: if choice & 0x40 != 0 { OnDamage::Report } else { OnDamage::Automatic },
        retries: 1,
    };
    let order = if choice & 0x20 != 0 { EntryOrder::OnDisk } else { EntryOrder::Readdir };
    if let Err(error) = read_all(&device, options, order) {
        let names_a_block = error.to_string().contains("block ");
        assert!(names_a_block || matches!(error, Error::UnknownFeatures { .. }), "{error}");
    }
});

fn read_all(device: &Patched, options: OpenOptions, order: EntryOrder) -> Result<(), Error> {
    let mut fs = FileSystem::open_with(device, options)?;
    let length = device.length as u64;
    let free = fs.collect_free_space()?;
    for pair in free.extents.windows(2) {
        let end = pair[0].start_bytes + pair[0].length_bytes;
        assert!(end < pair[1].start_bytes, "free extents are parted and ascend: {pair:?}");
    }
    assert!(free.extents.last().is_none_or(|last| last.start_bytes + last.length_bytes <= length));
    free.report.warnings.iter().for_each(|warning| drop(warning.to_string()));
    let scan = ScanOptions { threads: 1, entries: Some(order) };
    let mut last_inode = 0;
    fs.collect_inodes(&ScanOptions { entries: None, ..scan }, &mut |record| {
        assert!(record.inode > last_inode, "inodes ascend");
        last_inode = record.inode;
        for pair in record.extents.windows(2) {
            assert!(pair[0].extent.logical + pair[0].extent.length <= pair[1].extent.logical, "{pair:?}");
        }
        assert!(record.extents.iter().all(|mapped| mapped.extent.length > 0 && mapped.extent.end() <= length));
        assert!(record.map_blocks_bytes.iter().all(|&position| position < length));
    })?;
    let tree = fs.collect_tree(&TreeOptions { scan, attempts: 2, memory_limit_bytes: 64 << 20 })?;
    tree.report.warnings.iter().for_each(|warning| drop(warning.to_string()));
    let mut names = 0;
    let report = tree.walk(&mut |entry| {
        names += 1;
        let extents = entry.file.map_or(0, |file| file.extents().count());
        assert!(extents <= tree.len() * 2048, "{extents} extents");
    });
    assert!(report.names <= names);
    Ok(())
}
