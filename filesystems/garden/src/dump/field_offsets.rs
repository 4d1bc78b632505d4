//! The offset and name of each field, as in docs/reference/garden-format.md. Fields are read from
//! the bytes without the codecs, so a structure that a codec refuses is shown too.

use senesce_fsapi::FileKind;

use super::value::{Field, Form, field};
use crate::format::inode::number_kind;

#[rustfmt::skip] // one field a line
pub(super) const LABEL: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("version", 8, Form::U32),
    field("drive", 12, Form::U32),
    field("uuid", 16, Form::Uuid),
    field("stripes of a tetris", 36, Form::U32),
    field("groups", 40, Form::U32),
    field("bytes of a half of the log", 48, Form::U64),
    field("copies of the log", 56, Form::U8),
    field("copies are on one device", 57, Form::U8),
];

#[rustfmt::skip]
pub(super) const SUPERBLOCK: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("version", 8, Form::U32),
    field("places in the volume table", 12, Form::U32),
    field("uuid", 16, Form::Uuid),
    field("CP number", 32, Form::U64),
    field("last log record included", 40, Form::U64),
    field("free PVBNs", 48, Form::U64),
    field("number of the superblock before", 56, Form::U64),
    field("CP that wrote what it names", 64, Form::U64),
    field("number of the next object", 72, Form::U64),
    field("blocks in objects", 80, Form::U64),
    field("copies of the log left out", 88, Form::U32),
    field("closed", 92, Form::U8),
    field("generation of copy 0 of the log", 96, Form::U64),
    field("generation of copy 1 of the log", 104, Form::U64),
    field("drives that are missing", 512, Form::U32),
    field("drives being filled", 1024, Form::U32),
];

#[rustfmt::skip]
pub(super) const VOLUME: &[Field] = &[
    field("magic", 0, Form::Digits32),
    field("length of the name", 4, Form::U32),
    field("VVBNs", 8, Form::U64),
    field("inodes", 16, Form::U64),
    field("VVBNs in use", 24, Form::U64),
    field("inodes in use", 32, Form::U64),
    field("inodes made so far", 40, Form::U64),
    field("seed of hashes", 48, Form::U64),
    field("name", 64, Form::Text(128)),
    field("VVBNs that only snapshots use", 448, Form::U64),
    field("blocks of file 5 to look through", 456, Form::U64),
    field("clone: of volume, plus 1", 464, Form::U32),
    field("clone: of snapshot", 468, Form::U32),
    field("VVBNs with a count in file 6", 472, Form::U64),
    field("what these counts are above 1, all together", 480, Form::U64),
    field("clone: VVBNs of the origin", 488, Form::U64),
    field("clone: those that are gone", 496, Form::U64),
    field("deleted", 504, Form::U32),
    field("blocks of a compression group", 508, Form::U8),
    field("partial blocks share a block", 509, Form::U8),
    field("one of both was so once", 510, Form::U8),
];

#[rustfmt::skip]
pub(super) const SNAPSHOT: &[Field] = &[
    field("magic", 0, Form::Digits32),
    field("place of its volume in the volume table", 4, Form::U32),
    field("length of the name", 8, Form::U32),
    field("made", 16, Form::Time(24)),
    field("CP number", 32, Form::U64),
    field("VVBNs", 40, Form::U64),
    field("inodes in use", 48, Form::U64),
    field("inodes made so far", 56, Form::U64),
    field("seed of hashes", 64, Form::U64),
    field("VVBNs with a count in file 6", 72, Form::U64),
    field("what these counts are above 1, all together", 80, Form::U64),
    field("name", 128, Form::Text(128)),
];

#[rustfmt::skip]
pub(super) const INODE: &[Field] = &[
    field("kind", 0, Form::Words(kind)),
    field("contents in the inode", 1, Form::U8),
    field("permissions", 2, Form::Octal),
    field("uid", 4, Form::U32),
    field("gid", 8, Form::U32),
    field("links", 12, Form::U32),
    field("size", 16, Form::U64),
    field("blocks of contents", 24, Form::U64),
    field("read", 32, Form::Time(56)),
    field("modified", 40, Form::Time(60)),
    field("changed", 48, Form::Time(64)),
    field("generation", 68, Form::U32),
    field("height of the tree", 72, Form::U8),
    field("device", 76, Form::U32),
    field("xattrs", 80, Form::U64),
    field("parent", 88, Form::U64),
];

