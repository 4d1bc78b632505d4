//! `senesce fs clean`, and what gardening a mount or an aging does.

use anyhow::{Context, Result};
use senesce_garden::{
    AreaMoves, Cleaning, Error, FixUp, FixUpStep, Garden, Gardening, Medium, ScanStep, WriteAfterRead,
};
use senesce_volume::{check_interrupted, install_signal_cleanup, interrupted};
use serde_json::json;

use super::place::Place;
use crate::{
    args::{FsCleanArgs, GardeningArg},
    exit::usage,
    progress::Stretch,
};

/// Pointers that are looked at before it is looked whether a signal came.
const POINTERS: u64 = 4096;

/// What somebody who asks for it wants gone over: all areas, disks among them.
fn of_all() -> Cleaning {
    Cleaning { disks_too: true, ..Cleaning::default() }
}

impl GardeningArg {
    /// As the engine has it, for this garden.
    pub fn policy(self, garden: &Garden) -> Gardening {
        let is_disks = garden.report().groups.iter().all(|group| group.medium == Medium::Hdd);
        self.on(garden.gardening(), is_disks)
    }

    /// For one that does `own` by itself, and has nothing but disks or not.
    fn on(self, own: Gardening, is_disks: bool) -> Gardening {
        match self {
            Self::Oltp if is_disks => Self::Csc.on(own, is_disks),
            Self::Backup if is_disks => Self::War.on(own, is_disks),
            Self::Auto | Self::Oltp | Self::Backup => own,
            Self::Off => Gardening::default(),
            Self::Csc | Self::War | Self::All => Gardening {
                cleaning: if self == Self::War { own.cleaning } else { Some(Cleaning::default()) },
                demotion: own.demotion,
                fix_up: FixUp::OnRead,
                write_after_read: (self != Self::Csc).then(WriteAfterRead::default),
            },
        }
    }
}

/// One pass over all allocation areas, and then over the pointers of all volumes.
pub fn clean(args: &FsCleanArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let place = Place::of(&args.place)?;
    let garden = place.garden(&place.open()?)?;
    garden.scan_from(args.from, of_all()).map_err(|error| match error {
        Error::Invalid { what } => usage(what, Some("without --from all areas are gone over")),
        error => error.into(),
    })?;
    let areas = clean_areas(&garden, args.from, quiet).with_context(|| format!("cannot clean {place}"))?;
    garden.close().with_context(|| format!("cannot close {place}"))?;
    let pointers = fix_up(&garden, quiet).with_context(|| format!("cannot put pointers of {place} right"))?;
    garden.close().with_context(|| format!("cannot close {place}"))?;
    let ScanStep { done, of, cleaned, moves: AreaMoves { blocks, metadata, stuck }, no_space } = areas;
    if args.json {
        let document = json!({
            "format": "senesce-fs-clean/1",
            "from": args.from,
            "areas": done,
            "of": of,
            "cleaned": cleaned,
            "moved_blocks": blocks,
            "moved_metadata_blocks": metadata,
            "stuck_blocks": stuck,
            "areas_without_space": no_space,
            "pointers": pointers.looked,
            "fixed_pointers": pointers.fixed,
        });
        println!("{document}");
    } else {
        println!("{place}: {done} of {of} allocation areas; {cleaned} cleaned, for {no_space} there was no space");
        println!("  blocks moved: {blocks} of volumes, {metadata} of the garden's own; {stuck} could not be");
        println!("  {} of {} pointers named an old place and were put right", pointers.fixed, pointers.looked);
        if done < of {
            println!("`senesce fs clean --from {done}` goes on from there");
        }
    }
    Ok(check_interrupted("cleaning")?)
}

fn clean_areas(garden: &Garden, from: u64, quiet: bool) -> Result<ScanStep> {
    let mut all = ScanStep { done: from, ..ScanStep::default() };
    let mut bar = None;
    while interrupted().is_none() {
        let step = garden.scan_step(1, of_all())?;
        bar.get_or_insert_with(|| Stretch::for_stderr(quiet, "cleaning", "areas", step.of)).reach(step.done);
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

fn fix_up(garden: &Garden, quiet: bool) -> Result<FixUpStep> {
    let mut all = FixUpStep::default();
    let mut bar = Stretch::for_stderr(quiet, "looking at pointers", "pointers", garden.report().blocks);
    for volume in garden.volumes() {
        while interrupted().is_none() {
            let step = garden.fix_up_step(&volume, POINTERS)?;
            all.looked += step.looked;
            all.fixed += step.fixed;
            bar.reach(all.looked);
            if step.ended || step.no_space {
                break;
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_says_what_disks_alone_want_and_nothing_else() {
        let none = Gardening::default();
        for kind in [GardeningArg::Auto, GardeningArg::Oltp, GardeningArg::Backup] {
            assert_eq!(kind.on(none, false), none, "{kind:?} on flash alone");
            let pool = Gardening { cleaning: Some(Cleaning::default()), fix_up: FixUp::OnRead, ..none };
            assert_eq!(kind.on(pool, false), pool, "{kind:?} on a flash pool");
        }
        assert_eq!(GardeningArg::Auto.on(none, true), none);
        let (oltp, backup) = (GardeningArg::Oltp.on(none, true), GardeningArg::Backup.on(none, true));
        assert_eq!((oltp.cleaning, oltp.write_after_read), (Some(Cleaning::default()), None));
        assert_eq!((backup.cleaning, backup.write_after_read), (None, Some(WriteAfterRead::default())));
    }
}
