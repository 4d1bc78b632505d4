//! The whole contents of a file system, for comparisons.

use std::{collections::BTreeMap, ops::ControlFlow};

use crate::{Attributes, FileKind, FileSystem, FsError, FsResult, Ino, SeekTo};

/// All objects that are reachable from the root, by path; the root's path is empty.
pub type Tree = BTreeMap<Vec<u8>, TreeNode>;

/// The object at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// The attributes, with equal values for those that may differ: numbers, allocation, sizes of
    /// directories.
    pub attributes: Attributes,
    /// The contents of a file, or the target of a symbolic link.
    pub content: Vec<u8>,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first path of the same inode, in the order of bytes.
    pub first_path: Vec<u8>,
}

/// Reads the whole file system into memory; for small ones.
///
/// Errors: those of reads. `Corrupt` if the file system is inconsistent: a listed name is not
/// found, a length is not that of the readable bytes, a hole has data, or `..` is wrong.
pub fn collect_tree(fs: &(impl FileSystem + ?Sized)) -> FsResult<Tree> {
    let mut tree = Tree::new();
    let mut seen: BTreeMap<Ino, Vec<u8>> = BTreeMap::new();
    let mut open = vec![(Vec::new(), Ino::ROOT, Ino::ROOT)];
    while let Some((path, parent, ino)) = open.pop() {
        let found = fs.attributes(ino)?;
        let mut node = TreeNode {
            attributes: Attributes { ino: Ino(0), generation: 0, allocated: 0, ..found },
            content: Vec::new(),
            xattrs: BTreeMap::new(),
            first_path: path.clone(),
        };
        match found.kind {
            FileKind::Directory => {
                node.attributes.size = 0;
                if fs.lookup(ino, b"..")?.ino != parent || fs.lookup(ino, b".")?.ino != ino {
                    return Err(contradiction(&path, "its . or .. leads elsewhere"));
                }
                for (name, child, kind) in list(fs, ino)? {
                    let child_path = if path.is_empty() { name.clone() } else { [&path[..], b"/", &name].concat() };
                    let looked_up = fs.lookup(ino, &name)?;
                    if looked_up.ino != child || looked_up.kind != kind {
                        return Err(contradiction(&child_path, "it is listed as another inode than is found"));
                    }
                    open.push((child_path, ino, child));
                }
            }
            FileKind::File => node.content = read_whole(fs, &path, &found)?,
            FileKind::Symlink => {
                node.content = fs.read_link(ino)?;
                if node.content.len() as u64 != found.size {
                    return Err(contradiction(&path, "its size is not its target's"));
                }
            }
            FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice => {}
        }
        for name in fs.list_xattrs(ino)? {
            let value = fs.get_xattr(ino, &name)?;
            node.xattrs.insert(name, value);
        }
        let first = seen.entry(ino).or_insert_with(|| path.clone());
        if path < *first {
            first.clone_from(&path);
        }
        // Inode numbers identify names of the same inode; they are removed below.
        node.attributes.ino = ino;
        tree.insert(path, node);
    }
    for node in tree.values_mut() {
        node.first_path.clone_from(&seen[&node.attributes.ino]);
        node.attributes.ino = Ino(0);
    }
    Ok(tree)
}

/// The entries of a directory: name, inode, kind.
pub(super) fn list(fs: &(impl FileSystem + ?Sized), directory: Ino) -> FsResult<Vec<(Vec<u8>, Ino, FileKind)>> {
    let mut entries = Vec::new();
    fs.read_dir(directory, 0, &mut |entry| {
        entries.push((entry.name.to_vec(), entry.ino, entry.kind));
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

/// The callback of [`walk`]: the directory, the name, its kind, its number.
pub type Visit<'a> = &'a mut dyn FnMut(Ino, &[u8], FileKind, Ino) -> FsResult<()>;

/// Walks all objects below a directory like `find`: each directory before its contents, names in
/// the order of listings, with a lookup of each.
///
/// Errors: those of the file system and of `visit`.
pub fn walk(fs: &(impl FileSystem + ?Sized), directory: Ino, visit: Visit<'_>) -> FsResult<()> {
    for (name, _, kind) in list(fs, directory)? {
        let ino = fs.lookup(directory, &name)?.ino;
        visit(directory, &name, kind, ino)?;
        if kind == FileKind::Directory {
            walk(fs, ino, visit)?;
        }
    }
    Ok(())
}

fn contradiction(path: &[u8], what: &str) -> FsError {
    FsError::Corrupt { what: format!("/{}: {what}", path.escape_ascii()) }
}

fn read_whole(fs: &(impl FileSystem + ?Sized), path: &[u8], found: &Attributes) -> FsResult<Vec<u8>> {
    let mut content = vec![0xee; found.size as usize + 1];
    let got = fs.read(found.ino, 0, &mut content)?;
    if got as u64 != found.size {
        return Err(contradiction(path, &format!("its size is {}, and {got} bytes can be read", found.size)));
    }
    content.truncate(got);
    // Data and holes must alternate up to the end, and holes must be zero.
    let mut at = 0;
    while at < found.size {
        let data = match fs.seek(found.ino, at, SeekTo::Data) {
            Err(FsError::NoData) => found.size,
            data => data?,
        };
        if data < at || data > found.size || content[at as usize..data as usize].iter().any(|&byte| byte != 0) {
            return Err(contradiction(path, &format!("from {at} on the next data is not at {data}")));
        }
        if data == found.size {
            break;
        }
        at = fs.seek(found.ino, data, SeekTo::Hole)?;
        if at <= data || at > found.size {
            return Err(contradiction(path, &format!("from {data} on the next hole is not at {at}")));
        }
    }
    Ok(content)
}

/// Describes the first difference between two trees; `None` if they are equal.
pub fn find_difference(want: &Tree, got: &Tree) -> Option<String> {
    let shown = |path: &Vec<u8>| format!("/{}", path.escape_ascii());
    for path in want.keys().chain(got.keys()) {
        let (want, got) = match (want.get(path), got.get(path)) {
            (Some(want), Some(got)) => (want, got),
            (Some(_), None) => return Some(format!("{} is missing", shown(path))),
            _ => return Some(format!("{} is unexpected", shown(path))),
        };
        if want.attributes != got.attributes {
            return Some(format!("{}: {:?} and not {:?}", shown(path), got.attributes, want.attributes));
        }
        if want.first_path != got.first_path {
            let (got, want) = (shown(&got.first_path), shown(&want.first_path));
            return Some(format!("{} is the inode of {got} and not of {want}", shown(path)));
        }
        if let Some(at) = want.content.iter().zip(&got.content).position(|(want, got)| want != got) {
            let (got, want) = (got.content[at], want.content[at]);
            return Some(format!("{}: byte {at} is {got} and not {want}", shown(path)));
        }
        if want.xattrs != got.xattrs {
            let names = |node: &TreeNode| {
                let shown =
                    node.xattrs.iter().map(|(name, value)| format!("{} ({})", name.escape_ascii(), value.len()));
                shown.collect::<Vec<_>>().join(", ")
            };
            return Some(format!("{}: attributes {} and not {}", shown(path), names(got), names(want)));
        }
    }
    None
}
