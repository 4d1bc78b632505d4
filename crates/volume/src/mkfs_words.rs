//! The words that a plan or a user may add to mkfs: an allow-list for each file system.
//!
//! Only the named device is checked before it is formatted. So every word that is not known to be
//! harmless is refused, such as one that names another device, a file or a directory.

use crate::{Error, FileSystemKind, Result};

/// The value of an option.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// No value.
    None,
    /// A number of bytes or blocks: digits and at most one letter as unit.
    Size,
    /// A number, with or without a decimal point.
    Number,
    /// A label: no slash.
    Label,
    /// Comma-separated features, each with an optional `^` to leave it out. `journal_dev` is
    /// refused, because it makes another kind of device.
    Features,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Comma-separated names of this list, with or without a value of letters, digits and points.
    Pairs(&'static [&'static str]),
}

/// The names of an option, and its value.
type Allowed = (&'static [&'static str], Value);

const EXT4: &[Allowed] = &[
    (&["-b", "-C", "-g", "-G", "-i", "-I", "-N"], Value::Size),
    (&["-m"], Value::Number),
    (&["-D", "-j", "-q", "-v"], Value::None),
    (
        &["-E"],
        Value::Pairs(&[
            "assume_storage_prezeroed",
            "discard",
            "encoding",
            "encoding_flags",
            "hash_seed",
            "lazy_itable_init",
            "lazy_journal_init",
            "mmp_update_interval",
            "nodiscard",
            "num_backup_sb",
            "orphan_file_size",
            "packed_meta_blocks",
            "quotatype",
            "resize",
            "stride",
            "stripe-width",
            "stripe_width",
        ]),
    ),
    (&["-J"], Value::Pairs(&["fast_commit_size", "location", "size"])),
    (&["-L"], Value::Label),
    (&["-O"], Value::Features),
    (&["-e"], Value::OneOf(&["continue", "panic", "remount-ro"])),
    (&["-r"], Value::OneOf(&["0", "1"])),
    (&["-t"], Value::OneOf(&["ext2", "ext3", "ext4"])),
    (&["-T"], Value::OneOf(&["big", "default", "floppy", "huge", "hurd", "largefile", "largefile4", "news", "small"])),
];

const XFS: &[Allowed] = &[
    (&["-b"], Value::Pairs(&["log", "size"])),
    (
        &["-m"],
        Value::Pairs(&[
            "autofsck",
            "bigtime",
            "crc",
            "finobt",
            "inobtcount",
            "metadir",
            "reflink",
            "rmapbt",
            "uquota",
            "gquota",
            "pquota",
        ]),
    ),
    (
        &["-d"],
        Value::Pairs(&[
            "agcount",
            "agsize",
            "concurrency",
            "cowextsize",
            "daxinherit",
            "extszinherit",
            "noalign",
            "projinherit",
            "rtinherit",
            "size",
            "su",
            "sunit",
            "sw",
            "swidth",
        ]),
    ),
    (
        &["-i"],
        Value::Pairs(&[
            "align",
            "attr",
            "exchange",
            "log",
            "maxpct",
            "nrext64",
            "perblock",
            "projid32bit",
            "size",
            "sparse",
        ]),
    ),
    (&["-l"], Value::Pairs(&["agnum", "concurrency", "internal", "lazy-count", "size", "su", "sunit", "version"])),
    (&["-n"], Value::Pairs(&["ftype", "log", "parent", "size", "version"])),
    (&["-r"], Value::Pairs(&["extsize"])),
    (&["-s"], Value::Pairs(&["log", "sectsize", "size"])),
    (&["-L"], Value::Label),
    (&["-K", "-q"], Value::None),
];

const PROFILES: &[&str] = &["dup", "raid0", "raid1", "raid10", "raid1c3", "raid1c4", "raid5", "raid6", "single"];

const BTRFS: &[Allowed] = &[
    (&["-b", "--byte-count", "-n", "--nodesize", "-s", "--sectorsize", "-l", "--leafsize"], Value::Size),
    (&["-d", "--data", "-m", "--metadata"], Value::OneOf(PROFILES)),
    (&["--csum", "--checksum"], Value::OneOf(&["blake2", "blake2b", "crc32c", "sha256", "xxhash", "xxhash64"])),
    (&["-L", "--label"], Value::Label),
    (&["-O", "--features", "-R", "--runtime-features"], Value::Features),
    (&["-K", "--nodiscard", "-M", "--mixed", "-q", "--quiet", "-v", "--verbose"], Value::None),
];

const F2FS: &[Allowed] = &[
    (&["-a", "-t"], Value::OneOf(&["0", "1"])),
    (&["-d", "-s", "-z"], Value::Size),
    (&["-e", "-E", "-O"], Value::Features),
    (&["-g"], Value::OneOf(&["android"])),
    (&["-i", "-q", "-r"], Value::None),
    (&["-l"], Value::Label),
    (&["-o"], Value::Number),
];

const NILFS2: &[Allowed] = &[
    (&["-b", "-B"], Value::Size),
    (&["-K", "-q"], Value::None),
    (&["-L"], Value::Label),
    (&["-m"], Value::Number),
    (&["-O"], Value::Features),
];

