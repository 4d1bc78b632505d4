//! A git work tree: pulls replace some of its files.

use senesce_evergreen::KeyValue;
use senesce_fsapi::{FileSystem, NewNode, RenameMode};

use super::load::{CALLER, Failure, Fs, Load};

impl Load {
    /// Creates a tree like a checkout: directories with 15 files each, breadth first, until `live`
    /// bytes are live.
    pub fn fill_repository(&mut self, fs: &Fs, live: u64) -> Result<(), Failure> {
        let mut at = 0;
        while fs.store().live().bytes < live {
            while self.directories[at].children.iter().all(Option::is_some) {
                at += 1;
            }
            let slot = self.directories[at].children.iter().position(Option::is_none).expect("one is free");
            let directory = self.make_directory(fs, at, slot)?;
            for _ in 0..15 {
                self.make_sized(fs, directory, |rng| 1 << rng.between(9, 15))?;
            }
        }
        Ok(fs.sync_all()?)
    }

    /// Merges some commits: replaces files through renames, creates and removes some.
    pub fn pull(&mut self, fs: &Fs) -> Result<(), Failure> {
        for _ in 0..self.rng.between(5, 40) {
            let number = self.rng.below(self.files.len() as u64) as usize;
            let (ino, name) = (self.directories[self.files[number].directory].ino, self.files[number].name.clone());
            fs.unlink(&CALLER, ino, name.as_bytes())?;
            let bytes = (self.files[number].bytes + self.rng.below(600)).saturating_sub(self.rng.below(500)).max(1);
            let new = fs.make_node(&CALLER, ino, b".new", &NewNode::file(0o644))?.ino;
            fs.write(&CALLER, new, 0, &vec![7; bytes as usize])?;
            fs.rename(&CALLER, (ino, b".new"), (ino, name.as_bytes()), RenameMode::Replace)?;
            self.bytes = self.bytes + bytes - self.files[number].bytes;
            self.written += bytes;
            self.files[number].bytes = bytes;
        }
        let directory = 1 + self.rng.below(self.directories.len() as u64 - 1) as usize;
        self.make_sized(fs, directory, |rng| 1 << rng.between(9, 15))
    }
}
