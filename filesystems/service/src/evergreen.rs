//! Requests to an open evergreen.

use std::sync::{Arc, mpsc::Sender};

use schemars::JsonSchema;
use senesce_block::BlockDevice;
use senesce_core::Bytes;
use senesce_evergreen::{
    CheckReport, Evergreen, EvergreenFs, Figures, Finding, Flushes, KeyValue, Limits, Sweep, disk::read_newest,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Devices, Error, EvergreenChecked, EvergreenCheckedPart, EvergreenDefragmented, EvergreenFinding, EvergreenStat,
    Frozen, Mounts, Passes, Request, Response, Result, Serves, Task,
    devices::{KEEP_MORE, KEPT_BYTES},
    error::While,
    task::{Relay, Step},
};

/// Bytes that a sweep of keys moves between checks for cancellation.
const STEP: u64 = 4 << 20;

/// An open evergreen with the context of the process.
pub struct Service<'a> {
    /// The evergreen.
    pub fs: &'a EvergreenFs<Arc<Evergreen>>,
    /// Its name in messages.
    pub place: &'a str,
    /// Its device.
    pub device: &'a Arc<dyn BlockDevice>,
    /// The same device, for a check.
    pub devices: &'a Devices,
    /// Work under way.
    pub passes: &'a Passes,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Its mounts.
    pub mounts: &'a dyn Mounts,
}

impl Service<'_> {
    /// Answers a request. Errors: those of the engine; the request is only for gardens.
    pub fn answer(&self, request: &Request, task: &mut dyn Task) -> Result<Response> {
        if let Some(why) = refusal(request) {
            return Err(Error::usage(format!("{} is an evergreen: {why}", self.place), None));
        }
        match request {
            Request::Serves => Ok(Response::Serves(Serves { files: Vec::new(), mounts: self.mounts.list() })),
            Request::Stat => {
                let mut stat = stat(self.store(), self.device)?;
                stat.mounts = self.mounts.list();
                Ok(Response::EvergreenStat(stat))
            }
            Request::Figures => Ok(Response::Figures(figures(&self.store().figures()))),
            Request::Check { most_bytes } => self.check(*most_bytes, task),
            Request::Defrag { dry_run, .. } => self.defrag(*dry_run, task),
            _ => Err(Error::usage(format!("{} is an evergreen; only a garden can do that", self.place), None)),
        }
    }

    fn store(&self) -> &Evergreen {
        self.fs.store()
    }

    /// Sweeps all keys, then all leaves. A dry run sweeps a frozen state of the device in memory.
    fn defrag(&self, dry_run: bool, task: &mut dyn Task) -> Result<Response> {
        let _pass = self.passes.begin(task)?;
        let cannot = || format!("cannot defragment {}", self.place);
        if !dry_run && self.read_only {
            let hint = "unmount it, or mount it without --read-only";
            return Err(Error::refused(format!("{} is open read-only", self.place), Some(hint)));
        }
        let mut done = match dry_run {
            false => sweep(self.fs, task).when(cannot)?,
            true => {
                let frozen = self.freeze(KEPT_BYTES)?;
                let device =
                    frozen.drives.first().ok_or_else(|| Error::usage("its device is not open for a dry run", None))?;
                let work = |sender: Sender<Step>| {
                    let store = Evergreen::open(device.clone(), Limits::default())?;
                    let fs = EvergreenFs::open(Arc::new(store))?;
                    sweep(&fs, &mut Relay(sender))
                };
                let tell = |task: &mut dyn Task, step: Step| step.pass_on(task);
                frozen.attend(task, None, tell, work).and_then(|done| done).when(cannot)?
            }
        };
        done.dry_run = dry_run;
        Ok(Response::EvergreenDefragmented(done))
    }

    /// The current contents of the devices, with all acknowledged changes.
    fn freeze(&self, most_bytes: Bytes) -> Result<Frozen> {
        if !self.read_only {
            self.store().sync().when(|| format!("cannot sync {}", self.place))?;
        }
        self.devices.freeze(most_bytes).ok_or_else(|| {
            Error::refused(
                "another check or dry run of this evergreen is under way",
                Some("try again when it has ended"),
            )
        })
    }

    fn check(&self, most_bytes: u64, task: &mut dyn Task) -> Result<Response> {
        let frozen = self.freeze(Bytes(most_bytes))?;
        let Some(device) = frozen.drives.first() else {
            return Err(Error::usage("its device is not open for a check", None));
        };
        let mut look = |what: &str| {
            let report = frozen.attend(task, Some(KEEP_MORE), |_, ()| {}, |_sender| senesce_evergreen::check(device));
            report.and_then(|report| Ok(report?)).when(|| format!("cannot check {} {what}", self.place))
        };
        let first = look("as it is")?;
        let mut checks = vec![checked("as it is", &first)];
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

/// Why an evergreen cannot answer a request. `None`: it can.
pub fn refusal(request: &Request) -> Option<&'static str> {
    Some(match request {
        Request::Serves | Request::Stat | Request::Figures | Request::Check { .. } => return None,
        Request::Defrag { paths, .. } if !paths.is_empty() => {
            "a PATH is about a garden; an evergreen is swept as a whole"
        }
        Request::Defrag { traditional: true, .. } => "--traditional is about a garden",
        Request::Defrag { volume, .. } if volume.0 != b"main" => "--volume is about a garden",
        Request::Defrag { .. } => return None,
        Request::SnapshotCreate { .. }
        | Request::SnapshotList { .. }
        | Request::SnapshotDelete { .. }
        | Request::SnapshotRestore { .. } => "it has no snapshots",
        Request::Clone { .. } => "it has no snapshots to clone",
        Request::VolumeCreate { .. } | Request::VolumeList | Request::VolumeDelete { .. } => "it has no volumes",
        Request::Scrub { .. } => "it has no parity; `senesce fs check --online` reads all of it",
        Request::Clean { .. } => "checkpoints clean it; `senesce fs defrag` sweeps all of it",
        Request::Dedup { .. } => "it shares no blocks",
        Request::Tier { .. } => "it has no objects",
        Request::DryRun { of } => return refusal(of),
    })
}

