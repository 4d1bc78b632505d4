//! The report of an aggregate: its contents, its free space, and the requests to its drives.

use std::sync::mpsc::{Receiver, channel};

use crate::{
    aggregate::Garden,
    check::Finding,
    format::label::Group,
    log::{LogCopyReport, LogFailure, LogLoss},
    raid::{DriveCounts, DriveFailure, DriveState, RaidCounts},
    store::{Counts, LeftOut, ScrubReport, Store},
};

/// The contents and the free space of an aggregate, in blocks of 4,096 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateReport {
    /// All blocks, without parity.
    pub blocks: u64,
    /// Blocks that are free in the state in memory.
    pub free: u64,
    /// Free blocks that are reserved for maps and for deletions.
    pub kept: u64,
    /// The number of the last consistency point.
    pub cp: u64,
    /// The RAID groups, as recorded in the labels of the drives.
    pub groups: Vec<Group>,
    /// Free blocks of each allocation area, by RAID group; `None` for areas that were not counted
    /// yet.
    pub area_free: Vec<Vec<Option<u64>>>,
    /// The places of missing drives.
    pub missing_drives: Vec<u32>,
    /// Findings of the opening.
    pub opening: OpeningReport,
    /// The copies of the log, and the bytes written to them.
    pub log: LogReport,
    /// The position of the scrub, and its findings.
    pub scrub: ScrubReport,
    /// Counts of the engine since the opening.
    pub counts: Counts,
    /// Requests to the drives since the opening.
    pub raid: RaidCounts,
    /// Requests to the drives between the ends of the last two consistency points.
    pub raid_last_point: RaidCounts,
    /// The drives, in the order of their places.
    pub drives: Vec<DriveReport>,
}

/// Findings of the opening of an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpeningReport {
    /// Devices that were given and are not used.
    pub left_out: Vec<LeftOut>,
    /// Superblocks that could not be read, and why. No data are lost: another drive has the last
    /// consistency point, or a loss of power interrupted its write, or the log holds all of it.
    pub unread_superblocks: Vec<String>,
    /// Labels and copies of the log that were damaged and are repaired.
    pub repaired: Vec<Finding>,
    /// Stripes whose parity may be wrong after a loss of power, because a drive fails.
    pub uncorrected: Vec<Finding>,
    /// Why copies of the log could not be read. Copies that could be restored are in use again.
    pub lost_logs: Vec<String>,
    /// The loss, if the log could not be read completely.
    pub log_loss: Option<LogLoss>,
}

/// A place for a drive: its device, its state, and the requests to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveReport {
    /// The RAID group.
    pub group: usize,
    /// Whether the drive holds parity.
    pub parity: bool,
    /// The name of the device, if there is one.
    pub device: Option<String>,
    /// The state of the drive.
    pub state: DriveState,
    /// Requests since the opening.
    pub counts: DriveCounts,
    /// Requests between the ends of the last two consistency points.
    pub last_point: DriveCounts,
}

impl Garden {
    /// The number of the last consistency point.
    ///
    /// Cost: constant.
    pub fn last_point(&self) -> u64 {
        self.shared().lock_for_operation().durable.cp
    }

    /// Returns a channel that receives each failure of a drive when it happens. A later call closes
    /// an earlier channel.
    pub fn watch_drives(&self) -> Receiver<DriveFailure> {
        let (sender, failures) = channel();
        self.shared().lock_for_operation().raid.watch(Some(sender));
        failures
    }

    /// Closes the channel of [`watch_drives`](Self::watch_drives).
    pub fn unwatch_drives(&self) {
        self.shared().lock_for_operation().raid.watch(None);
    }

    /// Returns a channel that receives the failure of each copy of the log when it happens. A later
    /// call closes an earlier channel.
    pub fn watch_logs(&self) -> Receiver<LogFailure> {
        let (sender, failures) = channel();
        self.shared().lock_for_operation().log.mirror().watch(Some(sender));
        failures
    }

    /// Closes the channel of [`watch_logs`](Self::watch_logs).
    pub fn unwatch_logs(&self) {
        self.shared().lock_for_operation().log.mirror().watch(None);
    }

    /// Reports the contents and the free space of the aggregate.
    pub fn report(&self) -> AggregateReport {
        let store = self.shared.lock();
        AggregateReport {
            blocks: store.raid.geometry.blocks(),
            free: store.sb.free,
            kept: store.kept(),
            cp: store.durable.cp,
            groups: store.raid.geometry.groups.clone(),
            area_free: store
                .areas()
                .map(|heap| heap.areas().map(|area| area.counted.then_some(area.free)).collect())
                .collect(),
            missing_drives: store.raid.missing(),
            opening: store.opening.clone(),
            log: store.report_log(),
            scrub: store.scrub,
            counts: store.counts,
            raid: store.raid.counts(),
            raid_last_point: store.activity.last.0,
            drives: report_drives(&store),
        }
    }
}

/// The copies of a log. Writes to them do not count as requests to the drives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Copies that the log should have.
    pub copies: u32,
    /// Copies that hold all acknowledged operations.
    pub whole: u32,
    /// The copies, by number.
    pub states: Vec<LogCopyReport>,
    /// Why copies were lost at the opening, or failed since. Copies that could be restored are in
    /// use again.
    pub lost: Vec<String>,
    /// Bytes written to all copies together since the opening.
    pub bytes_written: u64,
    /// Flushes of their devices since the opening.
    pub flushes: u64,
}

impl Store {
    fn report_log(&self) -> LogReport {
        let mirror = self.log.mirror();
        let ((whole, copies), (bytes_written, flushes)) = (mirror.count(), mirror.written());
        let lost = self.opening.lost_logs.iter().cloned().chain(mirror.failures()).collect();
        LogReport { copies, whole, states: mirror.states(), lost, bytes_written, flushes }
    }
}

fn report_drives(store: &Store) -> Vec<DriveReport> {
    let states = store.raid.drive_states().into_iter();
    let drive = |(drive, (counts, (device, state)))| DriveReport {
        group: store.raid.geometry.group_of(drive),
        parity: store.raid.is_parity(drive),
        device,
        state,
        counts,
        last_point: store.activity.last.1.get(drive).copied().unwrap_or_default(),
    };
    store.raid.drive_counts().into_iter().zip(states).enumerate().map(drive).collect()
}
