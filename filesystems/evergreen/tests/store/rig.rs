//! Shared by the tests: a tiny store, random batches, and the contents of a store.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes as Size, Rng};
use senesce_evergreen::{
    Batch, Claim, Evergreen, KeyValue, Limits, MakeOptions, Message, Result,
    disk::{Copies, KeyOrder, Shape},
};

/// Nodes of a few entries and a log of some frames, so that every event occurs after some batches.
pub const TINY: MakeOptions = MakeOptions {
    uuid: [7; 16],
    shape: Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath },
    unit_bytes: 4096,
    log_bytes: Some(128 << 10),
    copies: Copies::Two,
};

/// A small cache, so that nodes are evicted and read again.
pub const LITTLE: Limits = Limits { cache_bytes: 16 << 10, dirty_bytes: 64 << 10 };

/// A device of `bytes` bytes with an empty store.
pub fn made(bytes: u64, options: &MakeOptions) -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new("disk", Size(bytes)));
    Evergreen::make(device.clone(), options).unwrap();
    device
}

pub fn open(device: &Arc<impl BlockDevice + 'static>) -> Evergreen {
    Evergreen::open(device.clone(), LITTLE).unwrap()
}

/// All entries of a store.
pub fn entries(store: &dyn KeyValue) -> Result<Vec<(Bytes, Bytes)>> {
    let mut all = Vec::new();
    store.scan(b"", &[0xff; 8], &mut |key, value| {
        all.push((Bytes::copy_from_slice(key), value));
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

pub fn key(number: u64) -> Bytes {
    Bytes::from(format!("{}{:04}", ["a", "directory/", "directory/x/"][number as usize % 3], number / 3))
}

/// A random batch of changes to keys below `keys`; sometimes a range or a large value.
pub fn draw(rng: &mut Rng, keys: u64) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..rng.between(1, 5) {
        let at = rng.below(keys);
        let mut bytes = vec![0; rng.between(1, 150) as usize];
        rng.fill(&mut bytes);
        match rng.weighted(&[60, 15, 15, 4, 3, 3]) {
            0 => batch.put(key(at), bytes),
            1 => batch.delete(key(at)),
            2 => batch.send(key(at), Message::patch(rng.below(200) as u32, bytes.into())),
            3 => batch.send(key(at), Message::cut(rng.below(100) as u32)),
            4 => batch.delete_range(key(at), key(at + 3 * rng.between(1, 30))),
            _ => batch.put(key(at), vec![(at % 255) as u8 + 1; rng.between(1000, 4096) as usize]),
        }
    }
    // A changing claim earns credit for rewrites.
    batch.claim = Claim { bytes: rng.below(3) as i64 * 700 - 700, is_removal: false };
    batch
}
