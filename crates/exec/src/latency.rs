//! Latencies of operations: a target that times the operations of another target.
//!
//! ```
//! use senesce_core::{ManualClock, Nanos, RelPath};
//! use senesce_exec::{Latencies, ModelTarget, OpKind, Target, TimedTarget};
//! use senesce_oplog::Op;
//!
//! let (clock, mut latencies) = (ManualClock::default(), Latencies::default());
//! let mut target = TimedTarget::new(ModelTarget::default(), &clock, &mut latencies);
//! let make = Op::Mkdir { path: RelPath::try_from("directory").unwrap(), mode: 0o755 };
//! target.apply(&RelPath::root(), &make, None).unwrap();
//! let mkdir = latencies.of(OpKind::Mkdir).unwrap();
//! assert_eq!((mkdir.count(), mkdir.max()), (1, Nanos(0)));
//! ```
//!
//! Latencies do not include the making of contents, which are ready before an operation starts.

use hdrhistogram::Histogram;
use senesce_core::{Clock, Nanos, RelPath, StopFn};
use senesce_oplog::{Op, Payload};

use crate::{OpFailure, SpaceLeft, Target};

/// Kinds of operations with separate latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // named after the operations
pub enum OpKind {
    Create,
    Write,
    Truncate,
    Mkdir,
    Rmdir,
    Rename,
    Unlink,
    Symlink,
    Link,
    Chmod,
    RemoveTree,
    Fsync,
    SyncFs,
    Allocate,
    SetModified,
    Read,
    Fallocate,
    Exchange,
    SetXattr,
    RemoveXattr,
    SetTimes,
    Chown,
    Mknod,
}

impl OpKind {
    /// All kinds.
    pub const ALL: [Self; 23] = [
        Self::Create,
        Self::Write,
        Self::Truncate,
        Self::Mkdir,
        Self::Rmdir,
        Self::Rename,
        Self::Unlink,
        Self::Symlink,
        Self::Link,
        Self::Chmod,
        Self::RemoveTree,
        Self::Fsync,
        Self::SyncFs,
        Self::Allocate,
        Self::SetModified,
        Self::Read,
        Self::Fallocate,
        Self::Exchange,
        Self::SetXattr,
        Self::RemoveXattr,
        Self::SetTimes,
        Self::Chown,
        Self::Mknod,
    ];

    /// The kind of an operation.
    pub fn of(op: &Op) -> Self {
        match op {
            Op::Create { .. } => Self::Create,
            Op::Write { .. } => Self::Write,
            Op::Truncate { .. } => Self::Truncate,
            Op::Mkdir { .. } => Self::Mkdir,
            Op::Rmdir { .. } => Self::Rmdir,
            Op::Rename { .. } => Self::Rename,
            Op::Unlink { .. } => Self::Unlink,
            Op::Symlink { .. } => Self::Symlink,
            Op::Link { .. } => Self::Link,
            Op::Chmod { .. } => Self::Chmod,
            Op::RemoveTree { .. } => Self::RemoveTree,
            Op::Fsync { .. } => Self::Fsync,
            Op::SyncFs => Self::SyncFs,
            Op::Allocate { .. } => Self::Allocate,
            Op::SetModified { .. } => Self::SetModified,
            Op::Read { .. } => Self::Read,
            Op::Fallocate { .. } => Self::Fallocate,
            Op::Exchange { .. } => Self::Exchange,
            Op::SetXattr { .. } => Self::SetXattr,
            Op::RemoveXattr { .. } => Self::RemoveXattr,
            Op::SetTimes { .. } => Self::SetTimes,
            Op::Chown { .. } => Self::Chown,
            Op::Mknod { .. } => Self::Mknod,
        }
    }

    /// The name in results: `create`, `remove-tree`, `syncfs`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Write => "write",
            Self::Truncate => "truncate",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Symlink => "symlink",
            Self::Link => "link",
            Self::Chmod => "chmod",
            Self::RemoveTree => "remove-tree",
            Self::Fsync => "fsync",
            Self::SyncFs => "syncfs",
            Self::Allocate => "allocate",
            Self::SetModified => "set-modified",
            Self::Read => "read",
            Self::Fallocate => "fallocate",
            Self::Exchange => "exchange",
            Self::SetXattr => "set-xattr",
            Self::RemoveXattr => "remove-xattr",
            Self::SetTimes => "set-times",
            Self::Chown => "chown",
            Self::Mknod => "mknod",
        }
    }

    /// Whether its purpose is to wait for the device, so that it says nothing about other
    /// operations.
    pub fn is_sync(self) -> bool {
        matches!(self, Self::Fsync | Self::SyncFs)
    }
}

/// Significant digits of the histograms: a quantile is at most 0.1% too long.
const DIGITS: u8 = 3;