const JFS: &[Allowed] = &[(&["-L"], Value::Label), (&["-O", "-q"], Value::None), (&["-s"], Value::Number)];

const REISERFS: &[Allowed] = &[
    (&["-b", "--block-size", "-s", "--journal-size", "-t", "--transaction-max-size"], Value::Size),
    (&["-h", "--hash"], Value::OneOf(&["r5", "rupasov", "tea"])),
    (&["-l", "--label"], Value::Label),
    (&["--format"], Value::OneOf(&["3.5", "3.6"])),
    (&["-q"], Value::None),
];

const GARDEN: &[Allowed] = &[
    (&["--compress", "--log-size"], Value::Size),
    (&["--medium"], Value::OneOf(&["hdd", "ssd"])),
    (&["--volume"], Value::Label),
    (&["--seed"], Value::Number),
];

const EVERGREEN: &[Allowed] = &[
    (&["--basement-size", "--fanout", "--node-size", "--unit-size"], Value::Size),
    (&["--key-order"], Value::OneOf(&["birth-path", "inode-number"])),
    (&["--metadata-copies"], Value::OneOf(&["1", "2"])),
    (&["--seed"], Value::Number),
];

/// Refuses words that are not on the allow-list of a file system.
///
/// Errors: the first such word, with the list of allowed ones.
pub fn check_mkfs_words(kind: FileSystemKind, words: &[String]) -> Result<()> {
    let allowed = match kind {
        FileSystemKind::Ext4 => EXT4,
        FileSystemKind::Xfs => XFS,
        FileSystemKind::Btrfs => BTRFS,
        FileSystemKind::F2fs => F2FS,
        FileSystemKind::Nilfs2 => NILFS2,
        FileSystemKind::Jfs => JFS,
        FileSystemKind::Reiserfs => REISERFS,
        FileSystemKind::Garden => GARDEN,
        FileSystemKind::Evergreen => EVERGREEN,
    };
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let refuse = |problem: String| {
            Err(Error::MkfsWord { file_system: kind, word: word.to_owned(), problem, allowed: list(allowed) })
        };
        let (option, attached) = part(word);
        let Some((_, value)) = allowed.iter().find(|(names, _)| names.contains(&option)) else {
            return refuse(match word.starts_with('-') {
                true => "is not on the list of harmless options".to_owned(),
                false => "is no option, so mkfs would use it as a device, a file or a size".to_owned(),
            });
        };
        let given = match (value, attached) {
            (Value::None, None) => continue,
            (Value::None, Some(_)) => return refuse("accepts no value".to_owned()),
            // The value of `--compress` is always attached, and optional.
            (Value::Size, None) if option == "--compress" => continue,
            (_, Some(attached)) => attached,
            (_, None) => match words.next() {
                Some(next) => next,
                None => return refuse("needs a value".to_owned()),
            },
        };
        if let Err(problem) = check_value(*value, given) {
            return refuse(format!("has the value {given:?}: {problem}"));
        }
    }
    Ok(())
}

/// Splits an option and the value attached to it: `-b4096`, `--nodesize=4096`.
fn part(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    }
    match word.char_indices().nth(2) {
        Some((at, _)) if word.starts_with('-') => (&word[..at], Some(&word[at..])),
        _ => (word, None),
    }
}

fn check_value(value: Value, given: &str) -> std::result::Result<(), String> {
    let is_made_of = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
    };
    let fits = match value {
        Value::None => false,
        Value::Size => {
            let digits = given.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
            let unit = &given[digits.len()..];
            let is_unit = unit.len() <= 1 || matches!(unit, "KiB" | "MiB" | "GiB" | "TiB");
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            return if is_number && is_unit { Ok(()) } else { Err("a number is expected".to_owned()) };
        }
        Value::Number => {
            let is_number = given.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !given.is_empty();
            return if is_number { Ok(()) } else { Err("a number is expected".to_owned()) };
        }
        Value::Label => {
            return match is_made_of(given, "-_. ") && !given.starts_with('-') {
                true => Ok(()),
                false => Err("letters, digits, '-', '_', '.' and blanks are expected".to_owned()),
            };
        }
        Value::Features => given.split(',').all(|feature| {
            let name = feature.strip_prefix('^').unwrap_or(feature);
            is_made_of(name, "-_") && name != "journal_dev" && !name.starts_with('-')
        }),
        Value::OneOf(names) => names.contains(&given),
        Value::Pairs(names) => given.split(',').all(|pair| {
            let (name, value) = pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value)));
            names.contains(&name) && value.is_none_or(|value| is_made_of(value, "-_."))
        }),
    };
    match (fits, value) {
        (true, _) => Ok(()),
        (false, Value::OneOf(names)) => Err(format!("one of {} is expected", names.join(", "))),
        (false, Value::Pairs(names)) => Err(format!("allowed are {}", names.join(", "))),
        (false, _) => Err("comma-separated features of the file system are expected".to_owned()),
    }
}

