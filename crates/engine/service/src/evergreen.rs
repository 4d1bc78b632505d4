//! Requests to an open evergreen.

use std::sync::Arc;

use senesce_block::BlockDevice;
use senesce_core::Bytes;
use senesce_evergreen::{
    CheckReport, Evergreen, EvergreenFs, Figures, Finding, Flushes, KeyValue, Limits, disk::read_newest,
};
use serde_json::{Value, json};

use crate::{
    Devices, Error, EvergreenChecked, EvergreenCheckedPart, EvergreenFinding, EvergreenStat, MountStat, Request,
    Response, Result, Serves, Task, error::While,
};

/// An open evergreen, and how a process uses it.
pub struct Service<'a> {
    /// The evergreen.
    pub store: &'a Evergreen,
    /// Its name in messages.
    pub place: &'a str,
    /// The device that it is open on.
    pub device: &'a Arc<dyn BlockDevice>,
    /// The same, for a check.
    pub devices: &'a Devices,
    /// Whether it takes no changes.
    pub read_only: bool,
    /// Where it is mounted.
    pub mounts: &'a [MountStat],
}

impl Service<'_> {
    /// Answers a request. Errors: the engine's; a request that only a garden answers.
    pub fn answer(&self, request: &Request, task: &mut dyn Task) -> Result<Response> {
        match request {
            Request::Serves => Ok(Response::Serves(Serves { files: Vec::new(), mounts: self.mounts.to_vec() })),
            Request::Stat => {
                let mut stat = stat(self.store, self.device)?;
                stat.mounts = self.mounts.to_vec();
                Ok(Response::EvergreenStat(stat))
            }
            Request::Figures => Ok(Response::Figures(figures(&self.store.figures()))),
            Request::Check { most_bytes } => self.check(*most_bytes, task),
            Request::Defrag { .. } => {
                Err(Error::refused(format!("{} is mounted", self.place), Some("unmount it, and defragment it then")))
            }
            _ => Err(Error::usage(format!("{} is an evergreen; only a garden can do that", self.place), None)),
        }
    }

    fn check(&self, most_bytes: u64, task: &mut dyn Task) -> Result<Response> {
        let devices = self.devices;
        if !self.read_only {
            self.store.sync().when(|| format!("cannot sync {}", self.place))?;
        }
        let frozen = devices.freeze(Bytes(most_bytes)).ok_or_else(|| {
            Error::refused("another check of this evergreen is under way", Some("try again when it has ended"))
        })?;
        let Some(device) = frozen.drives.first() else {
            return Err(Error::usage("its device is not open for a check", None));
        };
        let mut look = |what: &str| {
            let report = frozen.attend(task, |_, ()| {}, |_sender| senesce_evergreen::check(device));
            report.and_then(|report| Ok(report?)).when(|| format!("cannot check {} {what}", self.place))
        };
        let first = look("as it lies")?;
        let mut checks = vec![checked("as it lies", &first)];
        if first.log_batches > 0 && first.is_clean() {
            let what = "as opening makes it";
            let opened = Evergreen::open(device.clone(), Limits::default()).map(Arc::new);
            let opened = opened.when(|| format!("cannot open {}", self.place))?;
            drop(EvergreenFs::open(opened).when(|| format!("cannot open {}", self.place))?);
            checks.push(checked(what, &look(what)?));
        }
        Ok(Response::EvergreenChecked(EvergreenChecked { checks }))
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

/// A report of the check of `what`.
pub fn checked(what: &str, report: &CheckReport) -> EvergreenCheckedPart {
    let finding =
        |finding: &Finding| EvergreenFinding { place: finding.place.to_string(), what: finding.what.to_string() };
    EvergreenCheckedPart {
        what: what.to_owned(),
        clean: report.is_clean(),
        findings: report.findings.iter().map(finding).collect(),
        whole: report.is_whole(),
        bad_copies: report.copies.bad.iter().map(finding).collect(),
        torn_copies: report.copies.torn.iter().map(finding).collect(),
        single_copies: report.copies.single,
        more_findings: report.more_findings,
        torn_superblock: report.torn_superblock.as_ref().map(finding),
        superblock: report.generation,
        nodes: report.nodes,
        leaves: report.leaves,
        levels: report.levels,
        keys: report.keys,
        waiting_messages: report.waiting,
        used_bytes: report.used_bytes,
        free_bytes: report.free_bytes,
        free_extents: report.free_extents,
        log_batches: report.log_batches,
    }
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
