//! The order in which files are read. They should have the same order on the device.

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    str::FromStr,
};

use senesce_core::RelPath;
use senesce_probe::collect::{EntryKind, Surveyed};

use crate::{Error, Tree};

/// The longest line of a list of files, bytes: the longest path of Linux and a line end.
const MOST_LINE_BYTES: usize = 4097;

/// An order of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As the file system lists them: the order of `grep -r` and `tar`.
    #[default]
    Readdir,
    /// By name, directory by directory: the order of `rsync` and shell globs.
    Sorted,
    /// By inode number: the order of `cp -r` of GNU.
    Inode,
    /// As a text file lists them: each line is a path from the root of the tree. Other files follow
    /// in readdir order.
    List(PathBuf),
}

impl Order {
    /// The files of the tree in this order, each once.
    ///
    /// Errors: the list cannot be read, or has a line that is no relative path. Skips files that
    /// the list names and the tree does not have.
    pub fn apply(&self, tree: &Tree) -> Result<Vec<usize>, Error> {
        let mut files: Vec<usize> = tree.files().collect();
        match self {
            Self::Readdir => {}
            Self::Sorted => files.sort_by_cached_key(|&at| {
                // A directory's entries stay together: a separator sorts before every other byte.
                tree.entries[at].path.as_bytes().split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>()
            }),
            Self::Inode => files.sort_by_key(|&at| tree.entries[at].inode),
            Self::List(path) => {
                let mut rank: HashMap<RelPath, usize> = HashMap::new();
                for (number, listed) in read_list(path)?.into_iter().enumerate() {
                    rank.entry(listed).or_insert(number);
                }
                files.sort_by_key(|&at| rank.get(&tree.entries[at].path).copied().unwrap_or(usize::MAX));
            }
        }
        Ok(files)
    }

    /// The entries in the order in which a reader reads them. In readdir order these are all
    /// entries. Otherwise each file follows those of its directories that were not read before.
    ///
    /// `files` are the files, as [`Order::apply`] returns them.
    pub fn reading(&self, tree: &Tree, files: &[usize]) -> Vec<usize> {
        if *self == Self::Readdir {
            return (0..tree.entries.len()).collect();
        }
        let is_directory = |(_, entry): &(usize, &Surveyed)| entry.kind == EntryKind::Directory;
        let directories = tree.entries.iter().enumerate().filter(is_directory);
        let mut unread: HashMap<&[u8], usize> = directories.map(|(at, entry)| (entry.path.as_bytes(), at)).collect();
        let mut reading = Vec::with_capacity(tree.entries.len());
        for &file in files {
            let path = tree.entries[file].path.as_bytes();
            let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            reading.extend(std::iter::once(0).chain(ends).filter_map(|end| unread.remove(&path[..end])));
            reading.push(file);
        }
        reading
    }
}

/// Reads a list of paths, one in each line. Skips empty lines.
fn read_list(path: &Path) -> Result<Vec<RelPath>, Error> {
    let io = |operation| move |source| Error::Io { operation, path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(io("open"))?);
    let mut listed = Vec::new();
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        let mut limited = std::io::Read::take(&mut reader, MOST_LINE_BYTES as u64);
        if limited.read_until(b'\n', &mut line).map_err(io("read"))? == 0 {
            return Ok(listed);
        }
        let wrong = |problem| Error::List { path: path.to_owned(), line: number, problem };
        if line.len() == MOST_LINE_BYTES && line.last() != Some(&b'\n') {
            return Err(wrong("it is longer than a path can be (4,096 bytes)"));
        }
        let name = line.strip_suffix(b"\n").unwrap_or(&line);
        let name = name.strip_prefix(b"./").unwrap_or(name);
        if !name.is_empty() {
            listed.push(RelPath::new(name).map_err(|_| wrong("it is not a relative path below the tree"))?);
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.split_once(':')) {
            ("readdir", _) => Ok(Self::Readdir),
            ("sorted", _) => Ok(Self::Sorted),
            ("inode", _) => Ok(Self::Inode),
            (_, Some(("list", path))) if !path.is_empty() => Ok(Self::List(path.into())),
            _ => Err(format!("{text:?} is no order: readdir, sorted, inode or list:FILE")),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Readdir => f.write_str("readdir"),
            Self::Sorted => f.write_str("sorted"),
            Self::Inode => f.write_str("inode"),
            Self::List(path) => write!(f, "list:{}", path.display()),
        }
    }
}
