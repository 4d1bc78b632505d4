//! What an aggregate tells of itself: what it holds and has left, and what its drives were asked for.

use std::sync::mpsc::{Receiver, channel};

use crate::{
    check::Finding,
    engine::Garden,
    format::label::Group,
    log::{LogCopyReport, LogFailure, LogLoss},
    raid::{DriveCounts, DriveFailure, DriveState, RaidCounts},
    store::{Counts, LeftOut, ScrubReport, Store},
};

/// What an aggregate holds and what it has left, in blocks of 4,096 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateReport {
    /// All blocks, without parity.
    pub blocks: u64,
    /// Blocks that are free in the state in memory.
    pub free: u64,
    /// Of these, blocks that are kept for maps and for deleting.
    pub kept: u64,
    /// The last consistency point.
    pub cp: u64,
    /// The RAID groups, as the drives' labels have them.
    pub groups: Vec<Group>,
    /// Blocks of each allocation area that may be taken now, by RAID group; `None` where they were not counted yet.
    pub area_free: Vec<Vec<Option<u64>>>,
    /// Drives that are missing, by their place.
    pub missing_drives: Vec<u32>,
    /// What opening it found out.
    pub opening: OpeningReport,
    /// The copies of its log, and what was written to them.
    pub log: LogReport,
    /// How far the scrub is, and what it found.
    pub scrub: ScrubReport,
    /// What the engine counted since it was opened.
    pub counts: Counts,
    /// What the drives were asked for since then.
    pub raid: RaidCounts,
    /// What they were asked for from the end of the consistency point before the last one to the end of that.
    pub raid_last_point: RaidCounts,
    /// The same by drive, in the order of their places.
    pub drives: Vec<DriveReport>,
}

/// What was found when an aggregate was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpeningReport {
    /// Devices that were given and are not used.
    pub left_out: Vec<LeftOut>,
    /// Superblocks that could not be read, and why: of the last consistency point another drive has one, or it was being written when
    /// power was lost, or all that it held is in the log.
    pub unread_superblocks: Vec<String>,
    /// Labels and copies of the log that were damaged, and are right again.
    pub repaired: Vec<Finding>,
    /// Stripes whose parity may be wrong after a loss of power, because a drive fails.
    pub uncorrected: Vec<Finding>,
    /// Why copies of the log could not be read. Those that could be made again are in use again.
    pub lost_logs: Vec<String>,
    /// What was lost with the log.
    pub log_loss: Option<LogLoss>,
}

/// A place for a drive: what is there, and what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveReport {
    /// Its RAID group.
    pub group: usize,
    /// Whether it holds parity.
    pub parity: bool,
    /// The name of the device, if there is one.
    pub device: Option<String>,
    /// What became of it.
    pub state: DriveState,
    /// Since the aggregate was opened.
    pub counts: DriveCounts,
    /// From the end of the consistency point before the last one to the end of that.
    pub last_point: DriveCounts,
}

impl Garden {
    /// The number of the last consistency point. Cost: none that grows.
    pub fn last_point(&self) -> u64 {
        self.shared().lock_for_operation().durable.cp
    }

    /// Returns a channel on which each failure of a drive arrives when it happens. A later call ends an earlier channel.
    pub fn watch_drives(&self) -> Receiver<DriveFailure> {
        let (sender, failures) = channel();
        self.shared().lock_for_operation().raid.watch(Some(sender));
        failures
    }

    /// Ends the channel of [`watch_drives`](Self::watch_drives).
    pub fn unwatch_drives(&self) {
        self.shared().lock_for_operation().raid.watch(None);
    }

    /// Returns a channel on which the failure of each copy of the log arrives when it happens. A later call ends an earlier channel.
    pub fn watch_logs(&self) -> Receiver<LogFailure> {
        let (sender, failures) = channel();
        self.shared().lock_for_operation().log.mirror().watch(Some(sender));
        failures
    }

    /// Ends the channel of [`watch_logs`](Self::watch_logs).
    pub fn unwatch_logs(&self) {
        self.shared().lock_for_operation().log.mirror().watch(None);
    }

    /// What it holds and has left.
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

/// The copies of a log. What is written to them is not among what the drives were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Copies that there should be.
    pub copies: u32,
    /// Of these, copies that hold all that was acknowledged.
    pub whole: u32,
    /// The copies, by number.
    pub states: Vec<LogCopyReport>,
    /// Why copies were lost when the aggregate was opened, or failed since. Those that could be made again are in use again.
    pub lost: Vec<String>,
    /// Bytes that were written to all copies together since it was opened.
    pub bytes_written: u64,
    /// Flushes of their devices since then.
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
