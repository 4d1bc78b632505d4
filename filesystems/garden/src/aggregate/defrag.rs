//! Defragmentation: the passes of an open aggregate that improve the layout of files.

use std::collections::BTreeSet;

use senesce_fsapi::Ino;

use crate::{
    aggregate::Garden,
    error::{Error, Result},
    store::{DefragCounts, Placing, Store, WINDOW},
};

/// Passes, at most.
const MOST_PASSES: u32 = 8;

/// The files of a volume that a pass visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefragFiles {
    /// All regular files.
    All,
    /// These inodes, as far as they are regular files.
    These(BTreeSet<Ino>),
}

/// A pass that rewrites files of a volume in one piece where that is worth it. It runs in steps.
#[derive(Clone, Debug)]
pub struct Defrag {
    space: u32,
    files: DefragFiles,
    placing: Placing,
    dry_run: bool,
    ino: u64,
    block: u64,
    counts: DefragCounts,
    ended: bool,
}

impl Defrag {
    /// The counts of the pass so far.
    pub fn counts(&self) -> DefragCounts {
        self.counts
    }

    /// Whether the pass has visited all files.
    pub fn is_done(&self) -> bool {
        self.ended
    }
}

impl Garden {
    /// Starts a pass over files of a volume. A dry run moves nothing.
    ///
    /// Errors: `Invalid` if the volume does not exist; those of a consistency point, which gives
    /// all blocks a place first.
    pub fn begin_defrag(&self, volume: &[u8], files: DefragFiles, placing: Placing, dry_run: bool) -> Result<Defrag> {
        let space = self.space_of(volume)?;
        self.consistency_point()?;
        self.shared().lock().begin_in_best_area();
        let counts = DefragCounts::default();
        Ok(Defrag { space, files, placing, dry_run, ino: 0, block: 0, counts, ended: false })
    }

    /// Continues a pass over at least `blocks` blocks, if there are that many. Other threads may
    /// use the aggregate in between. Blocks move at the next consistency point; the caller makes
    /// one after the last step.
    ///
    /// Unreadable blocks are counted and stay in place.
    ///
    /// Errors: the engine has stopped; those of a consistency point.
    ///
    /// Cost: reads pointers; reads and writes the blocks that move.
    pub fn defrag_step(&self, defrag: &mut Defrag, blocks: u64) -> Result<()> {
        let until = defrag.counts.blocks.saturating_add(blocks.max(1));
        let mut fresh = false;
        while !defrag.ended && defrag.counts.blocks < until {
            let mut store = self.shared().lock();
            store.check_running()?;
            let done = defrag.next_window(&mut store);
            store.shrink_cache();
            let (waits, due) = (store.is_waiting(), store.is_due());
            drop(store);
            match done {
                Ok(()) if !due => fresh = false,
                Ok(()) => {
                    self.consistency_point()?;
                    fresh = false;
                }
                Err(Error::NoSpace { .. }) if waits && !fresh => {
                    self.consistency_point()?;
                    fresh = true;
                }
                Err(Error::NoSpace { .. }) => {
                    defrag.pass_over();
                    fresh = false;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs whole passes until one moves nothing, at most eight, because blocks that one pass frees
    /// may help the next. Returns the counts of the first pass, with the moves of all.
    ///
    /// Errors: those of the steps.
    pub fn defragment(&self, volume: &[u8], files: DefragFiles, placing: Placing) -> Result<DefragCounts> {
        let mut all: Option<DefragCounts> = None;
        for _ in 0..MOST_PASSES {
            let mut defrag = self.begin_defrag(volume, files.clone(), placing, false)?;
            while !defrag.is_done() {
                self.defrag_step(&mut defrag, u64::MAX)?;
            }
            self.consistency_point()?;
            let now = defrag.counts();
            all = Some(all.map_or(now, |all| all.and_then(&now)));
            if now.moved == 0 {
                break;
            }
        }
        Ok(all.unwrap_or_default())
    }

    /// Returns the layout of files: the counts of a dry run.
    ///
    /// Errors: those of the steps.
    pub fn survey_layout(&self, volume: &[u8], files: DefragFiles) -> Result<DefragCounts> {
        let mut defrag = self.begin_defrag(volume, files, Placing::default(), true)?;
        while !defrag.is_done() {
            self.defrag_step(&mut defrag, u64::MAX)?;
        }
        Ok(defrag.counts())
    }
}

impl Defrag {
    /// Processes the next window.
    ///
    /// Errors: `NoSpace`; the next call repeats the window.
    fn next_window(&mut self, store: &mut Store) -> Result<()> {
        let Some(ino) = self.find_file(store)? else {
            self.ended = true;
            return Ok(());
        };
        if ino != self.ino {
            (self.ino, self.block) = (ino, 0);
        }
        match self.improve(store, ino) {
            // A check reports damage. The pass skips a file whose pointers are damaged.
            Err(Error::Damaged { .. }) if store.stopped.is_none() => {
                self.counts.unread += 1;
                (self.ino, self.block) = (ino + 1, 0);
                Ok(())
            }
            done => done,
        }
    }

    fn find_file(&self, store: &mut Store) -> Result<Option<u64>> {
        match &self.files {
            DefragFiles::All => store.next_file(self.space, self.ino),
            DefragFiles::These(files) => Ok(files.range(Ino(self.ino)..).next().map(|ino| ino.0)),
        }
    }

    fn improve(&mut self, store: &mut Store, ino: u64) -> Result<()> {
        let Some(window) = store.next_window(self.space, ino, self.block)? else {
            (self.ino, self.block) = (ino + 1, 0);
            return Ok(());
        };
        let first = self.block == 0;
        self.block = window.start;
        match store.improve(self.space, ino, window.clone(), self.placing, self.dry_run) {
            Ok(counts) => self.counts += counts,
            Err(Error::Damaged { .. }) if store.stopped.is_none() => self.counts.unread += 1,
            Err(error) => return Err(error),
        }
        self.block = window.end;
        self.counts.files += u64::from(first);
        Ok(())
    }

    /// Skips a window for which there is no space.
    fn pass_over(&mut self) {
        self.counts.no_space += 1;
        self.block += WINDOW;
    }
}