#[rustfmt::skip]
pub(super) const TRAILER: &[Field] = &[
    field("payload CRC", 0, Form::Digits32),
    field("trailer CRC", 4, Form::Digits32),
    field("kind", 8, Form::U8),
    field("level", 9, Form::U8),
    field("tag", 10, Form::U16),
    field("owner file", 16, Form::U64),
    field("block number", 24, Form::U64),
    field("own PVBN", 32, Form::U64),
    field("CP number", 40, Form::U64),
    field("hint: file", 48, Form::U64),
    field("hint: block", 56, Form::U64),
];

/// The head of an object, without the list of its blocks.
#[rustfmt::skip]
pub(super) const OBJECT: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("version", 8, Form::U32),
    field("blocks", 12, Form::U32),
    field("uuid", 16, Form::Uuid),
    field("number", 32, Form::U64),
    field("CRC", 16380, Form::Digits32),
];

#[rustfmt::skip]
pub(super) const DIRECTORY: &[Field] = &[
    field("magic", 0, Form::U16),
    field("level", 2, Form::U8),
    field("count", 4, Form::U16),
    field("next free", 8, Form::U32),
];

#[rustfmt::skip]
pub(super) const AREAS: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("version", 8, Form::U32),
    field("group", 12, Form::U32),
    field("CP number", 16, Form::U64),
    field("areas", 24, Form::U32),
    field("listed", 28, Form::U32),
    field("rest", 32, Form::U32),
];

#[rustfmt::skip]
pub(super) const LOG_LABEL: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("version", 8, Form::U32),
    field("copy", 12, Form::U32),
    field("uuid", 16, Form::Uuid),
    field("stripes of a tetris", 36, Form::U32),
    field("groups", 40, Form::U32),
    field("bytes of a half of the log", 48, Form::U64),
    field("copies of the log", 56, Form::U8),
    field("copies are on one device", 57, Form::U8),
    field("generation", 4080, Form::U64),
    field("CRC", 4092, Form::Digits32),
];

/// The label of a log of version 7.
#[rustfmt::skip]
pub(super) const OLD_LOG_LABEL: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("version", 8, Form::U32),
    field("uuid", 16, Form::Uuid),
    field("bytes of a half", 32, Form::U64),
    field("CRC", 4092, Form::Digits32),
];

fn kind(bytes: &[u8]) -> String {
    match bytes[0] {
        0 => "0 (free)".to_owned(),
        number => number_kind(number).map_or(format!("{number} (none)"), |kind| kind_word(kind).to_owned()),
    }
}

/// The kind of a file, as in docs/reference/garden-format.md.
pub(super) fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "1 (file)",
        FileKind::Directory => "2 (directory)",
        FileKind::Symlink => "3 (symbolic link)",
        FileKind::Fifo => "4 (fifo)",
        FileKind::Socket => "5 (socket)",
        FileKind::CharDevice => "6 (character device)",
        FileKind::BlockDevice => "7 (block device)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = include_str!("../../../../docs/reference/garden-format.md");

    /// The three adjacent tables of the format page: each field with one number has the same name
    /// and offset here.
    #[test]
    fn fields_match_the_format_page() {
        let head = FORMAT.lines().position(|line| line.starts_with("| label | at |")).unwrap();
        let mut met = [0; 3];
        for line in FORMAT.lines().skip(head + 2).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            for (number, fields) in [LABEL, SUPERBLOCK, VOLUME].iter().enumerate() {
                let (what, at) = (cells[3 * number], cells[3 * number + 1]);
                let Some((word, bits)) = what.rsplit_once(" u") else { continue };
                let (Ok(bits), Ok(at)) = (bits.parse::<usize>(), at.parse::<usize>()) else { continue };
                let found = fields.iter().find(|field| field.word == word);
                let found = found.unwrap_or_else(|| panic!("{word:?} is not dumped"));
                let form = match bits {
                    8 => Form::U8,
                    32 => Form::U32,
                    _ => Form::U64,
                };
                assert_eq!((found.at, format!("{:?}", found.form)), (at, format!("{form:?}")), "{word}");
                met[number] += 1;
            }
        }
        assert!(met[0] >= 4 && met[1] >= 7 && met[2] >= 7, "{met:?}");
    }

    #[test]
    fn fields_are_in_ascending_order() {
        for fields in
            [LABEL, SUPERBLOCK, VOLUME, SNAPSHOT, INODE, TRAILER, OBJECT, DIRECTORY, AREAS, LOG_LABEL, OLD_LOG_LABEL]
        {
            for pair in fields.windows(2) {
                assert!(pair[0].at < pair[1].at, "{} and {}", pair[0].word, pair[1].word);
            }
        }
    }
}
