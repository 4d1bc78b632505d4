//! The number of blocks per second that a processor places for clients, including log, maps, parity
//! and consistency points.
//!
//! `cargo run --release -p senesce-garden --example pace -- ARGUMENTS`, where the arguments are
//! `[areas] [compact|memory] [durable|done]`.
//!
//! There are 20 data drives and one parity drive in memory. Allocation areas and tetrises have 64
//! stripes. A consistency point is as large as an eighth of all areas, at most eight. A file fills
//! three quarters of the space and is overwritten in three ways: in order with 64 blocks per write,
//! as OLTP does, and at random.
//!
//! Operations are acknowledged when they are durable in the log. With `done` they are acknowledged
//! when they are done, as in mounts with `--write-back`. Each block repeats a word that identifies
//! it, as in trials, so that compact drives store it in little memory. Time is the thread's own
//! processor time (Linux: /proc/thread-self/schedstat), including the generation of the blocks.

mod aggregate;
#[path = "aggregate/oltp.rs"]
mod oltp;

use std::sync::Arc;

use aggregate::{BLOCK, DRIVES, Failure, STRIPES, VOLUME};
use oltp::Oltp;
use senesce_block::{BlockDevice, CompactDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
use senesce_garden::{Acknowledge, VolumeFs};

/// Blocks of the longest write.
const MOST: u64 = 64;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let areas: u64 = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let is_compact = arguments.next().is_none_or(|name| name == "compact");
    let acknowledge = match arguments.next().as_deref() {
        None | Some("durable") => Acknowledge::Durable,
        Some("done") => Acknowledge::Done,
        Some(other) => return Err(format!("{other} is neither durable nor done").into()),
    };
    let drive = |name, size| -> Arc<dyn BlockDevice> {
        if is_compact { Arc::new(CompactDevice::new(name, size)) } else { Arc::new(MemoryDevice::new(name, size)) }
    };
    let garden = aggregate::make(areas, &drive, Bytes(128 << 20), |dirty| 4 * dirty)?;
    garden.set_acknowledge(acknowledge)?;
    let fs = garden.volume(VOLUME)?;
    let ino = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o600))?.ino;
    let blocks = areas * STRIPES * DRIVES * 3 / 4;
    let mut writer = Writer { fs, ino, buffer: vec![0; (MOST * BLOCK) as usize], written: 0, since: processor_time()? };
    let all = || (0..blocks).step_by(MOST as usize).map(move |first| (first, MOST.min(blocks - first)));

    all().try_for_each(|(first, count)| writer.write(first, count))?;
    writer.tell("written once, in order")?;
    all().try_for_each(|(first, count)| writer.write(first, count))?;
    writer.tell("written over in order")?;
    let mut oltp = Oltp::new(blocks);
    while writer.written < 2 * blocks {
        let (first, count) = oltp.next();
        writer.write(first, count)?;
    }
    writer.tell("OLTP")?;
    let mut rng = Rng::for_purpose(Seed(1), "pace");
    for _ in 0..2 * blocks {
        writer.write(rng.below(blocks), 1)?;
    }
    writer.tell("random")
}

struct Writer {
    fs: VolumeFs,
    ino: Ino,
    buffer: Vec<u8>,
    /// Blocks since the last line, and the time of that line.
    written: u64,
    since: u64,
}

impl Writer {
    fn write(&mut self, first: u64, count: u64) -> Result<(), Failure> {
        let bytes = &mut self.buffer[..(count * BLOCK) as usize];
        for (block, payload) in (first..).zip(bytes.chunks_exact_mut(BLOCK as usize)) {
            let word = ((block << 32) + self.written + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            payload.as_chunks_mut::<8>().0.fill(word.to_le_bytes());
        }
        self.fs.write(&Caller::default(), self.ino, first * BLOCK, bytes)?;
        self.written += count;
        Ok(())
    }

    fn tell(&mut self, what: &str) -> Result<(), Failure> {
        let now = processor_time()?;
        let each = (now - self.since) as f64 / self.written as f64;
        println!("{what}: {:.0} thousand blocks a second, {each:.0} ns each", 1e6 / each);
        (self.written, self.since) = (0, now);
        Ok(())
    }
}

/// Processor time of this thread in nanoseconds.
fn processor_time() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no time in schedstat")?.parse()?)
}
