//! Repair: an evergreen that the check finds damaged becomes one that it finds clean, with all that can still be read.
//!
//! The repair makes the whole repaired state in memory before it writes anything. It tries the
//! superblocks, the better one first, and the trees that they name. If these lead nowhere, it uses
//! the headers of nodes. It completes the tree that loses least, replays the log, corrects the
//! files, and checks the result. Only then does it write new nodes and a map, to space that no
//! superblock names, and then the superblocks. If power is lost meanwhile, the old state is still
//! there, and a repair can begin again. If only copies are bad, it opens the file system, and a
//! checkpoint writes them again.
//!
//! The repair reports every loss, as ranges of keys and as files.

mod attempt;
#[cfg(test)]
mod bad_copies;
mod bases;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod foreign;
mod kept;
mod log;
mod nodes;
#[cfg(test)]
mod power;
mod rebuild;
mod scan;
#[cfg(test)]
mod single_blocks;
mod staged;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unreadable;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use senesce_block::BlockDevice;

use crate::{
    CheckReport, Error, Evergreen, Limits, Result, check,
    disk::{Decoded, Superblock, read_newest, read_slots},
    fs::{Mended, mend_files},
};
use attempt::Attempt;
use staged::Staged;

/// What became of some keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// They have no values any more.
    Values,
    /// Changes to them that waited in an inner node: they have the values of before.
    Changes,
}

/// Keys that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What is lost.
    pub what: Lost,
    /// With what: a node, in words.
    pub place: String,
    /// The first key,
    pub from: Bytes,
    /// and the first behind; none if there is no end.
    pub to: Option<Bytes>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            Lost::Values => "values",
            Lost::Changes => "changes that waited",
        };
        let to = self.to.as_ref().map_or("the end".to_owned(), |to| to.escape_ascii().to_string());
        write!(f, "{}: {what} of the keys from {} to {to}", self.place, self.from.escape_ascii())
    }
}

/// Something that a repair tells of what leads to the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// In words.
    pub what: String,
    /// Whether something is gone by it, or may be, of which no files are named.
    pub is_loss: bool,
}

impl Told {
    fn note(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_loss: false }
    }

    fn loss(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_loss: true }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// What a repair did, or would do.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// Whether there was anything to do.
    pub is_needed: bool,
    /// Whether it was done.
    pub is_done: bool,
    /// What was wrong with what leads to the nodes, and what was taken in its place.
    pub told: Vec<Told>,
    /// What of the tree is lost.
    pub lost: Vec<Loss>,
    /// What was put right among the files, and which of them lost what.
    pub files: Mended,
    /// What the check says of it as it is then.
    pub check: CheckReport,
}

impl RepairReport {
    /// Whether something is gone that was there.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty() || !self.files.lost.is_empty() || self.told.iter().any(|told| told.is_loss)
    }
}

/// Repairs what lies on a device, if it is damaged; nothing is written if `is_dry`, or if no clean state is found. Nobody may have
/// it open.
///
/// Errors: `WrongDevice` for what is no evergreen, or one of another format version; `Damaged` if nothing clean can be made of it; `NoSpace`;
/// `Device` if it cannot be written. Cost: of a check, two or three times; if a map is lost, it reads all of the device. Memory for
/// what will be written, and for each inode and name.
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
        report.told = why.iter().map(|why| Told::note(format!("{why}: nothing is lost by it"))).collect();
        report.check = check;
        if !is_dry {
            report.check = rewrite_copies(device)?.ok_or_else(|| {
                let what = "a bad copy is still there after it was written again".to_owned();
                Error::Damaged { place: device.name().to_owned(), what }
            })?;
            report.is_done = true;
        }
        return Ok(report);
    }
    let mut chosen = attempt::best(device, &why)?;
    report.told = std::mem::take(&mut chosen.told);
    staged.reset();
    complete(device, &staged, &mut chosen, &mut report)?;
    report.lost = std::mem::take(&mut chosen.rebuilt.lost);
    report.check = check(&shared)?;
    if let Some(finding) = report.check.findings.iter().chain(&report.check.copies.bad).next() {
        let what = format!("nothing clean can be made of it: {finding}");
        return Err(Error::Damaged { place: device.name().to_owned(), what });
    }
    if !is_dry {
        staged.commit()?;
        report.is_done = true;
        log::clear_unreadable(device, &chosen.superblock.geometry);
    }
    Ok(report)
}

/// Opens an evergreen of which only copies are bad, and writes them again by checkpoints. A loss of
/// power during a checkpoint loses nothing. Returns the report of a check afterwards. `None`:
/// something else is wrong, too.
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

/// Makes the repaired state in memory: the tree, what the log has, the files.
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
        // The device may have failed to return a block that it returns later.
        staged.reset();
        chosen.write(staged)?;
        opened = open(chosen);
    }
    let store = match opened {
        Err(Error::Damaged { place, what }) => {
            chosen.expect_log(&**staged, log::read(&shared, &chosen.superblock)?.next)?;
            report.told.push(Told::loss(format!("{place}: {what}: what the log holds is lost")));
            staged.reset();
            chosen.forget_log(device);
            chosen.write(staged)?;
            open(chosen)?
        }
        opened => opened?,
    };
    chosen.expect_log(&**staged, read_newest(&**staged)?.replay.sequence)?;
    report.files = mend_files(&store, chosen.superblock.shape.key_order, &chosen.rebuilt.lost)?;
    store.checkpoint()?;
    drop(store);
    // One more checkpoint, so that both superblocks have the files as they are now. The superblock that is written first must not
    // replace the one that all this began with.
    open(chosen)?;
    if read_newest(&**staged)?.generation % 2 == chosen.superblock.generation % 2 {
        open(chosen)?;
    }
    // The frames in the ring stay until no superblock needs them.
    staged.forget(&chosen.superblock.geometry.log());
    log::begin_again(device, staged)
}

/// The check's report, if nothing is damaged, neither as it lies nor as opening makes it; else why it is.
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

/// Errors: what must not be repaired, for it is another's, or a part of it is missing.
fn refuse_others(device: &Arc<dyn BlockDevice>) -> Result<()> {
    let slots = read_slots(&**device)?.slots;
    // One that can be read and is refused is of another version, or larger than the device.
    let is_told = |slot: &Decoded<Superblock>| slot.as_ref().map_or_else(|damage| damage.field == "version", |_| true);
    match read_newest(&**device) {
        Err(error @ Error::WrongDevice { .. }) if slots.iter().any(is_told) || !bases::has_trace(&**device) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
