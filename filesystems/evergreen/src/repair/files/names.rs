//! Names: each leads to an inode, and each inode has a name.

use senesce_fsapi::{FileKind, Ino, Timestamp};

use super::FileRepair;
use crate::fs::{
    inode_record::{Body, Inode},
    labels::LABELS,
    name_record::Entry,
};
use crate::{
    KeyValue, Result,
    keys::{self, Home},
};

const FOUND: &[u8] = b"lost+found";

impl<S: KeyValue> FileRepair<'_, S> {
    /// Walks along all names from the root, and attaches unreachable objects.
    pub(super) fn connect(&mut self) -> Result<()> {
        let root = self.files.inode(&Home::root());
        if root.is_none_or(|root| !root.is_directory()) {
            if root.is_some() {
                self.lose(Vec::new(), "the object in its place, which was no directory");
            }
            self.remove_object(&Home::root())?;
            self.complete_objects()?;
        }
        self.walk(Home::root(), Vec::new(), Ino::ROOT)?;
        loop {
            let homes = self.files.objects.iter().filter(|(_, object)| object.path.is_none());
            let unreached: Vec<Home> =
                homes.map(|(home, _)| home.clone()).filter(|home| !self.files.orphans.contains(&home.ino())).collect();
            let is_named = |home: &Home| {
                let of = |other: &Home| self.files.objects[other].names.values().any(|entry| entry.ino.0 == home.ino());
                unreached.iter().any(|other| other != home && of(other))
            };
            // Skip an object that another one names, unless they name each other: the other one
            // brings it.
            let Some(home) = unreached.iter().find(|home| !is_named(home)).or(unreached.first()).cloned() else {
                break;
            };
            self.attach(home)?;
        }
        for ino in self.files.orphans.clone() {
            let home = self.files.home_of.get(&ino);
            let is_orphan =
                home.and_then(|home| self.files.objects.get(home)).is_some_and(|object| object.path.is_none());
            if !is_orphan {
                self.tell(format!("inode {ino} has a name, or does not exist"));
                self.delete(keys::orphan_key(ino))?;
                self.files.orphans.remove(&ino);
            }
        }
        Ok(())
    }

    /// Walks along the names below an object.
    fn walk(&mut self, home: Home, path: Vec<u8>, parent: Ino) -> Result<()> {
        let mut open = vec![(home, path, parent)];
        while let Some((home, path, parent)) = open.pop() {
            let ino = Ino(home.ino());
            let object = self.files.object(&home);
            object.path.get_or_insert(path.clone());
            let Some(mut inode) = object.inode.filter(Inode::is_directory) else { continue };
            if let Body::Directory { parent: told, .. } = &mut inode.body
                && *told != parent
            {
                *told = parent;
                self.tell(format!("directory {} had another parent", ino.0));
                self.put_inode(&home, inode)?;
            }
            for (name, entry) in self.files.object(&home).names.clone() {
                let below = if path.is_empty() { name.clone() } else { [&path[..], b"/", &name].concat() };
                let Some(child) = self.lead(&home, &name, &entry, &below)? else { continue };
                let object = self.files.object(&child);
                object.names_of += 1;
                let is_new = object.path.is_none();
                if is_new {
                    object.path = Some(below.clone());
                }
                if object.inode.is_some_and(|inode| inode.is_directory()) {
                    self.files.object(&home).directories += 1;
                    open.push((child, below, ino));
                }
            }
        }
        Ok(())
    }

    /// The home of a name. Removes a name that leads nowhere, or a second name of a directory.
    fn lead(&mut self, home: &Home, name: &[u8], entry: &Entry, path: &[u8]) -> Result<Option<Home>> {
        let child = self.files.home_of.get(&entry.ino.0).cloned();
        let inode = child.as_ref().and_then(|child| self.files.inode(child));
        let (Some(child), Some(inode)) = (child, inode) else {
            self.lose(path.to_vec(), format!("the name: inode {} is lost", entry.ino.0));
            self.strike(home, name, entry)?;
            return Ok(None);
        };
        if inode.is_directory() && (self.files.object(&child).path.is_some() || child == Home::root()) {
            self.tell(format!("{}: a second name of directory {} is removed", path.escape_ascii(), entry.ino.0));
            self.strike(home, name, entry)?;
            return Ok(None);
        }
        let told = (home.child(self.files.order, name, entry.ino.0) != child).then(|| child.clone());
        if told != entry.home || entry.kind != inode.kind {
            self.tell(format!("{}: its record leads to inode {} again", path.escape_ascii(), entry.ino.0));
            let entry = Entry { home: told, kind: inode.kind, ..entry.clone() };
            self.put(home.name_key(name), entry.encode())?;
            self.files.object(home).names.insert(name.to_vec(), entry);
        }
        Ok(Some(child))
    }

    fn strike(&mut self, home: &Home, name: &[u8], entry: &Entry) -> Result<()> {
        self.files.object(home).names.remove(name);
        self.delete(home.name_key(name))?;
        if let Some(number) = entry.label.checked_sub(LABELS) {
            self.files.object(home).unordered.remove(&number);
            self.delete(home.unordered_key(number))?;
        }
        // The loss of the name is reported; the smaller count is no other loss.
        if let Some(mut inode) = self.files.inode(home) {
            inode.size = inode.size.saturating_sub(1);
            self.put_inode(home, inode)?;
        }
        Ok(())
    }

    /// Adds a name in `lost+found` for an inode.
    fn attach(&mut self, home: Home) -> Result<()> {
        let found = self.found()?;
        let ino = Ino(home.ino());
        let Some(inode) = self.files.inode(&home) else { return Ok(()) };
        let name = self.free_name(&found, format!("#{}", ino.0).as_bytes());
        let path = [&self.path_of(&found)[..], b"/", &name].concat();
        self.lose(home.path(), format!("the name: it is {} now", path.escape_ascii()));
        let told = (found.child(self.files.order, &name, ino.0) != home).then(|| home.clone());
        self.add(&found, name, Entry { ino, kind: inode.kind, label: 0, floor: 0, home: told })?;
        let object = self.files.object(&home);
        object.names_of += 1;
        object.path = Some(path.clone());
        let parent = Ino(found.ino());
        self.files.object(&found).directories += u32::from(inode.is_directory());
        self.walk(home, path, parent)
    }

    /// A free name in a directory: this one, or this one with a number at its end.
    fn free_name(&self, directory: &Home, name: &[u8]) -> Vec<u8> {
        let names = &self.files.objects[directory].names;
        numbered(name).find(|name| !names.contains_key(name)).expect("there is always another number")
    }

    /// The directory for inodes without a name: the first of `lost+found`, `lost+found.1`, ... that
    /// is a directory or does not exist.
    fn found(&mut self) -> Result<Home> {
        let root = Home::root();
        let home_of = |entry: &Entry| self.files.home_of.get(&entry.ino.0).cloned();
        let is_directory = |home: &Home| self.files.inode(home).is_some_and(|inode| inode.is_directory());
        let mut name = FOUND.to_vec();
        for candidate in numbered(FOUND) {
            match self.files.objects[&root].names.get(&candidate).map(home_of) {
                None => {
                    name = candidate;
                    break;
                }
                Some(Some(home)) if is_directory(&home) => return Ok(home),
                Some(_) => {}
            }
        }
        let ino = self.new_ino();
        let home = root.child(self.files.order, &name, ino.0);
        self.put_inode(&home, Inode::directory(0o700, Ino::ROOT, Timestamp::default()))?;
        self.put(keys::home_of_key(ino.0), home.bytes().to_vec())?;
        self.files.home_of.insert(ino.0, home.clone());
        let object = self.files.object(&home);
        object.path = Some(name.clone());
        object.names_of = 1;
        self.files.object(&root).directories += 1;
        self.add(&root, name, Entry { ino, kind: FileKind::Directory, label: 0, floor: 0, home: None })?;
        Ok(home)
    }

    /// Adds a name; it receives its label when the directory is relabelled.
    fn add(&mut self, directory: &Home, name: Vec<u8>, entry: Entry) -> Result<()> {
        let object = self.files.object(directory);
        object.is_relabelled = true;
        object.names.insert(name, entry);
        if let Some(mut inode) = self.files.inode(directory) {
            inode.size += 1;
            self.put_inode(directory, inode)?;
        }
        Ok(())
    }
}

/// The name, then the name with `.1`, `.2`, ... at its end.
fn numbered(name: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let behind = move |number: u64| [name, format!(".{number}").as_bytes()].concat();
    std::iter::once(name.to_vec()).chain((1..).map(behind))
}