/// The distribution of the latencies of one kind.
///
/// Memory: some tens of KiB. It grows with the longest latency, not with the number of latencies.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    histogram: Histogram<u64>,
    max: Nanos,
    total: Nanos,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        let histogram = Histogram::new(DIGITS).expect("three digits are within the library's limits");
        Self { histogram, max: Nanos(0), total: Nanos(0) }
    }
}

impl LatencyHistogram {
    /// Counts a latency. Cost: about 10 ns, more if it is the longest so far.
    pub fn record(&mut self, latency: Nanos) {
        // The histogram grows as needed. If it cannot grow so far, the longest value that fits is
        // counted.
        if self.histogram.record(latency.0).is_err() {
            self.histogram.saturating_record(latency.0);
        }
        self.max = self.max.max(latency);
        self.total = Nanos(self.total.0.saturating_add(latency.0));
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("a histogram that grows takes every value of another");
        self.max = self.max.max(other.max);
        self.total = Nanos(self.total.0.saturating_add(other.total.0));
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The longest latency, exact.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The sum of all latencies, exact.
    pub fn total(&self) -> Nanos {
        self.total
    }

    /// The smallest latency that at least the share `quantile` (0..=1) of all latencies do not
    /// exceed. It is up to 0.1% too long, but never above the longest. `None` if there are no
    /// latencies.
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        // For 0 the library returns the lower end of the shortest bucket, otherwise the upper end.
        let quantile = quantile.max(f64::MIN_POSITIVE);
        (self.count() > 0).then(|| Nanos(self.histogram.value_at_quantile(quantile).min(self.max.0)))
    }
}

/// Latencies of operations by kind.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    by_kind: [Option<Box<LatencyHistogram>>; OpKind::ALL.len()],
    sums: LatencySums,
}

/// Sums of the times of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencySums {
    /// The time of operations that do more than sync.
    pub work: Nanos,
    /// The time of operations that only sync ([`OpKind::is_sync`]).
    pub sync: Nanos,
    /// The number of operations that only sync.
    pub syncs: u64,
}

impl LatencySums {
    /// The difference to an `earlier` state.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            work: self.work.since(earlier.work),
            sync: self.sync.since(earlier.sync),
            syncs: self.syncs.saturating_sub(earlier.syncs),
        }
    }
}

impl Latencies {
    /// Counts the latency of an operation.
    pub fn record(&mut self, kind: OpKind, latency: Nanos) {
        self.by_kind[kind as usize].get_or_insert_default().record(latency);
        let sum = if kind.is_sync() { &mut self.sums.sync } else { &mut self.sums.work };
        sum.0 = sum.0.saturating_add(latency.0);
        self.sums.syncs += u64::from(kind.is_sync());
    }

    /// Adds the counts of other latencies.
    pub fn add(&mut self, other: &Self) {
        for (kind, histogram) in other.iter() {
            self.by_kind[kind as usize].get_or_insert_default().add(histogram);
        }
        let (sums, more) = (&mut self.sums, other.sums);
        sums.work.0 = sums.work.0.saturating_add(more.work.0);
        sums.sync.0 = sums.sync.0.saturating_add(more.sync.0);
        sums.syncs += more.syncs;
    }

    /// The latencies of a kind; `None` if there are none.
    pub fn of(&self, kind: OpKind) -> Option<&LatencyHistogram> {
        self.by_kind[kind as usize].as_deref()
    }

    /// The kinds that have latencies, in order.
    pub fn iter(&self) -> impl Iterator<Item = (OpKind, &LatencyHistogram)> {
        OpKind::ALL.into_iter().filter_map(|kind| Some((kind, self.of(kind)?)))
    }

    /// The latencies of all kinds except those that only sync ([`OpKind::is_sync`]). `None` if
    /// there are none.
    pub fn all_but_syncs(&self) -> Option<LatencyHistogram> {
        let mut all: Option<LatencyHistogram> = None;
        for (_, histogram) in self.iter().filter(|(kind, _)| !kind.is_sync()) {
            all.get_or_insert_default().add(histogram);
        }
        all
    }

    /// The sums over all operations so far.
    pub fn sums(&self) -> LatencySums {
        self.sums
    }
}

/// A target that passes every operation to another target and counts its latency, whether it
/// succeeds or not.
///
/// Cost: two reads of the clock and one count, about 60 ns per operation.
pub struct TimedTarget<'a, T> {
    target: T,
    clock: &'a dyn Clock,
    latencies: &'a mut Latencies,
}

impl<'a, T: Target> TimedTarget<'a, T> {
    /// Times the operations on `target` with `clock`.
    pub fn new(target: T, clock: &'a dyn Clock, latencies: &'a mut Latencies) -> Self {
        Self { target, clock, latencies }
    }
}

impl<T: Target> Target for TimedTarget<'_, T> {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        let began = self.clock.now();
        let result = self.target.apply(root, op, payload);
        self.latencies.record(OpKind::of(op), self.clock.now().since(began));
        result
    }

    fn stop(&self) -> StopFn {
        self.target.stop()
    }

    fn forget_directories(&mut self) {
        self.target.forget_directories();
    }

    fn space(&mut self) -> std::io::Result<SpaceLeft> {
        self.target.space()
    }
}

