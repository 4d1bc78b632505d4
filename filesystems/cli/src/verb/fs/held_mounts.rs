//! The mounts that this process holds, from their beginning to their end.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use anyhow::Result;
use senesce_core::Printable;
use senesce_fsapi::FileSystem;
use senesce_fuse::{Alarm, KernelPages, MountOptions, Mounted};
use senesce_garden::Acknowledge;
use senesce_volume::{
    Custodian, ENGINE_SOURCE, MountSource, Outcome, Resource, ResourceId, interrupted, wake_on_signal,
};

use super::mounts::Mounts;
use crate::{
    args::{FsServedArgs, MountOptionArg, WriteBackArg},
    clock::SystemClock,
};

/// How long the holder sleeps between two steps of work that has no end in sight, such as filling a
/// drive.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What is to be served, and where.
pub(super) struct Served<'a> {
    pub mounts: Vec<Begin<'a>>,
    /// Where their beginnings and ends are recorded, by number.
    pub record: &'a Mounts,
    /// Where they are stored, in words.
    pub place: &'a dyn fmt::Display,
    /// Threads of each.
    pub threads: usize,
    pub pages: KernelPages,
    pub allows: Allows,
    pub quiet: bool,
}

/// A file system that is to be mounted.
pub(super) struct Begin<'a> {
    pub fs: Arc<dyn FileSystem>,
    pub point: &'a Path,
    /// The kernel refuses changes.
    pub read_only: bool,
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

/// A mount that began, and is in the journal.
struct Held {
    id: ResourceId,
    mounted: Mounted,
    is_ended: bool,
}

/// Serves until all is unmounted or a signal ends it. Calls `each` whenever an alarm of a mount is
/// raised, and after the time that `each` returned; it returns `None` if only an alarm is to wake
/// it. The alarm that it receives stands for all mounts.
///
/// Errors: one cannot be mounted, and then none is; the last sync failed.
pub(super) fn hold(
    custodian: &Custodian,
    served: Served<'_>,
    each: &mut dyn FnMut(&Alarm) -> Option<Duration>,
) -> Result<()> {
    let quiet = served.quiet;
    let mut held = begin_all(custodian, &served)?;
    let Some(alarm) = held.first().map(|held| held.mounted.alarm().clone()) else { return Ok(()) };
    if !quiet {
        for Begin { point, .. } in &served.mounts {
            eprintln!("{} is mounted on {}; Ctrl-C or umount unmounts it", served.place, Printable::new(point));
        }
    }
    wake_on_signal();
    while observe(&mut held, &served, &alarm) && interrupted().is_none() {
        let longest = each(&alarm);
        // A mount may have ended meanwhile, and its wake with it.
        if !is_over(&held) && interrupted().is_none() {
            alarm.wait(longest);
        }
    }
    for (held, Begin { point, .. }) in held.iter().zip(&served.mounts) {
        if let Outcome::DetachedLazily = custodian.release(held.id)?
            && !quiet
        {
            let point = Printable::new(point);
            eprintln!("a process still uses {point}; the mount stays until the last process closes it");
        }
    }
    // Programs may continue to write. Their changes must become durable as soon as before.
    while observe(&mut held, &served, &alarm) {
        let longest = each(&alarm);
        if !is_over(&held) {
            alarm.wait(longest);
        }
    }
    // All of them, whatever one says.
    let ends: Vec<_> = held.into_iter().map(|held| held.mounted.join()).collect();
    Ok(ends.into_iter().collect::<Result<_, _>>()?)
}

fn is_over(held: &[Held]) -> bool {
    held.iter().all(|held| held.mounted.is_over())
}

/// Mounts all, or none.
fn begin_all(custodian: &Custodian, served: &Served<'_>) -> Result<Vec<Held>> {
    let mut all: Vec<Held> = Vec::new();
    for (number, wanted) in served.mounts.iter().enumerate() {
        match begin(custodian, served, number, wanted) {
            Ok(held) => all.push(held),
            Err(error) => {
                for held in all {
                    custodian.release(held.id)?;
                    held.mounted.join()?;
                }
                return Err(error);
            }
        }
    }
    Ok(all)
}

fn begin(custodian: &Custodian, served: &Served<'_>, number: usize, wanted: &Begin<'_>) -> Result<Held> {
    let &Begin { ref fs, point, read_only } = wanted;
    let &Served { threads, pages, allows: Allows { suid, dev }, .. } = served;
    // In the journal before it is there.
    let name = mount_source(number, custodian.token());
    let resource = Resource::Mount { point: point.to_owned(), source: MountSource::Engine { name: name.clone() } };
    let now = Arc::new(SystemClock::unix_time);
    let options = MountOptions { source: name, threads, now, read_only, pages, suid, dev };
    let (id, started) = custodian.acquire(resource, |_| Ok(Mounted::start(fs.clone(), point, options)))?;
    match started {
        Ok(mounted) => {
            served.record.begin(number, mounted.device());
            Ok(Held { id, mounted, is_ended: false })
        }
        Err(error) => {
            custodian.release(id)?;
            Err(error.into())
        }
    }
}

/// The source of a mount in the list of mounts. No other mount has the same.
fn mount_source(number: usize, token: &str) -> String {
    match number {
        0 => format!("{ENGINE_SOURCE}{token}"),
        _ => format!("{ENGINE_SOURCE}{number}.{token}"),
    }
}

/// The token of the process that serves a mount, from the source of the mount. `None`: the source
/// does not have the form of ours.
pub(super) fn token_of(source: &str) -> Option<&str> {
    source.strip_prefix(ENGINE_SOURCE)?.rsplit('.').next()
}

/// Reports mounts that ended, and passes changes of all on to one alarm. Returns whether one has
/// not ended.
fn observe(held: &mut [Held], served: &Served<'_>, alarm: &Alarm) -> bool {
    for (number, held) in held.iter_mut().enumerate() {
        if !held.is_ended && held.mounted.is_over() {
            held.is_ended = true;
            served.record.end(number);
        }
    }
    // While the flag is set no other is taken: else each change of another mount would wake this
    // thread.
    if !alarm.is_changed() && held.iter().skip(1).any(|held| held.mounted.alarm().take_change()) {
        alarm.note_change();
    }
    !is_over(held)
}