/// Sweeps all keys of an open evergreen, then all leaves. Programs may use it at the same time.
/// Moves before a cancellation remain.
///
/// Errors: those of the engine.
pub fn sweep(fs: &EvergreenFs<Arc<Evergreen>>, task: &mut dyn Task) -> Result<EvergreenDefragmented> {
    let store = fs.store();
    let live = store.live().bytes;
    let mut keys = fs.begin_key_sweep();
    while !task.is_cancelled() && !fs.key_sweep_step(&mut keys, STEP)? {
        task.progress("sweeping keys", "bytes", keys.counts().moved_bytes, live);
    }
    let mut leaves = keys.is_done().then(Sweep::default);
    while let Some(sweep) = leaves.as_mut().filter(|sweep| !sweep.is_done())
        && !task.is_cancelled()
    {
        store.sweep_step(sweep)?;
        task.progress("sweeping leaves", "bytes", sweep.looked_bytes(), live);
    }
    store.checkpoint()?;
    let counts = keys.counts();
    let leaves = leaves.map(|leaves| leaves.counts());
    Ok(EvergreenDefragmented {
        dry_run: false,
        names: counts.names,
        moved_objects: counts.moved,
        moved_bytes: counts.moved_bytes,
        too_large_objects: counts.too_large,
        objects_without_space: counts.without_space,
        unreadable_objects: counts.unreadable,
        first_unreadable: keys.first_unreadable().map(str::to_owned),
        swept_leaf_bytes: leaves.map(|leaves| leaves.bytes),
        unreadable_leaves: leaves.map(|leaves| leaves.unreadable),
    })
}

/// The contents and the free space of an open evergreen.
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

/// Reports the check of the state `what`.
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

/// Reads, writes and flushes since opening, as JSON of [`EvergreenFigures`].
pub fn figures(figures: &Figures) -> Value {
    let level = |(below, flushes): (usize, &Flushes)| {
        let (height, count, bytes) = (below + 1, flushes.count, flushes.bytes);
        (flushes.count > 0).then_some(FlushedLevel { height, count, bytes })
    };
    let figures = EvergreenFigures {
        leaf_reads: figures.leaf_reads,
        leaf_read_bytes: figures.leaf_read_bytes,
        inner_reads: figures.inner_reads,
        inner_read_bytes: figures.inner_read_bytes,
        read_requests: figures.read_requests,
        leaf_writes: figures.leaf_writes,
        leaf_write_bytes: figures.leaf_write_bytes,
        inner_writes: figures.inner_writes,
        inner_write_bytes: figures.inner_write_bytes,
        map_write_bytes: figures.map_write_bytes,
        checkpoints: figures.checkpoints,
        unlogged_bytes: figures.unlogged_bytes,
        reads_passed_over: figures.reads_passed_over,
        flushes: figures.flushes.iter().enumerate().rev().filter_map(level).collect(),
    };
    serde_json::to_value(figures).expect("plain structures with text keys")
}

/// The counters of an evergreen since its opening.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EvergreenFigures {
    /// Reads of leaves.
    leaf_reads: u64,
    /// Bytes of the reads of leaves.
    leaf_read_bytes: u64,
    /// Reads of inner nodes.
    inner_reads: u64,
    /// Bytes of the reads of inner nodes.
    inner_read_bytes: u64,
    /// Requests to read.
    read_requests: u64,
    /// Writes of leaves.
    leaf_writes: u64,
    /// Bytes of the writes of leaves.
    leaf_write_bytes: u64,
    /// Writes of inner nodes.
    inner_writes: u64,
    /// Bytes of the writes of inner nodes.
    inner_write_bytes: u64,
    /// Bytes of maps of nodes that were written.
    map_write_bytes: u64,
    /// Checkpoints.
    checkpoints: u64,
    /// Bytes of batches that were not logged.
    unlogged_bytes: u64,
    /// Failed reads that were not needed.
    reads_passed_over: u64,
    /// Flushes of messages by height, the highest first.
    flushes: Vec<FlushedLevel>,
}

/// The flushes of nodes at one height.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FlushedLevel {
    /// The height of the nodes that were flushed.
    height: usize,
    /// The number of flushes.
    count: u64,
    /// Bytes of the messages that these flushes moved.
    bytes: u64,
}
