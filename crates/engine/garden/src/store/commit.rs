//! Superblocks: one of a consistency point makes it the aggregate; others repeat the last one with what became of drives and of copies
//! of the log.

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
    /// Makes what became of drives durable: the last consistency point again, under a new number. What waits still waits.
    pub(super) fn commit_drives(&mut self) -> Result<()> {
        self.check_running()?;
        self.sb.cp += 1;
        let sb = Superblock { cp: self.sb.cp, closed: false, ..self.durable.clone() };
        self.commit_changed(sb)
    }

    /// Notes durably that the log holds nothing that the last consistency point does not include.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.check_running()?;
        if self.aggregate.version == OLD_VERSION || self.durable.closed {
            return Ok(());
        }
        self.sb.cp += 1;
        let sb = Superblock { cp: self.sb.cp, closed: true, ..self.durable.clone() };
        self.commit_changed(sb)
    }

    /// Makes all copies of the log whole, and returns what was wrong.
    ///
    /// A copy receives the number of a durable superblock as its generation, and a later superblock
    /// names it.
    pub(super) fn repair_logs(&mut self, repair: &Repair<'_>) -> Result<Vec<Finding>> {
        let mut repaired = self.log.repair(repair)?;
        if repair.labels() {
            // It says of the log what the last one said, so that power may be lost before there is
            // a label.
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

    /// Makes the last superblock durable again and returns its number, which no superblock had
    /// before. `logs`: what it says of the log if that is not what is known now.
    fn repeat_superblock(&mut self, logs: Option<LogState>) -> Result<u64> {
        self.sb.cp += 1;
        let mut sb = self.next_superblock(Superblock { cp: self.sb.cp, ..self.durable.clone() });
        sb.logs = logs.unwrap_or(sb.logs);
        let done = self.raid.flush().and_then(|()| self.write_superblock(sb));
        done.inspect_err(|error| self.stop(error)).map(|()| self.durable.cp)
    }

    /// Before an operation is in the log: nothing calls the aggregate closed any more.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        if self.durable.closed { self.commit_drives() } else { Ok(()) }
    }

    /// Notes durably which copies of the log do not hold all, if that has changed.
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

    /// Makes a superblock durable; what it names is so already.
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

    /// A superblock as it is to be written in the place for the next one.
    pub(super) fn next_superblock(&mut self, mut sb: Superblock) -> Superblock {
        // A superblock that noted a lost copy of the log on the way may have taken the number of this one.
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
