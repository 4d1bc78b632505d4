//! Passes over drives: scrubbing and cleaning.

use senesce_garden::{AreaMoves, Cleaning, Error as Engine, Finding, FixUpStep, ScanStep, ScrubStep};

use super::Service;
use crate::{Cleaned, Error, Response, Result, Scrubbed, Task, error::While};

/// Stripes of one step, which locks the aggregate.
const STRIPES: u64 = 256;
/// Pointers of one step, which locks the aggregate.
const POINTERS: u64 = 4096;

/// A request cleans all areas, on disks too.
fn of_all() -> Cleaning {
    Cleaning { disks_too: true, ..Cleaning::default() }
}

impl Service<'_> {
    pub(super) fn scrub(&self, from: u64, task: &mut dyn Task) -> Result<Response> {
        let _pass = self.begin_pass(task)?;
        self.garden.scrub_from(from)?;
        let mut all = ScrubStep { done: from, ..ScrubStep::default() };
        while !task.is_cancelled() {
            let step = self.garden.scrub_step(STRIPES).when(|| format!("cannot scrub {}", self.place))?;
            task.progress("scrubbing", "stripes", step.done, step.of);
            (all.done, all.of) = (step.done, step.of);
            all.repaired.extend(step.repaired);
            all.parity_repaired.extend(step.parity_repaired);
            all.lost.extend(step.lost);
            if all.done == all.of {
                break;
            }
        }
        self.close()?;
        let texts = |findings: &[Finding]| findings.iter().map(ToString::to_string).collect();
        Ok(Response::Scrubbed(Scrubbed {
            from,
            stripes: all.done,
            of: all.of,
            repaired: texts(&all.repaired),
            parity_repaired: texts(&all.parity_repaired),
            lost: texts(&all.lost),
        }))
    }

    /// One pass over all allocation areas, then one over the pointers of all volumes.
    pub(super) fn clean(&self, from: u64, task: &mut dyn Task) -> Result<Response> {
        let _pass = self.begin_pass(task)?;
        self.garden.scan_from(from, of_all()).map_err(|error| match error {
            Engine::Invalid { what } => Error::usage(what, Some("without --from all areas are cleaned")),
            error => error.into(),
        })?;
        let areas = self.clean_areas(from, task).when(|| format!("cannot clean {}", self.place))?;
        self.close()?;
        let pointers = self.fix_up(task).when(|| format!("cannot correct pointers of {}", self.place))?;
        self.close()?;
        let ScanStep { done, of, cleaned, moves: AreaMoves { blocks, metadata, stuck }, no_space } = areas;
        Ok(Response::Cleaned(Cleaned {
            from,
            areas: done,
            of,
            cleaned,
            moved_blocks: blocks,
            moved_metadata_blocks: metadata,
            stuck_blocks: stuck,
            areas_without_space: no_space,
            pointers: pointers.looked,
            fixed_pointers: pointers.fixed,
        }))
    }

    fn clean_areas(&self, from: u64, task: &mut dyn Task) -> Result<ScanStep> {
        let mut all = ScanStep { done: from, ..ScanStep::default() };
        while !task.is_cancelled() {
            let step = self.garden.scan_step(1, of_all())?;
            task.progress("cleaning", "areas", step.done, step.of);
            (all.done, all.of) = (step.done, step.of);
            all.cleaned += step.cleaned;
            all.moves += step.moves;
            all.no_space += step.no_space;
            if step.done == step.of {
                break;
            }
        }
        Ok(all)
    }

    fn fix_up(&self, task: &mut dyn Task) -> Result<FixUpStep> {
        let mut all = FixUpStep::default();
        let of = self.garden.report().blocks;
        for volume in self.garden.volumes() {
            while !task.is_cancelled() {
                let step = self.garden.fix_up_step(&volume, POINTERS)?;
                all.looked += step.looked;
                all.fixed += step.fixed;
                task.progress("reading pointers", "pointers", all.looked, of);
                if step.ended || step.no_space {
                    break;
                }
            }
        }
        Ok(all)
    }
}
