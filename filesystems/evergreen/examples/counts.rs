//! Counts of the requests of the file system to its device. They do not depend on the machine or
//! its load.
//!
//! `cargo run --release -p senesce-evergreen --example counts`
//!
//! A device of 3 GiB in memory, nodes of the default size, 64 MiB of cache. Each line is one kind
//! of work on a file system that was just opened, with an empty cache.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_evergreen::{Evergreen, EvergreenFs, Figures, Limits, MakeOptions};
use senesce_fsapi::{
    Caller, FileKind, FileSystem, Ino, NewNode, RenameMode,
    conformance::{resolve, walk},
};

type Failure = Box<dyn std::error::Error>;

const MIB: u64 = 1 << 20;
const FILE: u64 = 512 * MIB;
const CALLER: Caller = Caller { uid: 0, gid: 0, now: senesce_fsapi::Timestamp { seconds: 1, nanoseconds: 0 } };
const LIMITS: Limits = Limits { cache_bytes: 64 << 20, dirty_bytes: 32 << 20 };

struct Bench {
    device: Arc<dyn BlockDevice>,
}

impl Bench {
    /// Works on a file system with an empty cache, and prints the counts of the device. `logical`:
    /// the written bytes.
    fn run(
        &self,
        what: &str,
        work: impl FnOnce(&EvergreenFs<Evergreen>) -> Result<u64, Failure>,
    ) -> Result<Figures, Failure> {
        let fs = EvergreenFs::open_on(self.device.clone(), LIMITS)?;
        let before = fs.store().figures();
        let logical = work(&fs)?;
        let reads = fs.store().figures();
        fs.store().checkpoint()?;
        let after = fs.store().figures();
        let written =
            |figures: &Figures| figures.leaf_write_bytes + figures.inner_write_bytes + figures.map_write_bytes;
        let nodes = written(&after) - written(&before);
        print!(
            "{what}: {} reads of leaves ({} KiB) and {} of inner nodes ({} KiB) in {} requests; wrote {} KiB of nodes",
            reads.leaf_reads - before.leaf_reads,
            (reads.leaf_read_bytes - before.leaf_read_bytes) >> 10,
            reads.inner_reads - before.inner_reads,
            (reads.inner_read_bytes - before.inner_read_bytes) >> 10,
            reads.read_requests - before.read_requests,
            nodes >> 10
        );
        match logical {
            0 => println!(),
            // The log has the written bytes once more.
            logical => println!(", with the log {:.2} times what was written", 1.0 + nodes as f64 / logical as f64),
        }
        Ok(reads)
    }
}

fn file(fs: &dyn FileSystem, path: &str) -> Result<Ino, Failure> {
    Ok(resolve(fs, path.as_bytes())?)
}

fn main() -> Result<(), Failure> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Bytes(3 << 30)));
    EvergreenFs::make_on(device.clone(), &MakeOptions::new([1; 16]))?;
    let bench = Bench { device };
    let mut rng = Rng::for_purpose(Seed(1), "counts");
    bench.run("512 MiB written in order", |fs| {
        let ino = fs.make_node(&CALLER, Ino::ROOT, b"large", &NewNode::file(0o644))?.ino;
        let data = vec![7; MIB as usize];
        for at in 0..FILE / MIB {
            fs.write(&CALLER, ino, at * MIB, &data)?;
        }
        Ok(FILE)
    })?;
    bench.run("262,144 writes of 4 bytes anywhere in it", |fs| {
        let ino = file(fs, "large")?;
        for _ in 0..262_144 {
            fs.write(&CALLER, ino, rng.below(FILE - 4), &[1, 2, 3, 4])?;
        }
        Ok(0)
    })?;
    bench.run("65,536 writes of 4 KiB anywhere in it", |fs| {
        let ino = file(fs, "large")?;
        for _ in 0..65_536 {
            fs.write(&CALLER, ino, rng.below(FILE / 4096) * 4096, &[9; 4096])?;
        }
        Ok(65_536 * 4096)
    })?;
    bench.run("one read of 4 KiB", |fs| {
        let ino = file(fs, "large")?;
        fs.read(ino, 300 * MIB, &mut [0; 4096])?;
        Ok(0)
    })?;
    bench.run("the whole of it read", |fs| {
        let ino = file(fs, "large")?;
        let mut out = vec![0; MIB as usize];
        for at in 0..FILE / MIB {
            fs.read(ino, at * MIB, &mut out)?;
        }
        Ok(0)
    })?;
    bench.run("the file removed", |fs| {
        fs.unlink(&CALLER, Ino::ROOT, b"large")?;
        Ok(0)
    })?;
    bench.run("88,000 files of 2 KiB made in 4,400 directories", |fs| {
        for number in 0..4400 {
            let name = format!("directory {number}");
            let directory = fs.make_node(&CALLER, Ino::ROOT, name.as_bytes(), &NewNode::directory(0o755))?.ino;
            for number in 0..20 {
                let name = format!("file {number}");
                let ino = fs.make_node(&CALLER, directory, name.as_bytes(), &NewNode::file(0o644))?.ino;
                fs.write(&CALLER, ino, 0, &[number; 2048])?;
            }
        }
        Ok(88_000 * 2048)
    })?;
    let find = |fs: &EvergreenFs<Evergreen>| find(fs, None);
    bench.run("find", find)?;
    bench.run("grep", |fs| self::find(fs, Some(&mut vec![0; 1 << 20])))?;
    bench.run("20,000 files replaced by others through a rename", |fs| {
        for number in 0..20_000u32 {
            let path = format!("directory {}", rng.below(4400));
            let directory = file(fs, &path)?;
            let name = format!("file {}", rng.below(20));
            let ino = fs.make_node(&CALLER, directory, b"new", &NewNode::file(0o644))?.ino;
            fs.write(&CALLER, ino, 0, &[number as u8; 2048])?;
            fs.rename(&CALLER, (directory, b"new"), (directory, name.as_bytes()), RenameMode::Replace)?;
        }
        Ok(20_000 * 2048)
    })?;
    bench.run("find", find)?;
    bench.run("grep", |fs| self::find(fs, Some(&mut vec![0; 1 << 20])))?;
    bench.run("a directory renamed", |fs| {
        let to = file(fs, "directory 7")?;
        fs.rename(&CALLER, (Ino::ROOT, b"directory 4000"), (to, b"there"), RenameMode::Replace)?;
        Ok(0)
    })?;
    Ok(())
}

/// Reads all metadata like `find`; with `out`, also all contents like `grep`.
fn find(fs: &EvergreenFs<Evergreen>, mut out: Option<&mut Vec<u8>>) -> Result<u64, Failure> {
    walk(fs, Ino::ROOT, &mut |_, _, kind, ino| {
        if let (Some(out), FileKind::File) = (&mut out, kind) {
            fs.read(ino, 0, out)?;
        }
        Ok(())
    })?;
    Ok(0)
}