/// A mutable reference to a target is a target.
impl<T: Target + ?Sized> Target for &mut T {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        (**self).apply(root, op, payload)
    }

    fn stop(&self) -> StopFn {
        (**self).stop()
    }

    fn forget_directories(&mut self) {
        (**self).forget_directories();
    }

    fn space(&mut self) -> std::io::Result<SpaceLeft> {
        (**self).space()
    }
}

/// A boxed target is a target.
impl<T: Target + ?Sized> Target for Box<T> {
    fn apply(&mut self, root: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        (**self).apply(root, op, payload)
    }

    fn stop(&self) -> StopFn {
        (**self).stop()
    }

    fn forget_directories(&mut self) {
        (**self).forget_directories();
    }

    fn space(&mut self) -> std::io::Result<SpaceLeft> {
        (**self).space()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;
    use senesce_oplog::Content;

    use super::*;
    use crate::ModelTarget;

    /// A clock whose steps grow with every read.
    #[derive(Default)]
    struct Ticking(AtomicU64);

    impl Clock for Ticking {
        fn now(&self) -> Nanos {
            let looks = self.0.fetch_add(1, Ordering::Relaxed);
            Nanos(looks * looks * 1000)
        }

        fn unix_seconds(&self) -> u64 {
            0
        }
    }

    #[test]
    fn every_operation_counts_once_also_if_it_fails() {
        let (clock, mut latencies) = (Ticking::default(), Latencies::default());
        let mut model = ModelTarget::new(Some(senesce_core::Bytes(8192)));
        let mut target = TimedTarget::new(&mut model, &clock, &mut latencies);
        let path = || RelPath::try_from("f").unwrap();
        let content = Content::Seeded { seed: 1, len: 3 };
        let payload = Payload::Bytes(vec![1, 2, 3].into());
        let root = RelPath::root();
        target
            .apply(&root, &Op::Create { path: path(), mode: 0o644, content: content.clone() }, Some(&payload))
            .unwrap();
        target.apply(&root, &Op::SyncFs, None).unwrap();
        target.apply(&root, &Op::Create { path: path(), mode: 0o644, content }, Some(&payload)).unwrap_err();
        target.apply(&root, &Op::Unlink { path: path() }, None).unwrap();
        // Reads at 0 1, 4 9, 16 25, 36 49 thousand nanoseconds: the pairs are 1, 5, 9, 13 apart.
        let found: Vec<_> =
            latencies.iter().map(|(kind, of)| (kind.name(), of.count(), of.total().0, of.max().0)).collect();
        assert_eq!(found, [("create", 2, 10_000, 9_000), ("unlink", 1, 13_000, 13_000), ("syncfs", 1, 5_000, 5_000)]);
        let all = latencies.all_but_syncs().unwrap();
        assert_eq!((all.count(), all.total().0, all.max().0), (3, 23_000, 13_000));
        assert_eq!(latencies.sums(), LatencySums { work: Nanos(23_000), sync: Nanos(5_000), syncs: 1 });
        assert!(latencies.of(OpKind::Fsync).is_none());
    }

    #[test]
    fn kinds_have_distinct_places_and_names() {
        let names: std::collections::BTreeSet<_> = OpKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), OpKind::ALL.len());
        assert!(OpKind::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    }

    /// The definition, on all figures sorted.
    fn exact(sorted: &[u64], quantile: f64) -> u64 {
        let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted[rank.min(sorted.len()) - 1]
    }

    proptest! {
        #[test]
        fn quantiles_match_sorted_latencies_within_a_thousandth(
            latencies in prop::collection::vec(prop_oneof![0u64..5_000, 0u64..100_000_000, 0u64..4_000_000_000_000], 1..400),
            split: prop::sample::Index,
        ) {
            let at = split.index(latencies.len());
            let (mut histogram, mut rest) = (LatencyHistogram::default(), LatencyHistogram::default());
            latencies[..at].iter().for_each(|latency| histogram.record(Nanos(*latency)));
            latencies[at..].iter().for_each(|latency| rest.record(Nanos(*latency)));
            histogram.add(&rest);
            let mut sorted = latencies.clone();
            sorted.sort_unstable();
            prop_assert_eq!(histogram.count(), sorted.len() as u64);
            prop_assert_eq!(histogram.max().0, *sorted.last().unwrap());
            prop_assert_eq!(histogram.total().0, sorted.iter().sum::<u64>());
            for quantile in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let (found, wanted) = (histogram.quantile(quantile).unwrap().0, exact(&sorted, quantile));
                prop_assert!(wanted <= found && found <= wanted + wanted / 1000 + 1, "{quantile}: {found}, not {wanted}");
            }
        }
    }
}
