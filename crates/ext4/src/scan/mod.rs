//! The scan of all inodes in the order of their numbers, which is nearly that of the device.

mod ordered;
mod unit;
mod worker;

use ordered::run_ordered;
use unit::plan_units;
pub(crate) use worker::ROOT_INODE;
use worker::{UnitResult, Worker};

use crate::{EntryOrder, Error, FileSystem, InodeRecord, ReadAt, Report, Warning, map::Budget, report::DamageCounts};

/// The options of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// The number of threads. Results do not depend on it.
    pub threads: usize,
    /// Whether entries of directories are read, and their order.
    pub entries: Option<EntryOrder>,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { threads: 2, entries: Some(EntryOrder::Readdir) }
    }
}

impl<D: ReadAt> FileSystem<D> {
    /// Reads all files, directories and symlinks in use. Passes them to `visit` in the order of
    /// inode numbers, in the calling thread. Reserved inodes except the root (the journal and
    /// others) are left out.
    ///
    /// On a device that may be changing ([`crate::Superblock::may_change`]) the inodes are read a
    /// second time at the end. The report says whether anything except access times changed.
    ///
    /// Errors: a block cannot be read; damage, with its block, if it is not reported (see
    /// [`crate::OnDamage`]). Records before the error are sound. Cost: reads every inode table once
    /// up to the last inode in use, and every block of extent trees, block maps and (if requested)
    /// directories. Memory per thread: three MiB of inodes, with 48 bytes for each of their extents
    /// and the entries of their directories.
    pub fn collect_inodes(&self, options: &ScanOptions, visit: &mut dyn FnMut(InodeRecord)) -> Result<Report, Error> {
        let mut visit = |record| {
            visit(record);
            Ok(())
        };
        self.try_collect_inodes(options, &mut visit)
    }

    /// Like [`Self::collect_inodes`], until the visitor returns an error.
    pub(crate) fn try_collect_inodes(
        &self,
        options: &ScanOptions,
        visit: &mut dyn FnMut(InodeRecord) -> Result<(), Error>,
    ) -> Result<Report, Error> {
        let budget = Budget::new(&self.superblock);
        let may_change = self.superblock.may_change();
        let units = plan_units(self);
        let mut report = Report { warnings: self.warnings(), attempts: 1, ..Report::default() };
        let mut damage = self.damage.clone();
        let mut uncertain = (0, None);
        let mut digests = Vec::new();
        run_ordered(
            options.threads,
            units.len(),
            || Worker::new(self, &budget, options),
            |worker, n| worker.read_unit(units[n], may_change),
            |_, unit: UnitResult| {
                report.inodes += unit.records.len() as u64;
                report.special += unit.special;
                report.unlinked += unit.unlinked;
                damage.append(unit.damage);
                uncertain = (uncertain.0 + unit.uncertain, uncertain.1.or(unit.first_uncertain));
                if may_change {
                    digests.push(unit.digest);
                }
                unit.records.into_iter().try_for_each(&mut *visit)
            },
        )?;
        if let (directories, Some(first_inode)) = uncertain {
            report.warnings.push(Warning::ListingOrderUncertain { directories, first_inode });
        }
        self.finish_report(&mut report, damage);
        let (superblock, mut groups) = self.find_changes()?;
        if may_change {
            run_ordered(
                options.threads,
                units.len(),
                || Worker::new(self, &budget, options),
                |worker, n| worker.compute_unit_digest(units[n]),
                |n, digest| {
                    if digests.get(n) != Some(&digest) {
                        groups.push(units[n].group);
                    }
                    Ok(())
                },
            )?;
        }
        report.warnings.extend(compute_change_warning(superblock, groups));
        Ok(report)
    }

    /// Adds the damage to the report.
    pub(crate) fn finish_report(&self, report: &mut Report, damage: DamageCounts) {
        report.warnings.extend(damage.into_warnings());
    }
}

/// The warning about changes, if there were any.
pub(crate) fn compute_change_warning(superblock: bool, mut groups: Vec<u32>) -> Option<Warning> {
    groups.sort_unstable();
    groups.dedup();
    (superblock || !groups.is_empty()).then(|| Warning::ChangedDuringReading {
        superblock,
        groups: groups.len() as u32,
        first_group: groups.first().copied(),
    })
}
