//! Inodes and names, and the basic steps of all operations.

use std::collections::BTreeMap;

use super::contents::{Contents, PAGE_BYTES};
use crate::{Attributes, Caller, FileKind, FsError, FsResult, Ino, NewNode, Timestamp, check_name};

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) inodes: BTreeMap<Ino, Inode>,
    next_ino: u64,
    /// The capacity for pages and inodes together.
    pub(super) capacity: u64,
    pub(super) used: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    /// Size and allocation are filled in from the body by `stat`.
    pub(super) attributes: Attributes,
    pub(super) body: Body,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) held: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    File(Contents),
    Directory(Directory),
    Symlink(Vec<u8>),
    Special,
}

/// Names with their cookies, in the order of creation.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) parent: Ino,
    pub(super) names: BTreeMap<Vec<u8>, (u64, Ino)>,
    pub(super) by_cookie: BTreeMap<u64, Vec<u8>>,
    pub(super) last_cookie: u64,
}

impl Directory {
    fn new(parent: Ino) -> Self {
        Self { parent, names: BTreeMap::new(), by_cookie: BTreeMap::new(), last_cookie: 0 }
    }
}

impl State {
    pub(super) fn new(capacity: u64) -> Self {
        let attributes = Attributes {
            ino: Ino::ROOT,
            generation: 0,
            kind: FileKind::Directory,
            permissions: 0o755,
            links: 2,
            uid: 0,
            gid: 0,
            size: 0,
            allocated: 0,
            device: 0,
            accessed: Timestamp::default(),
            modified: Timestamp::default(),
            changed: Timestamp::default(),
        };
        let body = Body::Directory(Directory::new(Ino::ROOT));
        let root = Inode { attributes, body, xattrs: BTreeMap::new(), held: 0 };
        Self { inodes: BTreeMap::from([(Ino::ROOT, root)]), next_ino: 2, capacity, used: 1 }
    }

    pub(super) fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    pub(super) fn inode(&self, ino: Ino) -> FsResult<&Inode> {
        self.inodes.get(&ino).ok_or(FsError::NotFound)
    }

    pub(super) fn inode_mut(&mut self, ino: Ino) -> FsResult<&mut Inode> {
        self.inodes.get_mut(&ino).ok_or(FsError::NotFound)
    }

