//! A mount that this process holds, from its beginning to its end.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use anyhow::Result;
use senesce_core::Printable;
use senesce_fsapi::FileSystem;
use senesce_fuse::{Alarm, KernelPages, MountOptions, Mounted};
use senesce_garden::Acknowledge;
use senesce_volume::{Custodian, ENGINE_SOURCE, MountSource, Outcome, Resource, interrupted, wake_on_signal};

use crate::{
    args::{FsServedArgs, MountOptionArg, WriteBackArg},
    clock::SystemClock,
};

/// How long the holder sleeps between two steps of work that has no end in sight, such as filling a drive.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// What is to be served, and where.
pub(super) struct Served<'a> {
    pub fs: Arc<dyn FileSystem>,
    /// Where it lies, in words.
    pub place: &'a dyn fmt::Display,
    pub point: &'a Path,
    pub threads: usize,
    pub read_only: bool,
    pub pages: KernelPages,
    pub allows: Allows,
    pub quiet: bool,
}

/// The options of a mount that are off by default.
#[derive(Clone, Copy, Debug)]
pub struct Allows {
    /// Setuid bits have an effect.
    pub suid: bool,
    /// Device nodes can be opened.
    pub dev: bool,
}

impl FsServedArgs {
    /// Options of the mount.
    pub fn allows(&self) -> Allows {
        let has = |option| self.options.contains(&option);
        Allows { suid: has(MountOptionArg::Suid), dev: has(MountOptionArg::Dev) }
    }

    /// When a garden acknowledges what programs do.
    pub fn acknowledge(&self) -> Acknowledge {
        if self.write_back.is_some() { Acknowledge::Done } else { Acknowledge::Durable }
    }

    /// What becomes of writes on their way to the engine.
    pub fn pages(&self) -> KernelPages {
        match self.write_back {
            None | Some(WriteBackArg::Engine) => KernelPages::Through,
            Some(WriteBackArg::Kernel) => KernelPages::Keep,
            Some(WriteBackArg::Direct) => KernelPages::PastIfNew,
        }
    }
}

/// Serves until it is unmounted or a signal ends it. Calls `each` whenever the mount's alarm is raised, and after the time that `each`
/// returned; it returns `None` if only the alarm is to wake it.
///
/// Errors: it cannot be mounted; the last sync failed.
pub(super) fn hold(
    custodian: &Custodian,
    served: Served<'_>,
    each: &mut dyn FnMut(&Alarm) -> Option<Duration>,
) -> Result<()> {
    let Served { fs, place, point, threads, read_only, pages, allows, quiet } = served;
    // In the journal before it is there.
    let name = format!("{ENGINE_SOURCE}{}", custodian.token());
    let resource = Resource::Mount { point: point.to_owned(), source: MountSource::Engine { name: name.clone() } };
    let Allows { suid, dev } = allows;
    let now = Arc::new(SystemClock::unix_time);
    let options = MountOptions { source: name, threads, now, read_only, pages, suid, dev };
    let (id, started) = custodian.acquire(resource, |_| Ok(Mounted::start(fs, point, options)))?;
    let mounted = match started {
        Ok(mounted) => mounted,
        Err(error) => {
            custodian.release(id)?;
            return Err(error.into());
        }
    };
    if !quiet {
        eprintln!("{place} is mounted on {}; Ctrl-C or umount unmounts it", Printable::new(point));
    }
    wake_on_signal();
    loop {
        let longest = each(mounted.alarm());
        if mounted.is_over() || interrupted().is_some() {
            break;
        }
        mounted.alarm().wait(longest);
    }
    if let Outcome::DetachedLazily = custodian.release(id)?
        && !quiet
    {
        eprintln!("a process still uses {}; the mount stays until the last process closes it", Printable::new(point));
    }
    // Programs may go on writing for long: what they do is to be durable as soon as before.
    while !mounted.is_over() {
        let longest = each(mounted.alarm());
        mounted.alarm().wait(longest);
    }
    Ok(mounted.join()?)
}
