//! Superblocks. The superblock of a consistency point makes it the state of the aggregate. Others
//! repeat the last one with the current state of drives and copies of the log.

use super::Store;
use crate::{
    check::Finding,
    error::Result,
    format::{
        OLD_VERSION,
        superblock::{LogState, Superblock},
    },
    log::Repair,
};

impl Store {
    /// Makes the state of drives durable: writes the last consistency point again, under a new
    /// number. Dirty blocks stay dirty.
    pub(super) fn commit_drives(&mut self) -> Result<()> {
        self.check_running()?;
        self.sb.cp += 1;
        let sb = Superblock { cp: self.sb.cp, closed: false, ..self.durable.clone() };
        self.commit_changed(sb)
    }

    /// Records durably that the log holds nothing beyond the last consistency point.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.check_running()?;
        if self.aggregate.version == OLD_VERSION || self.durable.closed {
            return Ok(());
        }
        self.sb.cp += 1;
        let sb = Superblock { cp: self.sb.cp, closed: true, ..self.durable.clone() };
        self.commit_changed(sb)
    }

    /// Makes all copies of the log whole, and returns the damage.
    ///
    /// A copy receives the number of a durable superblock as its generation. A later superblock
    /// names that generation.
    pub(super) fn repair_logs(&mut self, repair: &Repair<'_>) -> Result<Vec<Finding>> {
        let mut repaired = self.log.repair(repair)?;
        if repair.labels() {
            // The superblock repeats the last state of the log, so that a loss of power before the
            // new label changes nothing.
            let generation = self.repeat_superblock(Some(self.durable.logs))?;
            self.log.label(repair, generation)?;
        }
        if repair.labels() || repair.fills() {
            let generation = self.repeat_superblock(None)?;
            if repair.fills() {
                repaired.extend(self.log.fill_lost(repair, generation)?);
            }
        }
        Ok(repaired)
    }

    /// Writes the last superblock again under a new number, and returns that number. `logs` is the
    /// state of the log to record, if it differs from the current one.
    fn repeat_superblock(&mut self, logs: Option<LogState>) -> Result<u64> {
        self.sb.cp += 1;
        let mut sb = self.next_superblock(Superblock { cp: self.sb.cp, ..self.durable.clone() });
        sb.logs = logs.unwrap_or(sb.logs);
        let done = self.raid.flush().and_then(|()| self.write_superblock(sb));
        done.inspect_err(|error| self.stop(error)).map(|()| self.durable.cp)
    }

    /// Withdraws the mark of a closed aggregate, before an operation enters the log.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        if self.durable.closed { self.commit_drives() } else { Ok(()) }
    }

    /// Records durably which copies of the log are incomplete, if that has changed.
    pub(crate) fn note_logs(&mut self) -> Result<()> {
        if self.log.mirror().has_news() { self.commit_drives() } else { Ok(()) }
    }

    fn commit_changed(&mut self, sb: Superblock) -> Result<()> {
        let done = self.raid.flush().and_then(|()| self.commit_superblock(sb));
        if let Err(error) = &done {
            self.stop(error);
        }
        done
    }

    /// Makes a superblock durable. The blocks that it names are durable already.
    pub(super) fn commit_superblock(&mut self, sb: Superblock) -> Result<()> {
        let sb = self.next_superblock(sb);
        self.write_superblock(sb)
    }

    fn write_superblock(&mut self, sb: Superblock) -> Result<()> {
        self.raid.write_superblock(self.sb_slot, sb.cp, &sb.encode())?;
        self.raid.flush()?;
        self.note_durable(sb);
        Ok(())
    }

    /// Completes a superblock for the next of the two places.
    pub(super) fn next_superblock(&mut self, mut sb: Superblock) -> Superblock {
        // A superblock that recorded a lost copy of the log may have used the number of this one.
        if sb.cp <= self.durable.cp {
            sb.cp = self.durable.cp + 1;
            self.sb.cp = sb.cp;
        }
        sb.previous = self.durable.cp;
        (sb.missing, sb.filling) = (self.raid.missing(), self.raid.filling());
        sb.logs = if sb.version == OLD_VERSION { LogState::default() } else { self.log.mirror().state() };
        self.sb_slot = 1 - self.sb_slot;
        sb
    }

    pub(super) fn note_durable(&mut self, sb: Superblock) {
        self.raid.note_superblock();
        self.log.mirror().note(sb.logs.without);
        self.durable = sb;
    }
}
