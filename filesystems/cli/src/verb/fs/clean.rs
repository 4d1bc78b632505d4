//! `senesce fs clean`, and what gardening a mount or an aging does.

use crate::version;
use anyhow::{Context, Result};
use senesce_garden::{Cleaning, FixUp, Garden, Gardening, Medium, WriteAfterRead};
use senesce_service::{Cleaned, Request, Response};
use senesce_volume::{check_interrupted, install_signal_cleanup};

use super::{
    place::Place,
    send_request::{Access, ask, strange, with_format},
};
use crate::args::{FsCleanArgs, GardeningArg};

/// Background work as a setting of the engine.
pub trait Policy {
    /// The setting for this garden.
    fn policy(self, garden: &Garden) -> Gardening;

    /// The setting for a garden whose own setting is `own`. `is_disks`: all its drives are disks.
    fn on(self, own: Gardening, is_disks: bool) -> Gardening;
}

impl Policy for GardeningArg {
    fn policy(self, garden: &Garden) -> Gardening {
        let is_disks = garden.report().groups.iter().all(|group| group.medium == Medium::Hdd);
        self.on(garden.gardening(), is_disks)
    }

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
    let request = Request::Clean { from: args.from };
    let access = Access::of(args.trial.dry_run);
    let Response::Cleaned(done) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    access.announce(&place);
    if args.json {
        println!("{}", with_format(version::CLEAN, &done)?);
    } else {
        let Cleaned { areas, of, cleaned, areas_without_space: no_space, .. } = done;
        println!(
            "{place}: {areas} of {of} allocation areas; {cleaned} cleaned, {no_space} not, because no space is free"
        );
        println!(
            "  blocks moved: {} of volumes, {} of the garden's own; {} could not be",
            done.moved_blocks, done.moved_metadata_blocks, done.stuck_blocks
        );
        println!("  {} of {} pointers named an old location and were corrected", done.fixed_pointers, done.pointers);
        if areas < of {
            println!("`senesce fs clean --from {areas}` continues from there");
        }
    }
    Ok(check_interrupted("cleaning")?)
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