    pub(super) fn directory(&self, ino: Ino) -> FsResult<&Directory> {
        match &self.inode(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn directory_mut(&mut self, ino: Ino) -> FsResult<&mut Directory> {
        match &mut self.inode_mut(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub(super) fn is_directory(&self, ino: Ino) -> bool {
        self.directory(ino).is_ok()
    }

    /// The inode of a name, if it exists.
    pub(super) fn find(&self, directory: Ino, name: &[u8]) -> FsResult<Option<Ino>> {
        let directory = self.directory(directory)?;
        check_name(name)?;
        Ok(directory.names.get(name).map(|(_, ino)| *ino))
    }

    /// The inode of a name.
    pub(super) fn named(&self, directory: Ino, name: &[u8]) -> FsResult<Ino> {
        self.find(directory, name)?.ok_or(FsError::NotFound)
    }

    /// Checks that a name can be created: the directory was not removed, and the name does not
    /// exist.
    pub(super) fn check_new(&self, directory: Ino, name: &[u8]) -> FsResult<()> {
        if self.find(directory, name)?.is_some() {
            return Err(FsError::Exists);
        }
        self.check_alive(directory)
    }

    /// Checks that an inode has a name.
    pub(super) fn check_alive(&self, ino: Ino) -> FsResult<()> {
        if self.inode(ino)?.attributes.links == 0 { Err(FsError::NotFound) } else { Ok(()) }
    }

    /// Makes an inode with a first name.
    pub(super) fn make(
        &mut self,
        caller: &Caller,
        directory: Ino,
        name: &[u8],
        node: &NewNode,
        body: Body,
    ) -> FsResult<Ino> {
        self.check_new(directory, name)?;
        if self.free() == 0 {
            return Err(FsError::NoSpace);
        }
        let ino = Ino(self.next_ino);
        let (uid, gid, permissions) = node.ownership(caller, &self.inode(directory)?.attributes);
        let is_directory = node.kind == FileKind::Directory;
        let attributes = Attributes {
            ino,
            generation: 0,
            kind: node.kind,
            permissions,
            links: if is_directory { 2 } else { 1 },
            uid,
            gid,
            size: 0,
            allocated: 0,
            device: if matches!(node.kind, FileKind::CharDevice | FileKind::BlockDevice) { node.device } else { 0 },
            accessed: caller.now,
            modified: caller.now,
            changed: caller.now,
        };
        self.next_ino += 1;
        self.used += 1;
        self.inodes.insert(ino, Inode { attributes, body, xattrs: BTreeMap::new(), held: 0 });
        self.add_name(caller, directory, name, ino)?;
        Ok(ino)
    }

    /// The body of a new directory.
    pub(super) fn new_directory(parent: Ino) -> Body {
        Body::Directory(Directory::new(parent))
    }

    /// Adds a name. For a directory it also sets the parent, and counts the link of `..`.
    pub(super) fn add_name(&mut self, caller: &Caller, directory: Ino, name: &[u8], ino: Ino) -> FsResult<()> {
        let entries = self.directory_mut(directory)?;
        entries.last_cookie += 1;
        entries.names.insert(name.to_vec(), (entries.last_cookie, ino));
        entries.by_cookie.insert(entries.last_cookie, name.to_vec());
        if let Ok(child) = self.directory_mut(ino) {
            child.parent = directory;
            self.inode_mut(directory)?.attributes.links += 1;
        }
        self.touch_directory(caller, directory)
    }

    /// Removes a name.
    pub(super) fn remove_name(&mut self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        let entries = self.directory_mut(directory)?;
        let (cookie, ino) = entries.names.remove(name).ok_or(FsError::NotFound)?;
        entries.by_cookie.remove(&cookie);
        if self.is_directory(ino) {
            self.inode_mut(directory)?.attributes.links -= 1;
        }
        self.touch_directory(caller, directory)
    }

    fn touch_directory(&mut self, caller: &Caller, directory: Ino) -> FsResult<()> {
        let attributes = &mut self.inode_mut(directory)?.attributes;
        attributes.modified = caller.now;
        attributes.changed = caller.now;
        Ok(())
    }

    /// Counts a lost name of an inode; a directory has only one.
    pub(super) fn lose_name(&mut self, caller: &Caller, ino: Ino) -> FsResult<()> {
        let inode = self.inode_mut(ino)?;
        inode.attributes.changed = caller.now;
        inode.attributes.links = match inode.body {
            Body::Directory(_) => 0,
            _ => inode.attributes.links - 1,
        };
        self.drop_if_unused(ino)
    }

    /// Removes an inode that has no name and is not held.
    pub(super) fn drop_if_unused(&mut self, ino: Ino) -> FsResult<()> {
        let inode = self.inode(ino)?;
        if inode.attributes.links == 0 && inode.held == 0 {
            self.used -= 1 + inode.pages();
            self.inodes.remove(&ino);
        }
        Ok(())
    }

    /// Applies `change` to a regular file, and counts its pages.
    pub(super) fn change_file<T>(
        &mut self,
        ino: Ino,
        change: impl FnOnce(&mut Contents, u64) -> FsResult<T>,
    ) -> FsResult<T> {
        let free = self.free();
        let contents = self.inode_mut(ino)?.file_mut()?;
        let before = contents.pages();
        let done = change(contents, free);
        let after = contents.pages();
        self.used = self.used - before + after;
        done
    }
}

impl Inode {
    pub(super) fn pages(&self) -> u64 {
        if let Body::File(contents) = &self.body { contents.pages() } else { 0 }
    }

    pub(super) fn file(&self) -> FsResult<&Contents> {
        match &self.body {
            Body::File(contents) => Ok(contents),
            Body::Directory(_) => Err(FsError::IsDirectory),
            Body::Symlink(_) | Body::Special => Err(FsError::Invalid { what: "not a regular file" }),
        }
    }

    fn file_mut(&mut self) -> FsResult<&mut Contents> {
        self.file()?;
        match &mut self.body {
            Body::File(contents) => Ok(contents),
            _ => unreachable!("checked above"),
        }
    }

    /// The attributes that `stat` shows.
    pub(super) fn stat(&self) -> Attributes {
        let size = match &self.body {
            Body::File(contents) => contents.len(),
            Body::Directory(directory) => directory.names.len() as u64,
            Body::Symlink(target) => target.len() as u64,
            Body::Special => 0,
        };
        Attributes { size, allocated: self.pages() * PAGE_BYTES, ..self.attributes }
    }
}
