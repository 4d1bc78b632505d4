//! The loads, and reads of all files.

use senesce_core::{Rng, Seed};
use senesce_evergreen::{Evergreen, EvergreenFs, KeyValue};
use senesce_fsapi::{Caller, FileKind, FileSystem, Ino, NewNode, conformance::walk};

pub type Failure = Box<dyn std::error::Error>;

pub type Fs = EvergreenFs<Evergreen>;

pub const CALLER: Caller = Caller { uid: 0, gid: 0, now: senesce_fsapi::Timestamp { seconds: 1, nanoseconds: 0 } };
const DIRECTORIES: usize = 300;
const CHILDREN: usize = 10;
const READ: usize = 128 << 10;

pub struct Directory {
    pub ino: Ino,
    pub children: [Option<usize>; CHILDREN],
}

pub struct File {
    pub directory: usize,
    pub name: String,
    pub bytes: u64,
}

/// The directories and files, and the written bytes.
pub struct Load {
    pub directories: Vec<Directory>,
    pub files: Vec<File>,
    pub next: u64,
    /// The bytes of all existing files.
    pub bytes: u64,
    /// The bytes of all files that were created.
    pub written: u64,
    pub rng: Rng,
}

impl Load {
    pub fn new(seed: Seed) -> Self {
        let root = Directory { ino: Ino::ROOT, children: [None; CHILDREN] };
        let rng = Rng::for_purpose(seed, "aging");
        Self { directories: vec![root], files: Vec::new(), next: 0, bytes: 0, written: 0, rng }
    }

    /// Creates files in random directories, until `live` bytes are live.
    pub fn fill(&mut self, fs: &Fs, live: u64) -> Result<(), Failure> {
        while fs.store().live().bytes < live {
            let directory = self.descend(fs)?;
            self.make_file(fs, directory)?;
        }
        Ok(fs.sync_all()?)
    }

    /// Deletes 5 % of the bytes, and creates the same amount in one new directory.
    pub fn round(&mut self, fs: &Fs) -> Result<(), Failure> {
        let (level, kept) = (self.bytes, self.bytes - self.bytes / 20);
        while self.bytes > kept {
            let file = self.files.swap_remove(self.rng.below(self.files.len() as u64) as usize);
            fs.unlink(&CALLER, self.directories[file.directory].ino, file.name.as_bytes())?;
            self.bytes -= file.bytes;
        }
        fs.sync_all()?;
        let mut at = 0;
        let directory = loop {
            let slot = self.rng.below(CHILDREN as u64) as usize;
            match self.directories[at].children[slot] {
                Some(child) => at = child,
                None => break self.make_directory(fs, at, slot)?,
            }
        };
        while self.bytes < level {
            self.make_file(fs, directory)?;
        }
        Ok(())
    }

    /// Chooses a directory from the root down: this one, a child, or a new child.
    fn descend(&mut self, fs: &Fs) -> Result<usize, Failure> {
        let mut at = 0;
        loop {
            let children: Vec<usize> = self.directories[at].children.iter().copied().flatten().collect();
            let may_make = children.len() < CHILDREN && self.directories.len() < DIRECTORIES;
            match self.rng.below((1 + children.len() + usize::from(may_make)) as u64) as usize {
                0 => return Ok(at),
                choice if choice <= children.len() => at = children[choice - 1],
                _ => at = self.make_directory(fs, at, children.len())?,
            }
        }
    }

    pub fn make_directory(&mut self, fs: &Fs, parent: usize, slot: usize) -> Result<usize, Failure> {
        let name = format!("d{slot}");
        let ino = fs.make_node(&CALLER, self.directories[parent].ino, name.as_bytes(), &NewNode::directory(0o755))?.ino;
        let number = self.directories.len();
        self.directories.push(Directory { ino, children: [None; CHILDREN] });
        self.directories[parent].children[slot] = Some(number);
        Ok(number)
    }

    fn make_file(&mut self, fs: &Fs, directory: usize) -> Result<(), Failure> {
        self.make_sized(fs, directory, |rng| rng.between(1, 150) << 10)
    }

    pub fn make_sized(&mut self, fs: &Fs, directory: usize, bytes: impl Fn(&mut Rng) -> u64) -> Result<(), Failure> {
        let (name, bytes) = (format!("f{}", self.next), bytes(&mut self.rng));
        let parent = self.directories[directory].ino;
        let ino = fs.make_node(&CALLER, parent, name.as_bytes(), &NewNode::file(0o644))?.ino;
        fs.write(&CALLER, ino, 0, &vec![self.next as u8; bytes as usize])?;
        self.next += 1;
        self.bytes += bytes;
        self.written += bytes;
        self.files.push(File { directory, name, bytes });
        Ok(())
    }
}

/// Reads all files, and returns their bytes.
pub fn read_all(fs: &Fs) -> Result<u64, Failure> {
    let (mut out, mut bytes) = (vec![0; READ], 0);
    walk(fs, Ino::ROOT, &mut |_, _, kind, ino| {
        if kind == FileKind::File {
            let mut at = 0;
            loop {
                let read = fs.read(ino, at, &mut out)? as u64;
                at += read;
                if read < READ as u64 {
                    break;
                }
            }
            bytes += at;
        }
        Ok(())
    })?;
    Ok(bytes)
}

/// Copies all files in the order of listings.
pub fn copy_into(fs: &Fs, to: &Fs) -> Result<(), Failure> {
    let mut inos = std::collections::HashMap::from([(Ino::ROOT, Ino::ROOT)]);
    walk(fs, Ino::ROOT, &mut |directory, name, kind, ino| {
        let parent = inos[&directory];
        let new = match kind {
            FileKind::File => to.make_node(&CALLER, parent, name, &NewNode::file(0o644))?.ino,
            FileKind::Directory => to.make_node(&CALLER, parent, name, &NewNode::directory(0o755))?.ino,
            FileKind::Symlink => to.symlink(&CALLER, parent, name, &fs.read_link(ino)?)?.ino,
            _ => return Ok(()),
        };
        inos.insert(ino, new);
        if kind == FileKind::File {
            let mut data = vec![0; fs.attributes(ino)?.size as usize];
            fs.read(ino, 0, &mut data)?;
            to.write(&CALLER, new, 0, &data)?;
        }
        Ok(())
    })?;
    Ok(to.sync_all()?)
}