fn list(allowed: &[Allowed]) -> String {
    allowed.iter().flat_map(|(names, _)| names.iter().copied()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: FileSystemKind, words: &[&str]) -> Result<()> {
        check_mkfs_words(kind, &words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_that_name_paths_are_refused() {
        use FileSystemKind::{Btrfs, Evergreen, Ext4, F2fs, Garden, Jfs, Nilfs2, Reiserfs, Xfs};
        for (kind, words) in [
            (Nilfs2, &["-c"][..]),
            (Jfs, &["-j", "/dev/loop9"]),
            (Jfs, &["-J", "device=/dev/loop9"]),
            (Reiserfs, &["-j", "/dev/loop9"]),
            (Reiserfs, &["-B", "/etc/shadow"]),
            (F2fs, &["-c", "/dev/loop9"]),
            (F2fs, &["-c/dev/loop9"]),
            (F2fs, &["-m"]),
            (F2fs, &["-U", "random"]),
            (F2fs, &["-e", "/etc/shadow"]),
            (F2fs, &["-i", "65536"]),
            (Btrfs, &["-m", "single", "-d", "single", "/dev/loop9"]),
            (Btrfs, &["--rootdir", "/etc"]),
            (Btrfs, &["--rootdir=/etc"]),
            (Btrfs, &["--rootd=/etc"]),
            (Btrfs, &["-r/etc"]),
            (Btrfs, &["-fr/etc"]),
            (Btrfs, &["-b", "1G/dev/sdb"]),
            (Btrfs, &["--", "disk"]),
            (Btrfs, &["-L", "/dev/sdb"]),
            (Xfs, &["-l", "logdev=/dev/loop9,size=64m"]),
            (Xfs, &["-llogdev=disk"]),
            (Xfs, &["-r", "rtdev=/dev/loop9"]),
            (Xfs, &["-d", "name=disk"]),
            (Xfs, &["-d", "file"]),
            (Xfs, &["-p", "proto"]),
            (Xfs, &["-c", "options=file"]),
            (Xfs, &["-m", "uuid=01010101-0101-0101-0101-010101010101"]),
            (Ext4, &["-d", "/etc", "-z", "/path/undo"]),
            (Ext4, &["-zundo"]),
            (Ext4, &["-J", "device=/dev/sdb"]),
            (Ext4, &["-J", "size=4,device=LABEL"]),
            (Ext4, &["-O", "journal_dev"]),
            (Ext4, &["-O", "^flex_bg,journal_dev"]),
            (Ext4, &["-l", "bad-blocks"]),
            (Ext4, &["-E", "offset=4096"]),
            (Ext4, &["-E", "stride=2,offset=4096"]),
            (Ext4, &["-qd", "/etc"]),
            (Ext4, &["-n"]),
            (Ext4, &["-S"]),
            (Ext4, &["-U", "random"]),
            (Ext4, &["-b", "4096", "disk"]),
            (Ext4, &["64m"]),
            (Ext4, &["-"]),
            (Ext4, &[""]),
            (Ext4, &["-m"]),
            (Garden, &["--drive", "disk"]),
            (Garden, &["--flash-drive=disk"]),
            (Garden, &["--log", "disk"]),
            (Evergreen, &["disk"]),
            (Evergreen, &["--unit-size", "--force"]),
            (Evergreen, &["--metadata-copies", "3"]),
        ] {
            let error = check(kind, words).unwrap_err();
            assert!(matches!(&error, Error::MkfsWord { allowed, .. } if !allowed.is_empty()), "{words:?}: {error}");
            assert_eq!(error.kind(), crate::ErrorKind::Usage);
        }
    }

    #[test]
    fn words_that_shape_a_file_system_are_allowed() {
        use FileSystemKind::{Btrfs, Evergreen, Ext4, F2fs, Garden, Jfs, Nilfs2, Reiserfs, Xfs};
        for (kind, words) in [
            (Nilfs2, &["-B", "64", "-m", "8", "-O", "^block_count"][..]),
            (Jfs, &["-s", "4", "-L", "x"]),
            (Reiserfs, &["-h", "tea", "-s", "1024"]),
            (F2fs, &["-i", "-o", "5", "-s", "2", "-O", "extra_attr,inode_checksum", "-e", "mp3,gif", "-l", "x"]),
            (Ext4, &["-b", "1024", "-E", "stride=2", "-Enodiscard", "-m", "0", "-N96", "-O", "^flex_bg,bigalloc"]),
            (Ext4, &["-m", "0.5", "-J", "size=64", "-T", "largefile", "-I", "128", "-L", "my disk"]),
            (Xfs, &["-i", "size=1024", "-d", "agcount=4,su=64k,sw=2", "-l", "size=64m,internal", "-m", "reflink=0"]),
            (Btrfs, &["--nodesize", "4096", "--mixed", "-O", "^no-holes", "--csum=xxhash", "-d", "single"]),
            (Garden, &["--log-size", "4MiB", "--compress", "--compress=16KiB", "--volume", "main"]),
            (Evergreen, &["--node-size", "1MiB", "--fanout", "16", "--key-order", "inode-number"]),
            (Evergreen, &["--metadata-copies", "1"]),
        ] {
            check(kind, words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        }
    }
}
