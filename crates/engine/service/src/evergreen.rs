//! Requests to an open evergreen.

use std::sync::Arc;

use senesce_block::BlockDevice;
use senesce_evergreen::{Evergreen, Figures, Flushes, KeyValue, disk::read_newest};
use serde_json::{Value, json};

use crate::{Error, EvergreenStat, MountStat, Request, Response, Result, Serves};

/// An open evergreen, and how a process uses it.
pub struct Service<'a> {
    /// The evergreen.
    pub store: &'a Evergreen,
    /// Its name in messages.
    pub place: &'a str,
    /// The device that it is open on.
    pub device: &'a Arc<dyn BlockDevice>,
    /// Where it is mounted.
    pub mounts: &'a [MountStat],
}

impl Service<'_> {
    /// Answers a request. Errors: the engine's; a request that only a garden answers.
    pub fn answer(&self, request: &Request) -> Result<Response> {
        match request {
            Request::Serves => Ok(Response::Serves(Serves { files: Vec::new(), mounts: self.mounts.to_vec() })),
            Request::Stat => {
                let mut stat = stat(self.store, self.device)?;
                stat.mounts = self.mounts.to_vec();
                Ok(Response::EvergreenStat(stat))
            }
            Request::Figures => Ok(Response::Figures(figures(&self.store.figures()))),
            _ => Err(Error::usage(format!("{} is an evergreen; only a garden can do that", self.place), None)),
        }
    }
}

/// What an open evergreen holds and has left.
pub fn stat(store: &Evergreen, device: &Arc<dyn BlockDevice>) -> Result<EvergreenStat> {
    let superblock = read_newest(device)?;
    let (live, geometry, shape) = (store.live(), superblock.geometry, superblock.shape);
    let copies = store.copy_figures();
    Ok(EvergreenStat {
        live_bytes: live.bytes,
        most_live_bytes: live.most,
        data_bytes: geometry.data_bytes(),
        unit_bytes: geometry.unit_bytes,
        log_bytes: geometry.log_bytes,
        node_bytes: shape.node_bytes,
        basement_bytes: shape.basement_bytes,
        fanout: shape.fanout,
        key_order: shape.key_order.to_string(),
        superblock: superblock.generation,
        metadata_copies: superblock.copies.count(),
        copies_read_instead: copies.fallbacks,
        first_bad_copy: None,
        copies_missing: copies.missing,
        reads_passed_over: store.figures().reads_passed_over,
        torn_superblock: store.torn().map(ToString::to_string),
        mounts: Vec::new(),
    })
}

/// What was read, written and flushed since it was opened.
pub fn figures(figures: &Figures) -> Value {
    let level = |(below, flushes): (usize, &Flushes)| {
        (flushes.count > 0).then(|| json!({ "height": below + 1, "count": flushes.count, "bytes": flushes.bytes }))
    };
    json!({
        "leaf_reads": figures.leaf_reads,
        "leaf_read_bytes": figures.leaf_read_bytes,
        "inner_reads": figures.inner_reads,
        "inner_read_bytes": figures.inner_read_bytes,
        "read_requests": figures.read_requests,
        "leaf_writes": figures.leaf_writes,
        "leaf_write_bytes": figures.leaf_write_bytes,
        "inner_writes": figures.inner_writes,
        "inner_write_bytes": figures.inner_write_bytes,
        "map_write_bytes": figures.map_write_bytes,
        "checkpoints": figures.checkpoints,
        "unlogged_bytes": figures.unlogged_bytes,
        "reads_passed_over": figures.reads_passed_over,
        "flushes": figures.flushes.iter().enumerate().rev().filter_map(level).collect::<Vec<_>>(),
    })
}
