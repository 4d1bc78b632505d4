//! Which blocks of a mounted F2FS are free, from its segment information.
//!
//! The kernel shows the bitmap of each segment in `/proc/fs/f2fs/DEVICE/segment_bits`. The
//! superblock on the device says where the first segment is.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use crate::{Error, map::FreeExtent};

/// `statfs` magic of F2FS, and that of its superblock.
pub(super) const F2FS_MAGIC: u64 = 0xF2F5_2010;

/// Blocks of a segment, in every F2FS: the bitmap of a segment has 64 bytes.
const SEGMENT_BLOCKS: u64 = 512;
const BITMAP_BYTES: usize = 64;
/// The longest line of the list.
const LINE_BYTES: u64 = 1024;
/// Both superblocks are in the first two blocks of 4 KiB.
const START_BYTES: usize = 2 * 4096;

/// The place of the main area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    block_bytes: u64,
    /// First block of the main area.
    main_block: u64,
    /// Segments of the main area.
    segments: u64,
}

impl Geometry {
    /// Reads the first superblock that makes sense. Sizes are checked against that of the device.
    fn parse(start: &[u8], device_bytes: u64) -> Result<Self, String> {
        let mut problem = "it has no superblock of F2FS".to_owned();
        for at in [1024, 4096 + 1024] {
            match Self::parse_at(start, at, device_bytes) {
                Some(Ok(geometry)) => return Ok(geometry),
                Some(Err(error)) => problem = error,
                None => {}
            }
        }
        Err(problem)
    }

    fn parse_at(start: &[u8], at: usize, device_bytes: u64) -> Option<Result<Self, String>> {
        let word = |offset: usize| {
            let bytes = start.get(at + offset..at + offset + 4)?;
            Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
        };
        if word(0)? != F2FS_MAGIC {
            return None;
        }
        let (log_block, log_segment) = (word(0x10)?, word(0x14)?);
        // Blocks have the size of a page: 4 KiB to 64 KiB.
        if !(12..=16).contains(&log_block) || 1u64 << log_segment.min(63) != SEGMENT_BLOCKS {
            return Some(Err(format!("blocks of 2^{log_block} bytes, 2^{log_segment} in a segment, are unknown")));
        }
        let geometry = Self { block_bytes: 1 << log_block, main_block: word(0x5c)?, segments: word(0x44)? };
        let end = (geometry.main_block + geometry.segments * SEGMENT_BLOCKS) * geometry.block_bytes;
        let fits = geometry.segments > 0 && end <= device_bytes;
        Some(if fits { Ok(geometry) } else { Err(format!("its main area ends at {end} of {device_bytes} bytes")) })
    }
}

/// The free extents of the F2FS mounted at `mountpoint`, in the order of the device. A block that
/// holds nothing valid is free, also in a segment that must be cleaned before it is written again.
///
/// Errors: the lists of the kernel, or the device, cannot be read (root is needed); they contradict
/// each other.
pub(super) fn collect(mountpoint: &Path, device: u64) -> Result<Vec<FreeExtent>, Error> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let target = std::fs::read_link(&link).map_err(|source| Error::system("read", &link, source))?;
    let name = target.file_name().unwrap_or_default();
    let geometry = read_geometry(&Path::new("/dev").join(name))?;
    let list = Path::new("/proc/fs/f2fs").join(name).join("segment_bits");
    let file = File::open(&list).map_err(|source| Error::system("open", &list, source))?;
    let malformed = |problem| Error::Malformed { call: "segment_bits", path: mountpoint.into(), problem };
    parse_bits(BufReader::new(file), geometry).map_err(malformed)
}

fn read_geometry(node: &Path) -> Result<Geometry, Error> {
    let failed = |source: std::io::Error| Error::system("read the superblock of", node, source);
    let mut device = File::open(node).map_err(failed)?;
    let mut start = vec![0; START_BYTES];
    device.read_exact(&mut start).map_err(failed)?;
    let length = rustix::fs::seek(&device, rustix::fs::SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
    let malformed = |problem| Error::Malformed { call: "the superblock", path: node.into(), problem };
    Geometry::parse(&start, length).map_err(malformed)
}

/// Reads the lines `SEGMENT TYPE|VALID| BYTE …`. Newer kernels add `| TIME`.
fn parse_bits(mut list: impl BufRead, geometry: Geometry) -> Result<Vec<FreeExtent>, String> {
    let mut free: Vec<FreeExtent> = Vec::new();
    let mut next = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut list).take(LINE_BYTES).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if length == 0 {
            break;
        }
        let text = std::str::from_utf8(&line).map_err(|error| error.to_string())?;
        // The first two lines explain the others.
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let wrong = || format!("the line of segment {next} is {:?}", text.trim_end());
        let (segment, bits) = parse_line(text).ok_or_else(wrong)?;
        if segment != next || next >= geometry.segments {
            return Err(wrong());
        }
        add_segment(&mut free, geometry, segment, &bits);
        next += 1;
    }
    if next != geometry.segments {
        return Err(format!("it lists {next} of {} segments", geometry.segments));
    }
    Ok(free)
}

