//! Checks the devices of an open garden during operation.

use std::{rc::Rc, sync::Arc};

use senesce_core::Bytes;
use senesce_garden::{Accepted, CheckPart, CheckProgress, CheckReport, Garden, Limits, Stripes, check_telling};
use senesce_objects::ObjectStore;

use super::Service;
use crate::{CheckedPart, Error, Frozen, Response, Result, Task, devices::KEEP_MORE, error::While};

/// Cache for opening the frozen devices.
const CACHE_BYTES: u64 = 64 << 20;

impl Service<'_> {
    /// Checks the frozen devices: the last consistency point, and the log after it.
    pub(super) fn check(&self, most_bytes: u64, task: &mut dyn Task) -> Result<Response> {
        let frozen = self.freeze(Bytes(most_bytes))?;
        let first = self.check_frozen(&frozen, task).when(|| format!("cannot check {} as it is", self.place))?;
        let (holds_more, is_clean) = (first.log_operations > 0, first.is_clean());
        let mut checks = vec![checked("as it is", &first)];
        if holds_more && is_clean {
            let what = "as opening makes it";
            let again = open_frozen(&frozen, self.store.cloned()).and_then(|_| self.check_frozen(&frozen, task));
            checks.push(checked(what, &again.when(|| format!("cannot check {} {what}", self.place))?));
        }
        Ok(Response::Checked(crate::Checked { checks }))
    }

    /// Freezes the devices after a consistency point. Errors: they are frozen already.
    pub(super) fn freeze(&self, most_bytes: Bytes) -> Result<Frozen> {
        let Some(devices) = self.devices else {
            return Err(Error::usage("its devices are not open for a check or a dry run", None));
        };
        if !self.read_only {
            // This shortens the log.
            self.close()?;
        }
        let frozen = self.garden.hold_still(|| devices.freeze(most_bytes));
        frozen.when(|| format!("cannot freeze the devices of {}", self.place))?.ok_or_else(|| {
            Error::refused("another check or dry run of this garden is under way", Some("try again when it has ended"))
        })
    }

    fn check_frozen(&self, frozen: &Frozen, task: &mut dyn Task) -> Result<CheckReport> {
        let (drives, log, store) = (&frozen.drives, &frozen.log, self.store);
        let tell = |task: &mut dyn Task, progress: CheckProgress| {
            let (what, unit) = words(progress.part);
            task.progress(what, unit, progress.done, progress.of);
        };
        let report = frozen.attend(task, Some(KEEP_MORE), tell, |sender| {
            let tell = Rc::new(move |progress: CheckProgress| {
                let _ = sender.send(progress); // without a receiver, progress has no use
            });
            check_telling(drives, log, store, Stripes::InUse, tell)
        })?;
        Ok(report?)
    }
}

/// Opens a garden on frozen devices.
pub(super) fn open_frozen(frozen: &Frozen, store: Option<Arc<dyn ObjectStore>>) -> Result<Garden> {
    let limits = Limits { cache_bytes: CACHE_BYTES, ..Limits::default() };
    Ok(Garden::open_with(&frozen.drives, &frozen.log, limits, store, Accepted::NOTHING)?)
}

/// The name of a part of a check, and the unit of its progress.
pub fn words(part: CheckPart) -> (&'static str, &'static str) {
    match part {
        CheckPart::Blocks => ("following pointers", "blocks"),
        CheckPart::Stripes => ("computing parity", "stripes"),
    }
}

/// Reports the check of the state `what`.
pub fn checked(what: &str, report: &CheckReport) -> CheckedPart {
    CheckedPart {
        what: what.to_owned(),
        clean: report.is_clean(),
        findings: report.findings.iter().map(ToString::to_string).collect(),
        more_findings: report.more_findings,
        consistency_point: report.cp,
        blocks: report.blocks,
        volumes: report.volumes,
        inodes: report.inodes,
        missing_drives: report.missing_drives.clone(),
        stale_pointers: report.stale_pointers,
        stripes: report.stripes,
        log_operations: report.log_operations,
        objects: report.objects,
        cold_blocks: report.cold_blocks,
        cold_blocks_not_looked_at: report.cold_unread,
        objects_not_looked_at: report.objects_unread,
        orphan_objects: report.orphan_objects,
    }
}
