//! Directories that are renamed into another order.

use senesce_core::Rng;
use senesce_evergreen::KeyValue;
use senesce_fsapi::{FileSystem, Ino, NewNode, RenameMode};

use super::load::{CALLER, Failure, Fs, Load};

impl Load {
    /// Creates directories with three files of 2 to 12 KiB, in the order of their names.
    pub fn fill_directories(&mut self, fs: &Fs, directories: u64) -> Result<(), Failure> {
        for number in 0..directories {
            let name = format!("d{number:05}");
            let directory = fs.make_node(&CALLER, Ino::ROOT, name.as_bytes(), &NewNode::directory(0o755))?.ino;
            for file in 0..3 {
                let bytes = self.rng.between(2, 12) << 10;
                let name = format!("f{file}");
                let ino = fs.make_node(&CALLER, directory, name.as_bytes(), &NewNode::file(0o644))?.ino;
                fs.write(&CALLER, ino, 0, &vec![number as u8 | 1; bytes as usize])?;
                self.bytes += bytes;
            }
        }
        fs.sync_all()?;
        Ok(fs.store().checkpoint()?)
    }
}

/// Permutes the names of the directories at random.
pub fn shuffle(fs: &Fs, rng: &mut Rng, directories: u64) -> Result<(), Failure> {
    let mut order: Vec<u64> = (0..directories).collect();
    rng.shuffle(&mut order);
    let rename = |from: String, to: String| {
        fs.rename(&CALLER, (Ino::ROOT, from.as_bytes()), (Ino::ROOT, to.as_bytes()), RenameMode::NoReplace)
    };
    for number in 0..directories {
        rename(format!("d{number:05}"), format!("t{number:05}"))?;
    }
    for (number, to) in order.into_iter().enumerate() {
        rename(format!("t{number:05}"), format!("d{to:05}"))?;
    }
    fs.store().sync()?;
    Ok(fs.store().checkpoint()?)
}

/// One sweep of all keys, then one of all leaves.
pub fn sweep(fs: &Fs) -> Result<(), Failure> {
    let mut sweep = fs.begin_key_sweep();
    while !fs.key_sweep_step(&mut sweep, 1 << 20)? {}
    fs.store().sweep()?;
    Ok(())
}