fn parse_line(text: &str) -> Option<(u64, [u8; BITMAP_BYTES])> {
    let mut fields = text.split('|');
    let segment = fields.next()?.split_whitespace().next()?.parse().ok()?;
    let mut bytes = fields.nth(1)?.split_whitespace();
    let mut bits = [0; BITMAP_BYTES];
    for byte in &mut bits {
        *byte = u8::from_str_radix(bytes.next()?, 16).ok()?;
    }
    bytes.next().is_none().then_some((segment, bits))
}

/// The first block is the highest bit of the first byte.
fn add_segment(free: &mut Vec<FreeExtent>, geometry: Geometry, segment: u64, bits: &[u8; BITMAP_BYTES]) {
    let first = geometry.main_block + segment * SEGMENT_BLOCKS;
    for block in 0..SEGMENT_BLOCKS {
        if bits[block as usize / 8] & 0x80 >> (block % 8) != 0 {
            continue;
        }
        let (start_bytes, length_bytes) = ((first + block) * geometry.block_bytes, geometry.block_bytes);
        match free.last_mut() {
            Some(before) if before.start_bytes + before.length_bytes == start_bytes => {
                before.length_bytes += length_bytes;
            }
            _ => free.push(FreeExtent { start_bytes, length_bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry { block_bytes: 4096, main_block: 4096, segments: 2 };

    fn superblock(words: &[(usize, u32)]) -> Vec<u8> {
        let mut start = vec![0; START_BYTES];
        let usual = [(0, 0xF2F5_2010), (0x10, 12), (0x14, 9), (0x5c, 4096), (0x44, 2)];
        for (at, value) in usual.iter().chain(words) {
            start[1024 + at..1028 + at].copy_from_slice(&value.to_le_bytes());
        }
        start
    }

    /// The list of two segments with these bitmaps, as the kernel prints it.
    fn list(bits: [[u8; BITMAP_BYTES]; 2], end: &str) -> String {
        let mut text = "format: segment_type|valid_blocks|bitmaps\nsegment_type(0:HD, 1:WD)\n".to_owned();
        for (number, bits) in bits.iter().enumerate() {
            let bytes: String = bits.iter().map(|byte| format!(" {byte:02x}")).collect();
            text.push_str(&format!("{number:<10}{number}|{:<3}|{bytes}{end}\n", 500 + number));
        }
        text
    }

    const FULL: [u8; BITMAP_BYTES] = [0xff; BITMAP_BYTES];

    #[test]
    fn the_geometry_is_checked_against_the_device() {
        let room = (4096 + 1024) * 4096;
        assert_eq!(Geometry::parse(&superblock(&[]), room), Ok(GEOMETRY));
        for (words, bytes) in [
            (&[][..], room - 1),
            (&[(0x44, u32::MAX)], room),
            (&[(0x44, 0)], room),
            (&[(0x5c, u32::MAX)], room),
            (&[(0x10, 9)], room),
            (&[(0x10, u32::MAX)], room),
            (&[(0x14, 64)], room),
            (&[(0, 0)], room),
        ] {
            assert!(Geometry::parse(&superblock(words), bytes).is_err(), "{words:?}");
        }
        assert!(Geometry::parse(&[0; 1500], room).is_err());
        // The copy counts if the first one is damaged.
        let mut start = superblock(&[]);
        start.copy_within(1024..4096, 4096 + 1024);
        start[1024..1028].fill(0);
        assert_eq!(Geometry::parse(&start, room), Ok(GEOMETRY));
    }

    #[test]
    fn free_blocks_of_adjacent_segments_are_one_extent() {
        let (mut first, mut second) = (FULL, FULL);
        // The last two blocks of the first segment, and the first two of the second.
        (first[63], second[0]) = (0xfc, 0x3f);
        for end in ["", "| 5f3a"] {
            let free = parse_bits(list([first, second], end).as_bytes(), GEOMETRY).unwrap();
            assert_eq!(free, [FreeExtent { start_bytes: (4096 + 510) * 4096, length_bytes: 4 * 4096 }]);
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let good = list([FULL, FULL], "");
        assert_eq!(parse_bits(good.as_bytes(), GEOMETRY), Ok(vec![]));
        for bad in [
            good.replace("\n1  ", "\n2  "),
            good.replace("|501|", " 501 "),
            good.replacen(" ff", "", 1),
            good.replacen(" ff", " ff ff", 1),
            good.replacen(" ff", " xx", 1),
            good.lines().take(3).map(|line| format!("{line}\n")).collect(),
            good.clone() + &good,
        ] {
            assert!(parse_bits(bad.as_bytes(), GEOMETRY).is_err(), "{bad}");
        }
    }
}
