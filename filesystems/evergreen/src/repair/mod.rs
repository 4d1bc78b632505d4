//! Repair: makes a damaged evergreen clean, with all data that can still be read.
//!
//! The repair builds the whole repaired state in memory before it writes. It tries the superblocks,
//! the better one first, and their trees. If they are useless, it uses the headers of nodes. It
//! completes the tree that loses least, replays the log, corrects the files, and checks the result.
//! Only then does it write new nodes and a map, to space that no superblock names, and then the
//! superblocks. After a loss of power during the writes, the old state still exists, and a repair
//! can start again. If only copies are damaged, it opens the file system, and a checkpoint rewrites
//! them.
//!
//! The repair reports every loss, as ranges of keys and as files.

#[cfg(test)]
mod bad_copies;
mod choose_attempt;
mod deferred_device;
mod files;
#[cfg(test)]
mod foreign_node_tests;
mod log;
mod nodes;
#[cfg(test)]
mod power_loss_tests;
mod protected_units;
mod rebuild;
mod scan;
#[cfg(test)]
mod single_block_tests;
mod start_superblocks;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unreadable_log_tests;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use senesce_block::BlockDevice;

use crate::{
    CheckReport, Error, Evergreen, Limits, Result, check,
    disk::{Decoded, Superblock, read_newest, read_slots},
};
use choose_attempt::Attempt;
use deferred_device::Staged;
use files::repair_files;
pub use files::{LostFile, RepairedFiles};

/// The kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The keys have no values.
    Values,
    /// Changes in the buffer of an inner node are lost: the keys have older values.
    Changes,
}

/// A range of keys with a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The kind of the loss.
    pub what: Lost,
    /// The lost node or part.
    pub place: String,
    /// The first key.
    pub from: Bytes,
    /// The key after the last one; `None` if there is no end.
    pub to: Option<Bytes>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            Lost::Values => "values",
            Lost::Changes => "waiting changes",
        };
        let to = self.to.as_ref().map_or("the end".to_owned(), |to| to.escape_ascii().to_string());
        write!(f, "{}: {what} of the keys from {} to {to}", self.place, self.from.escape_ascii())
    }
}

/// A note of a repair about superblocks, maps, copies or the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairNote {
    /// The note.
    pub what: String,
    /// Whether data is lost, or may be lost, that no list of files names.
    pub is_loss: bool,
}

impl RepairNote {
    fn note(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_loss: false }
    }

    fn loss(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_loss: true }
    }
}

impl fmt::Display for RepairNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// The result of a repair, or of a dry run.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// Whether a repair was necessary.
    pub is_needed: bool,
    /// Whether the repair was written.
    pub is_done: bool,
    /// The faults of superblocks, maps, copies and the log, and the replacements used.
    pub notes: Vec<RepairNote>,
    /// The losses of the tree.
    pub lost: Vec<Loss>,
    /// The corrections of the files, and their losses.
    pub files: RepairedFiles,
    /// The report of a check of the repaired state.
    pub check: CheckReport,
}

impl RepairReport {
    /// Whether data is lost.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty() || !self.files.lost.is_empty() || self.notes.iter().any(|note| note.is_loss)
    }
}

/// Repairs a damaged evergreen on a device. Writes nothing if `is_dry`, or if no clean state is
/// possible. The evergreen must not be open.
///
/// Errors: `WrongDevice` if the device holds no evergreen, or one of another format version;
/// `Damaged` if no clean state is possible; `NoSpace`; `Device` if a write fails. Cost: two or
/// three checks; if a map is lost, a read of the whole device. Memory for the writes, and for each
/// inode and name.
pub fn repair(device: &Arc<dyn BlockDevice>, is_dry: bool) -> Result<RepairReport> {
    refuse_others(device)?;
    let staged = Staged::new(device.clone());
    let shared: Arc<dyn BlockDevice> = staged.clone();
    let mut report = RepairReport::default();
    let mut why = Vec::new();
    if let Some(check) = look(&shared, &mut why) {
        report.check = check;
        return Ok(report);
    }
    staged.reset();
    report.is_needed = true;
    if let Ok(Some(check)) = rewrite_copies(&shared) {
        report.notes = why.iter().map(|why| RepairNote::note(format!("{why}: nothing is lost"))).collect();
        report.check = check;
        if !is_dry {
            report.check = rewrite_copies(device)?.ok_or_else(|| {
                let what = "a copy is still damaged after it was rewritten".to_owned();
                Error::Damaged { place: device.name().to_owned(), what }
            })?;
            report.is_done = true;
        }
        return Ok(report);
    }
    let mut chosen = choose_attempt::best(device, &why)?;
    report.notes = std::mem::take(&mut chosen.notes);
    staged.reset();
    complete(device, &staged, &mut chosen, &mut report)?;
    report.lost = std::mem::take(&mut chosen.rebuilt.lost);
    report.check = check(&shared)?;
    if let Some(finding) = report.check.findings.iter().chain(&report.check.copies.bad).next() {
        let what = format!("no clean state is possible: {finding}");
        return Err(Error::Damaged { place: device.name().to_owned(), what });
    }
    if !is_dry {
        staged.commit()?;
        report.is_done = true;
        log::clear_unreadable(device, &chosen.superblock.geometry);
    }
    Ok(report)
}

