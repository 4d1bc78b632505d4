//! The cost of the second copy of the log: durable writes of 4 KiB to a garden on files in a
//! directory.
//!
//! `cargo run --release -p senesce-garden --example mirror -- DIRECTORY`

use std::{path::Path, sync::Arc, time::Instant};

use senesce_block::{BlockDevice, FileDevice, FileOptions};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{FormatOptions, Garden, Limits, LogDevices, VolumeOptions};

type Failure = Box<dyn std::error::Error>;

const WRITES: u64 = 500;
const ROUNDS: usize = 5;

fn main() -> Result<(), Failure> {
    let dir = std::env::args().nth(1).ok_or("name a directory")?;
    for round in 0..ROUNDS {
        for (name, logs, is_twice) in
            [("one copy", 1, false), ("two on one file", 1, true), ("two on two files", 2, false)]
        {
            let dir = Path::new(&dir).join(format!("{round}-{}", name.replace(' ', "-")));
            std::fs::create_dir(&dir)?;
            let (seconds, bytes, flushes) = measure(&dir, logs, is_twice)?;
            println!("{name}: {:.0} writes/s, {bytes} bytes and {flushes} flushes of the log", WRITES as f64 / seconds);
            std::fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}

fn measure(dir: &Path, logs: usize, is_twice: bool) -> Result<(f64, u64, u64), Failure> {
    let make = |name: String, bytes| -> Result<Arc<dyn BlockDevice>, Failure> {
        Ok(Arc::new(FileDevice::create(&dir.join(name), bytes, FileOptions::default())?))
    };
    let drives: Vec<_> =
        (0..5).map(|drive| make(format!("drive-{drive}"), Bytes(64 << 20))).collect::<Result<_, _>>()?;
    let mut devices: Vec<_> =
        (0..logs).map(|log| make(format!("log-{log}"), Bytes(32 << 20))).collect::<Result<_, _>>()?;
    let log = if is_twice { LogDevices::twice(devices.remove(0)) } else { devices.into() };
    let options = FormatOptions {
        uuid: [1; 16],
        groups: vec![(4, true)],
        media: vec![],
        aa_stripes: vec![1024],
        tetris_stripes: 64,
        zeroed: true,
    };
    Garden::format(&options, drives.clone(), &log)?;
    let garden = Garden::open(&drives, &log, Limits::default())?;
    garden.create_volume(b"volume", &VolumeOptions { blocks: 30_000, inodes: 1000, seed: 1 })?;
    let fs = garden.volume(b"volume")?;
    let ino = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
    let before = garden.report().log;
    let began = Instant::now();
    for block in 0..WRITES {
        fs.write(&Caller::default(), ino, block * 4096, &[block as u8; 4096])?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = garden.report().log;
    Ok((seconds, after.bytes_written - before.bytes_written, after.flushes - before.flushes))
}