/// Opens an evergreen with damaged copies only, and rewrites them by checkpoints. A loss of power
/// during a checkpoint loses nothing. Returns the report of a check afterwards, or `None` if there
/// is other damage.
///
/// Errors: those of opening, and of the check.
fn rewrite_copies(device: &Arc<dyn BlockDevice>) -> Result<Option<CheckReport>> {
    if !check(device)?.is_whole() {
        return Ok(None);
    }
    Evergreen::open(device.clone(), Limits::default())?.rewrite_all_bad_copies()?;
    let report = check(device)?;
    Ok((report.is_clean() && report.copies.torn.is_empty()).then_some(report))
}

/// Builds the repaired state in memory: the tree, the batches of the log, the files.
fn complete(
    device: &Arc<dyn BlockDevice>,
    staged: &Arc<Staged>,
    chosen: &mut Attempt,
    report: &mut RepairReport,
) -> Result<()> {
    let shared: Arc<dyn BlockDevice> = staged.clone();
    chosen.write(staged)?;
    let open = |chosen: &Attempt| Evergreen::open_keeping(shared.clone(), Limits::default(), chosen.kept());
    let mut opened = open(chosen);
    if let Err(Error::Damaged { .. }) = opened {
        // The device may have failed to read a block that it reads later.
        staged.reset();
        chosen.write(staged)?;
        opened = open(chosen);
    }
    let store = match opened {
        Err(Error::Damaged { place, what }) => {
            chosen.expect_log(&**staged, log::read(&shared, &chosen.superblock)?.next)?;
            report.notes.push(RepairNote::loss(format!("{place}: {what}: the batches of the log are lost")));
            staged.reset();
            chosen.forget_log(device);
            chosen.write(staged)?;
            open(chosen)?
        }
        opened => opened?,
    };
    chosen.expect_log(&**staged, read_newest(&**staged)?.replay.sequence)?;
    report.files = repair_files(&store, chosen.superblock.shape.key_order, &chosen.rebuilt.lost)?;
    store.checkpoint()?;
    drop(store);
    // One more checkpoint, so that both superblocks have the corrected files. The superblock that
    // is written first must not replace the one that the repair started from.
    open(chosen)?;
    if read_newest(&**staged)?.generation % 2 == chosen.superblock.generation % 2 {
        open(chosen)?;
    }
    // The frames in the ring stay until no superblock needs them.
    staged.forget(&chosen.superblock.geometry.log());
    log::begin_again(device, staged)
}

/// The report of the check, if there is no damage before and after opening; else appends the
/// findings to `why`.
fn look(device: &Arc<dyn BlockDevice>, why: &mut Vec<String>) -> Option<CheckReport> {
    let mut is_clean = |report: Result<CheckReport>| match report {
        Ok(report) if report.is_clean() && report.copies.torn.is_empty() => Some(report),
        Ok(report) => {
            let bad_copies = report.copies.bad.iter().chain(&report.copies.torn).take(3);
            why.extend(report.findings.iter().take(3).chain(bad_copies).map(ToString::to_string));
            None
        }
        Err(error) => {
            why.push(error.to_string());
            None
        }
    };
    let report = is_clean(check(device))?;
    if report.log_batches == 0 {
        return Some(report);
    }
    is_clean(Evergreen::open(device.clone(), Limits::default()).map(drop).and_then(|()| check(device)))
}

/// Errors: the device holds another file system, or only a part of one.
fn refuse_others(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let slots = read_slots(&**device)?.slots;
    // A superblock that is readable and refused has another version, or does not fit the device.
    let is_told = |slot: &Decoded<Superblock>| slot.as_ref().map_or_else(|damage| damage.field == "version", |_| true);
    match read_newest(&**device) {
        Err(error @ Error::WrongDevice { .. })
            if slots.iter().any(is_told) || !start_superblocks::has_trace(&**device) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}
